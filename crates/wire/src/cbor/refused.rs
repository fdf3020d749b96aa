//! The error of a refused CBOR item.

use std::fmt;

/// An item that is not a value of the type: the rule that it breaks, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The rule that is broken.
    pub rule: Rule,
    /// Offset in bytes of the offending item.
    pub at: u32,
}

/// The rules for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The item is larger than a message may be.
    Size,
    /// The item ends too early, or a length exceeds the remaining bytes.
    End,
    /// Something follows the item.
    Trailing,
    /// A head that RFC 8949 does not allow.
    Head,
    /// The item has the wrong kind for the type: a text for a number, an integer as a key.
    Type,
    /// A number does not fit, or would lose precision.
    Range,
    /// A tag that is not supported here.
    Tag,
    /// A tuple or typed array has another length, or a case has more than its payload.
    Count,
    /// No field, case or flag has this name.
    Unknown,
    /// A field or flag is duplicated.
    Twice,
    /// A field is missing.
    Missing,
    /// A text is not UTF-8.
    Utf8,
    /// A text for a `char` is not exactly one scalar value.
    Char,
    /// The item is nested deeper than its type.
    Depth,
    /// The type contains a handle, which is meaningless outside its process.
    Handle,
}

impl Refused {
    /// The item breaks `rule` at byte `at`.
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
