//! Reads CBOR items.

use super::write::major;
use super::{Cbor, Refused, Rule, float};
use crate::MAX_DEPTH;
use std::borrow::Cow;

/// The additional information of a head without a length, and of the break that ends such an item.
const INDEFINITE: u8 = 31;
const BREAK: u8 = 0xff;
const NULL: u8 = 0xf6;

/// Reads the items of a slice from front to back.
///
/// ```
/// use thalweg_wire::cbor::Reader;
///
/// let mut from = Reader::new(b"\x82\x01\x61a");
/// let mut items = from.array()?;
/// assert!(from.more(&mut items)?);
/// assert_eq!(from.int()?, 1);
/// assert!(from.more(&mut items)?);
/// assert_eq!(from.text()?, "a");
/// assert!(!from.more(&mut items)?);
/// # Ok::<(), thalweg_wire::cbor::Refused>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The state of an array or map: the number of remaining items or entries, or that a break ends it.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    left: Option<u64>,
}

/// A case of a variant: its name, and whether its payload follows.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// The name of the case.
    pub name: Cow<'a, str>,
    /// Whether there is a payload.
    pub payload: bool,
    at: usize,
    items: Items,
}

struct Head {
    major: u8,
    info: u8,
    value: u64,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// The offset of the next byte.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// There are bytes left.
    pub fn finish(self) -> Result<(), Refused> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.refused(Rule::Trailing))
        }
    }

    /// The error for the item that begins here.
    #[cold]
    pub fn refused(&self, rule: Rule) -> Refused {
        Refused::new(rule, self.at)
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    #[inline]
    fn peek(&self) -> Result<u8, Refused> {
        match self.bytes.get(self.at) {
            Some(byte) => Ok(*byte),
            None => Err(self.refused(Rule::End)),
        }
    }

    #[inline]
    fn word<const N: usize>(&self, at: usize) -> Result<[u8; N], Refused> {
        match self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(word) => Ok(*word),
            None => Err(self.refused(Rule::End)),
        }
    }

    /// Reads the next head. The position does not change if the head is not well-formed.
    #[inline]
    fn head(&mut self) -> Result<Head, Refused> {
        let first = self.peek()?;
        let (major, info) = (first >> 5, first & 31);
        let next = self.at + 1;
        let (value, wide) = match info {
            0..24 => (u64::from(info), 0),
            24 => (u64::from(u8::from_be_bytes(self.word(next)?)), 1),
            25 => (u64::from(u16::from_be_bytes(self.word(next)?)), 2),
            26 => (u64::from(u32::from_be_bytes(self.word(next)?)), 4),
            27 => (u64::from_be_bytes(self.word(next)?), 8),
            INDEFINITE if (major::BYTES..=major::MAP).contains(&major) || first == BREAK => (0, 0),
            _ => return Err(self.refused(Rule::Head)),
        };
        // A simple value below 32 has one form only: RFC 8949, 3.3.
        if major == major::SIMPLE && info == 24 && value < 32 {
            return Err(self.refused(Rule::Head));
        }
        self.at = next + wide;
        Ok(Head { major, info, value })
    }

    /// Reads the next head, which must have this major type.
    #[inline]
    fn expect(&mut self, major: u8) -> Result<Head, Refused> {
        let at = self.at;
        let head = self.head()?;
        if head.major == major {
            return Ok(head);
        }
        let rule = if head.major == major::TAG {
            Rule::Tag
        } else {
            Rule::Type
        };
        Err(Refused::new(rule, at))
    }

    /// Reads an integer.
    ///
    /// # Errors
    /// The next item is not an integer, or does not fit.
    #[inline]
    pub fn int(&mut self) -> Result<i128, Refused> {
        let at = self.at;
        let head = self.head()?;
        match head.major {
            major::UNSIGNED => Ok(i128::from(head.value)),
            major::NEGATIVE => Ok(-1 - i128::from(head.value)),
            major::TAG => Err(Refused::new(Rule::Tag, at)),
            _ => Err(Refused::new(Rule::Type, at)),
        }
    }

    /// Reads the bits of a float, or of an integer that a float of 64 bits can represent.
    ///
    /// # Errors
    /// The next item is neither, or does not fit.
    pub fn f64_bits(&mut self) -> Result<u64, Refused> {
        let at = self.at;
        if self.peek()? >> 5 <= major::NEGATIVE {
            let whole = self.int()?;
            let value = whole as f64;
            return if value as i128 == whole {
                Ok(value.to_bits())
            } else {
                Err(Refused::new(Rule::Range, at))
            };
        }
        let head = self.expect(major::SIMPLE)?;
        match head.info {
            25 => Ok(float::f64_of_f32(float::f32_of_f16(head.value as u16))),
            26 => Ok(float::f64_of_f32(head.value as u32)),
            27 => Ok(head.value),
            _ => Err(Refused::new(Rule::Type, at)),
        }
    }

    /// Reads the bits of a float of 32 bits, which may be encoded wider.
    ///
    /// # Errors
    /// The next item is not a float, or would lose precision.
    pub fn f32_bits(&mut self) -> Result<u32, Refused> {
        let at = self.at;
        let wide = self.f64_bits()?;
        float::f32_of_f64(wide).ok_or(Refused::new(Rule::Range, at))
    }

    /// Reads `false` or `true`.
    ///
    /// # Errors
    /// The next item is neither.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, Refused> {
        let at = self.at;
        match self.expect(major::SIMPLE)?.info {
            20 => Ok(false),
            21 => Ok(true),
            _ => Err(Refused::new(Rule::Type, at)),
        }
    }

    /// Consumes a `null`, if it is the next item. Returns whether it was.
    ///
    /// # Errors
    /// There is no next item.
    #[inline]
    pub fn null(&mut self) -> Result<bool, Refused> {
        let is_null = self.peek()? == NULL;
        self.at += usize::from(is_null);
        Ok(is_null)
    }

    /// Reads a text. It is borrowed if it is in one piece.
    ///
    /// # Errors
    /// The next item is not a text, is truncated, or is not UTF-8.
    #[inline]
    pub fn text(&mut self) -> Result<Cow<'a, str>, Refused> {
        let head = self.expect(major::TEXT)?;
        if head.info != INDEFINITE {
            return self.utf8(head.value).map(Cow::Borrowed);
        }
        let mut text = String::new();
        while let Some(size) = self.piece(major::TEXT)? {
            text.push_str(self.utf8(size)?);
        }
        Ok(Cow::Owned(text))
    }

    /// Reads a byte string. It is borrowed if it is in one piece.
    ///
    /// # Errors
    /// The next item is not a byte string, or is truncated.
    #[inline]
    pub fn bytes(&mut self) -> Result<Cow<'a, [u8]>, Refused> {
        let head = self.expect(major::BYTES)?;
        if head.info != INDEFINITE {
            return self.take(head.value).map(Cow::Borrowed);
        }
        let mut bytes = Vec::new();
        while let Some(size) = self.piece(major::BYTES)? {
            bytes.extend_from_slice(self.take(size)?);
        }
        Ok(Cow::Owned(bytes))
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8], Refused> {
        if size > self.left() {
            return Err(self.refused(Rule::End));
        }
        let from = self.at;
        self.at += size as usize;
        Ok(&self.bytes[from..self.at])
    }

    fn utf8(&mut self, size: u64) -> Result<&'a str, Refused> {
        let at = self.at;
        std::str::from_utf8(self.take(size)?).map_err(|_| Refused::new(Rule::Utf8, at))
    }

    /// Reads the length of the next piece of a string; `None` at its break.
    fn piece(&mut self, major: u8) -> Result<Option<u64>, Refused> {
        let at = self.at;
        let head = self.head()?;
        match (head.major, head.info) {
            (major::SIMPLE, INDEFINITE) => Ok(None),
            (of, info) if of == major && info != INDEFINITE => Ok(Some(head.value)),
            _ => Err(Refused::new(Rule::Head, at)),
        }
    }

    /// Reads a text of one scalar value.
    ///
    /// # Errors
    /// The next item is not such a text.
    pub fn char(&mut self) -> Result<char, Refused> {
        let at = self.at;
        let text = self.text()?;
        let mut scalars = text.chars();
        match (scalars.next(), scalars.next()) {
            (Some(scalar), None) => Ok(scalar),
            _ => Err(Refused::new(Rule::Char, at)),
        }
    }

    /// Begins an array.
    ///
    /// # Errors
    /// The next item is not an array, or promises more items than there are remaining bytes.
    #[inline]
    pub fn array(&mut self) -> Result<Items, Refused> {
        self.begin(major::ARRAY, 1)
    }

    /// Whether the next item is an array.
    ///
    /// # Errors
    /// There is no next item.
    pub fn is_array(&self) -> Result<bool, Refused> {
        Ok(self.peek()? >> 5 == major::ARRAY)
    }

    /// Begins a map.
    ///
    /// # Errors
    /// The next item is not a map, or promises more entries than the remaining bytes allow.
    #[inline]
    pub fn map(&mut self) -> Result<Items, Refused> {
        self.begin(major::MAP, 2)
    }

    #[inline]
    fn begin(&mut self, major: u8, least: u64) -> Result<Items, Refused> {
        let at = self.at;
        let head = self.expect(major)?;
        if head.info == INDEFINITE {
            return Ok(Items { left: None });
        }
        if head.value > self.left() / least {
            return Err(Refused::new(Rule::End, at));
        }
        Ok(Items {
            left: Some(head.value),
        })
    }

    /// Whether another item or entry follows. Consumes the break, if there is one.
    ///
    /// # Errors
    /// The input ends without a break.
    #[inline]
    pub fn more(&mut self, items: &mut Items) -> Result<bool, Refused> {
        match &mut items.left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => {
                let more = self.peek()? != BREAK;
                self.at += usize::from(!more);
                Ok(more)
            }
        }
    }

    /// Reads the key of the next entry; `None` at the end of the map.
    ///
    /// # Errors
    /// The key is not a text.
    #[inline]
    pub fn key(&mut self, items: &mut Items) -> Result<Option<Cow<'a, str>>, Refused> {
        if self.more(items)? {
            self.text().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Checks that another item follows, in an array with a known number of items.
    ///
    /// # Errors
    /// The array has ended.
    pub fn next(&mut self, items: &mut Items) -> Result<(), Refused> {
        if self.more(items)? {
            Ok(())
        } else {
            Err(self.refused(Rule::Count))
        }
    }

    /// Checks that the array or map ends here.
    ///
    /// # Errors
    /// Another item follows.
    pub fn end(&mut self, mut items: Items) -> Result<(), Refused> {
        if self.more(&mut items)? {
            Err(self.refused(Rule::Count))
        } else {
            Ok(())
        }
    }

    /// Reads a field of a record into `place`.
    ///
    /// # Errors
    /// The field is duplicated, or is not a value of its type.
    #[inline]
    pub fn field<T: Cbor>(&mut self, field: &mut Option<T>) -> Result<(), Refused> {
        if field.is_some() {
            return Err(self.refused(Rule::Twice));
        }
        *field = Some(T::read(self)?);
        Ok(())
    }

    /// Returns a field of a record after all fields have been read.
    ///
    /// # Errors
    /// The field is missing and is required.
    #[inline]
    pub fn required<T: Cbor>(&self, field: Option<T>) -> Result<T, Refused> {
        match field.or_else(T::missing) {
            Some(value) => Ok(value),
            None => Err(self.refused(Rule::Missing)),
        }
    }

    /// Reads a variant up to the name of its case. The payload follows, if there is one.
    ///
    /// # Errors
    /// The next item is neither a text nor a map with one entry.
    pub fn case(&mut self) -> Result<Case<'a>, Refused> {
        let at = self.at;
        if self.peek()? >> 5 == major::TEXT {
            return Ok(Case {
                name: self.text()?,
                payload: false,
                at,
                items: Items { left: Some(0) },
            });
        }
        let mut items = self.map()?;
        match self.key(&mut items)? {
            Some(name) => Ok(Case {
                name,
                payload: true,
                at,
                items,
            }),
            None => Err(Refused::new(Rule::Count, at)),
        }
    }

    /// Reads a name that identifies a value, such as the case of an enum.
    ///
    /// # Errors
    /// The next item is not a text, or `find` does not return a value for it.
    pub fn name<T>(&mut self, find: impl FnOnce(&str) -> Option<T>) -> Result<T, Refused> {
        let at = self.at;
        find(&self.text()?).ok_or(Refused::new(Rule::Unknown, at))
    }

    /// Reads flags: an array of names, whose bits `find` returns.
    ///
    /// # Errors
    /// A name is unknown or duplicated.
    pub fn flags(&mut self, find: impl Fn(&str) -> Option<u32>) -> Result<u32, Refused> {
        let (mut items, mut bits) = (self.array()?, 0);
        while self.more(&mut items)? {
            let at = self.at;
            let bit = 1 << self.name(&find)?;
            if bits & bit != 0 {
                return Err(Refused::new(Rule::Twice, at));
            }
            bits |= bit;
        }
        Ok(bits)
    }

    /// The number of elements for which a list reserves memory in advance: as many as fit into as
    /// many bytes as remain.
    pub fn room<T>(&self, items: &Items) -> usize {
        let fit = self.left() as usize / size_of::<T>().max(1);
        items.left.map_or(0, |count| fit.min(count as usize))
    }

    /// Reads a tag, if it is next.
    ///
    /// # Errors
    /// There is no next item, or it is not well-formed.
    pub fn tag(&mut self) -> Result<Option<u64>, Refused> {
        if self.peek()? >> 5 != major::TAG {
            return Ok(None);
        }
        Ok(Some(self.head()?.value))
    }

    /// Skips one item of any kind.
    ///
    /// # Errors
    /// The item is not well-formed, or is nested deeper than a type may be.
    pub fn skip(&mut self) -> Result<(), Refused> {
        self.skip_within(MAX_DEPTH)
    }

    fn skip_within(&mut self, depth: u32) -> Result<(), Refused> {
        let at = self.at;
        let deeper = depth.checked_sub(1).ok_or(Refused::new(Rule::Depth, at));
        match self.peek()? >> 5 {
            major::BYTES => self.bytes().map(drop),
            major::TEXT => self.text().map(drop),
            major @ (major::ARRAY | major::MAP) => {
                let each = usize::from(major == major::MAP) + 1;
                let mut items = self.begin(major, each as u64)?;
                while self.more(&mut items)? {
                    for _ in 0..each {
                        self.skip_within(deeper?)?;
                    }
                }
                Ok(())
            }
            major::TAG => {
                self.head()?;
                self.skip_within(deeper?)
            }
            _ => match self.head()? {
                Head {
                    info: INDEFINITE, ..
                } => Err(Refused::new(Rule::Head, at)),
                _ => Ok(()),
            },
        }
    }
}

impl Items {
    /// The number of remaining items, if it is known.
    pub(super) fn count(&self) -> Option<usize> {
        self.left.map(|left| left as usize)
    }

    /// The number of items before a break.
    pub(super) fn until_break() -> Self {
        Items { left: None }
    }
}

impl Case<'_> {
    /// The error for an unknown case, or for a payload of a case that has none.
    #[cold]
    pub fn unknown(&self) -> Refused {
        Refused::new(Rule::Unknown, self.at)
    }

    /// Checks that nothing follows the payload.
    ///
    /// # Errors
    /// The map has another entry.
    pub fn end(self, from: &mut Reader<'_>) -> Result<(), Refused> {
        from.end(self.items)
    }
}
