//! The contents of match number `n`, computed without any transport, so that the reading of every
//! host can be checked.

/// Texts and paths repeat after this many matches: few enough to cost nothing, enough to vary in
/// length.
const VARIANTS: u64 = 64;

/// The fields of one match; those that are not here are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// As in the record.
    pub path: &'a str,
    /// The match's number and one.
    pub line: u64,
    /// 1 to 80.
    pub column: u64,
    /// 15 to 80 bytes. One text in eight is not ASCII, but its first and last bytes are ASCII
    /// characters.
    pub text: &'a str,
    /// One in 64.
    pub cut: bool,
}

/// The strings that matches are made of.
#[derive(Debug)]
pub struct Contents {
    paths: Vec<String>,
    texts: Vec<String>,
}

impl Default for Contents {
    fn default() -> Self {
        Self::new()
    }
}

impl Contents {
    /// Builds all of them.
    #[must_use]
    pub fn new() -> Self {
        let text = |n: u64| {
            let accent = if n.is_multiple_of(8) { "\u{e9}" } else { "" };
            let filler = "abcdefghijklmnopqrstuvwxyz".chars().cycle();
            let length = usize::try_from(n).expect("below 64");
            let filler: String = filler.take(length).collect();
            format!("let found = \"{accent}{filler}\";")
        };
        Self {
            paths: (0..VARIANTS)
                .map(|n| format!("src/area-{}/file-{n}.rs", n % 7))
                .collect(),
            texts: (0..VARIANTS).map(text).collect(),
        }
    }

    /// Match number `n`, from 0.
    #[must_use]
    pub fn get(&self, n: u64) -> Content<'_> {
        let variant = usize::try_from(n % VARIANTS).expect("below 64");
        Content {
            path: &self.paths[variant],
            line: n + 1,
            column: 1 + n % 80,
            text: &self.texts[variant],
            cut: n.is_multiple_of(64),
        }
    }

    /// The checksum expected of a reader of all matches: line, column, length of the path, first
    /// and last byte of the text.
    #[must_use]
    pub fn checksum(&self, count: u64) -> u64 {
        (0..count).map(|n| checksum(self.get(n))).sum()
    }

    /// FNV-1a over every byte of every match, in order: path, text, line and column in little endian, `cut`.
    #[must_use]
    pub fn digest(&self, count: u64) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325;
        for n in 0..count {
            let Content {
                path,
                line,
                column,
                text,
                cut,
            } = self.get(n);
            let numbers = line.to_le_bytes().into_iter().chain(column.to_le_bytes());
            let strings = path.bytes().chain(text.bytes());
            for byte in strings.chain(numbers).chain([u8::from(cut)]) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        digest
    }
}

/// One match's part of the sum.
#[must_use]
pub fn checksum(of: Content<'_>) -> u64 {
    let text = of.text.as_bytes();
    let ends = u64::from(text[0]) + u64::from(text[text.len() - 1]);
    of.line + of.column + of.path.len() as u64 + ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_follows_from_its_number() {
        let contents = Contents::new();
        let first = contents.get(0);
        assert_eq!(first.path, "src/area-0/file-0.rs");
        assert_eq!((first.line, first.column, first.cut), (1, 1, true));
        assert_eq!(first.text, "let found = \"\u{e9}\";");
        assert_eq!(contents.get(65).text, "let found = \"a\";");
        assert_eq!(contents.get(65).line, 66);
    }

    #[test]
    fn the_sum_of_two_is_known() {
        // Match 0: line 1, column 1, path 20, 'l' 108, ';' 59. Match 1: 2, 2, and the same.
        assert_eq!(
            Contents::new().checksum(2),
            1 + 1 + 20 + 108 + 59 + 2 + 2 + 20 + 108 + 59
        );
    }

    #[test]
    fn the_digest_knows_the_order() {
        let contents = Contents::new();
        assert_ne!(contents.digest(2), contents.digest(1));
        assert_eq!(contents.digest(0), 0xcbf2_9ce4_8422_2325);
    }
}
