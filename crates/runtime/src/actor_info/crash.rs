//! The last crashes of a runtime.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::time::SystemTime;

use thalweg_queue::clock;
use thalweg_queue::no_preempt::lock;

use crate::id::ActorId;
use crate::log::{self, Level};
use crate::reason::ExitReason;
use crate::time_of_day;

/// Crashes that are kept for each runtime.
const MAX_CRASHES: usize = 64;

/// An actor's exit that was a failure: a panic, a kill, an error, or a missing stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Crash {
    /// The actor.
    pub id: ActorId,
    /// Its name.
    pub name: Option<String>,
    /// The exit reason. A [`Panic`](crate::Panic) contains its message, its location and, if
    /// `RUST_BACKTRACE` is set, a backtrace.
    pub reason: ExitReason,
    /// The time of the exit.
    pub at: SystemTime,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        write!(f, ": {}", self.reason)?;
        if let ExitReason::Panic(panic) = &self.reason
            && let Some(backtrace) = panic.backtrace()
        {
            write!(f, "\n{backtrace}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Crashes(Mutex<VecDeque<CrashRecord>>);

/// The time of day is computed when the crashes are read.
#[derive(Clone, Debug)]
struct CrashRecord {
    id: ActorId,
    name: Option<String>,
    reason: ExitReason,
    at: u64,
}

impl Crashes {
    /// Records an exit that was a failure. The caller holds no lock.
    #[cold]
    pub(crate) fn record(&self, id: ActorId, name: Option<&str>, reason: &ExitReason) {
        if log::is_enabled(Level::Error) {
            let crash = Crash {
                id,
                name: name.map(str::to_owned),
                reason: reason.clone(),
                at: time_of_day::now(),
            };
            log::write(Level::Error, "actor", format_args!("{crash}"));
        }
        let crash = CrashRecord {
            id,
            name: name.map(str::to_owned),
            reason: reason.clone(),
            at: clock::now(),
        };
        let oldest = {
            let mut crashes = lock(&self.0);
            let full = crashes.len() == MAX_CRASHES;
            let oldest = if full { crashes.pop_front() } else { None };
            crashes.push_back(crash);
            oldest
        };
        // The reason may contain a user's error, whose destructor must run without the lock.
        drop(oldest);
    }

    pub(crate) fn all(&self) -> Vec<Crash> {
        let records = lock(&self.0).clone();
        records
            .into_iter()
            .map(
                |CrashRecord {
                     id,
                     name,
                     reason,
                     at,
                 }| Crash {
                    id,
                    name,
                    reason,
                    at: time_of_day::at(at),
                },
            )
            .collect()
    }
}
