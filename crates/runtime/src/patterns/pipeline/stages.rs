//! The stages of a pipeline while they are put together, and what stops them all.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use thalweg_queue::SendError;
use thalweg_queue::no_preempt::lock;

use super::outlet::{Flow, Line, Outlet};
use super::{Inner, Owner, Pipeline, PipelineEnd, StageFailure, StageStats, WhenFailed};
use crate::exit::{ExitReason, Exiting, exit};
use crate::join::JoinError;
use crate::patterns::Invalid;
use crate::patterns::pool::{Pool, PoolBuilder, PoolError};
use crate::runtime::Handle;
use crate::supervisor::Backoff;
use crate::sync::Semaphore;

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
pub(super) type Inlet<T> = Arc<dyn Accept<T>>;

pub(super) trait Accept<T>: Send + Sync {
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
pub(super) trait Stage: Send + Sync {
    fn stats(&self) -> StageStats;
    fn end(&self);
}

struct Station<T: Send + 'static> {
    name: Arc<str>,
    pool: Pool<Flow<T>>,
}

/// Ends all stages, from within one of them, too.
pub(super) struct Stop {
    when_failed: WhenFailed,
    line: Arc<dyn Line>,
    stages: OnceLock<Vec<Weak<dyn Stage>>>,
    pub(super) last_failure: Mutex<Option<StageFailure>>,
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

    /// How long a worker that failed waits until it is started again. Default: that of a [`Pool`].
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
        let outlet = Outlet::new(self.in_order, self.inside.min(Semaphore::MAX_PERMITS));
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
    pub(super) fn stop(&self, end: PipelineEnd) {
        // First, so that it is the end that is seen.
        self.line.end(end);
        for stage in self.stages.get().into_iter().flatten() {
            if let Some(stage) = stage.upgrade() {
                stage.end();
            }
        }
    }

    /// The worker that calls it ends, for the same reason.
    fn failed(&self, stage: &Arc<str>, payload: Box<dyn Any + Send>) -> ! {
        let is_end = JoinError::is_exit_payload(&*payload);
        if is_end && !payload.is::<Exiting>() {
            resume_unwind(payload);
        }
        let reason = match payload.downcast::<Exiting>() {
            Ok(exiting) => exiting.0,
            Err(payload) => ExitReason::from(&JoinError::from_payload(payload)),
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

impl<I, O> fmt::Debug for PipelineBuilder<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineBuilder")
            .field("in_order", &self.in_order)
            .field("when_failed", &self.when_failed)
            .finish_non_exhaustive()
    }
}
