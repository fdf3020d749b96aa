//! Converts CBOR to a message.

use super::Untranslated;
use crate::cbor::numbers::{Packed, packed, typed_of};
use crate::cbor::{Reader, Refused, Rule};
use crate::describe::{Field, Kind, Number, Type};
use crate::{Encoder, MAX_SIZE, MAX_UNSIZED};

struct Walk<'a, 'm> {
    from: Reader<'a>,
    to: Encoder<'m>,
    /// Where the next tail begins, and where the message must end. Both are checked before a tail
    /// is allocated.
    next: u64,
    limit: u64,
}

pub(super) fn all(
    ty: &Type<'_>,
    bytes: &[u8],
    limit: usize,
    root: u32,
) -> Result<Vec<u8>, Untranslated> {
    if bytes.len() > MAX_SIZE as usize {
        return Err(Refused::new(Rule::Size, 0).into());
    }
    if ty.has_handle {
        return Err(Refused::new(Rule::Handle, 0).into());
    }
    let fixed = u64::from(root) + u64::from(ty.size);
    let limit = (limit as u64).min(u64::from(MAX_SIZE));
    if fixed > limit {
        return Err(Untranslated::Limit);
    }
    let mut message = Vec::new();
    let mut walk = Walk {
        from: Reader::new(bytes),
        next: fixed,
        limit,
        to: Encoder::message(ty.hash(), 0, ty.size, &mut message),
    };
    walk.value(ty, root)?;
    walk.from.finish()?;
    walk.to.finish_message().map_err(|_| Untranslated::Limit)?;
    Ok(message)
}

impl<'a> Walk<'a, '_> {
    /// Allocates a tail.
    fn take(&mut self, count: usize, size: u32, align: u32) -> Result<(), Untranslated> {
        if count == 0 || size == 0 {
            return Ok(());
        }
        self.next = self.next.next_multiple_of(u64::from(align)) + count as u64 * u64::from(size);
        if self.next > self.limit {
            return Err(Untranslated::Limit);
        }
        Ok(())
    }

    fn value(&mut self, ty: &Type<'_>, at: u32) -> Result<(), Untranslated> {
        match &ty.kind {
            Kind::Unit => {
                if !self.from.null()? {
                    return Err(self.from.refused(Rule::Type).into());
                }
            }
            Kind::Bool => {
                let value = self.from.bool()?;
                self.to.u8(at, u8::from(value));
            }
            Kind::Char => {
                let value = self.from.char()?;
                self.to.u32(at, u32::from(value));
            }
            Kind::Text => {
                let text = self.from.text()?;
                self.take(text.len(), 1, 1)?;
                self.to.bytes(at, text.as_bytes());
            }
            Kind::Number(kind) => self.number(*kind, ty.size, at)?,
            Kind::Handle => unreachable!("a type with handles was refused"),
            Kind::List(item) => self.list(item, at)?,
            Kind::Array { item, count } => self.array(item, *count, at)?,
            Kind::Option { value, payload } => self.option(value, at, at + payload)?,
            Kind::Variant {
                cases,
                tag,
                payload,
            } => {
                let case = self.from.case()?;
                let found = cases.iter().position(|known| known.name == case.name);
                let number = found.ok_or(case.unknown())?;
                let ty = cases[number].payload.as_ref();
                if ty.is_some() != case.payload {
                    return Err(case.unknown().into());
                }
                self.put(at, *tag, number as u32);
                if let Some(ty) = ty {
                    self.value(ty, at + payload)?;
                }
                case.end(&mut self.from)?;
            }
            Kind::Tuple(fields) => {
                let mut items = self.from.array()?;
                for field in fields {
                    self.from.next(&mut items)?;
                    self.value(&field.ty, at + field.offset)?;
                }
                self.from.end(items)?;
            }
            Kind::Record { fields, sorted } => self.record(fields, sorted, at)?,
            Kind::Enum(labels) => {
                let find = |name: &str| labels.iter().position(|label| *label == name);
                let number = self.from.name(find)?;
                self.put(at, ty.size, number as u32);
            }
            Kind::Flags(labels) => {
                let find = |name: &str| labels.iter().position(|label| *label == name);
                let bits = self.from.flags(|name| find(name).map(|bit| bit as u32))?;
                self.put(at, ty.size, bits);
            }
        }
        Ok(())
    }

    /// Writes the number of a case, or a word of flags.
    fn put(&mut self, at: u32, size: u32, value: u32) {
        match size {
            1 => self.to.u8(at, value as u8),
            2 => self.to.u16(at, value as u16),
            _ => self.to.u32(at, value),
        }
    }

    fn option(&mut self, value: &Type<'_>, at: u32, payload: u32) -> Result<(), Untranslated> {
        if !value.nullable() {
            if self.from.null()? {
                return Ok(());
            }
            self.to.u8(at, 1);
            return self.value(value, payload);
        }
        let mut items = self.from.array()?;
        if self.from.more(&mut items)? {
            self.to.u8(at, 1);
            self.value(value, payload)?;
            self.from.end(items)?;
        }
        Ok(())
    }

    /// The fields arrive in key order or in any order, but tails are written in the order of the
    /// fields. The values are therefore located first.
    fn record(
        &mut self,
        fields: &[Field<'_>],
        sorted: &[usize],
        at: u32,
    ) -> Result<(), Untranslated> {
        let mut places = vec![None; fields.len()];
        let mut entries = self.from.map()?;
        loop {
            let key_at = self.from.at();
            let Some(key) = self.from.key(&mut entries)? else {
                break;
            };
            let of = |i: &usize| (fields[*i].name.len(), fields[*i].name);
            let found = sorted.binary_search_by_key(&(key.len(), &*key), of);
            let found = found.map_err(|_| Refused::new(Rule::Unknown, key_at))?;
            let place = &mut places[sorted[found]];
            if place.is_some() {
                return Err(Refused::new(Rule::Twice, key_at).into());
            }
            *place = Some(self.from);
            self.from.skip()?;
        }
        let end = self.from;
        for (field, place) in fields.iter().zip(places) {
            match place {
                Some(place) => {
                    self.from = place;
                    self.value(&field.ty, at + field.offset)?;
                }
                // The bytes are zero already, which means `none`.
                None if matches!(field.ty.kind, Kind::Option { .. }) => {}
                None => return Err(end.refused(Rule::Missing).into()),
            }
        }
        self.from = end;
        Ok(())
    }

    fn number(&mut self, kind: Number, size: u32, at: u32) -> Result<(), Untranslated> {
        let begin = self.from.at();
        let bits = match (kind, size) {
            (Number::Float, 4) => u64::from(self.from.f32_bits()?),
            (Number::Float, _) => self.from.f64_bits()?,
            (kind, size) => {
                let value = self.from.int()?;
                let bits = 8 * size;
                let fits = match kind {
                    Number::Signed => (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&value),
                    _ => (0..1i128 << bits).contains(&value),
                };
                if !fits {
                    return Err(Refused::new(Rule::Range, begin).into());
                }
                value as u64
            }
        };
        match size {
            1 => self.to.u8(at, bits as u8),
            2 => self.to.u16(at, bits as u16),
            4 => self.to.u32(at, bits as u32),
            _ => self.to.u64(at, bits),
        }
        Ok(())
    }

    fn list(&mut self, item: &Type<'_>, at: u32) -> Result<(), Untranslated> {
        if let Kind::Number(kind) = item.kind
            && !self.from.is_array()?
        {
            return self.bytes(kind, item.size, at);
        }
        let begin = self.from.at();
        let items = self.from.array()?;
        let count = match items.count() {
            Some(count) => count,
            None => self.count()?,
        };
        if item.size == 0 && count > MAX_UNSIZED as usize {
            return Err(Refused::new(Rule::Count, begin).into());
        }
        self.take(count, item.size, item.align)?;
        let first = self.to.list(at, count, item.size, item.align).unwrap_or(0);
        let mut items = items;
        for i in 0..count as u32 {
            self.from.next(&mut items)?;
            self.value(item, first + i * item.size)?;
        }
        Ok(self.from.end(items)?)
    }

    /// Reads a list of a fixed length, which is stored in place.
    fn array(&mut self, item: &Type<'_>, count: u32, at: u32) -> Result<(), Untranslated> {
        let begin = self.from.at();
        if let Kind::Number(kind) = item.kind
            && !self.from.is_array()?
        {
            let packed = self.packed(kind, item.size)?;
            if packed.bytes.len() != (count * item.size) as usize {
                return Err(Refused::new(Rule::Count, begin).into());
            }
            return self.unpack(&packed, item.size, at);
        }
        let mut items = self.from.array()?;
        for i in 0..count {
            self.from.next(&mut items)?;
            self.value(item, at + i * item.size)?;
        }
        Ok(self.from.end(items)?)
    }

    /// Counts the items before a break.
    fn count(&self) -> Result<usize, Refused> {
        let mut ahead = self.from;
        let mut items = crate::cbor::Items::until_break();
        let mut count = 0;
        while ahead.more(&mut items)? {
            ahead.skip()?;
            count += 1;
        }
        Ok(count)
    }

    /// Reads a list of numbers that is one byte string.
    fn bytes(&mut self, kind: Number, size: u32, at: u32) -> Result<(), Untranslated> {
        let packed = self.packed(kind, size)?;
        let count = packed.bytes.len() / size as usize;
        self.take(count, size, size)?;
        match self.to.list(at, count, size, size) {
            Some(first) => self.unpack(&packed, size, first),
            None => Ok(()),
        }
    }

    /// Returns the bytes of a list of numbers. A list of bytes needs no tag.
    fn packed(&mut self, kind: Number, size: u32) -> Result<Packed<'a>, Untranslated> {
        match packed(&mut self.from, &typed_of(kind, size), size as usize)? {
            Some(packed) => Ok(packed),
            None if (kind, size) == (Number::Unsigned, 1) => Ok(Packed {
                bytes: self.from.bytes()?,
                little: true,
            }),
            None => Err(self.from.refused(Rule::Type).into()),
        }
    }

    /// Writes numbers to an allocated place.
    fn unpack(&mut self, packed: &Packed<'_>, size: u32, at: u32) -> Result<(), Untranslated> {
        let Some(place) = self.to.items::<1>(at, packed.bytes.len()) else {
            return Err(Untranslated::Limit);
        };
        place.copy_from_slice(&packed.bytes);
        if !packed.little {
            for word in place.chunks_exact_mut(size as usize) {
                word.reverse();
            }
        }
        Ok(())
    }
}
