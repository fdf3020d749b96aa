//! Starting and stopping, and the handle to spawn by.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::{Builder as Thread, JoinHandle as ThreadHandle};
use std::time::Duration;

use thalweg_queue::Quiet;

use crate::behaviour::Mailbox;
use crate::channel::Sender;
use crate::config::{Config, StartError};
use crate::exit::Watch;
use crate::groups::Groups;
use crate::id::ActorId;
use crate::join::{JoinError, JoinHandle};
use crate::preempt;
use crate::registry::Registry;
use crate::scheduler::{Run, Scheduler};
use crate::shutdown::ShutdownError;
use crate::stack::overflow::Name;
use crate::supervised::Signal;
use crate::task::{OnShortage, Task, Who};
use crate::timers::Timers;
use crate::trace;
use crate::worker::{self, Worker};

/// Runs `main` as an actor on this thread, and what it spawns, until `main` returns. Then what is still there is ended: waits end with
/// [`WakeReason::Stopping`](crate::WakeReason::Stopping), what has not begun is cancelled.
///
/// No other thread runs actors: [`init`] is for more workers than one. Like every call that blocks it holds the thread of an async executor that it is called
/// in, whose tasks wait meanwhile: tokio's `spawn_blocking` and `block_in_place` are for that. Called in a task itself, without these, it works too; but
/// what is tokio's own and is awaited in there counts against that one task's budget, and never becomes ready after 128 steps.
///
/// # Panics
/// With `main`'s own panic; if the caller is an actor already, which [`spawn`] is for; if a `THALWEG_*` setting is no good; if the
/// system has no thread for the timers.
///
/// ```
/// assert_eq!(thalweg_runtime::run(|| 6 * 7), 42);
/// ```
pub fn run<T: 'static>(main: impl FnOnce() -> T + 'static) -> T {
    match init(Config::exact(1)) {
        Ok(ready) => ready.run(main),
        Err(error) => panic!("{error}"),
    }
}

/// A runtime that is about to run: its settings are good.
#[derive(Debug)]
pub struct Ready {
    config: Config,
}

/// Looks at the settings, and starts nothing.
///
/// # Errors
/// One of them, or one in the environment, is out of range.
pub fn init(config: Config) -> Result<Ready, StartError> {
    Ok(Ready {
        config: config.checked()?,
    })
}

impl Ready {
    /// As [`run`], with as many workers as the settings say. This thread is the first; each of the others starts when there is
    /// something for it, and all have ended when this returns, but for those that an actor keeps for longer than [`Config::shutdown_timeout`]: these are
    /// reported on standard error ([`ShutdownError`]). An actor that never waits on this thread itself keeps this from returning.
    ///
    /// # Panics
    /// With `main`'s own panic, if the caller is an actor already, or if the system has no thread for
    /// the timers.
    pub fn run<T: 'static>(self, main: impl FnOnce() -> T + 'static) -> T {
        assert!(
            worker::current().is_none(),
            "an actor cannot run a runtime: it spawns"
        );
        let runtime = Runtime::new(self.config);
        let scheduler = &runtime.handle.scheduler;
        if let Err(error) = scheduler.timers.start() {
            panic!("{}", StartError::Thread(error));
        }
        let index = scheduler
            .next_worker()
            .expect("none runs yet, and there is one at least");
        let main = Worker::enter(index, Arc::clone(scheduler), |worker| {
            let main = worker.spawn_here(main);
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

/// A new actor on the caller's runtime: `job` runs there with a stack of its own, on any worker. A panic ends it and nothing else.
/// Where no stack is free it ends with [`JoinError::NoStack`]; [`Handle::spawn_queued`] waits for one.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::spawn`].
pub fn spawn<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let worker = worker::current().expect("spawn is for actors; a thread has Handle::spawn");
    worker.spawn(None, OnShortage::End, job)
}

/// An actor with a name, under which it is reported.
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
    /// Of an actor without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What it is called. Names need not differ.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(Name::new(name.into()));
        self
    }

    /// As [`spawn`].
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`Builder::spawn_on`].
    pub fn spawn<T: Send + 'static>(
        self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let worker =
            worker::current().expect("spawn is for actors; a thread has Builder::spawn_on");
        worker.spawn(self.name, OnShortage::End, job)
    }

    /// As [`Handle::spawn`].
    pub fn spawn_on<T: Send + 'static>(
        self,
        runtime: &Handle,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let task = Task::new(ActorId::next(), self.name, job);
        runtime.note_new(task);
        if trace::is_used() {
            trace::give_child(task);
        }
        runtime.scheduler.inject(task);
        JoinHandle::new(task)
    }
}

/// Workers in the background. Dropping it stops them as [`shutdown`](Self::shutdown) does, and prints its error to standard error.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
}

/// Spawns onto a runtime, from any thread.
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

impl Runtime {
    fn new(config: Config) -> Self {
        let scheduler = Arc::new(Scheduler::new(config));
        Self {
            handle: Handle { scheduler },
        }
    }

    /// Starts a runtime in the background, of threads named `tw-worker-N` that take no signals, but for that of [`stall`](crate::stall). The first starts now, each of the others
    /// when there is something for it. The thread of the timers, `tw-timer`, starts now too, so that a later deadline cannot fail.
    ///
    /// # Errors
    /// A setting is out of range, or the system has no thread. Nothing is left behind then.
    pub fn start(config: Config) -> Result<Self, StartError> {
        let runtime = Self::new(config.checked()?);
        let scheduler = &runtime.handle.scheduler;
        // If the second fails, dropping the runtime ends the first.
        scheduler.timers.start().map_err(StartError::Thread)?;
        scheduler.start_worker().map_err(StartError::Thread)?;
        Ok(runtime)
    }

    /// The process's own, started at the first call and never stopped. A forked child has another.
    ///
    /// # Errors
    /// As [`Runtime::start`]; the next call tries again.
    pub fn global() -> Result<Handle, StartError> {
        static GLOBAL: AtomicPtr<(u64, Runtime)> = AtomicPtr::new(std::ptr::null_mut());
        crate::watch_forks();
        let epoch = crate::epoch();
        let known = GLOBAL.load(Ordering::Acquire);
        // SAFETY: what is stored there was leaked: it lives for ever.
        if let Some((made_in, runtime)) = unsafe { known.as_ref() }
            && *made_in == epoch
        {
            return Ok(runtime.handle().clone());
        }
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
                // Two threads opened at once, and the other was first.
                // SAFETY: nobody else has seen `fresh`.
                drop(unsafe { Box::from_raw(fresh) });
                Self::global()
            }
        }
    }

    /// Ends all actors and waits for them, at most for [`Config::shutdown_timeout`]. Waits end with
    /// [`WakeReason::Stopping`](crate::WakeReason::Stopping), which unwinds most actors; jobs that have not begun are
    /// cancelled.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::exact(1))?;
    /// runtime.handle().spawn(|| 6 * 7);
    /// runtime.shutdown().expect("no actor catches its end");
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    ///
    /// # Errors
    /// Actors did not end in time: which, and what became of their threads and stacks.
    pub fn shutdown(self) -> Result<(), ShutdownError> {
        let timeout = self.handle.scheduler.config.shutdown_timeout;
        self.shutdown_within(timeout)
    }

    /// As [`shutdown`](Self::shutdown), with this timeout. With [`Duration::ZERO`] each actor is still resumed once, so that it can end.
    ///
    /// ```
    /// use std::panic::{AssertUnwindSafe, catch_unwind};
    /// use std::time::Duration;
    /// use thalweg_runtime::{Builder, Config, Left, Runtime, sleep};
    ///
    /// let runtime = Runtime::start(Config::exact(1))?;
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
    /// assert_eq!(error.actors[0].left, Left::Stack);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn shutdown_within(self, timeout: Duration) -> Result<(), ShutdownError> {
        // The drop finds nothing left to stop.
        self.handle.scheduler.stop(timeout)
    }

    /// To spawn by.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Runtime {
    /// As [`shutdown`](Runtime::shutdown). What that returns goes to standard error.
    fn drop(&mut self) {
        let timeout = self.handle.scheduler.config.shutdown_timeout;
        if let Err(error) = self.handle.scheduler.stop(timeout) {
            eprintln!("thalweg: {error}");
        }
    }
}

impl Handle {
    pub(crate) fn new(scheduler: &Arc<Scheduler>) -> Self {
        Self {
            scheduler: Arc::clone(scheduler),
        }
    }

    /// That of the runtime which the caller is an actor of, for what is no actor: a thread, or a task of another executor. `None`: it is a thread.
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
        worker::current().map(Worker::handle)
    }

    /// A job that nobody will ask, or the turn of `who`: on the caller's worker, if it is one of these, else on any.
    pub(crate) fn schedule_job(&self, who: Option<Who<'_>>, job: impl FnOnce() + Send + 'static) {
        self.schedule_or(OnShortage::Wait, who, job);
    }

    /// The same, with what becomes of it where no stack is free.
    fn schedule_or(
        &self,
        on_shortage: OnShortage,
        who: Option<Who<'_>>,
        job: impl FnOnce() + Send + 'static,
    ) {
        match worker::current() {
            Some(worker) if Arc::ptr_eq(&worker.scheduler, &self.scheduler) => {
                worker.submit(Task::detached(worker.next_id(), on_shortage, who, job));
            }
            _ => {
                let task = Task::detached(ActorId::next(), on_shortage, who, job);
                self.scheduler.inject(task);
            }
        }
    }

    /// The same for one that was made before.
    pub(crate) fn submit(&self, task: Task) {
        match worker::current() {
            Some(worker) if Arc::ptr_eq(&worker.scheduler, &self.scheduler) => worker.submit(task),
            _ => self.scheduler.inject(task),
        }
    }

    /// A new actor: `job` runs with a stack of its own, on any worker. A panic ends it and nothing else.
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        Builder::new().spawn_on(self, job)
    }

    /// Whose it is, and one more of them. It is in no queue yet.
    #[inline(always)]
    fn note_new(&self, task: Task) {
        let Some(worker) = worker::current() else {
            return self.scheduler.outside.started_stacks.add_as_one_of_many(1);
        };
        task.header().parent.set(worker.acting());
        self.count(|counts| &counts.started_stacks);
    }

    /// A new actor whose end is told, as that of one that has a control: before anybody can have joined it.
    pub(crate) fn spawn_watched<T: Send + 'static>(
        &self,
        name: Option<Name>,
        supervised: bool,
        watch: Watch,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let task = Task::new(ActorId::next(), name, job);
        self.note_new(task);
        task.header().supervised.set(supervised);
        if supervised {
            task.header().on_shortage.set(OnShortage::Wait);
        }
        // What a supervisor starts is for all requests.
        if !supervised && trace::is_used() {
            trace::give_child(task);
        }
        let watched = task.control().watch(watch);
        debug_assert!(watched.is_ok(), "it is in no queue yet");
        let handle = JoinHandle::new(task);
        self.submit(task);
        handle
    }

    /// Gives `actor` one turn on any worker. It is for `actor` to see to it that it is scheduled once at a time.
    pub fn schedule(&self, actor: Arc<dyn Run>) {
        let turn = ScheduledTurn(Some(actor));
        self.schedule_or(OnShortage::Refuse, None, move || turn.run());
    }

    /// As [`spawn`](Self::spawn), but where no stack is free the actor waits for one; it does not
    /// end with [`JoinError::NoStack`]. For work that was accepted already, as a part of a call.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Runtime};
    ///
    /// let runtime = Runtime::start(Config::exact(1).max_stacks(1))?;
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
        self.note_new(task);
        task.header().on_shortage.set(OnShortage::Wait);
        if trace::is_used() {
            trace::give_child(task);
        }
        self.scheduler.inject(task);
        JoinHandle::new(task)
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.scheduler.seats.len()
    }

    /// The deadlines of this runtime.
    pub fn timers(&self) -> &Timers {
        &self.scheduler.timers
    }

    /// The groups of this runtime's actors.
    pub fn groups(&self) -> &Groups {
        &self.scheduler.groups
    }

    /// The names of this runtime's actors.
    pub fn registry(&self) -> &Registry {
        &self.scheduler.registry
    }
}

/// A turn that is to be of what [`Handle::schedule`] got.
struct ScheduledTurn(Option<Arc<dyn Run>>);

impl ScheduledTurn {
    fn run(mut self) {
        if let Some(actor) = self.0.take() {
            let _guard = preempt::NoAllocationPoints::begin();
            actor.run();
        }
    }
}

impl Drop for ScheduledTurn {
    fn drop(&mut self) {
        // Otherwise the runtime stops, and no turn of any actor comes.
        if let Some(actor) = self.0.take()
            && worker::current().is_some_and(Worker::is_refusing)
        {
            actor.refuse();
        }
    }
}

/// Of a thread on which actors run: what [`native`](crate::native) promises.
const WORKER_STACK: usize = 8 << 20;

/// One on which actors run.
pub(crate) fn worker_thread<R: Send + 'static>(
    name: String,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<ThreadHandle<R>> {
    begin(Thread::new().name(name).stack_size(WORKER_STACK), body)
}

/// A thread of the core: it blocks all asynchronous signals, so that the host's threads get them.
pub(crate) fn thread<R: Send + 'static>(
    name: String,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<ThreadHandle<R>> {
    begin(Thread::new().name(name), body)
}

fn begin<R: Send + 'static>(
    thread: Thread,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<ThreadHandle<R>> {
    // Here the signals are blocked, and `std` holds locks.
    let _quiet = Quiet::begin();
    // Blocked here and inherited there: no signal finds the thread in between.
    let before = signals::block();
    let thread = thread.spawn(body);
    signals::restore(&before);
    thread
}

/// Miri knows no signals.
#[cfg(miri)]
mod signals {
    pub(super) fn block() {}

    pub(super) fn restore((): &()) {}
}

#[cfg(not(miri))]
mod signals {
    /// Blocks every signal on this thread but those that a fault of its own raises.
    pub(super) fn block() -> libc::sigset_t {
        // SAFETY: sigset_t is plain data that the calls fill; all pointers are to locals.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut set);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGABRT,
                libc::SIGSYS,
            ] {
                libc::sigdelset(&mut set, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &set, &mut before);
            before
        }
    }

    pub(super) fn restore(before: &libc::sigset_t) {
        // SAFETY: a mask that `block` got from the system.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}
