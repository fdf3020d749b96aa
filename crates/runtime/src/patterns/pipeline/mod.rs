//! Pipelines of stages.
//!
//! Each stage is a [`Pool`](super::Pool) whose jobs are the items. Its workers put their results
//! into the queue of the next stage, and wait while that is full. A closed stage closes the next
//! one after its last item.

mod output;
mod stages;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{SendError, clock};

use self::output::{InFlight, Output, Ticket, TicketState};
pub use self::stages::PipelineBuilder;
use self::stages::{Stage, StageInput, StopAll};
use super::PoolStats;
use crate::join::JoinHandle;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::sync::ClosableWaitError;

/// What happens when a stage of a [`Pipeline`] fails to process an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The item is lost and counted; the others continue.
    #[default]
    Skip,
    /// The pipeline ends with the stage and the reason.
    Stop,
}

/// Why a [`Pipeline`] returns no more results.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PipelineEnd {
    /// It was closed, and all results were received.
    Drained,
    /// A stage failed, with [`OnFailure::Stop`].
    Failed(StageFailure),
    /// It was cancelled.
    Cancelled,
    /// The runtime of the receiving actor stops.
    Stopping,
}

/// A worker of a stage panicked or was ended while it processed an item.
#[derive(Clone, Debug)]
pub struct StageFailure {
    /// The name of the stage.
    pub stage: Arc<str>,
    /// The exit reason of the worker.
    pub reason: ExitReason,
}

/// A pipeline of stages. Each stage has workers of its own and a bounded queue in front of it. A
/// sender waits while the first queue is full, and a stage waits while the next queue is full.
/// Clones refer to the same pipeline.
///
/// Each accepted item is received or counted as lost. A worker that panics is restarted by the
/// supervisor of its stage; [`OnFailure`] determines what happens to the pipeline. The pipeline
/// contains at most as many items as its queues and workers can hold, including results that were
/// not received.
///
/// Dropping the last clone cancels it.
///
/// ```
/// use thalweg_runtime::patterns::PipelineBuilder;
/// use thalweg_runtime::run;
///
/// run(|| {
///     let pipeline = PipelineBuilder::new()
///         .stage("parse", 2, 16, |text: String| text.parse::<u64>().ok())
///         .stage("square", 1, 16, |n: Option<u64>| n.map(|n| n * n))
///         .in_order()
///         .start()?;
///     pipeline.feed((0..5).map(|n| n.to_string()).chain(["x".into()]));
///     let squares: Vec<_> = pipeline.iter().collect();
///     assert_eq!(squares, [Some(0), Some(1), Some(4), Some(9), Some(16), None]);
///     # Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pipeline<I: Send + 'static, O: Send + 'static> {
    cancel_on_drop: Arc<CancelOnDrop<I, O>>,
}

/// Cancels the pipeline when the last clone is dropped. The actor of [`feed`](Pipeline::feed) does
/// not keep it alive.
struct CancelOnDrop<I: Send + 'static, O: Send + 'static> {
    inner: Arc<Inner<I, O>>,
}

struct Inner<I: Send + 'static, O: Send + 'static> {
    input: StageInput<I>,
    output: Arc<Output<O>>,
    /// From the first to the last.
    stages: Vec<Arc<dyn Stage>>,
    stop: Arc<StopAll>,
    accepted: AtomicU64,
    runtime: Handle,
}

/// The counters of a pipeline. `accepted` is the sum of `received`, `lost` and the items inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineStats {
    /// Items that were accepted.
    pub accepted: u64,
    /// Results that were received.
    pub received: u64,
    /// Items that a stage failed to process, or that were dropped at the end.
    pub lost: u64,
    /// The stages from the first to the last.
    pub stages: Vec<StageStats>,
}

/// The counters of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageStats {
    /// The name of the stage.
    pub name: Arc<str>,
    /// The counters of its pool, whose jobs are the items.
    pub items: PoolStats,
}

impl<I: Send + 'static, O: Send + 'static> Drop for CancelOnDrop<I, O> {
    fn drop(&mut self) {
        self.inner.stop.stop(PipelineEnd::Cancelled);
    }
}

impl<I: Send + 'static, O: Send + 'static> Inner<I, O> {
    fn send_until(&self, item: I, deadline: u64) -> Result<(), SendError<I>> {
        let in_flight = &self.output.counters.in_flight;
        let place = match deadline {
            u64::MAX => in_flight.acquire(),
            _ => {
                let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
                in_flight.acquire_timeout(1, left)
            }
        };
        match place {
            Ok(permit) => permit.forget(),
            Err(ClosableWaitError::Closed) => return Err(SendError::Closed(item)),
            Err(ClosableWaitError::TimedOut | ClosableWaitError::Stopping) => {
                return Err(SendError::TimedOut(item));
            }
        }
        let mut ticket = Ticket::new(&self.output.counters);
        // If the caller is ended while it waits for capacity, the item is dropped with it.
        ticket.state = TicketState::Lost;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.input
            .put(InFlight { item, ticket }, deadline)
            .map_err(|refused| {
                self.accepted.fetch_sub(1, Ordering::Relaxed);
                let back = |mut entry: InFlight<I>| {
                    entry.ticket.state = TicketState::Refused;
                    entry.item
                };
                match refused {
                    SendError::Closed(entry) => SendError::Closed(back(entry)),
                    SendError::Full(entry) => SendError::Full(back(entry)),
                    SendError::TimedOut(entry) => SendError::TimedOut(back(entry)),
                }
            })
    }
}

impl<I: Send + 'static, O: Send + 'static> Pipeline<I, O> {
    fn inner(&self) -> &Inner<I, O> {
        &self.cancel_on_drop.inner
    }

    /// Sends an item, and waits for capacity.
    ///
    /// # Errors
    /// The item, if the pipeline is closed or has ended, or the runtime of the waiting actor stops.
    pub fn send(&self, item: I) -> Result<(), SendError<I>> {
        self.inner().send_until(item, u64::MAX)
    }

    /// Sends an item, and waits for capacity for at most `timeout`.
    ///
    /// # Errors
    /// The item, as for [`send`](Self::send), or if there was no capacity in time.
    pub fn send_timeout(&self, item: I, timeout: Duration) -> Result<(), SendError<I>> {
        self.inner().send_until(item, clock::deadline(timeout))
    }

    /// Spawns an actor that sends all items of `source` and then closes the pipeline. It returns
    /// the number of accepted items. It stops early if the pipeline ends.
    pub fn feed<S>(&self, source: S) -> JoinHandle<u64>
    where
        S: IntoIterator<Item = I> + Send + 'static,
    {
        let inner = Arc::clone(&self.cancel_on_drop.inner);
        self.inner().runtime.spawn_queued(move || {
            let mut accepted = 0;
            for item in source {
                if inner.send_until(item, u64::MAX).is_err() {
                    break;
                }
                accepted += 1;
            }
            inner.input.close();
            accepted
        })
    }

    /// Accepts no more items. The items inside are processed, then the pipeline ends.
    pub fn close(&self) {
        self.inner().input.close();
    }

    /// Ends the pipeline now. The items inside are lost. Workers that are processing an item have
    /// five seconds.
    pub fn cancel(&self) {
        self.inner().stop.stop(PipelineEnd::Cancelled);
    }

    /// Waits for the next result.
    ///
    /// # Errors
    /// Why there is no further result. Results that were ready before the end are returned first.
    pub fn recv(&self) -> Result<O, PipelineEnd> {
        let output = &self.inner().output;
        loop {
            match output.available().acquire() {
                Ok(permit) => permit.forget(),
                Err(ClosableWaitError::Closed) => return self.last(),
                Err(_) => return Err(PipelineEnd::Stopping),
            }
            if let Some(item) = output.take() {
                return Ok(item);
            }
        }
    }

    /// As [`recv`](Self::recv), as a future. Dropping it takes no result.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn recv_async(&self) -> Result<O, PipelineEnd> {
        let output = &self.inner().output;
        loop {
            match output.available().acquire_async(1).await {
                Ok(permit) => permit.forget(),
                Err(_) => return self.last(),
            }
            if let Some(item) = output.take() {
                return Ok(item);
            }
        }
    }

    fn last(&self) -> Result<O, PipelineEnd> {
        let output = &self.inner().output;
        let end = || output.ended().unwrap_or(PipelineEnd::Cancelled);
        output.take().ok_or_else(end)
    }

    /// The results as they arrive, until the pipeline ends. [`ended`](Self::ended) returns the
    /// reason.
    pub fn iter(&self) -> impl Iterator<Item = O> + '_ {
        std::iter::from_fn(|| self.recv().ok())
    }

    /// Why the pipeline ended, if it has. There may still be results to receive.
    pub fn ended(&self) -> Option<PipelineEnd> {
        self.inner().output.ended()
    }

    /// The last failure of a stage.
    pub fn last_failure(&self) -> Option<StageFailure> {
        lock(&self.inner().stop.last_failure).clone()
    }

    /// The counters. They are read one after the other, so an item in motion may be missing from
    /// one or counted in two.
    pub fn stats(&self) -> PipelineStats {
        let inner = self.inner();
        PipelineStats {
            accepted: inner.accepted.load(Ordering::Relaxed),
            received: inner.output.counters.received.load(Ordering::Relaxed),
            lost: inner.output.counters.lost.load(Ordering::Relaxed),
            stages: inner.stages.iter().map(|stage| stage.stats()).collect(),
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Clone for Pipeline<I, O> {
    fn clone(&self) -> Self {
        Self {
            cancel_on_drop: Arc::clone(&self.cancel_on_drop),
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> fmt::Debug for Pipeline<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("stats", &self.stats())
            .finish()
    }
}

impl fmt::Display for StageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stage {:?} failed: {}", self.stage, self.reason)
    }
}

impl fmt::Display for PipelineEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drained => f.write_str("the pipeline is closed, and all results were received"),
            Self::Failed(failure) => failure.fmt(f),
            Self::Cancelled => f.write_str("the pipeline was cancelled"),
            Self::Stopping => f.write_str("the runtime stops"),
        }
    }
}

impl std::error::Error for PipelineEnd {}
