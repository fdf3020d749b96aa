//! Children with a stack of their own.

use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;
use thalweg_queue::oneshot;

use crate::behaviour::{ExitListener, Restartable};
use crate::control::{Down, OnDown};
use crate::exit::{Pid, exit};
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::stack::overflow::Name;

/// The return value of a child's job, as its exit reason.
pub trait JobResult: 'static {
    /// Returns the exit reason as an `Err`, or `Ok` for [`ExitReason::Normal`].
    ///
    /// # Errors
    /// The exit reason, if it is not [`ExitReason::Normal`].
    fn into_exit(self) -> Result<(), ExitReason>;
}

impl JobResult for () {
    fn into_exit(self) -> Result<(), ExitReason> {
        Ok(())
    }
}

impl JobResult for ExitReason {
    fn into_exit(self) -> Result<(), ExitReason> {
        match self {
            Self::Normal => Ok(()),
            other => Err(other),
        }
    }
}

impl<E: Into<ExitReason> + 'static> JobResult for Result<(), E> {
    fn into_exit(self) -> Result<(), ExitReason> {
        self.map_err(Into::into)
    }
}

type JobFn = Box<dyn FnMut() -> Result<(), ExitReason> + Send>;

pub(super) struct JobChild {
    /// `None` while an incarnation runs it.
    run: Arc<Mutex<Option<JobFn>>>,
    runtime: Handle,
    name: String,
    state: Mutex<Incarnation>,
}

#[derive(Default)]
struct Incarnation {
    exit_listener: Option<ExitListener>,
    pid: Option<Pid>,
}

/// The closure while an incarnation runs it. Dropping this returns it to its slot.
struct BorrowedJob {
    run: Option<JobFn>,
    slot: Arc<Mutex<Option<JobFn>>>,
}

impl BorrowedJob {
    fn run(&mut self) -> Result<(), ExitReason> {
        match &mut self.run {
            Some(run) => run(),
            None => unreachable!("incarnations do not overlap"),
        }
    }
}

impl Drop for BorrowedJob {
    fn drop(&mut self) {
        *lock(&self.slot) = self.run.take();
    }
}

/// Reports the exit of one incarnation.
struct ExitWatcher(ExitListener);

impl OnDown for ExitWatcher {
    fn on_down(&self, Down { id, reason }: Down) {
        (self.0)(id, reason);
    }
}

impl JobChild {
    pub(super) fn restartable(
        runtime: &Handle,
        name: &str,
        run: impl FnMut() -> Result<(), ExitReason> + Send + 'static,
    ) -> Arc<dyn Restartable> {
        Arc::new(Self {
            run: Arc::new(Mutex::new(Some(Box::new(run)))),
            runtime: runtime.clone(),
            name: name.to_owned(),
            state: Mutex::default(),
        })
    }
}

impl Restartable for JobChild {
    fn set_exit_listener(&self, listener: ExitListener) -> bool {
        let mut state = lock(&self.state);
        let is_free = state.exit_listener.is_none();
        if is_free {
            state.exit_listener = Some(listener);
        }
        is_free
    }

    fn running_pid(self: Arc<Self>) -> Option<Pid> {
        lock(&self.state).pid.clone().filter(Pid::is_alive)
    }

    /// The child counts as started once it is queued, like a spawned process in Erlang.
    fn start(self: Arc<Self>) -> (Pid, oneshot::Receiver<Result<(), ExitReason>>) {
        let slot = Arc::clone(&self.run);
        let job = move || {
            let run = lock(&slot).take();
            let how = BorrowedJob { run, slot }.run();
            if let Err(reason) = how {
                exit(reason);
            }
        };
        let mut state = lock(&self.state);
        let watcher = state
            .exit_listener
            .clone()
            .map(|listener| Arc::new(ExitWatcher(listener)) as _);
        let name = Name::new(self.name.clone());
        let pid = self
            .runtime
            .spawn_watched(Some(name), true, watcher, job)
            .pid();
        state.pid = Some(pid.clone());
        drop(state);
        let (report, reported) = oneshot::channel();
        drop(report.send(Ok(())));
        (pid, reported)
    }

    fn release(&self) {
        lock(&self.state).exit_listener = None;
    }

    fn queue_len(&self) -> usize {
        0
    }
}
