//! Stages that hand on what they made.
//!
//! Each stage is a [`Pool`](super::Pool) whose jobs are the items, and whose workers give what they make to the next one's queue: where that is full
//! they wait. A stage that is closed and has done its last item closes the next one.

mod outlet;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use thalweg_queue::quiet::lock;
use thalweg_queue::{SendError, clock};

use self::outlet::{Fate, Flow, Line, Outlet, Ticket};
use super::pool::{Pool, PoolBuilder, PoolError};
use super::{Invalid, PoolStats};
use crate::exit::{ExitReason, Exiting, exit};
use crate::join::{JoinError, JoinHandle};
use crate::runtime::{Builder, Handle};
use crate::supervisor::Backoff;
use crate::sync::Ended;

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

/// The stages of a [`Pipeline`], from the first to the last: it takes `I` and gives `O`.
#[must_use = "it does nothing until it is started"]
pub struct PipelineBuilder<I, O> {
    in_order: bool,
    when_failed: WhenFailed,
    backoff: Option<Backoff>,
    inside: usize,
    /// Starts the stages, the last one first, given what comes behind them.
    connect: Connect<I, O>,
}

type Connect<I, O> = Box<dyn FnOnce(Inlet<O>, &mut Plan) -> Result<Inlet<I>, PoolError> + Send>;

/// Where items go.
type Inlet<T> = Arc<dyn Accept<T>>;

trait Accept<T>: Send + Sync {
    fn put(&self, flow: Flow<T>, deadline: u64) -> Result<(), SendError<Flow<T>>>;
    /// The last one was put.
    fn close(&self);
}

/// What is known while the stages start.
struct Plan {
    runtime: Handle,
    backoff: Option<Backoff>,
    stages: Vec<Arc<dyn Stage>>,
    stop: Arc<Stop>,
}

/// A stage, whatever it makes.
trait Stage: Send + Sync {
    fn stats(&self) -> StageStats;
    fn end(&self);
}

struct Station<T: Send + 'static> {
    name: Arc<str>,
    pool: Pool<Flow<T>>,
}

/// Ends all stages, from within one of them, too.
struct Stop {
    when_failed: WhenFailed,
    line: Arc<dyn Line>,
    stages: OnceLock<Vec<Weak<dyn Stage>>>,
    last_failure: Mutex<Option<StageFailure>>,
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

impl<T: Send + 'static> PipelineBuilder<T, T> {
    /// Without a stage. Of an item over which a stage fails nothing comes out, and the order is that in which results are made.
    pub fn new() -> Self {
        Self {
            in_order: false,
            when_failed: WhenFailed::default(),
            backoff: None,
            inside: 0,
            connect: Box::new(|inlet, _| Ok(inlet)),
        }
    }
}

impl<T: Send + 'static> Default for PipelineBuilder<T, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Send + 'static, O: Send + 'static> PipelineBuilder<I, O> {
    /// One stage more, behind the others: `workers` of them do `work`, and `capacity` items wait before it.
    pub fn stage<P: Send + 'static>(
        self,
        name: impl Into<Arc<str>>,
        workers: usize,
        capacity: usize,
        work: impl Fn(O) -> P + Send + Sync + 'static,
    ) -> PipelineBuilder<I, P> {
        let (name, work, connect) = (name.into(), Arc::new(work), self.connect);
        PipelineBuilder {
            in_order: self.in_order,
            when_failed: self.when_failed,
            backoff: self.backoff,
            inside: self.inside.saturating_add(workers).saturating_add(capacity),
            connect: Box::new(move |next, plan| {
                Invalid::unless(workers > 0, "a stage has 1 worker at least")?;
                let behind = Arc::clone(&next);
                let (stop, stage) = (Arc::clone(&plan.stop), Arc::clone(&name));
                let mut pool = PoolBuilder::new(&*name).workers(workers).capacity(capacity);
                if let Some(backoff) = plan.backoff {
                    pool = pool.backoff(backoff);
                }
                let pool =
                    pool.at_end(move || behind.close())
                        .start_on(&plan.runtime, move || {
                            let (work, next) = (Arc::clone(&work), Arc::clone(&next));
                            let (stop, stage) = (Arc::clone(&stop), Arc::clone(&stage));
                            move |flow: Flow<O>| {
                                let done = catch_unwind(AssertUnwindSafe(|| {
                                    let Flow { item, ticket } = flow;
                                    let item = work(item);
                                    // One that is ended takes no more: the item is lost.
                                    let _ = next.put(Flow { item, ticket }, u64::MAX);
                                }));
                                if let Err(payload) = done {
                                    stop.failed(&stage, payload);
                                }
                            }
                        })?;
                let station = Arc::new(Station { name, pool });
                plan.stages.push(Arc::<Station<O>>::clone(&station));
                connect(station, plan)
            }),
        }
    }

    /// What comes out is in the order of what went in, also where stages have several workers. What is ahead of a slow one waits.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// What becomes of it where a stage fails over an item.
    pub fn when_failed(mut self, when_failed: WhenFailed) -> Self {
        self.when_failed = when_failed;
        self
    }

    /// How long a worker that failed waits until it is started again. Default: that of a [`Pool`](super::Pool).
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// It has no stage; a stage has no worker or no room, or did not start.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`start_on`](Self::start_on).
    pub fn start(self) -> Result<Pipeline<I, O>, PoolError> {
        let runtime =
            Handle::current().expect("this is for actors: a thread says on which runtime");
        self.start_on(&runtime)
    }

    /// The same on a runtime, from anywhere.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(self, runtime: &Handle) -> Result<Pipeline<I, O>, PoolError> {
        Invalid::unless(self.inside > 0, "a pipeline has 1 stage at least")?;
        let most = crate::sync::Semaphore::MAX_PERMITS;
        let outlet = Outlet::new(self.in_order, self.inside.min(most));
        let stop = Arc::new(Stop {
            when_failed: self.when_failed,
            line: Arc::<Outlet<O>>::clone(&outlet),
            stages: OnceLock::new(),
            last_failure: Mutex::default(),
        });
        let mut plan = Plan {
            runtime: runtime.clone(),
            backoff: self.backoff,
            stages: Vec::new(),
            stop,
        };
        let inlet = (self.connect)(Arc::<Outlet<O>>::clone(&outlet), &mut plan)?;
        plan.stages.reverse();
        let weak = plan.stages.iter().map(Arc::downgrade).collect();
        // Nothing flows yet, and it is said once.
        let _ = plan.stop.stages.set(weak);
        let inner = Inner {
            inlet,
            outlet,
            stages: plan.stages,
            stop: plan.stop,
            accepted: AtomicU64::new(0),
            runtime: runtime.clone(),
        };
        let owner = Owner {
            inner: Arc::new(inner),
        };
        Ok(Pipeline {
            owner: Arc::new(owner),
        })
    }
}

impl<T: Send + 'static> Accept<T> for Outlet<T> {
    fn put(&self, flow: Flow<T>, _: u64) -> Result<(), SendError<Flow<T>>> {
        Self::put(self, flow);
        Ok(())
    }

    fn close(&self) {
        self.end(PipelineEnd::Drained);
    }
}

impl<T: Send + 'static> Accept<T> for Station<T> {
    fn put(&self, flow: Flow<T>, deadline: u64) -> Result<(), SendError<Flow<T>>> {
        self.pool.cast_until(flow, deadline)
    }

    fn close(&self) {
        self.pool.close();
    }
}

impl<T: Send + 'static> Stage for Station<T> {
    fn stats(&self) -> StageStats {
        StageStats {
            name: Arc::clone(&self.name),
            items: self.pool.stats(),
        }
    }

    fn end(&self) {
        self.pool.end();
    }
}

impl Stop {
    fn stop(&self, end: PipelineEnd) {
        // First, so that it is the end that is seen.
        self.line.end(end);
        for stage in self.stages.get().into_iter().flatten() {
            if let Some(stage) = stage.upgrade() {
                stage.end();
            }
        }
    }

    /// The worker that calls it ends, for the same reason.
    fn failed(&self, stage: &Arc<str>, payload: Box<dyn std::any::Any + Send>) -> ! {
        let is_end = JoinError::is_end(&*payload);
        if is_end && !payload.is::<Exiting>() {
            resume_unwind(payload);
        }
        let reason = match payload.downcast::<Exiting>() {
            Ok(exiting) => exiting.0,
            Err(payload) => ExitReason::from(&JoinError::panicked(payload)),
        };
        let failure = StageFailure {
            stage: Arc::clone(stage),
            reason: reason.clone(),
        };
        let before = lock(&self.last_failure).replace(failure.clone());
        drop(before);
        // One that is told to end in order has not failed.
        if self.when_failed == WhenFailed::Stop && !reason.is_orderly() {
            self.stop(PipelineEnd::Failed(failure));
        }
        exit(reason)
    }
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
            Err(Ended::Closed) => return Err(SendError::Closed(item)),
            Err(Ended::TimedOut | Ended::Stopping) => return Err(SendError::TimedOut(item)),
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
        Builder::new().spawn_on(&self.inner().runtime, move || {
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
                Err(Ended::Closed) => return self.last(),
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

impl<I, O> fmt::Debug for PipelineBuilder<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineBuilder")
            .field("in_order", &self.in_order)
            .field("when_failed", &self.when_failed)
            .finish_non_exhaustive()
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
