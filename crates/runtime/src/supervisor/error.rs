//! Errors of supervisors and their children.

use std::fmt;

use crate::reason::ExitReason;

/// Why a supervisor did not start. The children that it had started were stopped.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SupervisorStartError {
    /// Two children have this name.
    DuplicateId(String),
    /// A significant child is permanent, so it never ends for good, or its supervisor has no
    /// automatic shutdown.
    Significant(String),
    /// The child already has a supervisor.
    Supervised(String),
    /// The child did not start.
    Child {
        /// The name of the child.
        id: String,
        /// The exit reason.
        reason: ExitReason,
    },
    /// The supervisor was ended, or its runtime stopped.
    Ended(ExitReason),
}

/// Why a request about a child failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChildError {
    /// There is no such child.
    NotFound(String),
    /// The child is running, or is about to be restarted.
    Running(String),
    /// The child did not start. A child that was being added does not exist then.
    Start(SupervisorStartError),
    /// The supervisor has ended.
    Ended,
}

impl fmt::Display for SupervisorStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId(id) => write!(f, "two children have the name {id:?}"),
            Self::Significant(id) => write!(
                f,
                "{id:?} cannot be significant: it is permanent, or its supervisor has no automatic shutdown"
            ),
            Self::Supervised(id) => write!(f, "{id:?} already has a supervisor"),
            Self::Child { id, reason } => write!(f, "{id:?} did not start: {reason}"),
            Self::Ended(reason) => write!(f, "the supervisor ended: {reason}"),
        }
    }
}

impl std::error::Error for SupervisorStartError {}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(id) => write!(f, "there is no child {id:?}"),
            Self::Running(id) => write!(f, "{id:?} is running"),
            Self::Start(error) => error.fmt(f),
            Self::Ended => f.write_str("the supervisor has ended"),
        }
    }
}

impl std::error::Error for ChildError {}

impl From<SupervisorStartError> for ExitReason {
    fn from(error: SupervisorStartError) -> Self {
        Self::error(error)
    }
}
