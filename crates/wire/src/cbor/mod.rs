//! CBOR (RFC 8949): the same values for hosts without generated code, for logs, and for what leaves the machine.
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
//! One form for each value, the core deterministic encoding of RFC 8949, 4.2.1: shortest heads and floats, definite lengths, keys in the
//! order of their encoded bytes, so a shorter one first. All fields of a record are written, flags in WIT's order.
//!
//! # What is read
//! Every well-formed item that means a value of the type: any width of heads and floats, definite and indefinite lengths, keys in any
//! order, integers for floats where nothing is lost, an array where a list of numbers may be a byte string, typed arrays in either order of
//! bytes. An `option` that is missing in a record is none. Everything else is [`Refused`] with its [`Rule`] and place: an unknown or
//! doubled key, a missing field, a number out of range, a tag.
//!
//! # Limits
//! 1. An item has at most [`MAX_SIZE`] bytes, and nothing stands behind it.
//! 2. It is nested as deep as its type and no deeper, so at most [`MAX_DEPTH`].
//! 3. What a length promises is there before it is believed; a list takes no more memory in advance than bytes are left.
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

/// A type that has a form in CBOR. The generators write it for named types; handles have none.
pub trait Cbor: Decode {
    /// The value may itself be `null`.
    const NULLABLE: bool = false;

    /// Appends a value.
    fn write(view: Self::View<'_>, to: &mut Writer);

    /// Reads the next item.
    ///
    /// # Errors
    /// It is no value of this type.
    fn read(from: &mut Reader<'_>) -> Result<Self, Refused>;

    /// What a record has where the field is missing, if it may be.
    fn missing() -> Option<Self> {
        None
    }

    /// Appends a list. Numbers go as bytes.
    fn write_list(list: ListView<'_, Self>, to: &mut Writer) {
        to.array(list.len());
        for item in list {
            Self::write(item, to);
        }
    }

    /// Appends a list of a fixed length. Numbers go as bytes.
    fn write_items(items: &[Self::View<'_>], to: &mut Writer) {
        to.array(items.len());
        for item in items {
            Self::write(*item, to);
        }
    }

    /// Reads a list.
    ///
    /// # Errors
    /// It is none, or an element is no value of this type.
    fn read_list(from: &mut Reader<'_>) -> Result<Vec<Self>, Refused> {
        array(from)
    }
}

/// Writes `value`. `buffer` is emptied and its memory used.
pub fn encode<T: Cbor>(value: &T, buffer: Vec<u8>) -> Vec<u8> {
    let mut to = Writer::new(buffer);
    T::write(value.as_view(), &mut to);
    to.finish()
}

/// Reads a value that is all of `bytes`.
///
/// # Errors
/// It is no value of this type, or something stands behind it.
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
