//! The error of a malformed message.

use std::fmt;

/// A malformed message: the rule that it breaks, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The rule that is broken.
    pub rule: Rule,
    /// Offset in bytes of the offending field.
    pub at: u32,
}

/// The rules, which [the crate's page](crate) explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The header is truncated, or its size field differs from the message's size.
    Size,
    /// The message has another type.
    Layout,
    /// The table of handles does not fit, or a handle is missing, used twice or out of order.
    Handles,
    /// The root is at a wrong offset, or does not fit.
    Root,
    /// A string or list extends beyond the end.
    Bounds,
    /// A tail is not aligned for its elements.
    Alignment,
    /// A tail begins before the end of the previous one.
    Order,
    /// An empty list, or a list whose elements have no size, has an offset.
    EmptyOffset,
    /// A list has too many elements without size.
    Unsized,
    /// A string is not UTF-8.
    Utf8,
    /// A `bool` is neither 0 nor 1.
    Bool,
    /// A `char` is not a Unicode scalar value.
    Char,
    /// A discriminant names no case.
    Discriminant,
    /// An undefined flag bit is set.
    Flags,
    /// Not the message's fault: there is no memory for the owned value.
    Memory,
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
            Rule::Memory => return f.write_str("there is no memory for the message's value"),
        };
        write!(f, "malformed message: {what} (byte {})", self.at)
    }
}

impl std::error::Error for Malformed {}
