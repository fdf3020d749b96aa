//! Why actors end: the exit reason, the error of a join, and the payloads that unwind an actor.

mod join_error;
mod unwind;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

pub use self::join_error::JoinError;
pub(crate) use self::unwind::{CancelUnwind, ExitUnwind, StopUnwind};

use crate::panics::Panic;
use crate::stack::StackError;

/// Why an actor ended or is to end. Clones share the error. Create one from an error or a text by
/// [`error`](Self::error) or [`shutdown_with`](Self::shutdown_with); `From` is implemented for
/// texts and boxed errors, so that `?` works in a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// The actor finished its work. Linked actors do not end.
    Normal,
    /// An orderly shutdown, as a supervisor stops its children.
    Shutdown,
    /// An orderly shutdown with details.
    ShutdownWith(Arc<dyn Error + Send + Sync>),
    /// [`Pid::kill`](crate::Pid::kill).
    Killed,
    /// A panic.
    Panic(Panic),
    /// An error that the actor or the sender of the signal supplied.
    Error(Arc<dyn Error + Send + Sync>),
    /// The actor had ended before.
    NoActor,
    /// No stack was available, so the actor did not start.
    NoStack(StackError),
    /// The actor's runtime stopped.
    Stopped,
}

impl ExitReason {
    /// A failure with this error or text: [`Self::Error`].
    ///
    /// ```
    /// use thalweg_runtime::ExitReason;
    ///
    /// assert_eq!(ExitReason::error("no more work").to_string(), "no more work");
    /// let reason = ExitReason::error(std::io::Error::other("disk full"));
    /// assert!(reason.downcast_ref::<std::io::Error>().is_some());
    /// ```
    pub fn error(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Error(Arc::from(error.into()))
    }

    /// An orderly shutdown with this error or text: [`Self::ShutdownWith`].
    ///
    /// ```
    /// use thalweg_runtime::ExitReason;
    ///
    /// let reason = ExitReason::shutdown_with("the licence has expired");
    /// assert!(reason.is_orderly());
    /// assert_eq!(reason.to_string(), "shutdown: the licence has expired");
    /// ```
    pub fn shutdown_with(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::ShutdownWith(Arc::from(error.into()))
    }

    /// Whether the exit is not a failure: [`Normal`](Self::Normal), a shutdown, or the stop of the
    /// runtime. A transient child is not restarted after it.
    pub fn is_orderly(&self) -> bool {
        matches!(
            self,
            Self::Normal | Self::Shutdown | Self::ShutdownWith(_) | Self::Stopped
        )
    }

    /// The error, if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Error(error) | Self::ShutdownWith(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// A name for the kind of reason, from a fixed list, for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Shutdown | Self::ShutdownWith(_) => "shutdown",
            Self::Killed => "killed",
            Self::Panic(_) => "panic",
            Self::Error(_) => "error",
            Self::NoActor => "no_actor",
            Self::NoStack(_) => "no_stack",
            Self::Stopped => "stopped",
        }
    }
}

impl From<&JoinError> for ExitReason {
    fn from(error: &JoinError) -> Self {
        match error {
            JoinError::Panic(panic) => Self::Panic(panic.clone()),
            JoinError::Stopped => Self::Stopped,
            JoinError::NoStack(error) => Self::NoStack(error.clone()),
            JoinError::Exit(reason) => reason.clone(),
        }
    }
}

impl From<&str> for ExitReason {
    fn from(text: &str) -> Self {
        Self::error(text)
    }
}

impl From<String> for ExitReason {
    fn from(text: String) -> Self {
        Self::error(text)
    }
}

impl From<Box<dyn Error + Send + Sync>> for ExitReason {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::error(error)
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Shutdown => f.write_str("shutdown"),
            Self::ShutdownWith(error) => write!(f, "shutdown: {error}"),
            Self::Killed => f.write_str("killed"),
            Self::Panic(panic) => panic.fmt(f),
            Self::Error(error) => error.fmt(f),
            Self::NoActor => f.write_str("there is no such actor"),
            Self::NoStack(error) => write!(f, "no stack was available: {error}"),
            Self::Stopped => f.write_str("the runtime stopped"),
        }
    }
}
