//! The shutdown of a runtime, with a deadline that actors cannot exceed.
//!
//! 1. When the runtime stops, each wait of an actor returns
//!    [`WakeReason::Stopping`](crate::WakeReason::Stopping), and most waits unwind the actor. An
//!    actor that continues after [`MAX_STOP_NOTICES`] such notices is suspended at its next wait,
//!    so that the other actors of its worker can end. Until the deadline, its worker resumes it
//!    from time to time, so that it can still end by itself.
//! 2. After the deadline, the worker **abandons** an actor that is still suspended: it never
//!    resumes the actor. The stack, its contents and the task's header stay in memory unchanged,
//!    like those of a thread that sleeps forever. All pointers into them (a wait list, a scope, a
//!    thread that borrows from a waiting frame) therefore stay valid. No destructor on the stack
//!    runs, and for the same reason the state of a behaviour actor is not dropped. Joiners,
//!    monitors and callers are notified that the actor has ended.
//! 3. An actor that reaches no wait cannot be suspended, because its worker never regains control.
//!    After another [`GRACE`], the shutdown continues without that worker's thread. The thread owns
//!    a reference to the scheduler, which contains everything that it needs. If its actor waits
//!    later, the worker finds that the deadline has passed and applies rule 2.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_queue::clock;

use crate::id::ActorId;

/// Rule 1. An orderly actor needs one notice, and its destructors may attempt a few more waits.
pub(crate) const MAX_STOP_NOTICES: u8 = 16;

/// Rule 3: the time that a worker has after the deadline to end its thread. A running thread needs
/// microseconds.
const GRACE: Duration = Duration::from_secs(2);

/// An actor that did not end when its runtime was shut down.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The actor's number. `None` if the worker's thread runs no actor, but other code of the
    /// program, such as the destructor of a thread-local variable.
    pub actor: Option<ActorId>,
    /// The actor's name. `None` if it has no name, or if the name is unknown because the actor
    /// [keeps its thread](Leaked::Thread) and [`Config::inspect`](crate::Config::inspect) is off.
    pub name: Option<String>,
    /// The actor that spawned it, if known.
    pub parent: Option<ActorId>,
    /// The number of its worker, as in the name of the worker's thread: `tw-worker-0`.
    pub worker: usize,
    /// The resource that was leaked.
    pub leaked: Leaked,
}

/// The resource that was leaked because an actor did not end when its runtime was shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leaked {
    /// Its stack. The actor waited or yielded and is never resumed. Its memory is leaked, its
    /// destructors do not run, and its locks stay locked. Its thread has ended. Joiners and
    /// monitors were notified that the actor ended.
    Stack,
    /// Its thread, detached. The actor neither waits nor yields: it computes, or it is in a
    /// blocking call. It continues, and the memory of the runtime is freed after it. Do not unload
    /// a library that contains its code. The actor ends, or becomes [`Leaked::Stack`], at its next
    /// wait.
    Thread,
}

/// The error of a shutdown in which these actors did not end in time. All other actors have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownError {
    /// The actors; at least one.
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
            None => f.write_str("no actor, but the thread itself")?,
        }
        if let Some(name) = &self.name {
            write!(f, " ({name})")?;
        }
        if let Some(parent) = self.parent {
            write!(f, ", spawned by actor {parent}")?;
        }
        let worker = self.worker;
        match self.leaked {
            Leaked::Stack => write!(
                f,
                ": its stack is leaked, its thread tw-worker-{worker} has ended"
            ),
            Leaked::Thread => write!(f, ": its thread tw-worker-{worker} is detached"),
        }
    }
}

/// The progress of a runtime's shutdown.
pub(crate) struct Shutdown {
    /// A time of the [`clock`]; `u64::MAX` if the shutdown has not begun.
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
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the deadline if it is unset.
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

    /// Returns a guard that the worker drops when its thread is about to end.
    pub(crate) fn worker_guard(&self, worker: usize) -> WorkerGuard<'_> {
        WorkerGuard {
            shutdown: self,
            worker,
        }
    }

    /// Records an abandoned actor of a worker (rule 2).
    pub(crate) fn abandon(&self, actor: Unfinished) {
        self.state().abandoned.push(actor);
    }

    pub(crate) fn take_abandoned(&self) -> Vec<Unfinished> {
        std::mem::take(&mut self.state().abandoned)
    }

    /// Waits for these workers and returns those that do not end in time (rule 3).
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

/// See [`Shutdown::worker_guard`].
pub(crate) struct WorkerGuard<'a> {
    shutdown: &'a Shutdown,
    worker: usize,
}

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        self.shutdown.state().left.push(self.worker);
        self.shutdown.changed.notify_all();
    }
}
