//! The message that reports the end of an actor to its supervisor.

use crate::id::ActorId;
use crate::reason::{ExitReason, JoinError};

/// How an actor ended. The supervisor of [`spawn_under`](crate::spawn_under) receives it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// It returned.
    Exit(ActorId),
    /// It panicked.
    Panic(ActorId, crate::Panic),
    /// Its runtime stopped.
    Stopped(ActorId),
    /// It was ended by [`exit`](crate::exit) or by an exit signal, or there was no stack for it.
    Ended(ActorId, ExitReason),
}

impl Signal {
    /// Returns the ID of the actor that ended.
    pub fn id(&self) -> ActorId {
        match self {
            Self::Exit(id) | Self::Panic(id, _) | Self::Stopped(id) | Self::Ended(id, _) => *id,
        }
    }

    pub(crate) fn of(id: ActorId, how: Result<(), JoinError>) -> Self {
        match how {
            Ok(()) => Self::Exit(id),
            Err(JoinError::Panic(panic)) => Self::Panic(id, panic),
            Err(JoinError::Exit(reason)) => Self::Ended(id, reason),
            Err(JoinError::Stopped) => Self::Stopped(id),
            Err(error @ JoinError::NoStack(_)) => Self::Ended(id, ExitReason::from(&error)),
        }
    }
}
