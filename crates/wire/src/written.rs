//! Values that are written by a function.

use crate::{Decode, Encode, Encoder};
use std::marker::PhantomData;

struct Written<T, F>(F, PhantomData<fn() -> T>);

impl<T: Decode, F: Fn(&mut Encoder<'_>, u32)> Encode for Written<T, F> {
    type As = T;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        (self.0)(to, at);
    }
}

/// What `write` writes as a `T`: for who has a record's parts, each where it is, and not the record.
///
/// ```
/// use thalweg_wire::{Encode, message, written};
///
/// let (left, right) = ("a", 7u32);
/// let pair = written::<(String, u32)>(|to, at| {
///     left.encode(to, at);
///     right.encode(to, at + 8);
/// });
/// assert_eq!(
///     message::encode(&pair, 1, Vec::new()),
///     message::encode(&(left, right), 1, Vec::new()),
/// );
/// ```
pub fn written<T: Decode>(write: impl Fn(&mut Encoder<'_>, u32)) -> impl Encode<As = T> {
    Written(write, PhantomData)
}
