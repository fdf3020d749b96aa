//! Why actors end.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::join::JoinError;
use crate::panics::Panic;
use crate::stack::StackError;

/// Why an actor ended, or is to end. Clones are one and the same.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// It did what it was there for. No linked actor ends for that.
    Normal,
    /// It was told to, in order: as a supervisor ends its children.
    Shutdown,
    /// The same, with more to say.
    ShutdownWith(Arc<dyn Error + Send + Sync>),
    /// By [`Pid::kill`](super::Pid::kill).
    Killed,
    /// It panicked.
    Panic(Panic),
    /// Whatever its author, or who sent the signal, gave for it.
    Error(Arc<dyn Error + Send + Sync>),
    /// There is no such actor: it had ended before.
    NoActor,
    /// There was no stack for it, so it did not begin.
    NoStack(StackError),
    /// Its runtime stopped.
    Stopped,
}

impl ExitReason {
    /// Whether it ended as it was meant to: [`Normal`](Self::Normal), or a shutdown. A transient child is not restarted then.
    pub fn is_orderly(&self) -> bool {
        matches!(
            self,
            Self::Normal | Self::Shutdown | Self::ShutdownWith(_) | Self::Stopped
        )
    }

    /// The error, where it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Error(error) | Self::ShutdownWith(error) => error.downcast_ref(),
            _ => None,
        }
    }

    /// A word for it, of few: for counting.
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
        Self::Error(Arc::from(Box::<dyn Error + Send + Sync>::from(text)))
    }
}

impl From<String> for ExitReason {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<Box<dyn Error + Send + Sync>> for ExitReason {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::Error(Arc::from(error))
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
            Self::NoStack(error) => write!(f, "there was no stack for it: {error}"),
            Self::Stopped => f.write_str("its runtime stopped"),
        }
    }
}
