//! Flat messages: the Component Model's canonical layout, with offsets in place of pointers.
//!
//! A value has the same layout as in C. A string or list is `{u32 offset, u32 length}`, and its
//! bytes or elements, its *tail*, follow later in the message. The elements of a list of a fixed
//! length are stored in place. Offsets count from the message's first byte, so a message is valid
//! on a heap, in a ring, or in memory that two processes share.
//!
//! ```text
//!   message   | header 16 B | handles 8 B each | root | tail | tail | ..
//!   batch     | slot | slot | slot | ..   free   .. | tail | tail | ..
//! ```
//!
//! There are three steps with one type each: an [`Encoder`] writes a message; a [`Checker`] walks
//! once over a received message and refuses a malformed one; after that, [`Bytes`] is read in place
//! through [`Decode::view`], without a copy.
//!
//! # The rules a checked message obeys
//! 1. Every value lies inside the message, aligned for its type.
//! 2. Tails are in pre-order: each begins at or after the end of the previous one, so none overlap.
//! 3. An empty string or list, and a list whose elements have no size, has offset 0.
//! 4. A list whose elements have no size has at most [`MAX_UNSIZED`] elements.
//! 5. Strings are UTF-8, a `char` is a scalar value, a `bool` is 0 or 1, discriminants are in
//!    range, unused flag bits are 0.
//! 6. Handles are numbered in the order of their fields: the first is 0. Each is used exactly once.
//! 7. A message has at most [`MAX_SIZE`] bytes. A type is nested at most [`MAX_DEPTH`] deep. WIT
//!    has no recursive types, so the compiler checks this.
//!
//! ```
//! use thalweg_wire::message;
//!
//! let layout = 42; // the generators' constant for the root's type
//! let bytes = message::encode(&vec!["left", "right"], layout, Vec::new())?;
//! let names = message::open(&bytes, layout)?.view::<Vec<String>>()?;
//! assert_eq!(names.get(1), Some("right"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod array;
mod bytes;
pub mod cbor;
mod checker;
#[doc(hidden)]
pub mod define;
pub mod describe;
mod encoder;
pub mod evolve;
mod field;
mod handle;
mod layout;
mod list;
mod malformed;
mod memory;
pub mod message;
mod option;
pub mod prepared;
mod result;
mod scalar;
mod shape;
mod text;
mod tuple;
mod written;

pub use bytes::{Bytes, word};
pub use checker::Checker;
pub use encoder::{Encoder, NoRoom};
pub use field::{Field, Record};
pub use handle::Handle;
pub use list::{AsList, ListIter, ListView};
pub use malformed::{Malformed, Rule};
pub use shape::Shape;
pub use written::written;

use std::fmt::Debug;

/// Largest message in bytes: an offset or length fits an `i32` in every guest language.
pub const MAX_SIZE: u32 = (1 << 31) - 1;

/// Deepest nesting of a type. Fits the smallest stack on which a guest reads.
///
/// Reading a type that is nested deeper does not compile:
///
/// ```compile_fail,E0080
/// #![recursion_limit = "1024"] // rustc's own limit comes first otherwise
/// type Four<T> = Option<Option<Option<Option<T>>>>;
/// type Sixteen<T> = Four<Four<Four<Four<T>>>>;
/// type Deep = Option<Sixteen<Sixteen<Sixteen<Sixteen<u8>>>>>;
///
/// let message = thalweg_wire::message::open(&[], 0).unwrap();
/// message.view::<Deep>().unwrap();
/// ```
pub const MAX_DEPTH: u32 = 64;

/// Most elements in a list whose elements have no size. Such a list takes no bytes, so only a limit
/// prevents a short message from keeping its reader busy for a long time.
pub const MAX_UNSIZED: u32 = 65_536;

/// A value that can be written as the type [`As`](Encode::As): the value itself, its borrowed form,
/// or a reference to either.
///
/// Writing itself cannot fail. If there is no room, the encoder records it and reports it at the
/// end.
pub trait Encode {
    /// The type that the value is written as.
    type As: Decode;

    /// Writes the fixed part at `at`, and the tails after the tails so far. Precondition: the bytes
    /// of the fixed part are zero, unless the type [is dense](Decode::IS_DENSE).
    fn encode(&self, to: &mut Encoder<'_>, at: u32);

    /// The number of handles in the value. If `given` is true, a message with these handles was
    /// sent: its reader owns them from now on. Used only if the type [can
    /// have](Decode::HAS_HANDLES) handles.
    fn handles(&self, given: bool) -> u32 {
        let _ = given;
        0
    }

    /// Writes all `items`, one after the other, from `at`. Scalars are copied with one `memcpy`.
    fn encode_items(items: &[Self], to: &mut Encoder<'_>, at: u32)
    where
        Self: Sized,
    {
        let mut at = at;
        for item in items {
            item.encode(to, at);
            at = at.wrapping_add(<Self::As as Decode>::SIZE);
        }
    }

    /// Writes the list of `items`: `{offset, length}` at `at`, and the items as the next tail.
    #[inline(always)]
    fn encode_list(items: &[Self], to: &mut Encoder<'_>, at: u32)
    where
        Self: Sized,
    {
        let (size, align) = (<Self::As as Decode>::SIZE, <Self::As as Decode>::ALIGN);
        if let Some(first) = to.list(at, items.len(), size, align) {
            Self::encode_items(items, to, first);
        }
    }
}

/// A type with a flat layout: its size, its check and its reader.
pub trait Decode: Encode<As = Self> + Sized + 'static {
    /// Size in bytes of the fixed part; a multiple of `ALIGN`.
    const SIZE: u32;
    /// Alignment in bytes: 1, 2, 4 or 8.
    const ALIGN: u32;
    /// The type's structure as text, from which `HASH` is computed.
    const SHAPE: Shape;
    /// FNV-1a 64 of `SHAPE`. Two types with the same hash have the same layout and names.
    const HASH: u64 = Self::SHAPE.hash();
    /// Depth of nesting along the longest path; 0 for a scalar or a string.
    const DEPTH: u32;
    /// Whether a value can have handles. [`Encode::handles`] returns their number.
    const HAS_HANDLES: bool = false;
    /// Whether [`Encode::encode`] writes every byte of the fixed part, also for a default value and
    /// in the padding. A stream's slot is then not zeroed first.
    const IS_DENSE: bool = false;

    /// The borrowed form that a reader gets: the value in place.
    type View<'a>: Copy + Debug + PartialEq + Encode<As = Self>;

    /// Checks the value at `at` in one pass. Precondition: the fixed part is inside the message and
    /// aligned.
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed>;

    /// Returns the value at `at`. Call it only after `check`; otherwise it can panic or return a
    /// wrong value, but memory stays safe.
    fn view<'a>(from: Bytes<'a>, at: u32) -> Self::View<'a>;

    /// Converts a view into an owned value.
    fn owned(view: Self::View<'_>) -> Self;

    /// Returns the view of a value that was never encoded.
    fn as_view(&self) -> Self::View<'_>;

    /// Returns the `N` values from `at` on. Call it only after `check`. Numbers are read with one
    /// copy.
    #[inline]
    fn view_items<'a, const N: usize>(from: Bytes<'a>, at: u32) -> [Self::View<'a>; N] {
        std::array::from_fn(|i| Self::view(from, at + i as u32 * Self::SIZE))
    }

    /// Checks `count` values from `at` on. Scalars for which every bit pattern is valid need no
    /// check.
    fn check_items(from: &mut Checker<'_>, at: u32, count: u32) -> Result<(), Malformed> {
        let mut at = at;
        for _ in 0..count {
            Self::check(from, at)?;
            at += Self::SIZE;
        }
        Ok(())
    }

    /// Returns all values of a list as owned values. Scalars are copied with one `memcpy`.
    fn owned_items(list: ListView<'_, Self>) -> Vec<Self> {
        let mut items = memory::with_room(list.len());
        items.extend(list.iter().map(Self::owned));
        items
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    type As = T::As;

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_>, at: u32) {
        T::encode(self, to, at);
    }

    #[inline]
    fn handles(&self, given: bool) -> u32 {
        T::handles(self, given)
    }
}
