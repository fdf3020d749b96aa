//! So many at a time.
//!
//! 1. Who finds a place free and nobody waiting takes it. Else it waits, if there is room for it, in the order of its ticket.
//! 2. Who leaves gives the place to the first that waits, so nobody overtakes it; with nobody there the place is free.
//! 3. A place that was given is its taker's, also where that gave up meanwhile: then it takes it after all, or passes it on as if it left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::task::Waker;
use std::time::{Duration, Instant};

use thalweg_queue::clock;
use thalweg_queue::quiet::{Locked, lock};

use super::Invalid;
use crate::exit;
use crate::wait::{self, Woke};

/// Lets at most so many be at something at a time, and at most so many wait for it: what is slow fills its own part of the ship and no other. First come,
/// first served.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::patterns::{Bulkhead, BulkheadError};
///
/// let bulkhead = Bulkhead::new(1, 0)?;
/// let inside = bulkhead.try_enter().expect("nobody is");
/// let second = bulkhead.run(Duration::from_secs(1), || 5);
/// assert_eq!(second, Err(BulkheadError::Full { waiting: 0 }));
/// drop(inside);
/// assert_eq!(bulkhead.run(Duration::from_secs(1), || 5), Ok(5));
/// # Ok::<(), thalweg_runtime::patterns::Invalid>(())
/// ```
pub struct Bulkhead {
    running: u32,
    waiting: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: u32,
    next: u64,
    /// By ticket.
    waiting: BTreeMap<u64, Waker>,
    /// Tickets whose place is there.
    given: BTreeSet<u64>,
}

/// Why somebody did not get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkheadError {
    /// As many wait as may.
    Full {
        /// How many.
        waiting: u32,
    },
    /// No place came free in time.
    TimedOut,
    /// The runtime of the actor that waited stops.
    Stopped,
}

/// A place, until it is dropped.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub struct BulkheadPermit<'a>(&'a Bulkhead);

/// Somebody that waits, or has just been given its place.
struct Ticket<'a> {
    bulkhead: &'a Bulkhead,
    number: u64,
}

impl Bulkhead {
    /// At most `running` at a time, of which there is 1 at least, and at most `waiting` that wait.
    ///
    /// # Errors
    /// None could ever run.
    pub fn new(running: u32, waiting: u32) -> Result<Self, Invalid> {
        Invalid::unless(running > 0, "a bulkhead lets 1 run at least")?;
        Ok(Self {
            running,
            waiting,
            state: Mutex::new(State {
                free: running,
                ..State::default()
            }),
        })
    }

    fn state(&self) -> Locked<'_, State> {
        lock(&self.state)
    }

    /// A place, if one is free and nobody waits for it.
    ///
    /// # Errors
    /// None is: [`BulkheadError::Full`].
    pub fn try_enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        let mut state = self.state();
        if state.take() {
            Ok(BulkheadPermit(self))
        } else {
            Err(state.full())
        }
    }

    /// A place; waits for it, as long as it takes.
    ///
    /// # Errors
    /// As many wait as may, or the runtime of the actor that waits stops.
    pub fn enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(u64::MAX)
    }

    /// A place; waits for it for at most `timeout`.
    ///
    /// # Errors
    /// There was none.
    pub fn enter_timeout(&self, timeout: Duration) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(clock::deadline(timeout))
    }

    /// A place; waits for it until `deadline`.
    ///
    /// # Errors
    /// There was none.
    pub fn enter_deadline(&self, deadline: Instant) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(clock::at(deadline))
    }

    /// Runs `f` in a place that is waited for, for at most `timeout`.
    ///
    /// # Errors
    /// There was none, and `f` did not run.
    pub fn run<T>(&self, timeout: Duration, f: impl FnOnce() -> T) -> Result<T, BulkheadError> {
        let _place = self.enter_timeout(timeout)?;
        Ok(f())
    }

    /// How many are in it.
    pub fn running(&self) -> u32 {
        self.running - self.state().free
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.state().waiting.len() as u32
    }

    fn enter_by(&self, deadline: u64) -> Result<BulkheadPermit<'_>, BulkheadError> {
        let ticket = {
            let mut state = self.state();
            if state.take() {
                return Ok(BulkheadPermit(self));
            }
            if state.waiting.len() >= self.waiting as usize {
                return Err(state.full());
            }
            drop(state);
            wait::tell();
            let waker = wait::waker();
            let mut state = self.state();
            // All may have changed meanwhile.
            if state.take() {
                return Ok(BulkheadPermit(self));
            }
            if state.waiting.len() >= self.waiting as usize {
                return Err(state.full());
            }
            let number = state.next;
            state.next += 1;
            state.waiting.insert(number, waker);
            Ticket {
                bulkhead: self,
                number,
            }
        };
        loop {
            if self.state().given.remove(&ticket.number) {
                std::mem::forget(ticket);
                return Ok(BulkheadPermit(self));
            }
            match wait::park(Some(deadline)) {
                Woke::Woken | Woke::Interrupted => {}
                // Rule 3.
                Woke::TimedOut => {
                    let given = self.state().give_up(ticket.number);
                    std::mem::forget(ticket);
                    return if given {
                        Ok(BulkheadPermit(self))
                    } else {
                        Err(BulkheadError::TimedOut)
                    };
                }
                Woke::Stopping => {
                    drop(ticket);
                    exit::raise_if_due();
                    return Err(BulkheadError::Stopped);
                }
            }
        }
    }

    /// Rule 2.
    fn leave(&self) {
        let mut state = self.state();
        let waker = match state.waiting.pop_first() {
            Some((ticket, waker)) => {
                state.given.insert(ticket);
                Some(waker)
            }
            None => {
                state.free += 1;
                None
            }
        };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl State {
    /// Rule 1.
    fn take(&mut self) -> bool {
        let is_free = self.free > 0;
        self.free -= u32::from(is_free);
        is_free
    }

    fn full(&self) -> BulkheadError {
        BulkheadError::Full {
            waiting: self.waiting.len() as u32,
        }
    }

    /// `true`: a place was given.
    fn give_up(&mut self, ticket: u64) -> bool {
        self.waiting.remove(&ticket);
        self.given.remove(&ticket)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let given = self.bulkhead.state().give_up(self.number);
        if given {
            self.bulkhead.leave();
        }
    }
}

impl Drop for BulkheadPermit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl fmt::Debug for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead")
            .field("running", &self.running())
            .field("waiting", &self.waiting())
            .finish()
    }
}

impl fmt::Display for BulkheadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { waiting } => write!(f, "the bulkhead is full, and {waiting} wait"),
            Self::TimedOut => f.write_str("no place of the bulkhead came free in time"),
            Self::Stopped => f.write_str("the runtime stops"),
        }
    }
}

impl std::error::Error for BulkheadError {}
