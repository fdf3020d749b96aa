//! Workers that share the jobs of one kind.

mod core;
mod routing;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvTimeoutError, SendError, clock, oneshot};

use self::core::{Core, Entry, Refusal, Worker};
pub use self::routing::Routing;
use super::Invalid;
use crate::behaviour::{ActorRef, CallError, Mailbox};
use crate::exit::{ExitReason, Pid, Watch};
use crate::runtime::Handle;
use crate::supervisor::{
    Backoff, ChildError, ChildInfo, ChildSpec, Shutdown, StartError, Strategy, Supervisor,
    SupervisorRef,
};
use crate::sync::{ClosableWaitError, Mutex};

/// A job that fails its worker says less about the worker than about the job: it is back soon, and what cannot be made does not keep the others.
const BACKOFF: Backoff = Backoff {
    first: Duration::ZERO,
    most: Duration::from_millis(10),
    jitter: 0.5,
    reset_after: Duration::from_secs(1),
};

/// What becomes of a job where as many wait as may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Who sends waits for room, first come, first served.
    #[default]
    Wait,
    /// It is refused, which is counted.
    Refuse,
    /// The one that has waited longest is dropped, which is counted.
    DropOldest,
}

/// What a [`Pool`] is to be.
#[derive(Debug)]
#[must_use = "it does nothing until it is started"]
pub struct PoolBuilder<J> {
    name: String,
    workers: usize,
    capacity: usize,
    when_full: WhenFull,
    routing: Routing<J>,
    backoff: Backoff,
    shutdown: Shutdown,
    at_end: AtEnd,
}

/// Called when a closed pool has done its last job.
#[derive(Default)]
struct AtEnd(Option<Box<dyn FnOnce() + Send>>);

impl fmt::Debug for AtEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtEnd").field(&self.0.is_some()).finish()
    }
}

/// Makes what one incarnation of a worker does with its jobs.
type Make<J, R> = Arc<dyn Fn() -> Box<dyn FnMut(J) -> R + Send> + Send + Sync>;

/// Workers that do jobs: behaviour actors under a supervisor of their own, each with a state that is made anew when it failed. Clones are one and the same.
///
/// Each job that was accepted is handled, or counted: as failed, if its worker panicked or was killed over it, or as dropped. A worker that failed is
/// started again, by [`backoff`](PoolBuilder::backoff), for ever; what waits for it waits on.
///
/// When the last clone is dropped the pool ends: jobs at hand have [`shutdown`](PoolBuilder::shutdown), those that wait are dropped. [`drain`](Self::drain) is
/// for letting it finish.
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
    make: Make<J, R>,
    runtime: Handle,
    name: String,
    backoff: Backoff,
    shutdown: Shutdown,
    /// Numbers of the workers that live, and of the next; who resizes has it.
    workers: Mutex<(Vec<u64>, u64)>,
}

/// How a pool stands. `accepted` is the sum of `waiting`, `running`, `handled`, `failed` and `dropped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs in queues.
    pub waiting: usize,
    /// Jobs at hand.
    pub running: usize,
    /// Jobs that ever were accepted.
    pub accepted: u64,
    /// Jobs that were done.
    pub handled: u64,
    /// Jobs whose worker panicked or was ended over them.
    pub failed: u64,
    /// Jobs that were dropped before anybody began them.
    pub dropped: u64,
    /// Jobs that were not accepted for want of room, where nobody waits for it.
    pub refused: u64,
    /// Of each worker since the pool last had fewer.
    pub workers: Vec<WorkerStats>,
}

/// How a worker of a pool stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Jobs in its own queue.
    pub waiting: usize,
    /// Whether it has one at hand.
    pub running: bool,
    /// Jobs that it did, over all its incarnations.
    pub handled: u64,
    /// Jobs over which it failed.
    pub failed: u64,
}

/// What [`Pool::drain`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Jobs that had not begun in time, and were dropped.
    pub dropped: usize,
    /// Jobs that were at hand still. They have the pool's `shutdown`.
    pub running: usize,
}

impl<J: Send + 'static> PoolBuilder<J> {
    /// One worker for each of the runtime's, a queue for 1,024 jobs that all share, and who sends waits for room.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            workers: 0,
            capacity: 1_024,
            when_full: WhenFull::default(),
            routing: Routing::Shared,
            backoff: BACKOFF,
            shutdown: Shutdown::Within(Duration::from_secs(5)),
            at_end: AtEnd::default(),
        }
    }

    /// How many workers there are at first.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How many jobs may wait, all in all.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// What becomes of one more.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.when_full = when_full;
        self
    }

    /// Which worker a job goes to.
    pub fn routing(mut self, routing: Routing<J>) -> Self {
        self.routing = routing;
        self
    }

    /// How long a worker that failed waits until it is started again. Default: not at all, then 1 ms doubling to 10 ms; a second of life makes good.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// How a worker is ended that the pool is to have no more.
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    pub(super) fn at_end(mut self, hook: impl FnOnce() + Send + 'static) -> Self {
        self.at_end = AtEnd(Some(Box::new(hook)));
        self
    }

    /// Starts it. `make` makes what a worker does with its jobs, once for each incarnation.
    ///
    /// # Errors
    /// There is nothing to do or no room; a worker did not start.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`start_on`](Self::start_on).
    pub fn start<R: Send + 'static, F: FnMut(J) -> R + Send + 'static>(
        self,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Pool<J, R>, PoolError> {
        let runtime =
            Handle::current().expect("this is for actors: a thread says on which runtime");
        self.start_on(&runtime, make)
    }

    /// The same on a runtime, from anywhere.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on<R: Send + 'static, F: FnMut(J) -> R + Send + 'static>(
        self,
        runtime: &Handle,
        make: impl Fn() -> F + Send + Sync + 'static,
    ) -> Result<Pool<J, R>, PoolError> {
        let rooms = 1..=1 << 31;
        Invalid::unless(
            rooms.contains(&self.capacity),
            "1 to 2^31 jobs may wait for a pool",
        )?;
        let workers = match self.workers {
            0 => runtime.workers(),
            workers => workers,
        };
        let core = Core::new(self.routing, self.capacity, self.when_full, self.at_end.0);
        let supervisor = Supervisor::new(Strategy::OneForOne).tireless();
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
        inner.end_with_the_supervisor();
        inner.resize(workers)?;
        Ok(Pool {
            inner: Arc::new(inner),
        })
    }
}

impl<J: Send + 'static, R: Send + 'static> Inner<J, R> {
    /// A supervisor that somebody killed leaves nobody who would take a job.
    fn end_with_the_supervisor(&self) {
        let (core, runtime) = (Arc::downgrade(&self.core), self.runtime.clone());
        let tell = Watch::Tell(Box::new(move |_| {
            runtime.schedule_job(None, move || {
                if let Some(core) = core.upgrade() {
                    core.end();
                }
            });
        }));
        if self.supervisor.pid().control().watch(tell).is_err() {
            self.core.end();
        }
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.name)
    }

    fn spec(&self, number: u64, lane: usize) -> (ChildSpec, ActorRef<Worker<J, R>>) {
        let (make, core) = (Arc::clone(&self.make), Arc::downgrade(&self.core));
        // As many turns as it takes: what is bounded is the pool.
        let mailbox = Mailbox {
            capacity: 1 << 31,
            ..Mailbox::default()
        };
        let (spec, worker) =
            ChildSpec::actor_on(&self.runtime, self.id(number), mailbox, move || {
                Ok::<_, ExitReason>(Worker::new(core.clone(), lane, make()))
            });
        let spec = spec.backoff(self.backoff).shutdown(self.shutdown);
        (spec, worker)
    }

    fn resize(&self, workers: usize) -> Result<(), PoolError> {
        Invalid::unless(workers > 0, "a pool has 1 worker at least")?;
        let mut numbers = self.workers.lock();
        let (alive, next) = &mut *numbers;
        let mut result = Ok(());
        let mut more = Vec::new();
        for lane in alive.len()..workers {
            let (spec, worker) = self.spec(*next, lane);
            if let Err(error) = self.supervisor.start_child(spec) {
                result = Err(error.into());
                break;
            }
            alive.push(*next);
            more.push(worker);
            *next += 1;
        }
        let gone = alive.split_off(workers.min(alive.len()));
        // Those that go have no place from here on, and what waited for them is with others.
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
    /// Gives the pool a job whose result nobody waits for. Waits for room, if that is the policy.
    ///
    /// # Errors
    /// The job: the pool is closed, or full and does not let wait.
    pub fn cast(&self, job: J) -> Result<(), SendError<J>> {
        self.send(job, None, u64::MAX)
    }

    /// As [`cast`](Self::cast), waiting for room for at most `timeout`.
    ///
    /// # Errors
    /// The job; as there, or there was no room in time.
    pub fn cast_timeout(&self, job: J, timeout: Duration) -> Result<(), SendError<J>> {
        self.send(job, None, clock::deadline(timeout))
    }

    /// As [`cast`](Self::cast), as a future. Dropped before it is ready, it has sent nothing.
    ///
    /// # Errors
    /// As there.
    pub async fn cast_async(&self, job: J) -> Result<(), SendError<J>> {
        let core = &self.inner.core;
        if core.when_full == WhenFull::Wait {
            match core.room.acquire_async(1).await {
                Ok(permit) => permit.forget(),
                Err(_) => return Err(SendError::Closed(job)),
            }
        }
        self.accept(job, None)
    }

    /// Gives the pool a job and waits for its result, for five seconds at most.
    ///
    /// # Errors
    /// There is none: see [`call_timeout`](Self::call_timeout).
    pub fn call(&self, job: J) -> Result<R, CallError> {
        self.call_timeout(job, Duration::from_secs(5))
    }

    /// As [`call`](Self::call), for at most `timeout`, which the wait for room is part of.
    ///
    /// # Errors
    /// [`CallError::Ended`]: the pool is closed, the job failed or was dropped. [`CallError::TimedOut`]: the job goes on, and its result is dropped.
    /// [`CallError::Full`].
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

    /// As [`cast_timeout`](Self::cast_timeout), until this nanosecond of [`clock`].
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
        if core.when_full == WhenFull::Wait {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
            let room = match deadline {
                u64::MAX => core.room.acquire(),
                _ => core.room.acquire_timeout(1, left),
            };
            match room {
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
        let accepted = self.inner.core.accept(Entry::new(job, reply));
        accepted.map_err(|(refusal, entry)| match refusal {
            Refusal::Closed => SendError::Closed(entry.job),
            Refusal::Full => SendError::Full(entry.job),
        })
    }

    /// Has so many workers from now on, of which there is 1 at least. Of more than there should be the youngest go: what waited for them goes to others, and this waits
    /// until they have done what they have at hand, as [`shutdown`](PoolBuilder::shutdown) says. A worker does not resize its own pool: it would wait for itself.
    ///
    /// # Errors
    /// A worker did not start, so there are fewer; the pool has ended.
    pub fn resize(&self, workers: usize) -> Result<(), PoolError> {
        self.inner.resize(workers)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.inner.core.workers()
    }

    /// Its workers as their supervisor sees them: their incarnations, restarts and crashes.
    ///
    /// # Errors
    /// The pool has ended.
    pub fn which_workers(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.inner.supervisor.which_children()
    }

    /// Its supervisor's name: whoever kills it ends the pool, and what waits is dropped.
    pub fn pid(&self) -> Pid {
        self.inner.supervisor.pid()
    }

    /// How it stands, at one moment.
    pub fn stats(&self) -> PoolStats {
        self.inner.core.stats()
    }

    /// Accepts no more jobs. Those that it has are done.
    pub fn close(&self) {
        self.inner.core.close();
    }

    /// Whether it accepts no more jobs.
    pub fn is_closed(&self) -> bool {
        self.inner.core.is_closed()
    }

    /// Accepts no more jobs, waits until those that it has are done, for at most `timeout`, and ends. A job that drains its own pool waits for itself, until the
    /// timeout.
    pub fn drain(&self, timeout: Duration) -> Drained {
        let core = &self.inner.core;
        core.close();
        let now = Instant::now();
        // What is beyond the clock is a long time.
        let century = Duration::from_secs(100 * 365 * 86_400);
        core.wait_until_empty(now.checked_add(timeout).unwrap_or(now + century));
        let drained = Drained {
            dropped: core.end(),
            running: core.running(),
        };
        self.inner.supervisor.stop();
        drained
    }

    /// Accepts no more jobs, drops those that wait, and ends. How many it dropped.
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

/// Why a pool, or a worker more, did not start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PoolError {
    /// A setting that cannot be.
    Invalid(Invalid),
    /// The supervisor did not start.
    Start(StartError),
    /// A worker did not start, or the pool has ended.
    Worker(ChildError),
}

impl From<Invalid> for PoolError {
    fn from(invalid: Invalid) -> Self {
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
