//! Errors of the registry.

use std::fmt;

use crate::id::ActorId;
use crate::name::NameError;

/// Why a name was not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is not valid.
    Name(NameError),
    /// The name is registered already, for another actor or this one.
    Taken {
        /// The name.
        name: String,
        /// The actor that has it: its number when it was first registered.
        by: ActorId,
    },
    /// The actor has ended or is about to.
    NotAlive(ActorId),
}

/// The registered actor has another type than the requested one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    /// The name.
    pub name: String,
    /// The registered type: the type of the state, or [`Pid`](crate::Pid).
    pub registered: &'static str,
    /// The requested type.
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
