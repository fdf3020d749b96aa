//! What is wrong with a message.

use std::fmt;

/// A message that breaks a rule: which, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The rule that is broken.
    pub rule: Rule,
    /// Byte of the message at which the offending field stands.
    pub at: u32,
}

/// The rules, in the words of [the crate's page](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The header is cut short, or its size is not the message's.
    Size,
    /// It is a message of another type.
    Layout,
    /// The table of handles does not fit, or a handle is missing, used twice or out of turn.
    Handles,
    /// The root is not where it belongs, or does not fit.
    Root,
    /// A string or list reaches beyond the end.
    Bounds,
    /// A tail is not aligned for its elements.
    Alignment,
    /// A tail begins before the end of the one before.
    Order,
    /// An empty or sizeless list has an offset.
    EmptyOffset,
    /// Too many elements without size.
    Unsized,
    /// Not UTF-8.
    Utf8,
    /// Neither 0 nor 1.
    Bool,
    /// Not a Unicode scalar value.
    Char,
    /// No such case.
    Discriminant,
    /// A bit is set that stands for no flag.
    Flags,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.rule {
            Rule::Size => "its size is not the one in its header",
            Rule::Layout => "it is of another type, or of another version of it",
            Rule::Handles => "a handle is missing or out of turn",
            Rule::Root => "the root is not where it belongs",
            Rule::Bounds => "a string or list reaches beyond the end",
            Rule::Alignment => "a list is not aligned for its elements",
            Rule::Order => "a string or list overlaps the one before",
            Rule::EmptyOffset => "a string or list without bytes has an offset",
            Rule::Unsized => "too many elements without size",
            Rule::Utf8 => "a string is not UTF-8",
            Rule::Bool => "a bool is neither 0 nor 1",
            Rule::Char => "a char is not a Unicode scalar value",
            Rule::Discriminant => "a discriminant is out of range",
            Rule::Flags => "a bit is set that stands for no flag",
        };
        write!(f, "malformed message: {what} (byte {})", self.at)
    }
}

impl std::error::Error for Malformed {}
