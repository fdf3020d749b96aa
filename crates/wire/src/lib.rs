//! Flat messages: the Component Model's canonical layout, with offsets in place of pointers.
//!
//! A value lies in memory as a C compiler would lay it out. A string or list is `{u32 offset, u32 length}`, and its
//! bytes or elements, its *tail*, stand further on. The elements of a list of a fixed length stand in place. Offsets count from the message's first byte, so a message means the
//! same on a heap, in a ring, or in memory that two processes share.
//!
//! ```text
//!   message   | header 16 B | handles 8 B each | root | tail | tail | ..
//!   batch     | slot | slot | slot | ..   free   .. | tail | tail | ..
//! ```
//!
//! Three steps, three types: an [`Encoder`] writes; a [`Checker`] walks once over what came in and refuses what
//! is not well formed; after that, [`Bytes`] is read in place through [`Decode::view`], without a copy.
//!
//! # The rules a checked message obeys
//! 1. Every value lies inside the message, aligned for its type.
//! 2. Tails stand in pre-order: each begins at or after the end of the one before, so none overlap.
//! 3. An empty string or list, and a list whose elements have no size, has offset 0.
//! 4. A list of elements without size has at most [`MAX_UNSIZED`] of them.
//! 5. Strings are UTF-8, a `char` is a scalar value, a `bool` is 0 or 1, discriminants are in range, unused flag bits are 0.
//! 6. Handles are numbered in the order of their fields: the first is 0. Each is used exactly once.
//! 7. A message has at most [`MAX_SIZE`] bytes. A type is nested at most [`MAX_DEPTH`] deep; WIT has no recursive types, so
//!    this is checked when the type is compiled.
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
pub mod describe;
mod encoder;
pub mod evolve;
mod handle;
mod layout;
mod list;
mod malformed;
pub mod message;
mod option;
mod result;
mod scalar;
mod shape;
mod text;
mod tuple;
mod written;

pub use bytes::{Bytes, word};
pub use checker::Checker;
pub use encoder::{Encoder, NoRoom};
pub use handle::Handle;
pub use list::{ListIter, ListView};
pub use malformed::{Malformed, Rule};
pub use shape::Shape;
pub use written::written;

use std::fmt::Debug;

/// Largest message in bytes: an offset or length fits an `i32` in every guest language.
pub const MAX_SIZE: u32 = (1 << 31) - 1;

/// Deepest nesting of a type. Fits the smallest stack that a guest reads on.
///
/// A type that is deeper does not compile where it is read:
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

/// Most elements in a list whose elements have no size: such a list costs no bytes, so only a limit stops a
/// short message from keeping its reader busy for long.
pub const MAX_UNSIZED: u32 = 65_536;

/// What can be written as a value of the type [`As`](Encode::As): the value itself, its borrowed form, a reference to either.
///
/// Writing cannot fail on the spot. What has no room is noted by the encoder, which says so at the end.
pub trait Encode {
    /// The type as which it is written.
    type As: Decode;

    /// Writes the fixed part at `at` and the tails behind the tails so far. The fixed part's bytes are zero before.
    fn encode(&self, to: &mut Encoder<'_>, at: u32);

    /// How many handles it has. Where they are `given`, a message with them went out: they are who reads it's from now on, not this value's.
    /// Looked at only where the type [holds](Decode::HOLDS) handles.
    fn handles(&self, given: bool) -> u32 {
        let _ = given;
        0
    }

    /// Writes all of `items`, one after the other, from `at`. Scalars copy in one go.
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

    /// Writes the list of `items`: `{offset, length}` at `at`, they as the next tail.
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

/// A type with a flat layout: how large it is, how it is checked, how it is read.
pub trait Decode: Encode<As = Self> + Sized + 'static {
    /// Bytes in place; a multiple of `ALIGN`.
    const SIZE: u32;
    /// 1, 2, 4 or 8.
    const ALIGN: u32;
    /// The type's structure as text, from which `HASH` is made.
    const SHAPE: Shape;
    /// FNV-1a 64 of `SHAPE`. Two types with the same hash have the same layout and names.
    const HASH: u64 = Self::SHAPE.hash();
    /// How many types are nested in one another, counted along the longest way; 0 for a scalar or a string.
    const DEPTH: u32;
    /// A value can have handles: [`Encode::handles`] says how many.
    const HOLDS: bool = false;

    /// What a reader sees: the value in place.
    type View<'a>: Copy + Debug + PartialEq + Encode<As = Self>;

    /// Walks over the value at `at` once. The caller has made sure that the fixed part lies inside and is aligned.
    fn check(from: &mut Checker<'_>, at: u32) -> Result<(), Malformed>;

    /// The value at `at`. Only after `check`: else it may panic or show nonsense, and never does worse.
    fn view<'a>(from: Bytes<'a>, at: u32) -> Self::View<'a>;

    /// A value of its own.
    fn owned(view: Self::View<'_>) -> Self;

    /// The view of a value that was never encoded.
    fn as_view(&self) -> Self::View<'_>;

    /// The `N` values from `at` on, after `check`. Numbers are read in one go.
    #[inline]
    fn view_items<'a, const N: usize>(from: Bytes<'a>, at: u32) -> [Self::View<'a>; N] {
        std::array::from_fn(|i| Self::view(from, at + i as u32 * Self::SIZE))
    }

    /// Checks `count` values from `at` on. Scalars of which every bit pattern is valid have nothing to do.
    fn check_items(from: &mut Checker<'_>, at: u32, count: u32) -> Result<(), Malformed> {
        let mut at = at;
        for _ in 0..count {
            Self::check(from, at)?;
            at += Self::SIZE;
        }
        Ok(())
    }

    /// All values of a list. Scalars copy in one go.
    fn owned_items(list: ListView<'_, Self>) -> Vec<Self> {
        list.iter().map(Self::owned).collect()
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
