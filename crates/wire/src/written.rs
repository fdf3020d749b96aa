//! Values that are written by a function.

use crate::{Decode, Encode, Encoder};
use std::marker::PhantomData;

struct Written<T, F, H> {
    write: F,
    handles: H,
    ty: PhantomData<fn() -> T>,
}

impl<T: Decode, F: Fn(&mut Encoder<'_>, u32), H: Fn(bool) -> u32> Encode for Written<T, F, H> {
    type As = T;

    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        (self.write)(to, at);
    }

    fn handles(&self, given: bool) -> u32 {
        (self.handles)(given)
    }
}

/// A value that `write` writes as a `T`. Use it if you have the parts of a record in different
/// places, and not the record. `handles` returns the same as [`Encode::handles`].
///
/// ```
/// use thalweg_wire::{Encode, message, written};
///
/// let (left, right) = ("a", 7u32);
/// let pair = written::<(String, u32)>(|to, at| {
///     left.encode(to, at);
///     right.encode(to, at + 8);
/// }, |_| 0);
/// assert_eq!(
///     message::encode(&pair, 1, Vec::new()),
///     message::encode(&(left, right), 1, Vec::new()),
/// );
/// ```
pub fn written<T: Decode>(
    write: impl Fn(&mut Encoder<'_>, u32),
    handles: impl Fn(bool) -> u32,
) -> impl Encode<As = T> {
    Written {
        write,
        handles,
        ty: PhantomData,
    }
}
