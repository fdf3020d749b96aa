//! One line that matched, borrowed from the buffer it was read into.

use std::borrow::Cow;

/// Bytes of a line that are handed on; the rest is cut. From the WIT file, where it is promised.
pub const TEXT_LIMIT: usize = 65_536;

/// One line that matched. `text` and `path` are always UTF-8. If the real bytes are not UTF-8,
/// `text_bytes` and `path_bytes` contain them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit<'a> {
    /// Path of the file, beginning with the directory that was searched.
    pub path: &'a str,
    /// The path's bytes, where they are not UTF-8.
    pub path_bytes: Option<&'a [u8]>,
    /// From 1.
    pub line: u64,
    /// Byte of the line at which the first match begins, from 1. May lie beyond `text` where it was
    /// cut.
    pub column: u64,
    /// The line without its `\n`, at most [`TEXT_LIMIT`] bytes of it; a `\r` before the `\n` is
    /// kept.
    pub text: &'a str,
    /// The bytes behind `text`, where they are not UTF-8.
    pub text_bytes: Option<&'a [u8]>,
    /// Whether `text` was cut because the line is longer.
    pub cut: bool,
}

/// A line as [`Hit`] shows it.
pub(super) struct Text<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) bytes: Option<&'a [u8]>,
    pub(super) cut: bool,
}

impl<'a> Text<'a> {
    /// `line` with or without its `\n`.
    pub(super) fn of(line: &'a [u8]) -> Text<'a> {
        let whole = line.strip_suffix(b"\n").unwrap_or(line);
        let cut = whole.len() > TEXT_LIMIT;
        let bytes = &whole[..whole.len().min(TEXT_LIMIT)];
        match std::str::from_utf8(bytes) {
            Ok(text) => Text {
                text: Cow::Borrowed(text),
                bytes: None,
                cut,
            },
            // The limit fell inside a character: the text ends before it, and it is still UTF-8.
            Err(error) if cut && error.error_len().is_none() => {
                let text = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                Text {
                    text,
                    bytes: None,
                    cut,
                }
            }
            Err(_) => Text {
                text: String::from_utf8_lossy(bytes),
                bytes: Some(bytes),
                cut,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_line_loses_its_newline_and_nothing_else() {
        let text = Text::of(b"a\tb\r\n");
        assert_eq!((&*text.text, text.bytes, text.cut), ("a\tb\r", None, false));
        assert_eq!(Text::of(b"\n").text, "");
        assert_eq!(Text::of(b"").text, "");
        assert_eq!(Text::of(b"end").text, "end");
    }

    #[test]
    fn a_line_that_is_not_utf8_is_lossy_and_brings_its_bytes() {
        let text = Text::of(b"a\xffb\n");
        assert_eq!(
            (&*text.text, text.bytes),
            ("a\u{fffd}b", Some(&b"a\xffb"[..]))
        );
    }

    #[test]
    fn exactly_the_limit_is_not_cut_and_one_byte_more_is() {
        let mut line = vec![b'x'; TEXT_LIMIT];
        assert!(!Text::of(&line).cut);
        line.push(b'\n');
        assert!(!Text::of(&line).cut);
        line.insert(0, b'x');
        let text = Text::of(&line);
        assert!(text.cut);
        assert_eq!(text.text.len(), TEXT_LIMIT);
    }

    #[test]
    fn a_cut_inside_a_character_ends_before_it() {
        let mut line = vec![b'x'; TEXT_LIMIT - 1];
        line.extend("é and more".as_bytes());
        let text = Text::of(&line);
        assert!(text.cut && text.bytes.is_none());
        assert_eq!(text.text.len(), TEXT_LIMIT - 1);
    }

    #[test]
    fn a_line_that_ends_inside_a_character_without_being_cut_is_not_utf8() {
        let text = Text::of(b"caf\xc3\n");
        assert_eq!(
            (&*text.text, text.bytes),
            ("caf\u{fffd}", Some(&b"caf\xc3"[..]))
        );
    }
}
