//! Builds the stages of a pipeline and stops them.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use thalweg_queue::SendError;
use thalweg_queue::no_preempt::lock;

use super::output::{InFlight, Output, OutputControl};
use super::{CancelOnDrop, Inner, OnFailure, Pipeline, PipelineEnd, StageFailure, StageStats};
use crate::exit::exit;
use crate::patterns::InvalidSetting;
use crate::patterns::pool::{Pool, PoolBuilder, PoolError};
use crate::reason::{ExitReason, ExitUnwind, JoinError};
use crate::runtime::Handle;
use crate::supervisor::Backoff;
use crate::sync::Semaphore;

/// The stages of a [`Pipeline`] from the first to the last. It accepts `I` and returns `O`.
#[must_use = "a pipeline does nothing until it is started"]
pub struct PipelineBuilder<I, O> {
    in_order: bool,
    on_failure: OnFailure,
    backoff: Option<Backoff>,
    in_flight: usize,
    /// Starts the stages, the last one first. The argument is the input of the stage behind them.
    connect: Connect<I, O>,
}

type Connect<I, O> =
    Box<dyn FnOnce(StageInput<O>, &mut StartContext) -> Result<StageInput<I>, PoolError> + Send>;

/// The input of a stage, or the output of the pipeline.
pub(super) type StageInput<T> = Arc<dyn ItemSink<T>>;

pub(super) trait ItemSink<T>: Send + Sync {
    fn put(&self, entry: InFlight<T>, deadline: u64) -> Result<(), SendError<InFlight<T>>>;
    /// No further item follows.
    fn close(&self);
}

/// The state while the stages start.
struct StartContext {
    runtime: Handle,
    backoff: Option<Backoff>,
    stages: Vec<Arc<dyn Stage>>,
    stop: Arc<StopAll>,
}

/// A stage with results of any type.
pub(super) trait Stage: Send + Sync {
    fn stats(&self) -> StageStats;
    fn end(&self);
}

struct PoolStage<T: Send + 'static> {
    name: Arc<str>,
    pool: Pool<InFlight<T>>,
}

/// Ends all stages. A worker of a stage may call it.
pub(super) struct StopAll {
    on_failure: OnFailure,
    output: Arc<dyn OutputControl>,
    stages: OnceLock<Vec<Weak<dyn Stage>>>,
    pub(super) last_failure: Mutex<Option<StageFailure>>,
}

impl<T: Send + 'static> PipelineBuilder<T, T> {
    /// A pipeline without stages. By default, an item that a stage fails to process is skipped, and
    /// results are returned in the order in which they are ready.
    pub fn new() -> Self {
        Self {
            in_order: false,
            on_failure: OnFailure::default(),
            backoff: None,
            in_flight: 0,
            connect: Box::new(|input, _| Ok(input)),
        }
    }
}

impl<T: Send + 'static> Default for PipelineBuilder<T, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Send + 'static, O: Send + 'static> PipelineBuilder<I, O> {
    /// Adds a stage behind the others: `workers` of them run `work`, and up to `capacity` items
    /// wait in its queue.
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
            on_failure: self.on_failure,
            backoff: self.backoff,
            in_flight: self
                .in_flight
                .saturating_add(workers)
                .saturating_add(capacity),
            connect: Box::new(move |next, context| {
                InvalidSetting::unless(workers > 0, "a stage has at least 1 worker")?;
                let behind = Arc::clone(&next);
                let (stop, stage) = (Arc::clone(&context.stop), Arc::clone(&name));
                let mut pool = PoolBuilder::new(&*name).workers(workers).capacity(capacity);
                if let Some(backoff) = context.backoff {
                    pool = pool.backoff(backoff);
                }
                let pool = pool.on_drained(move || behind.close()).start_on(
                    &context.runtime,
                    move || {
                        let (work, next) = (Arc::clone(&work), Arc::clone(&next));
                        let (stop, stage) = (Arc::clone(&stop), Arc::clone(&stage));
                        move |entry: InFlight<O>| {
                            let done = catch_unwind(AssertUnwindSafe(|| {
                                let InFlight { item, ticket } = entry;
                                let item = work(item);
                                // If the next stage has ended, it accepts no more, and the item is
                                // lost.
                                let _ = next.put(InFlight { item, ticket }, u64::MAX);
                            }));
                            if let Err(payload) = done {
                                stop.failed(&stage, payload);
                            }
                        }
                    },
                )?;
                let pool_stage = Arc::new(PoolStage { name, pool });
                context.stages.push(Arc::<PoolStage<O>>::clone(&pool_stage));
                connect(pool_stage, context)
            }),
        }
    }

    /// Returns the results in the order of the items, even if stages have several workers. Results
    /// behind a slow item wait for it.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// What happens when a stage fails to process an item.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// The delay before a failed worker is restarted. Default: as for a [`Pool`].
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Starts the pipeline.
    ///
    /// # Errors
    /// It has no stage; a stage has no worker or no capacity, or did not start.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`start_on`](Self::start_on).
    pub fn start(self) -> Result<Pipeline<I, O>, PoolError> {
        let runtime =
            Handle::current().expect("the caller is not an actor; in a thread, use start_on");
        self.start_on(&runtime)
    }

    /// As [`start`](Self::start), on this runtime. Any thread may call it.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(self, runtime: &Handle) -> Result<Pipeline<I, O>, PoolError> {
        InvalidSetting::unless(self.in_flight > 0, "a pipeline has at least 1 stage")?;
        let output = Output::new(self.in_order, self.in_flight.min(Semaphore::MAX_PERMITS));
        let stop = Arc::new(StopAll {
            on_failure: self.on_failure,
            output: Arc::<Output<O>>::clone(&output),
            stages: OnceLock::new(),
            last_failure: Mutex::default(),
        });
        let mut context = StartContext {
            runtime: runtime.clone(),
            backoff: self.backoff,
            stages: Vec::new(),
            stop,
        };
        let input = (self.connect)(Arc::<Output<O>>::clone(&output), &mut context)?;
        context.stages.reverse();
        let weak = context.stages.iter().map(Arc::downgrade).collect();
        // No item has been sent yet. This is set once.
        let _ = context.stop.stages.set(weak);
        let inner = Inner {
            input,
            output,
            stages: context.stages,
            stop: context.stop,
            accepted: AtomicU64::new(0),
            runtime: runtime.clone(),
        };
        let cancel_on_drop = CancelOnDrop {
            inner: Arc::new(inner),
        };
        Ok(Pipeline {
            cancel_on_drop: Arc::new(cancel_on_drop),
        })
    }
}

impl<T: Send + 'static> ItemSink<T> for Output<T> {
    fn put(&self, entry: InFlight<T>, _: u64) -> Result<(), SendError<InFlight<T>>> {
        Self::put(self, entry);
        Ok(())
    }

    fn close(&self) {
        self.end(PipelineEnd::Drained);
    }
}

impl<T: Send + 'static> ItemSink<T> for PoolStage<T> {
    fn put(&self, entry: InFlight<T>, deadline: u64) -> Result<(), SendError<InFlight<T>>> {
        self.pool.cast_until(entry, deadline)
    }

    fn close(&self) {
        self.pool.close();
    }
}

impl<T: Send + 'static> Stage for PoolStage<T> {
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

impl StopAll {
    pub(super) fn stop(&self, end: PipelineEnd) {
        // The end is recorded first, so that receivers see this reason.
        self.output.end(end);
        for stage in self.stages.get().into_iter().flatten() {
            if let Some(stage) = stage.upgrade() {
                stage.end();
            }
        }
    }

    /// Ends the calling worker with the same reason.
    fn failed(&self, stage: &Arc<str>, payload: Box<dyn Any + Send>) -> ! {
        let is_exit = JoinError::is_exit_payload(&*payload);
        if is_exit && !payload.is::<ExitUnwind>() {
            resume_unwind(payload);
        }
        let reason = match payload.downcast::<ExitUnwind>() {
            Ok(exiting) => exiting.0,
            Err(payload) => ExitReason::from(&JoinError::from_payload(payload)),
        };
        let failure = StageFailure {
            stage: Arc::clone(stage),
            reason: reason.clone(),
        };
        let before = lock(&self.last_failure).replace(failure.clone());
        drop(before);
        // An orderly exit is not a failure.
        if self.on_failure == OnFailure::Stop && !reason.is_orderly() {
            self.stop(PipelineEnd::Failed(failure));
        }
        exit(reason)
    }
}

impl<I, O> fmt::Debug for PipelineBuilder<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineBuilder")
            .field("in_order", &self.in_order)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}
