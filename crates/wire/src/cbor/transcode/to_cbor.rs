//! Converts a checked message to CBOR.

use super::Untranslated;
use crate::Bytes;
use crate::cbor::Writer;
use crate::cbor::numbers::typed_of;
use crate::describe::{Kind, Number, Type, word};

struct Walk<'a> {
    from: Bytes<'a>,
    to: Writer,
    limit: usize,
}

pub(super) fn all(
    ty: &Type<'_>,
    bytes: &[u8],
    root: u32,
    limit: usize,
) -> Result<Vec<u8>, Untranslated> {
    let mut walk = Walk {
        from: Bytes::message(bytes),
        to: Writer::default(),
        limit,
    };
    walk.value(ty, root)?;
    walk.fits()?;
    Ok(walk.to.finish())
}

impl Walk<'_> {
    /// Checks that the output is within the limit. Called wherever elements repeat.
    fn fits(&self) -> Result<(), Untranslated> {
        if self.to.len() > self.limit {
            return Err(Untranslated::Limit);
        }
        Ok(())
    }

    fn value(&mut self, ty: &Type<'_>, at: u32) -> Result<(), Untranslated> {
        let from = self.from;
        match &ty.kind {
            Kind::Unit => self.to.null(),
            Kind::Bool => self.to.bool(from.u8(at) != 0),
            Kind::Char => {
                let scalar = char::from_u32(from.u32(at)).expect("a checked char is one");
                self.to.text(scalar.encode_utf8(&mut [0; 4]));
            }
            Kind::Text => {
                let text = std::str::from_utf8(from.tail(at));
                self.to.text(text.expect("a checked string is UTF-8"));
            }
            Kind::Number(kind) => self.number(*kind, ty.size, at),
            Kind::Handle => unreachable!("a type with handles was refused"),
            Kind::List(item) => {
                let (first, count) = (from.u32(at), from.u32(at + 4));
                self.items(item, first, count)?;
            }
            Kind::Array { item, count } => self.items(item, at, *count)?,
            Kind::Option { value, payload } => {
                let is_some = from.u8(at) != 0;
                if value.nullable() {
                    self.to.array(usize::from(is_some));
                }
                if is_some {
                    self.value(value, at + payload)?;
                } else if !value.nullable() {
                    self.to.null();
                }
            }
            Kind::Variant {
                cases,
                tag,
                payload,
            } => {
                let case = &cases[word(from, at, *tag) as usize];
                match &case.payload {
                    None => self.to.text(case.name),
                    Some(ty) => {
                        self.to.map(1);
                        self.to.text(case.name);
                        self.value(ty, at + payload)?;
                    }
                }
            }
            Kind::Tuple(fields) => {
                self.to.array(fields.len());
                for field in fields {
                    self.value(&field.ty, at + field.offset)?;
                }
            }
            Kind::Record { fields, sorted } => {
                self.to.map(fields.len());
                for field in sorted.iter().map(|i| &fields[*i]) {
                    self.to.text(field.name);
                    self.value(&field.ty, at + field.offset)?;
                }
            }
            Kind::Enum(labels) => self.to.text(labels[word(from, at, ty.size) as usize]),
            Kind::Flags(labels) => {
                let bits = word(from, at, ty.size);
                self.to.flags(bits, labels.iter().copied());
            }
        }
        Ok(())
    }

    fn number(&mut self, kind: Number, size: u32, at: u32) {
        let from = self.from;
        let bits = match size {
            1 => u64::from(from.u8(at)),
            2 => u64::from(from.u16(at)),
            4 => u64::from(from.u32(at)),
            _ => from.u64(at),
        };
        match (kind, size) {
            (Number::Unsigned, _) => self.to.uint(bits),
            (Number::Float, 4) => self.to.f32_bits(bits as u32),
            (Number::Float, _) => self.to.f64_bits(bits),
            (Number::Signed, size) => {
                let unused = 64 - 8 * size;
                self.to.int((bits << unused) as i64 >> unused);
            }
        }
    }

    fn items(&mut self, item: &Type<'_>, first: u32, count: u32) -> Result<(), Untranslated> {
        if let Kind::Number(kind) = item.kind {
            let bytes = match count {
                0 => &[],
                _ => self
                    .from
                    .get(first, count * item.size)
                    .expect("a checked list lies inside"),
            };
            if (kind, item.size) != (Number::Unsigned, 1) {
                self.to.tag(typed_of(kind, item.size).little);
            }
            self.to.bytes(bytes);
            return self.fits();
        }
        self.to.array(count as usize);
        for i in 0..count {
            self.value(item, first + i * item.size)?;
            self.fits()?;
        }
        Ok(())
    }
}
