//! What can be wrong with a name.

use std::fmt;

use crate::id::ActorId;
use crate::name::NameError;

/// Why an actor did not get a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// It is no name.
    Name(NameError),
    /// Another actor has it, or the same one.
    Taken {
        /// The name.
        name: String,
        /// Who has it: as it was numbered when it was registered first.
        by: ActorId,
    },
    /// The actor has ended, or is about to.
    NotAlive(ActorId),
}

/// The actor of a name is another type than the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The name.
    pub name: String,
    /// What it is: the state's type, or [`Pid`](crate::Pid)'s.
    pub registered: &'static str,
    /// What was asked for.
    pub asked: &'static str,
}

impl From<NameError> for RegisterError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Taken { name, by } => write!(f, "{name:?} is taken by actor {by}"),
            Self::NotAlive(id) => write!(f, "actor {id} has ended"),
        }
    }
}

impl std::error::Error for RegisterError {}

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            registered,
            asked,
        } = self;
        write!(f, "{name:?} is a {registered}, not a {asked}")
    }
}

impl std::error::Error for WrongType {}
