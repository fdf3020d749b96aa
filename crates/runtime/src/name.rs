//! What names are good.

use std::fmt;

/// Bytes in a name: what OTP allows the characters of an atom.
pub(crate) const LONGEST: usize = 255;

/// Why a name is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It has so many bytes, and 255 are the most.
    TooLong(usize),
}

pub(crate) fn check(name: &str) -> Result<(), NameError> {
    match name.len() {
        0 => Err(NameError::Empty),
        1..=LONGEST => Ok(()),
        longer => Err(NameError::TooLong(longer)),
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name has one byte at least"),
            Self::TooLong(bytes) => {
                write!(f, "a name has {LONGEST} bytes at most, not {bytes}")
            }
        }
    }
}

impl std::error::Error for NameError {}
