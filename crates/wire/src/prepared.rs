//! A type that is prepared to check and copy its values quickly.
//!
//! A value of a described type has many numbers, which need neither a check nor a conversion, and a few
//! other parts. The type is walked once, and these parts are listed. A check visits only them. A copy
//! copies the fixed part as it is and then writes their tails, whose offsets change.

use crate::describe::{Kind, Type, word};
use crate::{Bytes, Checker, Encoder, MAX_SIZE, Malformed, NoRoom, Rule, message};

/// A [`Type`] that is prepared to check and copy its values.
///
/// ```
/// use thalweg_wire::{Rule, describe::Type, message, prepared::PreparedType};
///
/// let ty = PreparedType::new(Type::parse("record{at:u64,name:string}")?);
/// let mut message = message::encode(&(7u64, "left"), ty.hash(), Vec::new())?;
/// assert!(ty.check(&message).is_ok());
/// *message.last_mut().unwrap() = 0xff;
/// assert_eq!(ty.check(&message).unwrap_err().rule, Rule::Utf8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PreparedType<'a> {
    ty: Type<'a>,
    /// The parts that are not numbers, in the order of their offsets.
    parts: Vec<Part<'a>>,
    /// The header of every message, if a value consists of numbers. A message of the right size with
    /// this header needs no further check.
    header: Option<[u8; HEADER]>,
    /// No [`Part::Value`] has tails.
    is_flat: bool,
    has_tails: bool,
}

/// A part of a value, at an offset of the fixed part.
#[derive(Clone, Debug)]
enum Part<'a> {
    /// A bool or an enum: a number of `size` bytes below `limit`.
    Below {
        at: u32,
        size: u32,
        limit: u32,
        rule: Rule,
    },
    Char {
        at: u32,
    },
    /// A string, or a list of numbers.
    Numbers {
        at: u32,
        size: u32,
        align: u32,
        is_text: bool,
    },
    /// Any other value that is not a number.
    Value {
        at: u32,
        ty: Type<'a>,
    },
}

const HEADER: usize = message::HEADER as usize;

/// Whether all bytes of a value are numbers.
fn is_numeric(ty: &Type<'_>) -> bool {
    match &ty.kind {
        Kind::Unit | Kind::Number(_) => true,
        Kind::Array { item, .. } => is_numeric(item),
        Kind::Tuple(fields) | Kind::Record { fields, .. } => {
            fields.iter().all(|field| is_numeric(&field.ty))
        }
        _ => false,
    }
}

/// Whether a value has bytes outside of its fixed part, which strings and lists have.
fn has_tails(ty: &Type<'_>) -> bool {
    match &ty.kind {
        Kind::Text | Kind::List(_) => true,
        Kind::Array { item, .. } => has_tails(item),
        Kind::Option { value, .. } => has_tails(value),
        Kind::Variant { cases, .. } => {
            let mut payloads = cases.iter().filter_map(|case| case.payload.as_ref());
            payloads.any(has_tails)
        }
        Kind::Tuple(fields) | Kind::Record { fields, .. } => {
            fields.iter().any(|field| has_tails(&field.ty))
        }
        _ => false,
    }
}

fn list_parts<'a>(ty: &Type<'a>, at: u32, parts: &mut Vec<Part<'a>>) {
    let numbers = |size, align, is_text| Part::Numbers {
        at,
        size,
        align,
        is_text,
    };
    match &ty.kind {
        _ if is_numeric(ty) => {}
        Kind::Bool => parts.push(Part::Below {
            at,
            size: 1,
            limit: 2,
            rule: Rule::Bool,
        }),
        Kind::Enum(labels) => parts.push(Part::Below {
            at,
            size: ty.size,
            limit: labels.len() as u32,
            rule: Rule::Discriminant,
        }),
        Kind::Char => parts.push(Part::Char { at }),
        Kind::Text => parts.push(numbers(1, 1, true)),
        Kind::List(item) if matches!(item.kind, Kind::Number(_)) => {
            parts.push(numbers(item.size, item.align, false));
        }
        Kind::Tuple(fields) | Kind::Record { fields, .. } => {
            for field in fields {
                list_parts(&field.ty, at + field.offset, parts);
            }
        }
        _ => parts.push(Part::Value { at, ty: ty.clone() }),
    }
}

impl<'a> PreparedType<'a> {
    /// Prepares a type.
    pub fn new(ty: Type<'a>) -> Self {
        let mut parts = Vec::new();
        list_parts(&ty, 0, &mut parts);
        let is_nested = |part: &Part<'_>| matches!(part, Part::Value { ty, .. } if has_tails(ty));
        let mut message = Vec::new();
        let written = Encoder::message(ty.hash(), 0, ty.size, &mut message).finish_message();
        let header = message.first_chunk().copied();
        Self {
            header: header.filter(|_| parts.is_empty() && written.is_ok()),
            is_flat: !parts.iter().any(is_nested),
            has_tails: has_tails(&ty),
            parts,
            ty,
        }
    }

    /// Size in bytes of the fixed part.
    pub fn size(&self) -> u32 {
        self.ty.size
    }

    /// Alignment in bytes: 1, 2, 4 or 8.
    pub fn align(&self) -> u32 {
        self.ty.align
    }

    /// The hash of the layout.
    pub fn hash(&self) -> u64 {
        self.ty.hash()
    }

    /// Whether a value has bytes outside of its fixed part, which strings and lists have.
    pub fn has_tails(&self) -> bool {
        self.has_tails
    }

    /// Whether a value contains a handle.
    pub fn has_handle(&self) -> bool {
        self.ty.has_handle
    }

    /// Checks a whole message of this type, which may have handles. Their objects are not checked.
    ///
    /// # Errors
    /// The first rule that the message breaks.
    #[inline]
    pub fn check(&self, bytes: &[u8]) -> Result<(), Malformed> {
        if let Some(header) = &self.header
            && bytes.len() == HEADER + self.ty.size as usize
            && bytes.first_chunk() == Some(header)
        {
            return Ok(());
        }
        let message = message::open(bytes, self.ty.hash())?;
        let handles = message.handles().len() as u32;
        let at = message::root(handles);
        let end = u64::from(at) + u64::from(self.ty.size);
        if end > bytes.len() as u64 {
            return Err(Malformed {
                rule: Rule::Root,
                at,
            });
        }
        if self.parts.is_empty() && handles == 0 {
            return Ok(());
        }
        let mut checker = Checker::new(Bytes::message(bytes), end as u32, handles);
        self.check_at(&mut checker, at)?;
        checker.all_handles_met(at)
    }

    /// Checks the value at `root`.
    #[inline]
    fn check_at(&self, from: &mut Checker<'_>, root: u32) -> Result<(), Malformed> {
        for part in &self.parts {
            match part {
                Part::Below {
                    at,
                    size,
                    limit,
                    rule,
                } => {
                    let at = root + at;
                    if word(from.bytes(), at, *size) >= *limit {
                        return Err(from.broken(*rule, at));
                    }
                }
                Part::Char { at } => {
                    let at = root + at;
                    if char::from_u32(from.bytes().u32(at)).is_none() {
                        return Err(from.broken(Rule::Char, at));
                    }
                }
                Part::Numbers {
                    at,
                    size,
                    align,
                    is_text,
                } => {
                    let at = root + at;
                    let (first, count) = from.list(at, *size, *align)?;
                    if *is_text && count > 0 {
                        let text = from.bytes().get(first, count).unwrap_or(&[0xff]);
                        if std::str::from_utf8(text).is_err() {
                            return Err(from.broken(Rule::Utf8, at));
                        }
                    }
                }
                Part::Value { at, ty } => ty.check_at(from, root + at)?,
            }
        }
        Ok(())
    }

    /// Checks `count` adjacent values without handles. `first` is the offset of the first one in
    /// `bytes`, from which the offsets in them count; their tails follow the last one.
    ///
    /// ```
    /// use thalweg_wire::{Rule, describe::Type, prepared::PreparedType};
    ///
    /// let ty = PreparedType::new(Type::parse("record{name:string,is-new:bool}")?);
    /// let mut bytes = [0; 16];
    /// bytes[..9].copy_from_slice(&[12, 0, 0, 0, 4, 0, 0, 0, 1]);
    /// bytes[12..].copy_from_slice(b"left");
    /// assert!(ty.check_records(&bytes, 0, 1).is_ok());
    /// bytes[8] = 2;
    /// assert_eq!(ty.check_records(&bytes, 0, 1).unwrap_err().rule, Rule::Bool);
    /// assert_eq!(ty.check_records(&bytes, 8, 1).unwrap_err().rule, Rule::Root);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The first rule that a value breaks.
    pub fn check_records(&self, bytes: &[u8], first: u32, count: u32) -> Result<(), Malformed> {
        let broken = |rule| Malformed { rule, at: first };
        let end = u64::from(first) + u64::from(self.ty.size) * u64::from(count);
        if end > bytes.len() as u64 || bytes.len() > MAX_SIZE as usize {
            return Err(broken(Rule::Root));
        }
        if !first.is_multiple_of(self.ty.align) {
            return Err(broken(Rule::Alignment));
        }
        self.check_adjacent(Bytes::message(bytes), first, count, end as u32)
    }

    /// The same for values in a place that was made for them: `bytes` has `count` aligned values from
    /// `first` on. Their tails begin at `tails_at` or later.
    ///
    /// # Errors
    /// The first rule that a value breaks.
    pub fn check_adjacent(
        &self,
        bytes: Bytes<'_>,
        first: u32,
        count: u32,
        tails_at: u32,
    ) -> Result<(), Malformed> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let mut checker = Checker::new(bytes, tails_at, 0);
        let mut places = (0..count).map(|number| first + number * self.ty.size);
        places.try_for_each(|at| self.check_at(&mut checker, at))
    }

    /// Number of bytes that the tails of a checked value take if they begin at `tails_at`, which is
    /// not 0. `at` is its offset in `from`.
    ///
    /// # Errors
    /// The value can never be written.
    pub fn measure(&self, from: Bytes<'_>, at: u32, tails_at: u32) -> Result<u32, NoRoom> {
        let mut to = Encoder::counting(tails_at);
        self.copy_tails(from, at, &mut to, 0);
        Ok(to.counted()? - tails_at)
    }

    /// Writes a checked value as a record: its fixed part at `to_at`, where `to` begins. Returns the
    /// offset of the next free byte.
    ///
    /// ```
    /// use thalweg_wire::{Bytes, Encoder, describe::Type, prepared::PreparedType};
    ///
    /// let ty = PreparedType::new(Type::parse("record{name:string}")?);
    /// let mut bytes = *b"\x10\0\0\0\x04\0\0\0........left";
    /// let from = Bytes::message(&bytes);
    /// assert_eq!(ty.measure(from, 0, 8), Ok(4));
    /// let (mut slot, mut tails) = ([0xff; 8], [0; 4]);
    /// let end = ty.copy(from, 0, Encoder::fixed(&mut slot, 0, &mut tails, 64), 0)?;
    /// assert_eq!((end, slot, &tails), (68, *b"\x40\0\0\0\x04\0\0\0", b"left"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `to` has no room.
    pub fn copy(
        &self,
        from: Bytes<'_>,
        at: u32,
        mut to: Encoder<'_>,
        to_at: u32,
    ) -> Result<u32, NoRoom> {
        let size = self.ty.size;
        if size > 0
            && let Some(bytes) = from.get(at, size)
            && let Some(place) = to.items::<1>(to_at, size as usize)
        {
            place.copy_from_slice(bytes);
        }
        self.copy_tails(from, at, &mut to, to_at);
        to.finish_record_at()
    }

    /// Writes the tails, and their offsets into the fixed part.
    fn copy_tails(&self, from: Bytes<'_>, root: u32, to: &mut Encoder<'_>, to_root: u32) {
        if !self.is_flat {
            crate::evolve::copy_value(&self.ty, from, root, to, to_root);
            return;
        }
        for part in &self.parts {
            let Part::Numbers {
                at, size, align, ..
            } = part
            else {
                continue;
            };
            let (first, count) = (from.u32(root + at), from.u32(root + at + 4));
            let to_at = to_root + at;
            if *size == 1 {
                to.bytes(to_at, from.get(first, count).unwrap_or(&[]));
            } else if let Some(place) = to.list(to_at, count as usize, *size, *align)
                && let Some(bytes) = from.get(first, count * size)
                && let Some(place) = to.items::<1>(place, bytes.len())
            {
                place.copy_from_slice(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decode;

    /// A message, and what both checks say about each change of one of its bytes.
    fn compare<T: Decode>(text: &str, value: &T) {
        let ty = Type::parse(text).unwrap();
        let prepared = PreparedType::new(ty.clone());
        let message = message::encode(value, ty.hash(), Vec::new()).unwrap();
        assert_eq!(prepared.check(&message), Ok(()), "{text}");
        for at in 0..message.len() {
            for byte in [0, 1, 2, 0x7f, 0xff] {
                let mut changed = message.clone();
                changed[at] = byte;
                let plain = ty.check_with_handles(&changed).map(drop);
                assert_eq!(prepared.check(&changed), plain, "{text}: {byte} at {at}");
            }
        }
        // The copy of the root is the same value, wherever its tails are.
        let from = Bytes::message(&message);
        let root = message::root(0);
        let tails = prepared.measure(from, root, 8).unwrap();
        let mut copy = vec![0xee; (T::SIZE + 16 + tails) as usize];
        let (slot, rest) = copy.split_at_mut(T::SIZE as usize);
        let tails_at = (T::SIZE + 7) & !7;
        let rest = &mut rest[(tails_at - T::SIZE) as usize..];
        let end = prepared.copy(from, root, Encoder::fixed(slot, 0, rest, tails_at), 0);
        assert!(end.unwrap() <= tails_at + tails + 8);
        let (read, wanted) = (Bytes::message(&copy), Bytes::message(&message));
        assert_eq!(T::view(read, 0), T::view(wanted, root), "{text}");
    }

    #[test]
    fn prepared_type_checks_and_copies_as_the_type_does() {
        compare("tuple<u64,s8>", &(7u64, -1i8));
        compare("tuple<bool,char,u16>", &(true, 'x', 3u16));
        compare(
            "tuple<string,list<u32>,u8>",
            &("left".to_owned(), vec![1u32, 2], 3u8),
        );
        compare(
            "tuple<option<string>,list<string>>",
            &(
                Some("one".to_owned()),
                vec!["two".to_owned(), String::new()],
            ),
        );
        compare(
            "tuple<tuple<u8,string>,bool>",
            &((1u8, "in".to_owned()), false),
        );
        compare("result<u8,string>", &Err::<u8, String>("no".to_owned()));
    }
}
