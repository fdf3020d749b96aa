//! The parser of descriptions.

use super::{Case, Field, Kind, Number, Type};
use crate::layout::max;
use crate::{MAX_DEPTH, MAX_SIZE, Shape};
use std::fmt;

/// The error of a text that describes no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Offset in bytes of the error.
    pub at: usize,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the description of a type goes wrong at byte {}",
            self.at
        )
    }
}

impl std::error::Error for Unreadable {}

impl<'a> Type<'a> {
    /// Parses `text`.
    ///
    /// # Errors
    /// The text describes no type, or a type that is nested deeper than [`MAX_DEPTH`] or larger
    /// than [`MAX_SIZE`].
    pub fn parse(text: &'a str) -> Result<Type<'a>, Unreadable> {
        let mut parser = Parser { text, at: 0 };
        let ty = parser.ty(MAX_DEPTH)?;
        if parser.at == text.len() {
            Ok(ty)
        } else {
            Err(parser.wrong())
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// Checks that a size or offset fits a message.
struct Place {
    end: u64,
    align: u32,
}

impl Place {
    fn new() -> Self {
        Place { end: 0, align: 1 }
    }

    /// Appends a field and returns its offset.
    fn add(&mut self, size: u32, align: u32) -> u64 {
        let at = self.end.next_multiple_of(u64::from(align));
        self.end = at + u64::from(size);
        self.align = max(self.align, align);
        at
    }
}

impl<'a> Parser<'a> {
    fn wrong(&self) -> Unreadable {
        Unreadable { at: self.at }
    }

    /// Consumes a punctuation mark if it is next.
    fn takes(&mut self, mark: &str) -> bool {
        let comes = self.text[self.at..].starts_with(mark);
        self.at += if comes { mark.len() } else { 0 };
        comes
    }

    fn expect(&mut self, mark: &str) -> Result<(), Unreadable> {
        if self.takes(mark) {
            Ok(())
        } else {
            Err(self.wrong())
        }
    }

    /// Consumes a non-empty word of letters, digits and dashes.
    fn name(&mut self) -> Result<&'a str, Unreadable> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
            .unwrap_or(rest.len());
        if end == 0 {
            return Err(self.wrong());
        }
        self.at += end;
        Ok(&rest[..end])
    }

    /// Consumes a decimal number without leading zeros.
    fn count(&mut self) -> Result<u32, Unreadable> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(count) if !rest.starts_with('0') => {
                self.at += end;
                Ok(count)
            }
            _ => Err(self.wrong()),
        }
    }

    /// Consumes a comma-separated list up to `end`, after its opening mark; `each` consumes one
    /// element.
    fn several<T>(
        &mut self,
        end: &str,
        mut each: impl FnMut(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, Unreadable> {
        let mut items = Vec::new();
        if self.takes(end) {
            return Ok(items);
        }
        loop {
            items.push(each(self)?);
            if self.takes(end) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn ty(&mut self, depth: u32) -> Result<Type<'a>, Unreadable> {
        let from = self.at;
        if self.takes("_") {
            return self.made(from, Kind::Unit, 0, 1, false);
        }
        let number = |kind, size: u32| (Kind::Number(kind), u64::from(size), size);
        let name = self.name()?;
        let (kind, size, align) = match name {
            "bool" => (Kind::Bool, 1, 1),
            "u8" => number(Number::Unsigned, 1),
            "u16" => number(Number::Unsigned, 2),
            "u32" => number(Number::Unsigned, 4),
            "u64" => number(Number::Unsigned, 8),
            "s8" => number(Number::Signed, 1),
            "s16" => number(Number::Signed, 2),
            "s32" => number(Number::Signed, 4),
            "s64" => number(Number::Signed, 8),
            "f32" => number(Number::Float, 4),
            "f64" => number(Number::Float, 8),
            "char" => (Kind::Char, 4, 4),
            "string" => (Kind::Text, 8, 4),
            "handle" => return self.made(from, Kind::Handle, 4, 4, true),
            _ => return self.nested(from, name, depth),
        };
        self.made(from, kind, size, align, false)
    }

    /// Completes a type whose text ends here.
    fn made(
        &self,
        from: usize,
        kind: Kind<'a>,
        size: u64,
        align: u32,
        has_handle: bool,
    ) -> Result<Type<'a>, Unreadable> {
        let size = size.next_multiple_of(u64::from(align));
        if size > u64::from(MAX_SIZE) {
            return Err(self.wrong());
        }
        let text = &self.text[from..self.at];
        Ok(Type {
            kind,
            size: size as u32,
            align,
            has_handle,
            text,
            hash: Shape::hash_of(text),
        })
    }

    /// Parses a type that is built from other types.
    fn nested(&mut self, from: usize, name: &str, depth: u32) -> Result<Type<'a>, Unreadable> {
        // Labels do not add depth.
        let deeper = match name {
            "enum" | "flags" => depth,
            _ => depth.checked_sub(1).ok_or(self.wrong())?,
        };
        match name {
            "list" => {
                self.expect("<")?;
                let item = self.ty(deeper)?;
                let has_handle = item.has_handle;
                if self.takes(",") {
                    let count = self.count()?;
                    self.expect(">")?;
                    let size = u64::from(count) * u64::from(item.size);
                    let align = item.align;
                    // Elements without size would allow any length at no cost.
                    if size == 0 {
                        return Err(self.wrong());
                    }
                    let item = Box::new(item);
                    return self.made(from, Kind::Array { item, count }, size, align, has_handle);
                }
                self.expect(">")?;
                self.made(from, Kind::List(Box::new(item)), 8, 4, has_handle)
            }
            "option" => {
                self.expect("<")?;
                let value = self.ty(deeper)?;
                self.expect(">")?;
                let mut place = Place::new();
                place.add(1, 1);
                let payload = place.add(value.size, value.align) as u32;
                let has_handle = value.has_handle;
                let value = Box::new(value);
                let kind = Kind::Option { value, payload };
                self.made(from, kind, place.end, place.align, has_handle)
            }
            "result" => {
                self.expect("<")?;
                let ok = self.ty(deeper)?;
                self.expect(",")?;
                let error = self.ty(deeper)?;
                self.expect(">")?;
                let cases = [("ok", ok), ("error", error)].map(|(name, ty)| Case {
                    name,
                    payload: Some(ty),
                });
                self.variant(from, cases.into())
            }
            "tuple" => {
                self.expect("<")?;
                let types = self.several(">", |parser| parser.ty(deeper).map(|ty| ("", ty)))?;
                self.fields(from, types, false)
            }
            "record" => {
                self.expect("{")?;
                let fields = self.several("}", |parser| {
                    let name = parser.name()?;
                    parser.expect(":")?;
                    Ok((name, parser.ty(deeper)?))
                })?;
                self.fields(from, fields, true)
            }
            "variant" => {
                self.expect("{")?;
                let cases = self.several("}", |parser| {
                    let name = parser.name()?;
                    let mut payload = None;
                    if parser.takes("(") {
                        payload = Some(parser.ty(deeper)?);
                        parser.expect(")")?;
                    }
                    Ok(Case { name, payload })
                })?;
                self.variant(from, cases)
            }
            "enum" => {
                self.expect("{")?;
                let labels = self.several("}", Self::name)?;
                let size = self.tag(labels.len())?;
                self.made(from, Kind::Enum(labels), size.into(), size, false)
            }
            "flags" => {
                self.expect("{")?;
                let labels = self.several("}", Self::name)?;
                let size = match labels.len() {
                    1..=8 => 1,
                    9..=16 => 2,
                    17..=32 => 4,
                    _ => return Err(self.wrong()),
                };
                self.made(from, Kind::Flags(labels), size.into(), size, false)
            }
            "own" | "borrow" => {
                self.expect("<")?;
                self.name()?;
                self.expect(">")?;
                self.made(from, Kind::Handle, 4, 4, true)
            }
            "stream" | "future" => {
                self.expect("<")?;
                self.ty(deeper)?;
                self.expect(">")?;
                self.made(from, Kind::Handle, 4, 4, true)
            }
            _ => {
                self.at = from;
                Err(self.wrong())
            }
        }
    }

    /// Size in bytes of a discriminant.
    fn tag(&self, cases: usize) -> Result<u32, Unreadable> {
        match cases {
            0 => Err(self.wrong()),
            1..=0x100 => Ok(1),
            0x101..=0x1_0000 => Ok(2),
            _ => Ok(4),
        }
    }

    fn fields(
        &self,
        from: usize,
        types: Vec<(&'a str, Type<'a>)>,
        named: bool,
    ) -> Result<Type<'a>, Unreadable> {
        let mut place = Place::new();
        let mut fields = Vec::with_capacity(types.len());
        for (name, ty) in types {
            let offset = place.add(ty.size, ty.align);
            if offset > u64::from(MAX_SIZE) {
                return Err(self.wrong());
            }
            let offset = offset as u32;
            fields.push(Field { name, offset, ty });
        }
        let has_handle = fields.iter().any(|field| field.ty.has_handle);
        let kind = if named {
            let mut sorted: Vec<_> = (0..fields.len()).collect();
            sorted.sort_by_key(|i| (fields[*i].name.len(), fields[*i].name));
            if sorted
                .windows(2)
                .any(|two| fields[two[0]].name == fields[two[1]].name)
            {
                return Err(self.wrong());
            }
            Kind::Record { fields, sorted }
        } else {
            Kind::Tuple(fields)
        };
        self.made(from, kind, place.end, place.align, has_handle)
    }

    fn variant(&self, from: usize, cases: Vec<Case<'a>>) -> Result<Type<'a>, Unreadable> {
        let tag = self.tag(cases.len())?;
        let payloads = || cases.iter().filter_map(|case| case.payload.as_ref());
        let size = payloads().map(|ty| ty.size).max().unwrap_or(0);
        let align = payloads().map(|ty| ty.align).max().unwrap_or(1);
        let has_handle = payloads().any(|ty| ty.has_handle);
        let mut place = Place::new();
        place.add(tag, tag);
        let payload = place.add(size, align) as u32;
        let kind = Kind::Variant {
            cases,
            tag,
            payload,
        };
        self.made(from, kind, place.end, place.align, has_handle)
    }
}
