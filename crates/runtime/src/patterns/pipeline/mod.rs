//! Stages that hand on what they made.
//!
//! Each stage is a [`Pool`](super::Pool) whose jobs are the items, and whose workers give what they make to the next one's queue: where that is full
//! they wait. A stage that is closed and has done its last item closes the next one.

mod outlet;
mod stages;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{SendError, clock};

use self::outlet::{Fate, Flow, Outlet, Ticket};
pub use self::stages::PipelineBuilder;
use self::stages::{Inlet, Stage, Stop};
use super::PoolStats;
use crate::exit::ExitReason;
use crate::join::JoinHandle;
use crate::runtime::Handle;
use crate::sync::ClosableWaitError;

/// What becomes of a [`Pipeline`] in which a stage fails over an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFailed {
    /// The item is lost, which is counted; the others go on.
    #[default]
    Skip,
    /// The pipeline ends, with the stage and the reason.
    Stop,
}

/// Why nothing comes out of a [`Pipeline`] any more.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PipelineEnd {
    /// It was closed, and all has come out.
    Drained,
    /// A stage failed, by [`WhenFailed::Stop`].
    Failed(StageFailure),
    /// It was cancelled.
    Cancelled,
    /// The runtime of the actor that receives stops.
    Stopping,
}

/// A stage's worker that panicked or was ended over an item.
#[derive(Clone, Debug)]
pub struct StageFailure {
    /// Which stage.
    pub stage: Arc<str>,
    /// Why.
    pub reason: ExitReason,
}

/// Stages, each with workers of its own, through which items go one after the other, with a bounded queue before each: who sends waits where the first stage
/// is behind, and each stage where the next one is. Clones are one and the same.
///
/// Each item that was accepted comes out, or is counted as lost. A worker that panics over an item is started again by its stage's supervisor; what
/// becomes of the pipeline [`WhenFailed`] says. There are no more items inside than the queues and the workers have room for, results that nobody received included.
///
/// When the last clone is dropped it is cancelled.
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
    owner: Arc<Owner<I, O>>,
}

/// Cancels it in the end. Who [feeds](Pipeline::feed) it is no owner.
struct Owner<I: Send + 'static, O: Send + 'static> {
    inner: Arc<Inner<I, O>>,
}

struct Inner<I: Send + 'static, O: Send + 'static> {
    inlet: Inlet<I>,
    outlet: Arc<Outlet<O>>,
    /// From the first to the last.
    stages: Vec<Arc<dyn Stage>>,
    stop: Arc<Stop>,
    accepted: AtomicU64,
    runtime: Handle,
}

/// How a pipeline stands. `accepted` is the sum of `received`, `lost` and what is inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineStats {
    /// Items that were accepted.
    pub accepted: u64,
    /// Results that were received.
    pub received: u64,
    /// Items over which a stage failed, or that were dropped at the end.
    pub lost: u64,
    /// Of each stage, from the first to the last.
    pub stages: Vec<StageStats>,
}

/// How a stage of a pipeline stands: what came in, what went out, what failed and was dropped, what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageStats {
    /// Its name.
    pub name: Arc<str>,
    /// Its pool, whose jobs are the items.
    pub items: PoolStats,
}

impl<I: Send + 'static, O: Send + 'static> Drop for Owner<I, O> {
    fn drop(&mut self) {
        self.inner.stop.stop(PipelineEnd::Cancelled);
    }
}

impl<I: Send + 'static, O: Send + 'static> Inner<I, O> {
    fn send_until(&self, item: I, deadline: u64) -> Result<(), SendError<I>> {
        let inside = &self.outlet.way.inside;
        let place = match deadline {
            u64::MAX => inside.acquire(),
            _ => {
                let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
                inside.acquire_timeout(1, left)
            }
        };
        match place {
            Ok(permit) => permit.forget(),
            Err(ClosableWaitError::Closed) => return Err(SendError::Closed(item)),
            Err(ClosableWaitError::TimedOut | ClosableWaitError::Stopping) => {
                return Err(SendError::TimedOut(item));
            }
        }
        let mut ticket = Ticket::new(&self.outlet.way);
        // Whoever is ended while it waits for room takes the item along.
        ticket.fate = Fate::Lost;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.inlet
            .put(Flow { item, ticket }, deadline)
            .map_err(|refused| {
                self.accepted.fetch_sub(1, Ordering::Relaxed);
                let back = |mut flow: Flow<I>| {
                    flow.ticket.fate = Fate::Refused;
                    flow.item
                };
                match refused {
                    SendError::Closed(flow) => SendError::Closed(back(flow)),
                    SendError::Full(flow) => SendError::Full(back(flow)),
                    SendError::TimedOut(flow) => SendError::TimedOut(back(flow)),
                }
            })
    }
}

impl<I: Send + 'static, O: Send + 'static> Pipeline<I, O> {
    fn inner(&self) -> &Inner<I, O> {
        &self.owner.inner
    }

    /// Puts an item in; waits for room.
    ///
    /// # Errors
    /// The item: the pipeline is closed, has ended, or the runtime of the actor that waits stops.
    pub fn send(&self, item: I) -> Result<(), SendError<I>> {
        self.inner().send_until(item, u64::MAX)
    }

    /// Puts an item in; waits for room for at most `timeout`.
    ///
    /// # Errors
    /// The item: as [`send`](Self::send), or there was no room in time.
    pub fn send_timeout(&self, item: I, timeout: Duration) -> Result<(), SendError<I>> {
        self.inner().send_until(item, clock::deadline(timeout))
    }

    /// An actor that puts all of `source` in and then closes the pipeline. It gives how many were accepted; where the pipeline ends it stops.
    pub fn feed<S>(&self, source: S) -> JoinHandle<u64>
    where
        S: IntoIterator<Item = I> + Send + 'static,
    {
        let inner = Arc::clone(&self.owner.inner);
        self.inner().runtime.spawn_queued(move || {
            let mut accepted = 0;
            for item in source {
                if inner.send_until(item, u64::MAX).is_err() {
                    break;
                }
                accepted += 1;
            }
            inner.inlet.close();
            accepted
        })
    }

    /// Takes no more items. What it has comes out, and then the end.
    pub fn close(&self) {
        self.inner().inlet.close();
    }

    /// Ends it now: what is inside is lost. Workers that have an item at hand have five seconds.
    pub fn cancel(&self) {
        self.inner().stop.stop(PipelineEnd::Cancelled);
    }

    /// The next result; waits for it.
    ///
    /// # Errors
    /// There will be none, and why. What was ready before the end comes first.
    pub fn recv(&self) -> Result<O, PipelineEnd> {
        let outlet = &self.inner().outlet;
        loop {
            match outlet.there().acquire() {
                Ok(permit) => permit.forget(),
                Err(ClosableWaitError::Closed) => return self.last(),
                Err(_) => return Err(PipelineEnd::Stopping),
            }
            if let Some(item) = outlet.take() {
                return Ok(item);
            }
        }
    }

    /// As [`recv`](Self::recv), as a future. Dropped, it has taken nothing.
    ///
    /// # Errors
    /// As there.
    pub async fn recv_async(&self) -> Result<O, PipelineEnd> {
        let outlet = &self.inner().outlet;
        loop {
            match outlet.there().acquire_async(1).await {
                Ok(permit) => permit.forget(),
                Err(_) => return self.last(),
            }
            if let Some(item) = outlet.take() {
                return Ok(item);
            }
        }
    }

    fn last(&self) -> Result<O, PipelineEnd> {
        let outlet = &self.inner().outlet;
        let end = || outlet.ended().unwrap_or(PipelineEnd::Cancelled);
        outlet.take().ok_or_else(end)
    }

    /// Results as they come, until there are no more, for whatever reason: [`ended`](Self::ended) says which.
    pub fn iter(&self) -> impl Iterator<Item = O> + '_ {
        std::iter::from_fn(|| self.recv().ok())
    }

    /// Why nothing comes any more, if that is so. Results that are ready may be there still.
    pub fn ended(&self) -> Option<PipelineEnd> {
        self.inner().outlet.ended()
    }

    /// The last time that a stage failed over an item.
    pub fn last_failure(&self) -> Option<StageFailure> {
        lock(&self.inner().stop.last_failure).clone()
    }

    /// How it stands. The figures are read one after the other, so what is under way may be missing in one of them, or counted twice.
    pub fn stats(&self) -> PipelineStats {
        let inner = self.inner();
        PipelineStats {
            accepted: inner.accepted.load(Ordering::Relaxed),
            received: inner.outlet.way.received.load(Ordering::Relaxed),
            lost: inner.outlet.way.lost.load(Ordering::Relaxed),
            stages: inner.stages.iter().map(|stage| stage.stats()).collect(),
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Clone for Pipeline<I, O> {
    fn clone(&self) -> Self {
        Self {
            owner: Arc::clone(&self.owner),
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
            Self::Drained => f.write_str("the pipeline is closed, and all has come out"),
            Self::Failed(failure) => failure.fmt(f),
            Self::Cancelled => f.write_str("the pipeline was cancelled"),
            Self::Stopping => f.write_str("the runtime stops"),
        }
    }
}

impl std::error::Error for PipelineEnd {}
