//! Numbers, and lists of them as byte strings: the typed arrays of RFC 8746.

use super::{Cbor, Reader, Refused, Rule, Writer, array};
use crate::describe::Number;
use crate::{Decode, ListView};
use std::borrow::Cow;

/// A number type of RFC 8746, 2.
pub(super) struct Typed {
    /// The tag of a list of such numbers, least significant byte first.
    pub little: u64,
    /// The tag of such a list with the most significant byte first.
    pub big: u64,
}

/// The bytes of a typed array.
pub(super) struct Packed<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub little: bool,
}

/// Reads a typed array if it is the next item.
pub(super) fn packed<'a>(
    from: &mut Reader<'a>,
    typed: &Typed,
    size: usize,
) -> Result<Option<Packed<'a>>, Refused> {
    let at = from.at();
    let Some(tag) = from.tag()? else {
        return Ok(None);
    };
    if tag != typed.little && tag != typed.big {
        return Err(Refused::new(Rule::Tag, at));
    }
    let bytes = from.bytes()?;
    if !bytes.len().is_multiple_of(size) {
        return Err(Refused::new(Rule::Count, at));
    }
    let little = tag == typed.little;
    Ok(Some(Packed { bytes, little }))
}

macro_rules! number {
    ($type:ty, $typed:expr, |$value:ident, $to:ident| $write:expr, |$from:ident| $read:expr) => {
        impl Cbor for $type {
            #[inline]
            fn write($value: $type, $to: &mut Writer) {
                $write
            }

            #[inline]
            fn read($from: &mut Reader<'_>) -> Result<$type, Refused> {
                $read
            }

            fn write_list(list: ListView<'_, $type>, to: &mut Writer) {
                const TYPED: Typed = $typed;
                to.tag(TYPED.little);
                match list.encoded() {
                    Some(bytes) => to.bytes(bytes),
                    None => {
                        let place = to.room(list.len() * size_of::<$type>());
                        let words = place.chunks_exact_mut(size_of::<$type>());
                        for (word, item) in words.zip(list) {
                            word.copy_from_slice(&item.to_le_bytes());
                        }
                    }
                }
            }

            fn write_items(items: &[$type], to: &mut Writer) {
                Self::write_list(ListView::from(items), to);
            }

            fn read_list(from: &mut Reader<'_>) -> Result<Vec<$type>, Refused> {
                const TYPED: Typed = $typed;
                let Some(Packed { bytes, little }) = packed(from, &TYPED, size_of::<$type>())?
                else {
                    return array(from);
                };
                let make = if little {
                    <$type>::from_le_bytes
                } else {
                    <$type>::from_be_bytes
                };
                let words = bytes.chunks_exact(size_of::<$type>());
                Ok(words
                    .map(|word| make(word.try_into().expect("a chunk is a word")))
                    .collect())
            }
        }
    };
}

/// Reads an integer that must fit the type.
#[inline]
fn integer<T: TryFrom<i128>>(from: &mut Reader<'_>) -> Result<T, Refused> {
    let at = from.at();
    T::try_from(from.int()?).map_err(|_| Refused::new(Rule::Range, at))
}

const fn typed(little: u64, big: u64) -> Typed {
    Typed { little, big }
}

/// The tags of a list of these numbers.
pub(super) const fn typed_of(kind: Number, size: u32) -> Typed {
    match (kind, size) {
        (Number::Unsigned, 1) => typed(64, 64),
        (Number::Unsigned, 2) => typed(69, 65),
        (Number::Unsigned, 4) => typed(70, 66),
        (Number::Unsigned, _) => typed(71, 67),
        (Number::Signed, 1) => typed(72, 72),
        (Number::Signed, 2) => typed(77, 73),
        (Number::Signed, 4) => typed(78, 74),
        (Number::Signed, _) => typed(79, 75),
        (Number::Float, 4) => typed(85, 81),
        (Number::Float, _) => typed(86, 82),
    }
}

number!(
    u16,
    typed_of(Number::Unsigned, 2),
    |value, to| to.uint(u64::from(value)),
    |from| integer(from)
);
number!(
    u32,
    typed_of(Number::Unsigned, 4),
    |value, to| to.uint(u64::from(value)),
    |from| integer(from)
);
number!(
    u64,
    typed_of(Number::Unsigned, 8),
    |value, to| to.uint(value),
    |from| integer(from)
);
number!(
    i8,
    typed_of(Number::Signed, 1),
    |value, to| to.int(i64::from(value)),
    |from| integer(from)
);
number!(
    i16,
    typed_of(Number::Signed, 2),
    |value, to| to.int(i64::from(value)),
    |from| integer(from)
);
number!(
    i32,
    typed_of(Number::Signed, 4),
    |value, to| to.int(i64::from(value)),
    |from| integer(from)
);
number!(
    i64,
    typed_of(Number::Signed, 8),
    |value, to| to.int(value),
    |from| integer(from)
);
number!(
    f32,
    typed_of(Number::Float, 4),
    |value, to| to.f32_bits(value.to_bits()),
    |from| from.f32_bits().map(f32::from_bits)
);
number!(
    f64,
    typed_of(Number::Float, 8),
    |value, to| to.f64_bits(value.to_bits()),
    |from| from.f64_bits().map(f64::from_bits)
);

impl Cbor for u8 {
    #[inline]
    fn write(value: u8, to: &mut Writer) {
        to.uint(u64::from(value));
    }

    #[inline]
    fn read(from: &mut Reader<'_>) -> Result<u8, Refused> {
        integer(from)
    }

    /// Without a tag, the bytes are the values.
    fn write_list(list: ListView<'_, u8>, to: &mut Writer) {
        to.bytes(list.as_bytes());
    }

    fn write_items(items: &[u8], to: &mut Writer) {
        to.bytes(items);
    }

    fn read_list(from: &mut Reader<'_>) -> Result<Vec<u8>, Refused> {
        if from.is_array()? {
            return array(from);
        }
        match packed(
            from,
            &typed_of(Number::Unsigned, 1),
            <u8 as Decode>::SIZE as usize,
        )? {
            Some(packed) => Ok(packed.bytes.into_owned()),
            None => from.bytes().map(Cow::into_owned),
        }
    }
}
