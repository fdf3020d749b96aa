//! Converts a message of one version to another.

use super::fit::elements;
use super::{Conversion, Converted, UNKNOWN, Unconverted, first_case, table};
use crate::describe::{Case, Field, Kind, Type, word};
use crate::{Bytes, Encoder, Handle, NoRoom, message};

/// `'t` is the lifetime of the texts of the types.
struct Walk<'a, 'm, 't> {
    from: Bytes<'a>,
    to: Encoder<'m>,
    /// The handles of the source message.
    table: &'a [Handle],
    /// The handles that were written, by their positions in the source.
    written: Vec<u32>,
    /// Streams and futures whose elements need a conversion.
    streams: Vec<(Handle, Conversion<'t>)>,
}

/// Converts `count` adjacent records, from `first` on, into the slots of `to`. Returns the number
/// of bytes that their tails take there.
pub(super) fn records<'t>(
    (from, to): (&Type<'t>, &Type<'t>),
    (records, first, count): (Bytes<'_>, u32, u32),
    encoder: Encoder<'_>,
) -> Result<u32, NoRoom> {
    let mut walk = Walk {
        from: records,
        to: encoder,
        table: &[],
        written: Vec::new(),
        streams: Vec::new(),
    };
    walk.items(from, first, to, 0, count);
    walk.to.finish_record()
}

/// Writes the checked value at `at` unchanged, with its fixed part at `to_at`.
pub(super) fn copy(ty: &Type<'_>, from: Bytes<'_>, at: u32, to: &mut Encoder<'_>, to_at: u32) {
    let mut walk = Walk {
        from,
        to: std::mem::replace(to, Encoder::counting(0)),
        table: &[],
        written: Vec::new(),
        streams: Vec::new(),
    };
    walk.value(ty, at, ty, to_at);
    *to = walk.to;
}

/// Converts a checked message whose root is at `root`.
pub(super) fn all<'t>(
    from: &Type<'t>,
    to: &Type<'t>,
    bytes: &[u8],
    root: u32,
) -> Result<Converted<'t>, Unconverted> {
    let table = table(bytes);
    // A part that was left out may have had handles; the table then needs less room.
    let mut room = table.len() as u32;
    loop {
        let mut message = Vec::new();
        let reserved = message.try_reserve_exact(bytes.len());
        reserved.map_err(|_| Unconverted::Memory(bytes.len()))?;
        let mut walk = Walk {
            from: Bytes::message(bytes),
            to: Encoder::message(to.hash(), room, to.size, &mut message),
            table: &table,
            written: Vec::new(),
            streams: Vec::new(),
        };
        walk.value(from, root, to, message::root(room));
        if walk.to.overflowed() {
            return Err(match walk.to.no_room().needed {
                Some(bytes) => Unconverted::Memory(bytes as usize),
                None => Unconverted::Limit,
            });
        }
        let written = walk.written;
        if written.len() as u32 != room {
            room = written.len() as u32;
            continue;
        }
        walk.to.finish_message().map_err(|_| Unconverted::Limit)?;
        let mut is_kept = vec![false; table.len()];
        written
            .iter()
            .for_each(|place| is_kept[*place as usize] = true);
        let dropped = table.iter().zip(is_kept).filter(|(_, is_kept)| !is_kept);
        return Ok(Converted {
            dropped: dropped.map(|(handle, _)| *handle).collect(),
            streams: walk.streams,
            message,
        });
    }
}

impl<'t> Walk<'_, '_, 't> {
    /// Writes the value at `from_at` to `at`, whose bytes are zero.
    fn value(&mut self, from: &Type<'t>, from_at: u32, to: &Type<'t>, at: u32) {
        match (&from.kind, &to.kind) {
            (Kind::Text, _) => {
                let text = self.from.tail(from_at);
                self.to.bytes(at, text);
            }
            (Kind::Handle, _) => {
                let place = self.from.u32(from_at);
                let handle = self.table[place as usize];
                self.written.push(place);
                self.to.handle(at, handle);
                if from.text() != to.text()
                    && let Some((from, to)) = elements(from, to)
                {
                    self.streams.push((handle, Conversion { from, to }));
                }
            }
            (Kind::List(from), Kind::List(to)) => {
                let (first, count) = (self.from.u32(from_at), self.from.u32(from_at + 4));
                if let Some(at) = self.to.list(at, count as usize, to.size, to.align) {
                    self.items(from, first, to, at, count);
                }
            }
            (Kind::Array { item, count }, Kind::Array { item: to, .. }) => {
                self.items(item, from_at, to, at, *count);
            }
            (
                Kind::Option { value, payload },
                Kind::Option {
                    value: to,
                    payload: to_payload,
                },
            ) => {
                if self.from.u8(from_at) == 1 {
                    self.to.u8(at, 1);
                    self.value(value, from_at + payload, to, at + to_payload);
                }
            }
            (
                Kind::Variant {
                    cases,
                    tag,
                    payload,
                },
                Kind::Variant {
                    cases: known,
                    tag: to_tag,
                    payload: to_payload,
                },
            ) => {
                let number = word(self.from, from_at, *tag);
                let case = known_case(number, known.len(), || unknown(known));
                self.put(at, *to_tag, case);
                let parts = (
                    &cases[number as usize].payload,
                    &known[case as usize].payload,
                );
                if let (Some(from), Some(to)) = parts {
                    self.value(from, from_at + payload, to, at + to_payload);
                }
            }
            (Kind::Enum(_), Kind::Enum(known)) => {
                let number = word(self.from, from_at, from.size);
                let unknown = || known.iter().position(|label| *label == UNKNOWN);
                let case = known_case(number, known.len(), unknown);
                self.put(at, to.size, case);
            }
            (Kind::Flags(_), Kind::Flags(known)) => {
                let known = u32::MAX.checked_shr(32 - known.len() as u32).unwrap_or(0);
                let bits = word(self.from, from_at, from.size) & known;
                self.put(at, to.size, bits);
            }
            (Kind::Tuple(from), Kind::Tuple(to))
            | (Kind::Record { fields: from, .. }, Kind::Record { fields: to, .. }) => {
                self.fields(from, from_at, to, at);
            }
            // Numbers, bools and chars: the same on both sides.
            _ => self.copy(from_at, at, from.size),
        }
    }

    fn fields(&mut self, from: &[Field<'t>], from_at: u32, to: &[Field<'t>], at: u32) {
        for (place, to) in to.iter().enumerate() {
            match from.get(place) {
                Some(from) => {
                    self.value(&from.ty, from_at + from.offset, &to.ty, at + to.offset);
                }
                None => self.zero(&to.ty, at + to.offset),
            }
        }
    }

    fn items(&mut self, from: &Type<'t>, from_at: u32, to: &Type<'t>, at: u32, count: u32) {
        if matches!(from.kind, Kind::Number(_)) {
            return self.copy(from_at, at, count * from.size);
        }
        for i in 0..count {
            self.value(from, from_at + i * from.size, to, at + i * to.size);
        }
    }

    fn copy(&mut self, from_at: u32, at: u32, size: u32) {
        if size > 0
            && let Some(bytes) = self.from.get(from_at, size)
            && let Some(place) = self.to.items::<1>(at, size as usize)
        {
            place.copy_from_slice(bytes);
        }
    }

    /// Writes the zero value of a type. Its bytes are already zero, so only cases named `unknown`
    /// are written.
    fn zero(&mut self, ty: &Type<'_>, at: u32) {
        match &ty.kind {
            kind @ Kind::Enum(_) => self.put(at, ty.size, first_case(kind) as u32),
            kind @ Kind::Variant {
                cases,
                tag,
                payload,
            } => {
                let case = first_case(kind);
                self.put(at, *tag, case as u32);
                if let Some(ty) = &cases[case].payload {
                    self.zero(ty, at + payload);
                }
            }
            Kind::Tuple(fields) | Kind::Record { fields, .. } => {
                for field in fields {
                    self.zero(&field.ty, at + field.offset);
                }
            }
            Kind::Array { item, count } if !matches!(item.kind, Kind::Number(_)) => {
                for i in 0..*count {
                    self.zero(item, at + i * item.size);
                }
            }
            _ => {}
        }
    }

    /// Writes the number of a case, or a word of flags.
    fn put(&mut self, at: u32, size: u32, value: u32) {
        match size {
            1 => self.to.u8(at, value as u8),
            2 => self.to.u16(at, value as u16),
            _ => self.to.u32(at, value),
        }
    }
}

fn unknown(cases: &[Case<'_>]) -> Option<usize> {
    cases.iter().position(|case| case.name == UNKNOWN)
}

/// The number of a case for a reader that has the cases `known`. Precondition: if it lacks the
/// case, it has `unknown`.
fn known_case(number: u32, known: usize, unknown: impl FnOnce() -> Option<usize>) -> u32 {
    if (number as usize) < known {
        return number;
    }
    unknown().expect("the types fit") as u32
}
