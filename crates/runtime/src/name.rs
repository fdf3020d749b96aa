//! The rules for names.

use std::fmt;

/// The maximum length of a name in bytes. OTP allows as many characters in an atom.
pub(crate) const MAX_LEN: usize = 255;

/// Why a name is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name has this many bytes. The maximum is 255.
    TooLong(usize),
}

pub(crate) fn check(name: &str) -> Result<(), NameError> {
    match name.len() {
        0 => Err(NameError::Empty),
        1..=MAX_LEN => Ok(()),
        longer => Err(NameError::TooLong(longer)),
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name has at least one byte"),
            Self::TooLong(bytes) => {
                write!(f, "a name has {MAX_LEN} bytes at most, not {bytes}")
            }
        }
    }
}

impl std::error::Error for NameError {}
