//! The end of a runtime, which an actor may delay for so long and no longer.
//!
//! 1. When the runtime stops, each wait of an actor returns [`Woke::Stopping`](crate::Woke::Stopping), and most waits unwind the actor. An actor that goes on
//!    although it was told so [`TIMES_TOLD`] times is put aside at its next wait, so that the others of its worker can end. Its worker resumes it from time to
//!    time until the deadline, so that it may still end by itself.
//! 2. After the deadline the worker **abandons** what is still put aside: it never resumes it. The stack, what lies on it, and the job's header stay in memory for
//!    good, untouched, as those of a thread that sleeps for ever. So whatever points there (a wait list, a scope, a thread that borrows from a frame that waits for it)
//!    points to valid memory. No destructor of it runs, and for the same reason the state of a behaviour actor is not dropped either. Those who join, monitor
//!    or call it are told that it has ended.
//! 3. An actor that reaches no wait cannot be put aside: its worker does not come back. After [`GRACE`] more, whoever stops the runtime goes on without that
//!    worker's thread. The thread owns a reference to the scheduler, and by that all it needs. Where its actor waits later, the worker finds the
//!    deadline passed, and ends as rule 2 says.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_queue::clock;

use crate::id::ActorId;

/// Rule 1: an orderly actor is told once, and its destructors may wait for a few things in vain.
pub(crate) const TIMES_TOLD: u8 = 16;

/// Rule 3: what a worker may take after the deadline to leave, once it is back from its actors. A thread that is on a processor needs microseconds.
const GRACE: Duration = Duration::from_secs(2);

/// An actor that did not end when its runtime was shut down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// Its number. `None`: the worker's thread runs none, but something else of the program, such as the destructor of a thread-local variable.
    pub actor: Option<ActorId>,
    /// Its name. `None`: it has none, or it is not known, since the actor [keeps its thread](Left::Thread) and is not in the register of
    /// [`Config::inspect`](crate::Config::inspect).
    pub name: Option<String>,
    /// The actor that spawned it, where that is known.
    pub parent: Option<ActorId>,
    /// The worker that ran it, as in the name of its thread: `tw-worker-0`.
    pub worker: usize,
    /// What is left of it.
    pub left: Left,
}

/// What is left of an actor that did not end when its runtime was shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// Its stack. The actor waited, or yielded, and was never resumed. Its memory is leaked, its destructors do not run, and locks that it holds stay held. Its
    /// thread has ended. Whoever joins or monitors it has heard that it ended.
    Stack,
    /// Its thread, detached. The actor neither waits nor yields: it computes, or is in a call that blocks. It goes on as long as it likes, with all that the runtime
    /// had, which is freed after it. A library that contains its code must not be unloaded. The actor ends, or becomes [`Left::Stack`], at its next wait.
    Thread,
}

/// A runtime was shut down, and these actors did not end in time. All others have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownError {
    /// One at least.
    pub actors: Vec<Unfinished>,
}

impl ShutdownError {
    pub(crate) fn of(actors: Vec<Unfinished>) -> Result<(), Self> {
        if actors.is_empty() {
            Ok(())
        } else {
            Err(Self { actors })
        }
    }
}

impl fmt::Display for ShutdownError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the runtime was shut down, but not all actors ended in time:")?;
        for actor in &self.actors {
            write!(f, "\n  {actor}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ShutdownError {}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.actor {
            Some(actor) => write!(f, "actor {actor}")?,
            None => f.write_str("no actor but the thread itself")?,
        }
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        if let Some(parent) = self.parent {
            write!(f, ", spawned by actor {parent}")?;
        }
        let worker = self.worker;
        match self.left {
            Left::Stack => write!(
                f,
                ": its stack is leaked, its thread tw-worker-{worker} has ended"
            ),
            Left::Thread => write!(f, ": its thread tw-worker-{worker} is detached"),
        }
    }
}

/// How far the shutdown of one runtime is.
pub(crate) struct Shutdown {
    /// By the [`clock`]; `u64::MAX`: it has not begun.
    deadline: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Workers whose threads are about to end.
    left: Vec<usize>,
    abandoned: Vec<Unfinished>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            deadline: AtomicU64::new(u64::MAX),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }
}

impl Shutdown {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the deadline, unless it is set.
    pub(crate) fn begin(&self, timeout: Duration) {
        let deadline = clock::deadline(timeout).min(u64::MAX - 1);
        let _ = self.deadline.compare_exchange(
            u64::MAX,
            deadline,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// Dropped when the thread of this worker is about to end.
    pub(crate) fn leaves(&self, worker: usize) -> Leaves<'_> {
        Leaves {
            shutdown: self,
            worker,
        }
    }

    /// A worker: rule 2.
    pub(crate) fn abandon(&self, actor: Unfinished) {
        self.state().abandoned.push(actor);
    }

    pub(crate) fn take_abandoned(&self) -> Vec<Unfinished> {
        std::mem::take(&mut self.state().abandoned)
    }

    /// Rule 3: which of these do not leave in time.
    pub(crate) fn wait_for(&self, workers: &[usize]) -> Vec<usize> {
        let grace = u64::try_from(GRACE.as_nanos()).unwrap_or(u64::MAX);
        let until = self.deadline().saturating_add(grace);
        let mut state = self.state();
        loop {
            let staying: Vec<_> = workers
                .iter()
                .copied()
                .filter(|worker| !state.left.contains(worker))
                .collect();
            let left = until.saturating_sub(clock::now());
            if staying.is_empty() || left == 0 {
                return staying;
            }
            let waited = self.changed.wait_timeout(state, Duration::from_nanos(left));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// See [`Shutdown::leaves`].
pub(crate) struct Leaves<'a> {
    shutdown: &'a Shutdown,
    worker: usize,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.shutdown.state().left.push(self.worker);
        self.shutdown.changed.notify_all();
    }
}
