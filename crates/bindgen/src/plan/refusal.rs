//! The constructs that not every language can express, with their positions.

use crate::SourceError;
use crate::model::Position;

/// A construct that only some languages can express. A back end passes those that it does not
/// support to [`Plan::refuse`](super::Plan::refuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// A type without members, such as `tuple<>`.
    NoMembers,
    /// A borrowed resource inside a value.
    BorrowInValue,
}

impl Unsupported {
    /// The reason, and what to write instead.
    fn reason(self) -> &'static str {
        match self {
            Unsupported::NoMembers => "it has no members; give it one",
            Unsupported::BorrowInValue => {
                "a borrowed resource can only be a parameter: pass it next to the value"
            }
        }
    }
}

/// A construct of a package that some language cannot express.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) unsupported: Unsupported,
    pub(super) position: Position,
    /// The type in WIT.
    pub(super) wit: String,
}

impl Refusal {
    pub(super) fn error(&self) -> SourceError {
        SourceError {
            position: self.position.clone(),
            construct: format!("type `{}`", self.wit),
            reason: self.unsupported.reason().to_owned(),
        }
    }
}
