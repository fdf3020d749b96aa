//! What can be wrong with a supervisor and its children.

use std::fmt;

use crate::exit::ExitReason;

/// Why a supervisor did not start. What it had started was ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Two children have this name.
    DuplicateId(String),
    /// A significant child of a supervisor that does not shut down for one, or one that is permanent, which never ends for good.
    Significant(String),
    /// The child has a supervisor already.
    Supervised(String),
    /// The child did not start.
    Child {
        /// Which.
        id: String,
        /// Why.
        reason: ExitReason,
    },
    /// The supervisor itself was ended, or its runtime stopped.
    Ended(ExitReason),
}

/// What is wrong with a call about a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChildError {
    /// There is no such child.
    NotFound(String),
    /// It runs, or is about to be restarted.
    Running(String),
    /// It could not be started; there is no such child then.
    Start(StartError),
    /// The supervisor has ended.
    Ended,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId(id) => write!(f, "two children are called {id:?}"),
            Self::Significant(id) => write!(
                f,
                "{id:?} cannot be significant: it is permanent, or its supervisor never shuts down by itself"
            ),
            Self::Supervised(id) => write!(f, "{id:?} has a supervisor already"),
            Self::Child { id, reason } => write!(f, "{id:?} did not start: {reason}"),
            Self::Ended(reason) => write!(f, "the supervisor ended: {reason}"),
        }
    }
}

impl std::error::Error for StartError {}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(id) => write!(f, "there is no child {id:?}"),
            Self::Running(id) => write!(f, "{id:?} runs"),
            Self::Start(error) => error.fmt(f),
            Self::Ended => f.write_str("the supervisor has ended"),
        }
    }
}

impl std::error::Error for ChildError {}

impl From<StartError> for ExitReason {
    fn from(error: StartError) -> Self {
        Self::Error(std::sync::Arc::new(error))
    }
}
