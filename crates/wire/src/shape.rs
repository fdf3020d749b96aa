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
}

/// FNV-1a's 64-bit offset basis and prime (Fowler, Noll, Vo).
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl Shape {
    /// FNV-1a 64 of the whole text.
    pub const fn hash(self) -> u64 {
        self.fold(BASIS)
    }

    /// FNV-1a 64 of a single text.
    pub const fn hash_of(text: &str) -> u64 {
        fold_bytes(BASIS, text.as_bytes())
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
        }
        hash
    }
}

const fn fold_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(PRIME);
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
    fn a_number_hashes_as_its_digits() {
        for number in [0, 7, 10, 305, u32::MAX] {
            let text = number.to_string();
            assert_eq!(Shape::Number(number).hash(), Shape::hash_of(&text));
            assert_eq!(Shape::Number(number).to_string(), text);
        }
    }
}
