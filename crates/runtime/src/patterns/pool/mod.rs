//! Pools of workers for jobs of one kind.

mod core;
mod routing;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvTimeoutError, SendError, clock, oneshot};

use self::core::{AcceptError, Core, QueuedJob, Worker};
pub use self::routing::Routing;
use super::InvalidSetting;
use crate::behaviour::{ActorRef, CallError};
use crate::control::DownListener;
use crate::exit::Pid;
use crate::mailbox::Mailbox;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::supervisor::{
    Backoff, ChildError, ChildInfo, ChildSpec, Shutdown, Strategy, Supervisor, SupervisorRef,
    SupervisorStartError,
};
use crate::sync::{ClosableWaitError, Mutex};
use crate::worker;

/// A failure is usually caused by the job and not by the worker. The worker is therefore back soon,
/// and a worker whose state cannot be created does not hold up the others.
const BACKOFF: Backoff = Backoff {
    first: Duration::ZERO,
    max: Duration::from_millis(10),
    jitter: 0.5,
    reset_after: Duration::from_secs(1),
};

/// The overflow policy of a pool: what happens to a job when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolOverflow {
    /// The sender waits for capacity, in order of arrival.
    #[default]
    Block,
    /// The job is refused and counted.
    Fail,
    /// The job that has waited longest is dropped and counted.
    DropOldest,
}

/// The settings of a [`Pool`].
#[derive(Debug)]
#[must_use = "a pool does nothing until it is started"]
pub struct PoolBuilder<J> {
    name: String,
    workers: usize,
    capacity: usize,
    overflow: PoolOverflow,
    routing: Routing<J>,
    backoff: Backoff,
    shutdown: Shutdown,
    on_drained: OnDrained,
}

/// Called when a closed pool has finished its last job.
#[derive(Default)]
struct OnDrained(Option<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for OnDrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnDrained").field(&self.0.is_some()).finish()
    }
}

/// Creates the function that one incarnation of a worker applies to its jobs.
type WorkFactory<J, R> = Arc<dyn Fn() -> Box<dyn FnMut(J) -> R + Send> + Send + Sync>;

/// A pool of workers: behaviour actors under a supervisor of their own, whose state is created
/// again after a failure. Clones refer to the same pool.
///
/// Each accepted job is handled, or counted as failed (its worker panicked or was killed) or
/// dropped. A failed worker is always restarted, after [`backoff`](PoolBuilder::backoff); its
/// waiting jobs stay in the queue.
///
/// Dropping the last clone ends the pool: running jobs have the time of
/// [`shutdown`](PoolBuilder::shutdown), and waiting jobs are dropped. To let it finish, use
/// [`drain`](Self::drain).
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::patterns::{PoolBuilder, Routing};
/// use thalweg_runtime::run;
///
/// run(|| {
///     let pool = PoolBuilder::new("squares")
///         .workers(2)
///         .routing(Routing::LeastLoaded)
///         .start(|| |n: u64| n * n)?;
///     assert_eq!(pool.call(12), Ok(144));
///     for n in 0..10 {
///         pool.cast(n)?;
///     }
///     let drained = pool.drain(Duration::from_secs(60));
///     assert_eq!((drained.dropped, pool.stats().handled), (0, 11));
///     assert!(pool.cast(1).is_err());
///     # Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pool<J: Send + 'static, R: Send + 'static = ()> {
    inner: Arc<Inner<J, R>>,
}

struct Inner<J: Send + 'static, R: Send + 'static> {
    core: Arc<Core<J, R>>,
    supervisor: SupervisorRef,
    make: WorkFactory<J, R>,
    runtime: Handle,
    name: String,
    backoff: Backoff,
    shutdown: Shutdown,
    /// The numbers of the current workers, and the next number. LockGuard during a resize.
    workers: Mutex<(Vec<u64>, u64)>,
}

/// The counters of a pool. `accepted` is the sum of `waiting`, `running`, `handled`, `failed` and
/// `dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs in queues.
    pub waiting: usize,
    /// Running jobs.
    pub running: usize,
    /// Jobs accepted so far.
    pub accepted: u64,
    /// Jobs that were handled.
    pub handled: u64,
    /// Jobs whose worker panicked or was ended.
    pub failed: u64,
    /// Jobs that were dropped before they began.
    pub dropped: u64,
    /// Jobs that were not accepted because the queue was full.
    pub refused: u64,
    /// The counters of each worker. A worker that a resize removed is not included.
    pub workers: Vec<WorkerStats>,
}

/// The counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Jobs in its own queue.
    pub waiting: usize,
    /// Whether it is running a job.
    pub running: bool,
    /// Jobs that it handled, over all its incarnations.
    pub handled: u64,
    /// Jobs during which it failed.
    pub failed: u64,
}

/// The result of [`Pool::drain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Jobs that had not begun in time and were dropped.
    pub dropped: usize,
    /// Jobs that were still running. They have the time of the pool's `shutdown`.
    pub running: usize,
}

impl<J: Send + 'static> PoolBuilder<J> {
    /// A pool with one worker per worker of the runtime, a shared queue for 1,024 jobs, and senders
    /// that wait for capacity.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            workers: 0,
            capacity: 1_024,
            overflow: PoolOverflow::default(),
            routing: Routing::Shared,
            backoff: BACKOFF,
            shutdown: Shutdown::Timeout(Duration::from_secs(5)),
            on_drained: OnDrained::default(),
        }
    }

    /// The initial number of workers.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// The maximum number of waiting jobs, in all queues together.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The overflow policy.
    pub fn overflow(mut self, overflow: PoolOverflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Which worker receives a job.
    pub fn routing(mut self, routing: Routing<J>) -> Self {
        self.routing = routing;
        self
    }

    /// The delay before a failed worker is restarted. Default: none, then 1 ms doubling to 10 ms;
    /// reset after a second.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How a worker is stopped when the pool ends or shrinks.
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    pub(super) fn on_drained(mut self, hook: impl FnOnce() + Send + 'static) -> Self {
        self.on_drained = OnDrained(Some(Box::new(hook)));
        self
    }

    /// Starts the pool. `make` creates the function that a worker applies to its jobs, once per
    /// incarnation.
    ///
    /// # Errors
    /// A setting is out of range, or a worker did not start.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`start_on`](Self::start_on).
    pub fn start<R: Send + 'static, F: FnMut(J) -> R + Send + 'static>(
        self,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Pool<J, R>, PoolError> {
        let runtime =
            Handle::current().expect("the caller is not an actor; in a thread, use start_on");
        self.start_on(&runtime, make)
    }

    /// As [`start`](Self::start), on this runtime. Any thread may call it.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on<R: Send + 'static, F: FnMut(J) -> R + Send + 'static>(
        self,
        runtime: &Handle,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Pool<J, R>, PoolError> {
        let capacities = 1..=1 << 31;
        InvalidSetting::unless(
            capacities.contains(&self.capacity),
            "the capacity of a pool is 1 to 2^31 jobs",
        )?;
        let workers = match self.workers {
            0 => runtime.workers(),
            workers => workers,
        };
        let core = Core::new(
            self.routing,
            self.capacity,
            self.overflow,
            self.on_drained.0,
        );
        let supervisor = Supervisor::new(Strategy::OneForOne).unlimited_restarts();
        let inner = Inner {
            core: Arc::new(core),
            supervisor: supervisor.start_on(runtime).map_err(PoolError::Start)?,
            make: Arc::new(move || Box::new(make())),
            runtime: runtime.clone(),
            name: self.name,
            backoff: self.backoff,
            shutdown: self.shutdown,
            workers: Mutex::default(),
        };
        inner.end_with_supervisor();
        inner.resize(workers)?;
        Ok(Pool {
            inner: Arc::new(inner),
        })
    }
}

impl<J: Send + 'static, R: Send + 'static> Inner<J, R> {
    /// Ends the pool when its supervisor is killed, since no worker would take a job.
    fn end_with_supervisor(&self) {
        let (core, runtime) = (Arc::downgrade(&self.core), self.runtime.clone());
        let listener = DownListener::Callback(Box::new(move |_| {
            runtime.schedule_job(None, worker::Worker::submit, move || {
                if let Some(core) = core.upgrade() {
                    core.end();
                }
            });
        }));
        if self
            .supervisor
            .pid()
            .control()
            .add_listener(listener)
            .is_err()
        {
            self.core.end();
        }
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.name)
    }

    fn spec(&self, number: u64, slot: usize) -> (ChildSpec, ActorRef<Worker<J, R>>) {
        let (make, core) = (Arc::clone(&self.make), Arc::downgrade(&self.core));
        // The pool bounds the jobs, so the mailbox need not bound the notifications.
        let mailbox = Mailbox {
            capacity: 1 << 31,
            ..Mailbox::default()
        };
        let (spec, worker) =
            ChildSpec::actor_on(&self.runtime, self.id(number), mailbox, move || {
                Ok::<_, ExitReason>(Worker::new(core.clone(), slot, make()))
            });
        let spec = spec.backoff(self.backoff).shutdown(self.shutdown);
        (spec, worker)
    }

    fn resize(&self, workers: usize) -> Result<(), PoolError> {
        InvalidSetting::unless(workers > 0, "a pool has at least 1 worker")?;
        let mut numbers = self.workers.lock();
        let (alive, next) = &mut *numbers;
        let mut result = Ok(());
        let mut more = Vec::new();
        for slot in alive.len()..workers {
            let (spec, worker) = self.spec(*next, slot);
            if let Err(error) = self.supervisor.start_child(spec) {
                result = Err(error.into());
                break;
            }
            alive.push(*next);
            more.push(worker);
            *next += 1;
        }
        let gone = alive.split_off(workers.min(alive.len()));
        // The removed workers have no slot from here on, and their waiting jobs belong to others.
        drop(self.core.set_workers(workers, more));
        for number in gone {
            let ended = self.supervisor.terminate_child(self.id(number));
            let forgotten = ended.and_then(|()| self.supervisor.delete_child(self.id(number)));
            result = result.and(forgotten.map_err(Into::into));
        }
        result
    }
}

impl<J: Send + 'static, R: Send + 'static> Drop for Inner<J, R> {
    fn drop(&mut self) {
        self.core.end();
    }
}

impl<J: Send + 'static, R: Send + 'static> Pool<J, R> {
    /// Submits a job without waiting for its result. Waits for capacity if that is the overflow
    /// policy.
    ///
    /// # Errors
    /// The job, if the pool is closed, or is full and its policy does not wait.
    pub fn cast(&self, job: J) -> Result<(), SendError<J>> {
        self.send(job, None, u64::MAX)
    }

    /// As [`cast`](Self::cast), but waits for capacity for at most `timeout`.
    ///
    /// # Errors
    /// The job, as for [`cast`](Self::cast), or if there was no capacity in time.
    pub fn cast_timeout(&self, job: J, timeout: Duration) -> Result<(), SendError<J>> {
        self.send(job, None, clock::deadline(timeout))
    }

    /// As [`cast`](Self::cast), as a future. If it is dropped before it is ready, the job was not
    /// submitted.
    ///
    /// # Errors
    /// As [`cast`](Self::cast).
    pub async fn cast_async(&self, job: J) -> Result<(), SendError<J>> {
        let core = &self.inner.core;
        if core.overflow == PoolOverflow::Block {
            match core.permits.acquire_async(1).await {
                Ok(permit) => permit.forget(),
                Err(_) => return Err(SendError::Closed(job)),
            }
        }
        self.accept(job, None)
    }

    /// Submits a job and waits for its result, for at most five seconds.
    ///
    /// # Errors
    /// As [`call_timeout`](Self::call_timeout).
    pub fn call(&self, job: J) -> Result<R, CallError> {
        self.call_timeout(job, Duration::from_secs(5))
    }

    /// As [`call`](Self::call), with this timeout, which includes the wait for capacity.
    ///
    /// # Errors
    /// [`CallError::Ended`]: the pool is closed, or the job failed or was dropped.
    /// [`CallError::TimedOut`]: the job continues, and its result is dropped. [`CallError::Full`]:
    /// the queue is full, and the policy does not wait.
    pub fn call_timeout(&self, job: J, timeout: Duration) -> Result<R, CallError> {
        let deadline = clock::deadline(timeout);
        let (reply, mut result) = oneshot::channel();
        self.send(job, Some(reply), deadline)
            .map_err(|refused| match refused {
                SendError::Closed(_) => CallError::Ended,
                SendError::TimedOut(_) => CallError::TimedOut,
                SendError::Full(_) => CallError::Full,
            })?;
        let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        result.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::TimedOut => CallError::TimedOut,
            RecvTimeoutError::Closed => CallError::Ended,
        })
    }

    /// As [`cast_timeout`](Self::cast_timeout), until this time of [`clock`].
    pub(super) fn cast_until(&self, job: J, deadline: u64) -> Result<(), SendError<J>> {
        self.send(job, None, deadline)
    }

    fn send(
        &self,
        job: J,
        reply: Option<oneshot::Sender<R>>,
        deadline: u64,
    ) -> Result<(), SendError<J>> {
        let core = &self.inner.core;
        if core.overflow == PoolOverflow::Block {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
            let permit = match deadline {
                u64::MAX => core.permits.acquire(),
                _ => core.permits.acquire_timeout(1, left),
            };
            match permit {
                Ok(permit) => permit.forget(),
                Err(ClosableWaitError::Closed) => return Err(SendError::Closed(job)),
                Err(ClosableWaitError::TimedOut | ClosableWaitError::Stopping) => {
                    return Err(SendError::TimedOut(job));
                }
            }
        }
        self.accept(job, reply)
    }

    fn accept(&self, job: J, reply: Option<oneshot::Sender<R>>) -> Result<(), SendError<J>> {
        let accepted = self.inner.core.accept(QueuedJob::new(job, reply));
        accepted.map_err(|(error, queued)| match error {
            AcceptError::Closed => SendError::Closed(queued.job),
            AcceptError::Full => SendError::Full(queued.job),
        })
    }

    /// Changes the number of workers, at least 1. If there are too many, the youngest are removed:
    /// their waiting jobs go to others, and this call waits for their running jobs, as long as
    /// [`shutdown`](PoolBuilder::shutdown) permits. A worker must not resize its own pool, because
    /// it would wait for itself.
    ///
    /// # Errors
    /// A worker did not start, so there are fewer than requested, or the pool has ended.
    pub fn resize(&self, workers: usize) -> Result<(), PoolError> {
        self.inner.resize(workers)
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.inner.core.workers()
    }

    /// The workers as children of their supervisor, with incarnations, restarts and crashes.
    ///
    /// # Errors
    /// The pool has ended.
    pub fn which_workers(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.inner.supervisor.which_children()
    }

    /// The `Pid` of the supervisor. Killing it ends the pool and drops the waiting jobs.
    pub fn pid(&self) -> Pid {
        self.inner.supervisor.pid()
    }

    /// The counters, all at one moment.
    pub fn stats(&self) -> PoolStats {
        self.inner.core.stats()
    }

    /// Accepts no more jobs. The accepted ones are handled.
    pub fn close(&self) {
        self.inner.core.close();
    }

    /// Whether it accepts no more jobs.
    pub fn is_closed(&self) -> bool {
        self.inner.core.is_closed()
    }

    /// Accepts no more jobs, waits for the accepted ones for at most `timeout`, and ends. A job
    /// that drains its own pool waits for itself until the timeout.
    pub fn drain(&self, timeout: Duration) -> Drained {
        let core = &self.inner.core;
        core.close();
        let now = Instant::now();
        // A timeout beyond the range of the clock.
        let century = Duration::from_secs(100 * 365 * 86_400);
        core.wait_until_empty(now.checked_add(timeout).unwrap_or(now + century));
        let drained = Drained {
            dropped: core.end(),
            running: core.running(),
        };
        self.inner.supervisor.stop();
        drained
    }

    /// Accepts no more jobs, drops the waiting ones, ends the pool, and returns how many jobs it
    /// dropped.
    pub fn end(&self) -> usize {
        let dropped = self.inner.core.end();
        self.inner.supervisor.stop();
        dropped
    }
}

impl<J: Send + 'static, R: Send + 'static> Clone for Pool<J, R> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<J: Send + 'static, R: Send + 'static> fmt::Debug for Pool<J, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("name", &self.inner.name)
            .field("stats", &self.stats())
            .finish()
    }
}

/// Why a pool or a further worker did not start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// A setting is out of range.
    Invalid(InvalidSetting),
    /// The supervisor did not start.
    Start(SupervisorStartError),
    /// A worker did not start, or the pool has ended.
    Worker(ChildError),
}

impl From<InvalidSetting> for PoolError {
    fn from(invalid: InvalidSetting) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<ChildError> for PoolError {
    fn from(error: ChildError) -> Self {
        Self::Worker(error)
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => invalid.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Worker(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PoolError {}
