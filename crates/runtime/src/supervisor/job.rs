//! Children with a stack of their own.

use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;
use thalweg_queue::oneshot;

use crate::behaviour::{ExitListener, Restartable};
use crate::exit::{ExitReason, Pid, Watch, exit};
use crate::runtime::Handle;
use crate::stack::overflow::Name;

/// What a child's job gives, as the reason why it ends.
pub trait Outcome: 'static {
    /// `Err`: the reason, if it is not [`ExitReason::Normal`].
    ///
    /// # Errors
    /// It is another one.
    fn into_end(self) -> Result<(), ExitReason>;
}

impl Outcome for () {
    fn into_end(self) -> Result<(), ExitReason> {
        Ok(())
    }
}

impl Outcome for ExitReason {
    fn into_end(self) -> Result<(), ExitReason> {
        match self {
            Self::Normal => Ok(()),
            other => Err(other),
        }
    }
}

impl<E: Into<ExitReason> + 'static> Outcome for Result<(), E> {
    fn into_end(self) -> Result<(), ExitReason> {
        self.map_err(Into::into)
    }
}

type Run = Box<dyn FnMut() -> Result<(), ExitReason> + Send>;

pub(super) struct Job {
    /// `None`: the incarnation that lives has it.
    run: Arc<Mutex<Option<Run>>>,
    runtime: Handle,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    exit_listener: Option<ExitListener>,
    pid: Option<Pid>,
}

/// The closure, while an incarnation runs it.
struct Lent {
    run: Option<Run>,
    home: Arc<Mutex<Option<Run>>>,
}

impl Lent {
    fn run(&mut self) -> Result<(), ExitReason> {
        match &mut self.run {
            Some(run) => run(),
            None => unreachable!("incarnations do not overlap"),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *lock(&self.home) = self.run.take();
    }
}

impl Job {
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

impl Restartable for Job {
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

    /// It has begun as soon as it is somewhere in a queue, as a process that is spawned.
    fn start(self: Arc<Self>) -> (Pid, oneshot::Receiver<Result<(), ExitReason>>) {
        let home = Arc::clone(&self.run);
        let job = move || {
            let run = lock(&home).take();
            let how = Lent { run, home }.run();
            if let Err(reason) = how {
                exit(reason);
            }
        };
        let mut state = lock(&self.state);
        let exit_listener = state.exit_listener.clone();
        let tell = Watch::Tell(Box::new(move |down| {
            if let Some(exit_listener) = exit_listener {
                exit_listener(down.id, down.reason);
            }
        }));
        let name = Name::new(self.name.clone());
        let pid = self
            .runtime
            .spawn_watched(Some(name), true, tell, job)
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
