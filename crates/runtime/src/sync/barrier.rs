//! A number of actors or threads that wait for each other.

use std::fmt;
use std::pin::pin;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::WaitError;
use super::line::{Gift, Held, Line, Queue, Wakes};
use super::waiting::{self, Ask, Primitive, Waiting};

const MET: Gift = 1;

/// So many wait for each other, and go on together; then it may be used again. As `std::sync::Barrier`.
///
/// ```
/// use std::sync::Arc;
/// use thalweg_runtime::{run, spawn, sync::Barrier};
///
/// let barrier = Arc::new(Barrier::new(3));
/// let leaders = run(move || {
///     let actors: Vec<_> = (0..3)
///         .map(|_| {
///             let barrier = barrier.clone();
///             spawn(move || barrier.wait().is_leader())
///         })
///         .collect();
///     let leads = actors.into_iter().map(|actor| actor.join().unwrap());
///     leads.filter(|leads| *leads).count()
/// });
/// assert_eq!(leaders, 1);
/// ```
pub struct Barrier {
    size: usize,
    line: Line<usize>,
}

impl Barrier {
    crate::shim::const_fn! {
        /// For so many; 0 is as 1, for which nobody waits.
        pub fn new(size: usize) -> Self {
            Self {
                size,
                line: Line::new(0),
            }
        }
    }

    /// Waits for the others. The last one to come is the leader.
    ///
    /// # Panics
    /// Where it is not the last, in a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()).
    pub fn wait(&self) -> BarrierWaitResult {
        waiting::for_ever(pin!(self.waiting()))
    }

    /// As [`wait`](Self::wait), for at most `timeout`. Who gives up has not been there: one more has to come.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<BarrierWaitResult, WaitError> {
        waiting::until(pin!(self.waiting()), Some(clock::deadline(timeout)))
    }

    /// As [`wait_timeout`](Self::wait_timeout), until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&self, deadline: Instant) -> Result<BarrierWaitResult, WaitError> {
        waiting::until(pin!(self.waiting()), Some(clock::at(deadline)))
    }

    /// As [`wait`](Self::wait), for a task. Dropped before the last one came it has not been there.
    pub async fn wait_async(&self) -> BarrierWaitResult {
        self.waiting().await
    }

    fn waiting(&self) -> Waiting<'_, Self> {
        Waiting::new(self, (), 0)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// All have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    leader: bool,
}

impl BarrierWaitResult {
    /// Whether the caller is the one of them that came last.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}

impl Primitive for Barrier {
    /// How many are there.
    type State = usize;
    type Wish = ();
    type Output = BarrierWaitResult;

    fn line(&self) -> &Line<usize> {
        &self.line
    }

    fn ask(&self, queue: &mut Queue<usize>, (): &mut (), wakes: &mut Wakes) -> Ask<Self::Output> {
        queue.state += 1;
        if queue.state < self.size {
            return Ask::Behind;
        }
        queue.state = 0;
        queue.give_all(MET, wakes);
        Ask::Done(BarrierWaitResult { leader: true })
    }

    fn given(&self, _: Gift, (): &mut ()) -> Option<Self::Output> {
        Some(BarrierWaitResult { leader: false })
    }

    fn left(&self, mut queue: Held<'_, usize>, gift: Option<Gift>, (): &()) {
        if gift.is_none() {
            queue.state -= 1;
        }
    }
}
