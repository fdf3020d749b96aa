//! Starting and stopping a runtime, and the handle that spawns actors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::channel::Sender;
use crate::config::{Config, StartError};
use crate::control::OnDown;
use crate::exit::Signal;
use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::log::{self, Level};
use crate::mailbox::Mailbox;
use crate::native::native;
use crate::reason::JoinError;
use crate::scheduler::Scheduler;
use crate::shutdown::ShutdownError;
use crate::stack::overflow::Name;
use crate::task::{OnShortage, Run, Task, TurnOwner};
use crate::timers::Timers;
use crate::worker::{self, Worker, trace};

/// Runs `main` as an actor on the calling thread, together with all actors that it spawns, and
/// returns its value. **The runtime has one worker: the calling thread.** When `main` returns, the
/// remaining actors are ended: their waits return
/// [`WakeReason::Stopping`](crate::WakeReason::Stopping), and actors that have not started are
/// cancelled.
///
/// ```
/// assert_eq!(thalweg_runtime::run(|| 6 * 7), 42);
/// ```
///
/// To use several workers, configure the runtime with [`init`]:
///
/// ```
/// use thalweg_runtime::{Config, runtime};
///
/// let value = runtime::init(Config::with_workers(4))?.run(|| 6 * 7);
/// assert_eq!(value, 42);
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
///
/// # Calls that block the thread
///
/// An actor that has started never moves to another worker, because its stack is pinned to its
/// thread. If an actor blocks its thread, for example in a `std` lock, a `std` channel,
/// [`std::thread::sleep`] or a blocking system call, then all started actors of that worker wait,
/// and so do their timers and descriptors. Other workers only take over actors that have not
/// started. With `run` there are no other workers.
///
/// * Use the waits of this crate: its channels, locks, [`sleep`](crate::sleep), [`net`](crate::net)
///   and joins suspend only the calling actor.
/// * Use [`io::blocking`](crate::io::blocking) for a call that must block: it runs on a pool of
///   threads, and only the calling actor waits.
/// * **Do not call [`std::thread::JoinHandle::join`] on a thread that waits for an actor of the
///   same worker.** The join blocks the worker, so the actor cannot run, and the program hangs.
///   Join it inside `io::blocking` instead.
///
/// # In an async executor
///
/// Like every blocking call, `run` occupies the thread on which it is called. The other tasks of an
/// async executor's thread wait meanwhile; in tokio, use `spawn_blocking` or `block_in_place`. It
/// also works directly in a tokio task, but everything of tokio that is awaited in `main` then
/// counts against the budget of that one task, and never becomes ready after 128 steps.
///
/// # Panics
/// If `main` panics (with the same payload); if the caller is an actor already (use [`spawn`]); or if
/// a `THALWEG_*` environment variable is invalid.
pub fn run<T: 'static>(main: impl FnOnce() -> T + 'static) -> T {
    match init(Config::with_workers(1)) {
        Ok(ready) => ready.run(main),
        Err(error) => panic!("{error}"),
    }
}

/// A configuration that has been checked, ready to [run](Self::run).
#[derive(Debug)]
pub struct CheckedConfig {
    config: Config,
}

/// Checks the configuration. It starts nothing: call [`run`](CheckedConfig::run) on the result.
///
/// ```
/// use thalweg_runtime::{Config, runtime, spawn};
///
/// let sum = runtime::init(Config::with_workers(2))?.run(|| {
///     let actors: Vec<_> = (1..=10).map(|n| spawn(move || n)).collect();
///     actors.into_iter().map(|actor| actor.join().unwrap()).sum::<u32>()
/// });
/// assert_eq!(sum, 55);
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
///
/// # Errors
/// A setting of `config`, or an environment variable that replaces one, is out of range. The
/// program is built with `panic = "abort"`.
pub fn init(config: Config) -> Result<CheckedConfig, StartError> {
    Ok(CheckedConfig {
        config: config.checked()?,
    })
}

impl CheckedConfig {
    /// Like [`run`], with the configured number of workers. The calling thread is the first worker.
    /// Each of the others starts when there is work for it, and has ended when this function
    /// returns. The exception is a worker whose actor keeps it for longer than
    /// [`Config::shutdown_timeout`]; such actors are reported on standard error
    /// ([`ShutdownError`]). If an actor on the calling thread never waits, this function does not
    /// return.
    ///
    /// [`run`](run#calls-that-block-the-thread) describes what happens if an actor blocks its
    /// thread.
    ///
    /// # Panics
    /// If `main` panics (with the same payload), or if the caller is an actor already.
    pub fn run<T: 'static>(self, main: impl FnOnce() -> T + 'static) -> T {
        assert!(
            worker::current().is_none(),
            "an actor cannot run a runtime; use spawn"
        );
        let runtime = Runtime::new(self.config);
        let scheduler = &runtime.handle.scheduler;
        let index = scheduler
            .next_worker()
            .expect("no worker runs yet, and there is at least one");
        let main = Worker::enter(index, Arc::clone(scheduler), |worker| {
            let main = JoinHandle::new(worker.spawn_here(main));
            worker.work(|| main.is_finished());
            scheduler.halt(scheduler.config.shutdown_timeout);
            main
        });
        drop(runtime);
        match main.join() {
            Ok(value) => value,
            Err(JoinError::Panic(panic)) => match panic.take_payload() {
                Some(payload) => std::panic::resume_unwind(payload),
                None => panic!("{panic}"),
            },
            Err(error) => panic!("{error}"),
        }
    }
}

/// Spawns an actor on the caller's runtime. `job` runs on a stack of its own, on any worker. A
/// panic ends only that actor. If no stack is free, the actor ends with [`JoinError::NoStack`]; use
/// [`Handle::spawn_queued`] to wait for one.
///
/// # Panics
/// If the caller is not an actor. On a thread, use [`Handle::spawn`].
pub fn spawn<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let worker = worker::current().expect("spawn is for actors; use Handle::spawn on a thread");
    JoinHandle::new(worker.spawn(None, OnShortage::End, job))
}

/// Spawns an actor with a name, which appears in reports.
///
/// ```
/// use thalweg_runtime::{Builder, run};
///
/// let length = run(|| Builder::new().name("counter").spawn(|| 3).join());
/// assert_eq!(length.unwrap(), 3);
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    pub(crate) name: Option<Name>,
    pub(crate) mailbox: Mailbox,
    pub(crate) supervisor: Option<Sender<Signal>>,
}

impl Builder {
    /// A builder without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name. Names need not be unique.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(Name::new(name.into()));
        self
    }

    /// Like [`spawn`].
    ///
    /// # Panics
    /// If the caller is not an actor. On a thread, use [`Builder::spawn_on`].
    pub fn spawn<T: Send + 'static>(
        self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let worker =
            worker::current().expect("spawn is for actors; use Builder::spawn_on on a thread");
        JoinHandle::new(worker.spawn(self.name, OnShortage::End, job))
    }

    /// Like [`Handle::spawn`].
    pub fn spawn_on<T: Send + 'static>(
        self,
        runtime: &Handle,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let task = Task::new(ActorId::next(), self.name, job);
        runtime.record_spawn(task);
        if trace::is_used() {
            trace::attach_child(task);
        }
        runtime.scheduler.inject(task);
        JoinHandle::new(task)
    }
}

/// A runtime whose workers are background threads. Dropping it is like
/// [`shutdown`](Self::shutdown); an error goes to the [log] or standard error.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
}

/// A handle to a runtime, which spawns actors from any thread.
#[derive(Clone)]
pub struct Handle {
    pub(crate) scheduler: Arc<Scheduler>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("workers", &self.workers())
            .finish()
    }
}

/// The process's global runtime, and the epoch in which it was started. It is leaked.
static GLOBAL: AtomicPtr<(u64, Runtime)> = AtomicPtr::new(std::ptr::null_mut());

impl Runtime {
    fn new(config: Config) -> Self {
        log::set_deep_stack(|f| native(f));
        let scheduler = Arc::new(Scheduler::new(config));
        Self {
            handle: Handle { scheduler },
        }
    }

    /// Starts a runtime on background threads, named `tw-worker-N`. They block all signals except
    /// that of [`stall`](crate::stall). The first worker starts now; each of the others starts when
    /// there is work for it. The timer thread, `tw-timer`, also starts now.
    ///
    /// # Errors
    /// A setting is out of range, or the system has no thread. Nothing remains started in this
    /// case.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let runtime = Self::new(config.checked()?);
        let scheduler = &runtime.handle.scheduler;
        // If this fails, dropping the runtime stops the timer thread.
        scheduler.timers.start().map_err(StartError::Thread)?;
        scheduler.start_worker().map_err(StartError::Thread)?;
        let workers = scheduler.workers.len();
        log::write(
            Level::Info,
            "runtime",
            format_args!("a runtime of {workers} workers starts"),
        );
        Ok(runtime)
    }

    /// Returns the process's global runtime, which is started at the first call and never stopped.
    /// A forked child has its own.
    ///
    /// # Errors
    /// As for [`Runtime::start`]. The next call tries again.
    pub fn global() -> Result<Handle, StartError> {
        crate::watch_forks();
        let known = GLOBAL.load(Ordering::Acquire);
        if let Some(handle) = Self::global_if_started() {
            return Ok(handle);
        }
        let epoch = crate::epoch();
        let runtime = Self::start(Config {
            report_overflow: false,
            note_panics: false,
            stall: None,
            ..Config::default()
        })?;
        let handle = runtime.handle().clone();
        let fresh = Box::into_raw(Box::new((epoch, runtime)));
        match GLOBAL.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(handle),
            Err(_) => {
                // Two threads started a runtime at the same time, and the other was first.
                //
                // SAFETY: no other thread has seen `fresh`.
                drop(unsafe { Box::from_raw(fresh) });
                Self::global()
            }
        }
    }

    /// Returns the process's global runtime if [`global`](Self::global) has started it.
    pub fn global_if_started() -> Option<Handle> {
        // SAFETY: the value was leaked, so it lives forever.
        let (epoch, runtime) = unsafe { GLOBAL.load(Ordering::Acquire).as_ref() }?;
        (*epoch == crate::epoch()).then(|| runtime.handle().clone())
    }

    /// Ends all actors and waits for them, for at most [`Config::shutdown_timeout`]. Their waits
    /// return [`WakeReason::Stopping`](crate::WakeReason::Stopping), which unwinds most actors.
    /// Actors that have not started are cancelled.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::with_workers(1))?;
    /// runtime.handle().spawn(|| 6 * 7);
    /// runtime.shutdown().expect("no actor catches its end");
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    ///
    /// # Errors
    /// Some actors did not end in time. The error lists them, and what remains of their threads and
    /// stacks.
    pub fn shutdown(self) -> Result<(), ShutdownError> {
        let timeout = self.handle.scheduler.config.shutdown_timeout;
        self.shutdown_within(timeout)
    }

    /// Like [`shutdown`](Self::shutdown), with this timeout. Even with [`Duration::ZERO`] each
    /// actor is resumed once, so that it can end.
    ///
    /// ```
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    /// use std::time::Duration;
    /// use thalweg_runtime::{Builder, Config, Leaked, Runtime, sleep};
    ///
    /// let runtime = Runtime::start(Config::with_workers(1))?;
    /// let (begun, has_begun) = std::sync::mpsc::channel();
    /// Builder::new().name("stubborn").spawn_on(runtime.handle(), move || {
    ///     begun.send(()).expect("the test waits");
    ///     loop {
    ///         let _ = catch_unwind(AssertUnwindSafe(|| sleep(Duration::from_secs(3600))));
    ///     }
    /// });
    /// has_begun.recv()?;
    ///
    /// let error = runtime.shutdown_within(Duration::from_millis(50)).unwrap_err();
    /// assert_eq!(error.actors[0].name.as_deref(), Some("stubborn"));
    /// assert_eq!(error.actors[0].leaked, Leaked::Stack);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`shutdown`](Self::shutdown).
    pub fn shutdown_within(self, timeout: Duration) -> Result<(), ShutdownError> {
        // The drop finds nothing left to stop.
        self.handle.scheduler.stop(timeout)
    }

    /// Returns a handle that spawns actors.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    /// Like [`shutdown`](Runtime::shutdown). An error goes to the [log] or standard
    /// error.
    fn drop(&mut self) {
        let timeout = self.handle.scheduler.config.shutdown_timeout;
        if let Err(error) = self.handle.scheduler.stop(timeout) {
            log::report(Level::Error, "runtime", format_args!("{error}"));
        }
    }
}

impl Handle {
    pub(crate) fn new(scheduler: &Arc<Scheduler>) -> Self {
        Self {
            scheduler: Arc::clone(scheduler),
        }
    }

    /// Returns the handle of the calling actor's runtime, for threads and for tasks of other
    /// executors. `None` if the caller is not an actor.
    ///
    /// ```
    /// use thalweg_runtime::{Handle, block_on, run};
    ///
    /// assert!(Handle::current().is_none());
    /// let sum = run(|| {
    ///     let handle = Handle::current().expect("this is an actor");
    ///     let thread = std::thread::spawn(move || handle.spawn(|| 1 + 1));
    ///     block_on(thread.join().unwrap()).unwrap()
    /// });
    /// assert_eq!(sum, 2);
    /// ```
    pub fn current() -> Option<Self> {
        worker::current().map(|worker| Self::new(&worker.scheduler))
    }

    /// Schedules a task without a join handle, which may be a turn of `owner`. On a worker of this
    /// runtime, `submit` queues it there. Otherwise any worker runs it.
    pub(crate) fn schedule_job(
        &self,
        owner: Option<TurnOwner<'_>>,
        submit: fn(&Worker, Task),
        job: impl FnOnce() + Send + 'static,
    ) {
        let wait = OnShortage::Wait;
        match worker::current() {
            Some(worker) if Arc::ptr_eq(&worker.scheduler, &self.scheduler) => {
                submit(worker, Task::detached(worker.next_id(), wait, owner, job));
            }
            _ => {
                let task = Task::detached(ActorId::next(), wait, owner, job);
                self.scheduler.inject_new(task);
            }
        }
    }

    /// Schedules a new task in the same way.
    #[inline]
    pub(crate) fn submit(&self, task: Task) {
        match worker::current() {
            Some(worker) if Arc::ptr_eq(&worker.scheduler, &self.scheduler) => worker.submit(task),
            _ => self.scheduler.inject_new(task),
        }
    }

    /// Spawns an actor: `job` runs on a stack of its own, on any worker. A panic ends only that
    /// actor.
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        Builder::new().spawn_on(self, job)
    }

    /// Records the parent of a new task, and counts the task. The task is in no queue yet.
    #[inline(always)]
    fn record_spawn(&self, task: Task) {
        let Some(worker) = worker::current() else {
            return self.scheduler.outside.started_stacks.add_shared(1);
        };
        task.header().parent.set(worker.current_actor());
        self.count(|counts| &counts.started_stacks);
    }

    /// Spawns an actor with a watcher, which is notified of its end before any thread can have joined
    /// it.
    pub(crate) fn spawn_watched<T: Send + 'static>(
        &self,
        name: Option<Name>,
        supervised: bool,
        watcher: Option<Arc<dyn OnDown>>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let task = Task::new(ActorId::next(), name, job);
        self.record_spawn(task);
        task.header().supervised.set(supervised);
        if supervised {
            task.header().on_shortage.set(OnShortage::Wait);
        }
        // The children of a supervisor serve all requests, so they have no trace context.
        if !supervised && trace::is_used() {
            trace::attach_child(task);
        }
        if let Some(watcher) = watcher {
            task.watch(watcher);
        }
        let handle = JoinHandle::new(task);
        self.submit(task);
        handle
    }

    /// Runs `f` on a thread of the pool of [`io::blocking`](crate::io::blocking), where it may block, and
    /// does not wait for it. A panic of `f` is only reported by the panic hook. Returns `false`, and drops
    /// `f`, if the runtime stops or has no thread for the pool. If all threads of the pool are busy, `f`
    /// queues.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::with_workers(1))?;
    /// let (tx, rx) = mpsc::channel();
    /// assert!(runtime.handle().spawn_blocking(move || tx.send(42).unwrap()));
    /// assert_eq!(rx.recv(), Ok(42));
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    pub fn spawn_blocking(&self, f: impl FnOnce() + Send + 'static) -> bool {
        let job = Box::new(move || drop(catch_unwind(AssertUnwindSafe(f))));
        self.scheduler.pool.run(job).is_none()
    }

    /// Schedules one turn of `actor`, on any worker. The actor must ensure that it is not scheduled
    /// twice at the same time.
    #[inline]
    pub fn schedule(&self, actor: Arc<dyn Run>) {
        self.submit(Task::turn_of(actor));
    }

    /// Like [`spawn`](Self::spawn), but if no stack is free, the actor waits for one and does not
    /// end with [`JoinError::NoStack`]. Use it for work that was already accepted, such as a part
    /// of a call.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::with_workers(1).max_stacks(1))?;
    /// let actors: Vec<_> = (0..10).map(|n| runtime.handle().spawn_queued(move || n)).collect();
    /// let sum: i32 = actors.into_iter().map(|actor| actor.join().unwrap()).sum();
    /// assert_eq!(sum, 45);
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    pub fn spawn_queued<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let task = Task::new(ActorId::next(), None, job);
        self.record_spawn(task);
        task.header().on_shortage.set(OnShortage::Wait);
        if trace::is_used() {
            trace::attach_child(task);
        }
        match worker::current() {
            Some(worker) if Arc::ptr_eq(&worker.scheduler, &self.scheduler) => {
                worker.submit_stealable(task);
            }
            _ => self.scheduler.inject_new(task),
        }
        JoinHandle::new(task)
    }

    /// Whether the runtime stops or has stopped. It runs no further turns then.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.scheduler.is_stopping()
    }

    /// Returns the number of workers that have a task now. It may be out of date when this returns.
    ///
    /// ```
    /// let runtime = thalweg_runtime::Runtime::start(Default::default())?;
    /// let handle = runtime.handle().clone();
    /// let busy = runtime.handle().spawn(move || handle.busy_workers()).join();
    /// assert!(busy.unwrap() >= 1);
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    pub fn busy_workers(&self) -> usize {
        self.scheduler.busy_workers()
    }

    /// Returns the number of workers.
    pub fn workers(&self) -> usize {
        self.scheduler.workers.len()
    }

    /// Returns the timers of this runtime.
    pub fn timers(&self) -> &Timers {
        &self.scheduler.timers
    }
}
