//! CBOR (RFC 8949): the same values for hosts without generated code, for logs and for the network.
//!
//! | WIT | CBOR |
//! | --- | --- |
//! | `bool` | `true`, `false` |
//! | `u8` .. `u64`, `s8` .. `s64` | an integer |
//! | `f32`, `f64` | a float, in the shortest of the three widths that keeps every bit, those of a NaN too |
//! | `char` | a text of one scalar value |
//! | `string` | a text |
//! | `list<u8>` | a byte string |
//! | a list of other numbers | a byte string of them, little-endian, with the tag of RFC 8746 for their type |
//! | any other list, `tuple` | an array |
//! | `list<T, N>` | as a list, of `N` |
//! | `option<T>` | `null` or the value; where `T` itself may be `null`, an array of none or one |
//! | `result<T, E>` | a map of one: `{"ok": ..}` or `{"error": ..}`, `null` where there is no payload |
//! | record | a map; the names as WIT writes them |
//! | variant | a map of one, `{"case": payload}`; the case's name as a text where it has no payload |
//! | enum | the case's name as a text |
//! | flags | an array of the names of those that are set |
//!
//! # What is written
//! Each value has one form, the core deterministic encoding of RFC 8949, 4.2.1: shortest heads and
//! floats, definite lengths, and keys in the order of their encoded bytes, so that a shorter key is
//! first. All fields of a record are written, and flags in the order of the WIT file.
//!
//! # What is read
//! Every well-formed item that represents a value of the type: any width of heads and floats,
//! definite and indefinite lengths, keys in any order, integers for floats if nothing is lost, an
//! array for a list of numbers that could be a byte string, typed arrays in either byte order. A
//! missing `option` field of a record is none. Everything else is [`Refused`] with its [`Rule`] and
//! place: an unknown or duplicate key, a missing field, a number out of range, a tag.
//!
//! # Limits
//! 1. An item has at most [`MAX_SIZE`] bytes, and nothing follows it.
//! 2. It is nested no deeper than its type, so at most [`MAX_DEPTH`].
//! 3. A length is checked against the remaining bytes before it is used. A list reserves no more
//!    memory than the number of remaining bytes.
//!
//! ```
//! use thalweg_wire::cbor;
//!
//! let bytes = cbor::encode(&vec![Some("left".to_owned()), None], Vec::new());
//! assert_eq!(bytes, b"\x82\x64left\xf6");
//! assert_eq!(cbor::decode::<Vec<Option<String>>>(&bytes)?[1], None);
//! # Ok::<(), cbor::Refused>(())
//! ```

mod float;
mod numbers;
mod read;
mod refused;
mod transcode;
mod values;
mod write;

pub use read::{Case, Items, Reader};
pub use refused::{Refused, Rule};
pub use transcode::{Untranslated, of_message, to_message};
pub use write::Writer;

use crate::{Decode, ListView, MAX_DEPTH, MAX_SIZE};

/// A type with a representation in CBOR. The generators implement it for named types. Handles have
/// none.
pub trait Cbor: Decode {
    /// Whether the value itself can be `null`.
    const NULLABLE: bool = false;

    /// Appends a value.
    fn write(view: Self::View<'_>, to: &mut Writer);

    /// Reads the next item.
    ///
    /// # Errors
    /// The item is not a value of this type.
    fn read(from: &mut Reader<'_>) -> Result<Self, Refused>;

    /// The value of a missing field of a record, if the field may be missing.
    fn missing() -> Option<Self> {
        None
    }

    /// Appends a list. Numbers are written as bytes.
    fn write_list(list: ListView<'_, Self>, to: &mut Writer) {
        to.array(list.len());
        for item in list {
            Self::write(item, to);
        }
    }

    /// Appends a list of a fixed length. Numbers are written as bytes.
    fn write_items(items: &[Self::View<'_>], to: &mut Writer) {
        to.array(items.len());
        for item in items {
            Self::write(*item, to);
        }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The item is not a list, or an element is not a value of this type.
    fn read_list(from: &mut Reader<'_>) -> Result<Vec<Self>, Refused> {
        array(from)
    }
}

/// Writes `value`. The previous contents of `buffer` are discarded and its memory is reused.
pub fn encode<T: Cbor>(value: &T, buffer: Vec<u8>) -> Vec<u8> {
    let mut to = Writer::new(buffer);
    T::write(value.as_view(), &mut to);
    to.finish()
}

/// Reads a value that takes all of `bytes`.
///
/// # Errors
/// `bytes` is not a value of this type, or something follows it.
pub fn decode<T: Cbor>(bytes: &[u8]) -> Result<T, Refused> {
    const {
        assert!(
            T::DEPTH <= MAX_DEPTH,
            "the type is nested too deeply for a message"
        )
    };
    if bytes.len() > MAX_SIZE as usize {
        return Err(Refused::new(Rule::Size, 0));
    }
    let mut from = Reader::new(bytes);
    let value = T::read(&mut from)?;
    from.finish()?;
    Ok(value)
}

/// A list as an array.
fn array<T: Cbor>(from: &mut Reader<'_>) -> Result<Vec<T>, Refused> {
    let mut items = from.array()?;
    let mut list = Vec::with_capacity(from.room::<T>(&items));
    while from.more(&mut items)? {
        list.push(T::read(from)?);
    }
    Ok(list)
}
