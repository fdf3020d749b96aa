//! Types as the table of a library describes them, with their layout.
//!
//! A description is a text such as `record{path:string,line:u64}`. `thalweg_wire::describe` checks
//! it, and ignores the parts that have no effect on a layout: the name of a resource and the
//! elements of a stream. Here they are needed.

use std::fmt;

use thalweg::wire::describe;

/// A type. Names are borrowed from the text.
#[derive(Debug)]
pub struct Type<'a> {
    pub kind: Kind<'a>,
    /// Size in bytes of the fixed part.
    pub size: u32,
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub align: u32,
    /// The whole description.
    pub text: &'a str,
}

/// The kinds of types.
#[derive(Debug)]
pub enum Kind<'a> {
    /// No value: `_`.
    Unit,
    Bool,
    Char,
    Text,
    Unsigned,
    Signed,
    Float,
    List(Box<Type<'a>>),
    /// A list of a fixed length, stored in place.
    Array(Box<Type<'a>>, u32),
    /// The value is at this offset.
    Option(Box<Type<'a>>, u32),
    /// Both sides are at this offset. A side without a value is [`Kind::Unit`].
    Result([Box<Type<'a>>; 2], u32),
    Tuple(Vec<Field<'a>>),
    Record(Vec<Field<'a>>),
    /// The payload of each case is at this offset.
    Variant(Vec<Case<'a>>, u32),
    Enum(Vec<&'a str>),
    Flags(Vec<&'a str>),
    Own(&'a str),
    Borrow(&'a str),
    /// The type of the elements, which may be [`Kind::Unit`].
    Stream(Box<Type<'a>>),
    Future(Box<Type<'a>>),
}

/// A field of a record or of a tuple. The name of a tuple's field is empty.
#[derive(Debug)]
pub struct Field<'a> {
    pub name: &'a str,
    pub offset: u32,
    pub ty: Type<'a>,
}

/// A case of a variant.
#[derive(Debug)]
pub struct Case<'a> {
    pub name: &'a str,
    pub payload: Option<Type<'a>>,
}

/// The text is not a description.
#[derive(Debug)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` does not describe a type", self.0)
    }
}

impl<'a> Type<'a> {
    /// Parses a description.
    ///
    /// # Errors
    /// The text describes no type, or one that no message can have.
    pub fn parse(text: &'a str) -> Result<Self, Unreadable> {
        let unreadable = || Unreadable(text.to_owned());
        // Bounds the depth of the recursion below, and all sizes.
        describe::Type::parse(text).map_err(|_| unreadable())?;
        let mut parser = Parser { rest: text };
        match parser.ty() {
            Some(ty) if parser.rest.is_empty() => Ok(ty),
            _ => Err(unreadable()),
        }
    }

    /// Whether `is` holds for the type or for a type inside it. The elements of a stream do not
    /// count as inside.
    pub fn contains(&self, is: fn(&Kind<'_>) -> bool) -> bool {
        let inner = |ty: &Type<'_>| ty.contains(is);
        is(&self.kind)
            || match &self.kind {
                Kind::List(item) | Kind::Array(item, _) | Kind::Option(item, _) => inner(item),
                Kind::Result(sides, _) => sides.iter().any(|side| inner(side)),
                Kind::Tuple(fields) | Kind::Record(fields) => {
                    fields.iter().any(|field| inner(&field.ty))
                }
                Kind::Variant(cases, _) => {
                    let mut payloads = cases.iter().filter_map(|case| case.payload.as_ref());
                    payloads.any(inner)
                }
                _ => false,
            }
    }

    /// The number of bytes of the discriminant of a variant or an enum with this many cases.
    pub fn tag_size(cases: usize) -> u32 {
        match cases {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }
}

/// The parser of a text that `thalweg_wire` has accepted, so it only has to stop at an error, and
/// no sum of sizes overflows.
struct Parser<'a> {
    rest: &'a str,
}

/// The layout of a record whose fields are added in order.
#[derive(Default)]
struct Layout {
    end: u32,
    align: u32,
}

impl Layout {
    /// Adds a field and returns its offset.
    fn add(&mut self, size: u32, align: u32) -> u32 {
        let offset = self.end.next_multiple_of(align);
        self.end = offset + size;
        self.align = self.align.max(align);
        offset
    }

    /// Size and alignment.
    fn total(&self) -> (u32, u32) {
        let align = self.align.max(1);
        (self.end.next_multiple_of(align), align)
    }
}

impl<'a> Parser<'a> {
    /// Consumes a mark if it is next.
    fn takes(&mut self, mark: &str) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes a name or a number.
    fn word(&mut self) -> Option<&'a str> {
        let is_other = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
        let end = self.rest.find(is_other).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Consumes a list after its opening mark, up to `end`.
    fn several<T>(&mut self, end: &str, each: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while !self.takes(end) {
            items.push(each(self)?);
            self.takes(",");
        }
        Some(items)
    }

    fn ty(&mut self) -> Option<Type<'a>> {
        let from = self.rest;
        let (kind, size, align) = self.kind()?;
        Some(Type {
            kind,
            size,
            align,
            text: &from[..from.len() - self.rest.len()],
        })
    }

    /// The kind, the size and the alignment.
    fn kind(&mut self) -> Option<(Kind<'a>, u32, u32)> {
        if self.takes("_") {
            return Some((Kind::Unit, 0, 1));
        }
        let word = self.word()?;
        let number = match word {
            "bool" => Some((Kind::Bool, 1)),
            "u8" => Some((Kind::Unsigned, 1)),
            "u16" => Some((Kind::Unsigned, 2)),
            "u32" => Some((Kind::Unsigned, 4)),
            "u64" => Some((Kind::Unsigned, 8)),
            "s8" => Some((Kind::Signed, 1)),
            "s16" => Some((Kind::Signed, 2)),
            "s32" => Some((Kind::Signed, 4)),
            "s64" => Some((Kind::Signed, 8)),
            "f32" => Some((Kind::Float, 4)),
            "f64" => Some((Kind::Float, 8)),
            "char" => Some((Kind::Char, 4)),
            _ => None,
        };
        if let Some((kind, size)) = number {
            return Some((kind, size, size));
        }
        if word == "string" {
            return Some((Kind::Text, 8, 4));
        }
        let is_braced = matches!(word, "record" | "variant" | "enum" | "flags");
        if !self.takes(if is_braced { "{" } else { "<" }) {
            return None;
        }
        let found = match word {
            "tuple" => {
                let types = self.several(">", |parser| Some(("", parser.ty()?)))?;
                let (fields, size, align) = fields(types);
                return Some((Kind::Tuple(fields), size, align));
            }
            "record" => {
                let types = self.several("}", |parser| {
                    let name = parser.word()?;
                    parser.takes(":");
                    Some((name, parser.ty()?))
                })?;
                let (fields, size, align) = fields(types);
                return Some((Kind::Record(fields), size, align));
            }
            "variant" => {
                let cases = self.several("}", |parser| {
                    let name = parser.word()?;
                    let mut payload = None;
                    if parser.takes("(") {
                        payload = Some(parser.ty()?);
                        parser.takes(")");
                    }
                    Some(Case { name, payload })
                })?;
                let payloads = cases.iter().filter_map(|case| case.payload.as_ref());
                let (at, size, align) = payload_layout(Type::tag_size(cases.len()), payloads);
                return Some((Kind::Variant(cases, at), size, align));
            }
            "enum" => {
                let labels = self.several("}", Self::word)?;
                let size = Type::tag_size(labels.len());
                return Some((Kind::Enum(labels), size, size));
            }
            "flags" => {
                let labels = self.several("}", Self::word)?;
                let size = match labels.len() {
                    0..=8 => 1,
                    9..=16 => 2,
                    _ => 4,
                };
                return Some((Kind::Flags(labels), size, size));
            }
            "list" => {
                let item = Box::new(self.ty()?);
                match self.takes(",") {
                    false => (Kind::List(item), 8, 4),
                    true => {
                        let count: u32 = self.word()?.parse().ok()?;
                        let (size, align) = (item.size.checked_mul(count)?, item.align);
                        (Kind::Array(item, count), size, align)
                    }
                }
            }
            "option" => {
                let value = self.ty()?;
                let (at, size, align) = payload_layout(1, [&value]);
                (Kind::Option(Box::new(value), at), size, align)
            }
            "result" => {
                let ok = self.ty()?;
                self.takes(",");
                let error = self.ty()?;
                let (at, size, align) = payload_layout(1, [&ok, &error]);
                let sides = [Box::new(ok), Box::new(error)];
                (Kind::Result(sides, at), size, align)
            }
            "own" => (Kind::Own(self.word()?), 4, 4),
            "borrow" => (Kind::Borrow(self.word()?), 4, 4),
            "stream" => (Kind::Stream(Box::new(self.ty()?)), 4, 4),
            "future" => (Kind::Future(Box::new(self.ty()?)), 4, 4),
            _ => return None,
        };
        self.takes(">").then_some(found)
    }
}

/// Lays out the fields of a record or a tuple. Returns them with the size and the alignment.
fn fields<'a>(types: Vec<(&'a str, Type<'a>)>) -> (Vec<Field<'a>>, u32, u32) {
    let mut layout = Layout::default();
    let fields = types
        .into_iter()
        .map(|(name, ty)| Field {
            name,
            offset: layout.add(ty.size, ty.align),
            ty,
        })
        .collect();
    let (size, align) = layout.total();
    (fields, size, align)
}

/// Lays out a value with a discriminant. Returns the offset of the payload, the size and the
/// alignment.
fn payload_layout<'t, 'a: 't>(
    tag: u32,
    payloads: impl IntoIterator<Item = &'t Type<'a>>,
) -> (u32, u32, u32) {
    let (mut size, mut align) = (0, 1);
    for payload in payloads {
        size = size.max(payload.size);
        align = align.max(payload.align);
    }
    let mut layout = Layout::default();
    layout.add(tag, tag);
    let at = layout.add(size, align);
    let (size, align) = layout.total();
    (at, size, align)
}

#[cfg(test)]
mod tests {
    use super::{Kind, Type, describe};

    /// A type of each kind, with the offset of the last part of a record.
    const TEXTS: &[&str] = &[
        "_",
        "record{a:u8,b:u64,c:u16}",
        "tuple<char,bool,list<string>>",
        "tuple<>",
        "option<option<u64>>",
        "result<_,f64>",
        "result<_,_>",
        "variant{a,b(record{x:u8}),c(list<u16,3>)}",
        "enum{a,b}",
        "flags{a,b,c,d,e,f,g,h,i}",
        "record{self:borrow<counter>,other:option<own<counter>>,numbers:stream<u64>}",
        "list<result<record{x:s32,y:s32},string>>",
        "future<_>",
    ];

    #[test]
    fn layout_is_that_of_the_wire() {
        for text in TEXTS {
            let ty = Type::parse(text).unwrap_or_else(|error| panic!("{error}"));
            let known = describe::Type::parse(text).unwrap();
            assert_eq!((ty.size, ty.align), (known.size(), known.align()), "{text}");
            assert_eq!(ty.text, *text);
        }
    }

    #[test]
    fn parts_have_their_own_texts() {
        let ty = Type::parse("record{a:list<enum{x,y}>,b:stream<_>}").unwrap();
        let Kind::Record(fields) = ty.kind else {
            panic!("it is a record");
        };
        assert_eq!((fields[0].name, fields[1].offset), ("a", 8));
        let Kind::List(item) = &fields[0].ty.kind else {
            panic!("it is a list");
        };
        assert_eq!(item.text, "enum{x,y}");
        assert!(matches!(&fields[1].ty.kind, Kind::Stream(element) if element.text == "_"));
    }

    #[test]
    fn text_that_describes_no_type_is_refused() {
        let deep = "option<".repeat(65) + "u8" + &">".repeat(65);
        for text in ["", "u9", "record{a}", "list<u8", "u8>", "handle", &deep] {
            assert!(Type::parse(text).is_err(), "{text}");
        }
    }
}
