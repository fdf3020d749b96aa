//! A type's structure as text, and its hash, both computed at compile time.

/// A text in pieces, so that a constant of a generic type can be composed of the texts of its
/// parts.
///
/// ```
/// use thalweg_wire::{Decode, Shape};
///
/// const POINT: Shape = Shape::Parts(&[Shape::Text("record{x:"), u32::SHAPE, Shape::Text("}")]);
/// assert_eq!(POINT.to_string(), "record{x:u32}");
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// One piece of text.
    Text(&'static str),
    /// A decimal number.
    Number(u32),
    /// Several pieces, one after the other.
    Parts(&'static [Shape]),
    /// A record: the names and shapes of its fields.
    Record(&'static [(&'static str, Shape)]),
    /// A variant: the names of its cases, and the shapes of their payloads.
    Variant(&'static [(&'static str, Option<Shape>)]),
    /// An enum: the names of its cases.
    Enum(&'static [&'static str]),
    /// The names of flags.
    Flags(&'static [&'static str]),
}

/// FNV-1a's 64-bit offset basis and prime (Fowler, Noll, Vo). The prime is a `u128`, because the
/// compiler evaluates a wide product faster than a call of `wrapping_mul`.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u128 = 0x0000_0100_0000_01b3;

impl Shape {
    /// FNV-1a 64 of the whole text.
    pub const fn hash(self) -> u64 {
        self.fold(BASIS)
    }

    /// FNV-1a 64 of a single text.
    pub const fn hash_of(text: &str) -> u64 {
        fold_bytes(BASIS, text.as_bytes())
    }

    /// FNV-1a 64 of each line of a text; 0 if the line is empty or missing.
    ///
    /// ```
    /// use thalweg_wire::Shape;
    ///
    /// const HASHES: [u64; 3] = Shape::hash_lines("u8\n\nstring");
    /// assert_eq!(HASHES, [Shape::hash_of("u8"), 0, Shape::hash_of("string")]);
    /// ```
    ///
    /// # Panics
    /// The text has more than `N` lines.
    pub const fn hash_lines<const N: usize>(text: &str) -> [u64; N] {
        let bytes = text.as_bytes();
        let mut hashes = [0; N];
        let (mut line, mut hash, mut i) = (0, BASIS, 0);
        while i < bytes.len() {
            if bytes[i] == b'\n' {
                (line, hash) = (line + 1, BASIS);
            } else {
                hash = ((hash ^ bytes[i] as u64) as u128 * PRIME) as u64;
                hashes[line] = hash;
            }
            i += 1;
        }
        hashes
    }

    const fn fold(self, mut hash: u64) -> u64 {
        match self {
            Shape::Text(text) => hash = fold_bytes(hash, text.as_bytes()),
            Shape::Number(number) => {
                let mut ten = 1;
                while number / ten >= 10 {
                    ten *= 10;
                }
                while ten > 0 {
                    hash = fold_bytes(hash, &[b'0' + (number / ten % 10) as u8]);
                    ten /= 10;
                }
            }
            Shape::Parts(parts) => {
                let mut i = 0;
                while i < parts.len() {
                    hash = parts[i].fold(hash);
                    i += 1;
                }
            }
            Shape::Record(fields) => {
                let mut i = 0;
                while i < fields.len() {
                    hash = fold_text(hash, if i == 0 { "record{" } else { "," });
                    hash = fold_text(fold_text(hash, fields[i].0), ":");
                    hash = fields[i].1.fold(hash);
                    i += 1;
                }
                hash = fold_text(hash, "}");
            }
            Shape::Variant(cases) => {
                let mut i = 0;
                while i < cases.len() {
                    hash = fold_text(hash, if i == 0 { "variant{" } else { "," });
                    hash = fold_text(hash, cases[i].0);
                    if let Some(payload) = cases[i].1 {
                        hash = fold_text(payload.fold(fold_text(hash, "(")), ")");
                    }
                    i += 1;
                }
                hash = fold_text(hash, "}");
            }
            Shape::Enum(names) => hash = fold_names(hash, "enum{", names),
            Shape::Flags(names) => hash = fold_names(hash, "flags{", names),
        }
        hash
    }
}

const fn fold_text(hash: u64, text: &str) -> u64 {
    fold_bytes(hash, text.as_bytes())
}

const fn fold_names(mut hash: u64, begin: &str, names: &[&str]) -> u64 {
    let mut i = 0;
    while i < names.len() {
        hash = fold_text(hash, if i == 0 { begin } else { "," });
        hash = fold_text(hash, names[i]);
        i += 1;
    }
    fold_text(hash, "}")
}

const fn fold_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = ((hash ^ bytes[i] as u64) as u128 * PRIME) as u64;
        i += 1;
    }
    hash
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shape::Text(text) => f.write_str(text),
            Shape::Number(number) => number.fmt(f),
            Shape::Parts(parts) => parts.iter().try_for_each(|part| part.fmt(f)),
            Shape::Record(fields) => {
                for (i, (name, shape)) in fields.iter().enumerate() {
                    let before = if i == 0 { "record{" } else { "," };
                    write!(f, "{before}{name}:{shape}")?;
                }
                f.write_str("}")
            }
            Shape::Variant(cases) => {
                for (i, (name, payload)) in cases.iter().enumerate() {
                    let before = if i == 0 { "variant{" } else { "," };
                    write!(f, "{before}{name}")?;
                    if let Some(payload) = payload {
                        write!(f, "({payload})")?;
                    }
                }
                f.write_str("}")
            }
            Shape::Enum(names) => write!(f, "enum{{{}}}", names.join(",")),
            Shape::Flags(names) => write!(f, "flags{{{}}}", names.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn the_hash_is_fnv_1a_as_published() {
        assert_eq!(Shape::Text("").hash(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Shape::Text("a").hash(), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Shape::Text("foobar").hash(), 0x8594_4171_f739_67e8);
        assert_eq!(Shape::hash_of("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn pieces_hash_as_their_text() {
        const PIECES: Shape = Shape::Parts(&[
            Shape::Text("fo"),
            Shape::Parts(&[Shape::Text("ob"), Shape::Text("ar")]),
        ]);
        assert_eq!(PIECES.hash(), Shape::Text("foobar").hash());
        assert_eq!(PIECES.to_string(), "foobar");
    }

    #[test]
    fn shape_of_a_definition_hashes_as_its_text() {
        const INNER: Shape = Shape::Enum(&["bid", "ask"]);
        const FIELDS: Shape = Shape::Record(&[("a", Shape::Text("u8")), ("b-c", INNER)]);
        const CASES: Shape = Shape::Variant(&[("none", None), ("some", Some(FIELDS))]);
        for (shape, text) in [
            (INNER, "enum{bid,ask}"),
            (Shape::Flags(&["read"]), "flags{read}"),
            (FIELDS, "record{a:u8,b-c:enum{bid,ask}}"),
            (CASES, "variant{none,some(record{a:u8,b-c:enum{bid,ask}})}"),
        ] {
            assert_eq!(shape.to_string(), text);
            assert_eq!(shape.hash(), Shape::hash_of(text));
        }
    }

    #[test]
    fn a_number_hashes_as_its_digits() {
        for number in [0, 7, 10, 305, u32::MAX] {
            let text = number.to_string();
            assert_eq!(Shape::Number(number).hash(), Shape::hash_of(&text));
            assert_eq!(Shape::Number(number).to_string(), text);
        }
    }
}
