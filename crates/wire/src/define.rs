//! The macros that define types, and their helper functions.
//!
//! [`record!`](crate::record), [`variant!`](crate::variant), [`enumeration!`](crate::enumeration)
//! and [`flags!`](crate::flags) define a type with a flat layout. The generators write them, and
//! compute the sizes and offsets. Each macro has three parts: the type as in Rust, with the WIT name
//! and the place of each member; the layout; and the traits that not every type implements.

mod enumeration;
mod flags;
mod record;
mod variant;

use crate::cbor::Cbor;
use std::any::Any;
use std::fmt::{self, Debug, Formatter};

/// The largest of `depths`, or 0.
pub const fn deepest(depths: &[u32]) -> u32 {
    let (mut deepest, mut i) = (0, 0);
    while i < depths.len() {
        if depths[i] > deepest {
            deepest = depths[i];
        }
        i += 1;
    }
    deepest
}

/// Where a run of adjacent numbers begins, and its size, from the offset and the size of each.
pub const fn run(numbers: &[(u32, u32)]) -> (u32, usize) {
    let first = numbers[0].0;
    let (last, size) = numbers[numbers.len() - 1];
    (first, (last + size - first) as usize)
}

/// Where the padding before the offset `at` of a record begins, and its size, from the offset and
/// the size of each field.
pub const fn padding(fields: &[(u32, u32)], at: u32) -> (u32, usize) {
    let (mut end, mut i) = (0, 0);
    while i < fields.len() && fields[i].0 < at {
        end = fields[i].0 + fields[i].1;
        i += 1;
    }
    (end, (at - end) as usize)
}

/// The offsets of a record's fields, in the order in which CBOR writes the fields: a shorter name is
/// first, and names of the same length are in the order of their bytes (RFC 8949, 4.2.1).
///
/// # Panics
/// Two fields have the same offset, which only fields without bytes could have.
pub const fn key_order<const N: usize>(fields: [(&str, u32); N]) -> [u32; N] {
    let mut sorted = fields;
    let mut i = 1;
    while i < N {
        assert!(
            fields[i - 1].1 < fields[i].1,
            "fields are in the order of their offsets"
        );
        let mut at = i;
        while at > 0 && is_before(sorted[at].0.as_bytes(), sorted[at - 1].0.as_bytes()) {
            (sorted[at], sorted[at - 1]) = (sorted[at - 1], sorted[at]);
            at -= 1;
        }
        i += 1;
    }
    let mut offsets = [0; N];
    let mut i = 0;
    while i < N {
        offsets[i] = sorted[i].1;
        i += 1;
    }
    offsets
}

const fn is_before(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return one.len() < other.len();
    }
    let mut i = 0;
    while i < one.len() {
        if one[i] != other[i] {
            return one[i] < other[i];
        }
        i += 1;
    }
    false
}

/// Writes a field of a record as CBOR.
#[inline]
pub fn write_field<T: Cbor>(name: &str, view: T::View<'_>, to: &mut crate::cbor::Writer) {
    to.text(name);
    T::write(view, to);
}

/// Displays the WIT name of a case as words, and its payload.
pub fn display_case(
    f: &mut Formatter<'_>,
    name: &str,
    payload: Option<&dyn Payload>,
) -> fmt::Result {
    f.write_str(&name.replace('-', " "))?;
    match payload {
        None => Ok(()),
        Some(payload) => {
            f.write_str(": ")?;
            match payload.text() {
                Some(text) => f.write_str(text),
                None => payload.fmt(f),
            }
        }
    }
}

/// The payload of a case.
pub trait Payload: Debug {
    /// The text, if it is one.
    fn text(&self) -> Option<&str>;
}

impl<T: Debug + 'static> Payload for T {
    fn text(&self) -> Option<&str> {
        (self as &dyn Any).downcast_ref().map(String::as_str)
    }
}

/// The type of a field in the view, which follows `as` if it differs.
#[doc(hidden)]
#[macro_export]
macro_rules! __view_type {
    ($ty:ty) => {
        $ty
    };
    ($ty:ty as $view:ty) => {
        $view
    };
}

/// Converts the view of a field into its owned value.
#[doc(hidden)]
#[macro_export]
macro_rules! __owned {
    ($value:expr, $ty:ty) => {
        $value
    };
    ($value:expr, $ty:ty as $view:ty) => {
        <$ty as $crate::Decode>::owned($value)
    };
}

/// The view of the field at a place.
#[doc(hidden)]
#[macro_export]
macro_rules! __as_view {
    ($place:expr, $ty:ty) => {
        $place
    };
    ($place:expr, $ty:ty as $view:ty) => {
        <$ty as $crate::Decode>::as_view(&$place)
    };
}

/// The structure of a type. A text replaces the one of a type with handles, because only WIT has the
/// names of resources.
#[doc(hidden)]
#[macro_export]
macro_rules! __shape {
    ($ty:ty) => {
        <$ty as $crate::Decode>::SHAPE
    };
    ($ty:ty, $text:literal) => {
        $crate::Shape::Text($text)
    };
}

/// The structure of the payload of a case, if there is one.
#[doc(hidden)]
#[macro_export]
macro_rules! __payload_shape {
    (()) => { ::std::option::Option::None };
    (($ty:ty) $($text:literal)?) => {
        ::std::option::Option::Some($crate::__shape!($ty $(, $text)?))
    };
}

/// Its second argument, once for the type that is its first.
#[doc(hidden)]
#[macro_export]
macro_rules! __for {
    ($ty:ty, $($then:tt)*) => { $($then)* };
}

/// An optional value, and whether there is one as a pattern.
#[doc(hidden)]
#[macro_export]
macro_rules! __some {
    () => {
        ::std::option::Option::None
    };
    ($value:expr) => {
        ::std::option::Option::Some($value)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __has {
    () => {
        false
    };
    ($ty:ty) => {
        true
    };
}

/// A default that cannot be derived.
#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    ($name:ident = $value:expr) => {
        impl ::std::default::Default for $name {
            fn default() -> Self {
                $value
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::{key_order, padding, run};

    #[test]
    fn keys_of_cbor_are_ordered_by_length_and_then_by_bytes() {
        let fields = [("bb", 0), ("a-long-name", 4), ("c", 8), ("ba", 12)];
        assert_eq!(key_order(fields), [8, 12, 0, 4]);
    }

    #[test]
    fn run_of_numbers_includes_its_padding() {
        assert_eq!(run(&[(8, 1), (12, 4), (16, 8)]), (8, 16));
    }

    #[test]
    fn padding_is_between_a_field_and_the_next_offset() {
        let fields = [(0, 1), (8, 8), (16, 4)];
        assert_eq!(padding(&fields, 0), (0, 0));
        assert_eq!(padding(&fields, 8), (1, 7));
        assert_eq!(padding(&fields, 16), (16, 0));
        assert_eq!(padding(&fields, 24), (20, 4));
        assert_eq!(padding(&[], 1), (0, 1));
    }
}
