//! The error of a join.

use std::any::Any;
use std::fmt;

use super::{CancelUnwind, ExitReason, ExitUnwind, StopUnwind};
use crate::panics::Panic;
use crate::stack::StackError;

/// Why an actor has no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked.
    Panic(Panic),
    /// Its runtime stopped before it began or finished; or the caller of the join is being unwound
    /// by a panic and cannot wait.
    Stopped,
    /// No stack was available, so it did not begin.
    NoStack(StackError),
    /// It ended by [`exit`](crate::exit), or by an exit signal.
    Exit(ExitReason),
}

impl JoinError {
    /// Whether the payload of an unwind belongs to the regular end of an actor or of a scope, and
    /// not to a panic. Code that catches unwinds must resume such an unwind.
    ///
    /// ```
    /// use std::panic::{catch_unwind, resume_unwind};
    /// use thalweg_runtime::{ExitReason, JoinError, exit, run, spawn};
    ///
    /// let ended = run(|| {
    ///     let actor = spawn(|| {
    ///         let Err(payload) = catch_unwind(|| exit(ExitReason::Shutdown));
    ///         assert!(JoinError::is_exit_payload(&*payload));
    ///         resume_unwind(payload)
    ///     });
    ///     actor.join().map(|()| ())
    /// });
    /// assert!(matches!(ended, Err(JoinError::Exit(ExitReason::Shutdown))));
    /// ```
    pub fn is_exit_payload(payload: &(dyn Any + Send)) -> bool {
        payload.is::<StopUnwind>() || payload.is::<ExitUnwind>() || payload.is::<CancelUnwind>()
    }

    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Self {
        if payload.is::<StopUnwind>() {
            return Self::Stopped;
        }
        // Cancelled outside of its own scopes: by a scope that it has left.
        if payload.is::<CancelUnwind>() {
            return Self::Exit(ExitReason::Shutdown);
        }
        match payload.downcast::<ExitUnwind>() {
            Ok(exiting) => Self::Exit(exiting.0),
            Err(payload) => Self::Panic(Panic::caught(payload)),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(panic) => panic.fmt(f),
            Self::Stopped => write!(f, "the runtime stopped before the actor ended"),
            Self::NoStack(error) => write!(f, "there was no stack for the actor: {error}"),
            Self::Exit(reason) => write!(f, "the actor ended: {reason}"),
        }
    }
}

impl std::error::Error for JoinError {}
