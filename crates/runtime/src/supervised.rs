//! Actors whose end is told to whoever started them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::channel::Sender;
use crate::exit::ExitReason;
use crate::id::ActorId;
use crate::join::{JoinError, JoinHandle};
use crate::task::OnShortage;
use crate::{wait, worker};

/// How an actor ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Signal {
    /// By itself.
    Exit(ActorId),
    /// By a panic.
    Panic(ActorId, crate::Panic),
    /// Its runtime stopped.
    Stopped(ActorId),
    /// By [`exit`](crate::exit), by an exit signal, or since there was no stack for it.
    Ended(ActorId, ExitReason),
}

impl Signal {
    /// Whose end it was.
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

/// A new actor, whose end `supervisor` hears of. That does not wait, and costs an actor that ends well one message.
/// Where no stack is free the actor begins when one is.
///
/// ```
/// use thalweg_runtime::{Signal, channel, run, spawn_under};
///
/// run(|| {
///     let (supervisor, ends) = channel();
///     let mut tries = 0;
///     loop {
///         tries += 1;
///         let child = spawn_under(supervisor.clone(), move || assert_eq!(tries, 3, "not yet"));
///         match ends.recv() {
///             Ok(Signal::Panic(id, panic)) => {
///                 assert_eq!(id, child.id());
///                 assert!(panic.message().is_some_and(|text| text.contains("not yet")));
///             }
///             Ok(_) => break,
///             Err(_) => unreachable!("we have a sender ourselves"),
///         }
///     }
///     assert_eq!(tries, 3);
/// });
/// ```
///
/// # Panics
/// If the caller is no actor.
pub fn spawn_under(
    supervisor: Sender<Signal>,
    job: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let worker = worker::current().expect("spawn_under is for actors");
    worker.spawn(None, OnShortage::Wait, move || {
        let id = wait::current().expect("this is an actor");
        let how = catch_unwind(AssertUnwindSafe(job)).map_err(JoinError::from_payload);
        // A supervisor that has gone hears nothing.
        let _ = supervisor.send(Signal::of(id, how));
    })
}
