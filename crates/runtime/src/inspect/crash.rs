//! Ends that were not in order, kept for who looks later.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use thalweg_queue::clock;
use thalweg_queue::no_preempt::lock;

use crate::exit::ExitReason;
use crate::id::ActorId;

/// Crashes that are kept of a runtime.
const KEPT: usize = 64;

/// An actor's end that was not in order: by a panic, a kill, an error, or for want of a stack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Crash {
    /// Whose.
    pub id: ActorId,
    /// What it was called.
    pub name: Option<String>,
    /// Why. A [`Panic`](crate::Panic) has its message, its place and, where `RUST_BACKTRACE` asks for it, how it came there.
    pub reason: ExitReason,
    /// When.
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

/// What the time of day was at `then` ([`clock`]).
pub(crate) fn time_of_day(then: u64) -> SystemTime {
    let ago = Duration::from_nanos(clock::now().saturating_sub(then));
    let now = time_of_day_now();
    now.checked_sub(ago).unwrap_or(now)
}

/// In Miri what the clock says, since it lets a program ask for the time of day only where all its clocks are the machine's, and deadlines
/// depend on how fast it interprets.
pub(crate) fn time_of_day_now() -> SystemTime {
    if cfg!(miri) {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(clock::now())
    } else {
        SystemTime::now()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Crashes(Mutex<VecDeque<Noted>>);

/// The time of day is asked for by who looks.
#[derive(Clone, Debug)]
struct Noted {
    id: ActorId,
    name: Option<String>,
    reason: ExitReason,
    at: u64,
}

impl Crashes {
    /// One that was not in order.
    #[cold]
    pub(crate) fn note(&self, id: ActorId, name: Option<&str>, reason: &ExitReason) {
        let crash = Noted {
            id,
            name: name.map(str::to_owned),
            reason: reason.clone(),
            at: clock::now(),
        };
        let oldest = {
            let mut crashes = lock(&self.0);
            let full = crashes.len() == KEPT;
            let oldest = if full { crashes.pop_front() } else { None };
            crashes.push_back(crash);
            oldest
        };
        // A reason may be a user's, with a destructor.
        drop(oldest);
    }

    pub(crate) fn all(&self) -> Vec<Crash> {
        let noted = lock(&self.0).clone();
        noted
            .into_iter()
            .map(
                |Noted {
                     id,
                     name,
                     reason,
                     at,
                 }| Crash {
                    id,
                    name,
                    reason,
                    at: time_of_day(at),
                },
            )
            .collect()
    }
}
