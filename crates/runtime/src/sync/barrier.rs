//! A barrier: a fixed number of actors or threads wait for each other.

use std::fmt;
use std::pin::pin;
use std::time::{Duration, Instant};

use thalweg_queue::{WakerList, clock};

use super::error::WaitError;
use super::wait_future::{self, AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};

const RELEASED: Grant = 1;

/// A barrier for a fixed number of callers: all wait until the last one has arrived, and continue
/// together. It can be used again. Like `std::sync::Barrier`.
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
    wait_list: WaitList<usize>,
}

impl Barrier {
    crate::shim::const_fn! {
        /// Creates a barrier for `size` callers. With 0 or 1, nobody waits.
        pub fn new(size: usize) -> Self {
            Self {
                size,
                wait_list: WaitList::new(0),
            }
        }
    }

    /// Waits for the others. The last caller to arrive is the leader.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    pub fn wait(&self) -> BarrierWaitResult {
        wait_future::block(pin!(self.wait_future()))
    }

    /// Like [`wait`](Self::wait), for at most `timeout`. A caller that times out does not count as
    /// arrived.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<BarrierWaitResult, WaitError> {
        wait_future::block_until(pin!(self.wait_future()), Some(clock::deadline(timeout)))
    }

    /// Like [`wait_timeout`](Self::wait_timeout), until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&self, deadline: Instant) -> Result<BarrierWaitResult, WaitError> {
        wait_future::block_until(pin!(self.wait_future()), Some(clock::at(deadline)))
    }

    /// Like [`wait`](Self::wait), as a future. If it is dropped before the last caller arrives, it
    /// does not count as arrived.
    pub async fn wait_async(&self) -> BarrierWaitResult {
        self.wait_future().await
    }

    fn wait_future(&self) -> WaitFuture<'_, Self> {
        WaitFuture::new(self, (), 0)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// All callers have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Whether the caller was the last to arrive.
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }
}

impl Primitive for Barrier {
    /// The number of callers that have arrived.
    type State = usize;
    type Request = ();
    type Output = BarrierWaitResult;

    fn wait_list(&self) -> &WaitList<usize> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        queue: &mut WaitQueue<usize>,
        (): &mut (),
        wakers: &mut WakerList,
    ) -> AcquireResult<Self::Output> {
        queue.state += 1;
        if queue.state < self.size {
            return AcquireResult::PushBack;
        }
        queue.state = 0;
        queue.grant_all(RELEASED, wakers);
        AcquireResult::Done(BarrierWaitResult { is_leader: true })
    }

    fn accept_grant(&self, _: Grant, (): &mut ()) -> Option<Self::Output> {
        Some(BarrierWaitResult { is_leader: false })
    }

    fn on_leave(&self, mut queue: WaitListGuard<'_, usize>, grant: Option<Grant>, (): &()) {
        if grant.is_none() {
            queue.state -= 1;
        }
    }
}
