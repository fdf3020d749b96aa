//! Converts messages to CBOR and back, by a description of the type. For hosts whose language has
//! no codec of its own.

mod from_cbor;
mod to_cbor;

use super::Refused;
use crate::describe::Type;
use crate::{Malformed, message};
use std::fmt;

/// Why a conversion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslated {
    /// The input is not a message of the type.
    Message(Malformed),
    /// The input is not CBOR of the type.
    Cbor(Refused),
    /// The result would be larger than its limit.
    Limit,
}

impl fmt::Display for Untranslated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untranslated::Message(malformed) => malformed.fmt(f),
            Untranslated::Cbor(refused) => refused.fmt(f),
            Untranslated::Limit => f.write_str("the result would be larger than its limit"),
        }
    }
}

impl std::error::Error for Untranslated {}

impl From<Malformed> for Untranslated {
    fn from(malformed: Malformed) -> Self {
        Untranslated::Message(malformed)
    }
}

impl From<Refused> for Untranslated {
    fn from(refused: Refused) -> Self {
        Untranslated::Cbor(refused)
    }
}

/// Converts a message to its canonical CBOR, of at most `limit` bytes.
///
/// ```
/// use thalweg_wire::{cbor, describe::Type, message};
///
/// let ty = Type::parse("list<string>")?;
/// let message = message::encode(&vec!["left"], ty.hash(), Vec::new())?;
/// let written = cbor::of_message(&ty, &message, 100)?;
/// assert_eq!(written, b"\x81\x64left");
/// assert_eq!(cbor::to_message(&ty, &written, 100)?, message);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The input is not a message of this type, its CBOR is larger than `limit`, or the type has a
/// handle.
pub fn of_message(ty: &Type<'_>, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Untranslated> {
    let root = ty.check(bytes)?;
    to_cbor::all(ty, bytes, root, limit)
}

/// Converts CBOR to a message of at most `limit` bytes.
///
/// # Errors
/// The input is not CBOR of this type, the message is larger than `limit`, or the type has a
/// handle.
pub fn to_message(ty: &Type<'_>, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Untranslated> {
    from_cbor::all(ty, bytes, limit, message::root(0))
}
