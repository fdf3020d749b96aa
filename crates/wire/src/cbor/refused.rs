//! Why an item is not taken.

use std::fmt;

/// An item that is no value of the type: which rule it breaks, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The rule that is broken.
    pub rule: Rule,
    /// Byte at which the offending item begins.
    pub at: u32,
}

/// What an item must obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// It is larger than a message may be.
    Size,
    /// It ends too early, or a length promises more than is there.
    End,
    /// Something stands behind it.
    Trailing,
    /// A head that RFC 8949 does not allow.
    Head,
    /// It is of another kind than the type asks for: a text for a number, an integer as a key.
    Type,
    /// A number does not fit, or would lose something.
    Range,
    /// A tag that means nothing here.
    Tag,
    /// A tuple or typed array of another length, or a case with more than its payload.
    Count,
    /// No field, case or flag has this name.
    Unknown,
    /// A field or flag is there a second time.
    Twice,
    /// A field is missing.
    Missing,
    /// Not UTF-8.
    Utf8,
    /// A text that is not one scalar value where a `char` is asked for.
    Char,
    /// It is nested deeper than its type.
    Depth,
    /// The type has a handle in it, which means nothing outside its process.
    Handle,
}

impl Refused {
    /// `rule` is broken at byte `at`.
    #[cold]
    pub fn new(rule: Rule, at: usize) -> Self {
        Refused {
            rule,
            at: u32::try_from(at).unwrap_or(u32::MAX),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.rule {
            Rule::Size => "it is larger than a message may be",
            Rule::End => "it ends too early",
            Rule::Trailing => "something stands behind it",
            Rule::Head => "it is not well-formed",
            Rule::Type => "it is of another kind than the type asks for",
            Rule::Range => "a number does not fit",
            Rule::Tag => "a tag means nothing here",
            Rule::Count => "there are more or fewer items than the type has",
            Rule::Unknown => "no field, case or flag has this name",
            Rule::Twice => "a field or flag is there twice",
            Rule::Missing => "a field is missing",
            Rule::Utf8 => "a text is not UTF-8",
            Rule::Char => "a char is not one scalar value",
            Rule::Depth => "it is nested deeper than its type",
            Rule::Handle => "a handle cannot leave its process",
        };
        write!(f, "not the CBOR of this type: {what} (byte {})", self.at)
    }
}

impl std::error::Error for Refused {}
