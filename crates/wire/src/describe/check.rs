//! Checks a message by a description, like [`Decode::check`](crate::Decode::check) of a generated
//! type.

use super::{Kind, Type};
use crate::{Checker, Malformed, Rule};

impl Type<'_> {
    /// Checks the value at `at`, whose fixed part is inside the message.
    pub(crate) fn check_at(&self, from: &mut Checker<'_>, at: u32) -> Result<(), Malformed> {
        match &self.kind {
            Kind::Unit | Kind::Number(_) => Ok(()),
            Kind::Bool => match from.bytes().u8(at) {
                0 | 1 => Ok(()),
                _ => Err(from.broken(Rule::Bool, at)),
            },
            Kind::Char => match char::from_u32(from.bytes().u32(at)) {
                Some(_) => Ok(()),
                None => Err(from.broken(Rule::Char, at)),
            },
            Kind::Text => {
                from.list(at, 1, 1)?;
                match std::str::from_utf8(from.bytes().tail(at)) {
                    Ok(_) => Ok(()),
                    Err(_) => Err(from.broken(Rule::Utf8, at)),
                }
            }
            Kind::Handle => from.handle(at),
            Kind::List(item) => {
                let (first, count) = from.list(at, item.size, item.align)?;
                if matches!(item.kind, Kind::Number(_)) {
                    return Ok(());
                }
                (0..count).try_for_each(|i| item.check_at(from, first + i * item.size))
            }
            Kind::Array { item, .. } if matches!(item.kind, Kind::Number(_)) => Ok(()),
            Kind::Array { item, count } => {
                (0..*count).try_for_each(|i| item.check_at(from, at + i * item.size))
            }
            Kind::Option { value, payload } => match from.bytes().u8(at) {
                0 => Ok(()),
                1 => value.check_at(from, at + payload),
                _ => Err(from.broken(Rule::Discriminant, at)),
            },
            Kind::Variant {
                cases,
                tag,
                payload,
            } => match cases.get(word(from.bytes(), at, *tag) as usize) {
                Some(case) => match &case.payload {
                    Some(ty) => ty.check_at(from, at + payload),
                    None => Ok(()),
                },
                None => Err(from.broken(Rule::Discriminant, at)),
            },
            Kind::Tuple(fields) | Kind::Record { fields, .. } => fields
                .iter()
                .try_for_each(|field| field.ty.check_at(from, at + field.offset)),
            Kind::Enum(labels) => {
                if word(from.bytes(), at, self.size) as usize >= labels.len() {
                    return Err(from.broken(Rule::Discriminant, at));
                }
                Ok(())
            }
            Kind::Flags(labels) => {
                let bits = word(from.bytes(), at, self.size);
                from.flags(at, bits, labels.len() as u32)
            }
        }
    }
}

/// The number of `size` bytes, 1, 2 or 4, at `at`.
pub(crate) fn word(from: crate::Bytes<'_>, at: u32, size: u32) -> u32 {
    match size {
        1 => u32::from(from.u8(at)),
        2 => u32::from(from.u16(at)),
        _ => from.u32(at),
    }
}
