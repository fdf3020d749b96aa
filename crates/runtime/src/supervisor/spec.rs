//! Specifications of supervisors and children.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::actor::SupervisorActor;
use super::backoff::Backoff;
use super::error::SupervisorStartError;
use super::job::{JobChild, JobResult};
use super::reference::SupervisorRef;
use super::view::SubtreeRef;
use crate::behaviour::{Actor, ActorRef, Restartable, SystemRef, restartable};
use crate::mailbox::Mailbox;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::stack::overflow::Name;

/// Which children are restarted with a child that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// No others.
    OneForOne,
    /// All others: they are stopped from right to left, then all children are started from left to
    /// right.
    OneForAll,
    /// Those that were started after it.
    RestForOne,
    /// No others. For many dynamic children: at shutdown, all are stopped at the same time.
    SimpleOneForOne,
}

/// When a child is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    Permanent,
    /// After a failure: any exit other than [`Normal`](ExitReason::Normal), a shutdown or the stop
    /// of the runtime.
    Transient,
    /// Never. The child is removed when it ends.
    Temporary,
}

/// How a child is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// By a kill, at once.
    BrutalKill,
    /// By the exit signal [`Shutdown`](ExitReason::Shutdown), and by a kill when this time is over.
    Timeout(Duration),
    /// By the exit signal [`Shutdown`](ExitReason::Shutdown), without a timeout.
    Infinity,
}

/// Whether a supervisor ends when significant children have ended by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoShutdown {
    /// It does not. Significant children are refused.
    Never,
    /// When the first of them has ended.
    AnySignificant,
    /// When the last of them has ended.
    AllSignificant,
}

/// The kind of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// An actor.
    Worker,
    /// A supervisor.
    Supervisor,
}

/// The specification of a child, which can be used again after the child was started. A clone
/// refers to the same child. Messages that are sent before the first start wait for it. Messages
/// are refused when the supervisor has ended or the last spec of the child is dropped.
#[derive(Clone)]
pub struct ChildSpec {
    pub(super) id: String,
    pub(super) handle: Arc<ChildHandle>,
    pub(super) kind: ChildKind,
    pub(super) restart: Restart,
    pub(super) shutdown: Shutdown,
    pub(super) significant: bool,
    pub(super) backoff: Option<Backoff>,
    /// For a supervisor: the reference by which a view asks for its children.
    pub(super) subtree: Option<SubtreeRef>,
}

/// The restartable actor behind all specs of a child. When the last spec is dropped, nothing can
/// start the child any more, so its mailbox is closed.
pub(super) struct ChildHandle(Arc<dyn Restartable>);

impl ChildHandle {
    pub(super) fn restartable(&self) -> Arc<dyn Restartable> {
        Arc::clone(&self.0)
    }
}

impl Deref for ChildHandle {
    type Target = dyn Restartable;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Drop for ChildHandle {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// OTP's default for a worker.
const SHUTDOWN: Duration = Duration::from_secs(5);

impl ChildSpec {
    /// A behaviour actor whose state `make` creates once per incarnation, and the reference to it.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`ChildSpec::actor_on`].
    pub fn actor<A: Actor>(
        id: impl Into<String>,
        mut make: impl FnMut() -> A + Send + 'static,
    ) -> (Self, ActorRef<A>) {
        Self::actor_on(&here(), id, Mailbox::default(), move || {
            Ok::<_, ExitReason>(make())
        })
    }

    /// As [`actor`](Self::actor), for a state that can fail to be created. If it fails at the first
    /// start, the supervisor's start fails with [`SupervisorStartError::Child`]. If it fails at a
    /// restart, the restart is repeated.
    ///
    /// ```
    /// use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
    /// use thalweg_runtime::{Actor, run};
    ///
    /// struct Index(String);
    /// impl Actor for Index {}
    ///
    /// run(|| {
    ///     let (spec, _index) = ChildSpec::try_actor("index", || {
    ///         std::fs::read_to_string("/no/such/file").map(Index).map_err(|error| error.to_string())
    ///     });
    ///     let failed = Supervisor::new(Strategy::OneForOne).child(spec).start();
    ///     assert!(failed.is_err_and(|error| error.to_string().contains("No such file")));
    /// });
    /// ```
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`ChildSpec::actor_on`].
    pub fn try_actor<A: Actor, E: Into<ExitReason>>(
        id: impl Into<String>,
        make: impl FnMut() -> Result<A, E> + Send + 'static,
    ) -> (Self, ActorRef<A>) {
        Self::actor_on(&here(), id, Mailbox::default(), make)
    }

    /// As [`try_actor`](Self::try_actor), on this runtime and with this mailbox. Any thread may
    /// call it.
    pub fn actor_on<A: Actor, E: Into<ExitReason>>(
        runtime: &Handle,
        id: impl Into<String>,
        mailbox: Mailbox,
        mut make: impl FnMut() -> Result<A, E> + Send + 'static,
    ) -> (Self, ActorRef<A>) {
        let maker = Box::new(move || make().map_err(Into::into));
        let id = id.into();
        let name = Name::new(id.as_str());
        let (restartable, actor) = restartable(runtime, Some(name), mailbox, maker);
        actor.keep_open();
        let spec = Self::of(id, restartable, ChildKind::Worker, SHUTDOWN.into());
        (spec, actor)
    }

    /// An actor with a stack of its own, which runs `job` once per incarnation. The result of `job`
    /// is its exit reason.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`ChildSpec::job_on`].
    pub fn job<O: JobResult>(
        id: impl Into<String>,
        job: impl FnMut() -> O + Send + 'static,
    ) -> Self {
        Self::job_on(&here(), id, job)
    }

    /// As [`job`](Self::job), on this runtime.
    pub fn job_on<O: JobResult>(
        runtime: &Handle,
        id: impl Into<String>,
        mut job: impl FnMut() -> O + Send + 'static,
    ) -> Self {
        let id = id.into();
        let restartable = JobChild::restartable(runtime, &id, move || job().into_exit());
        Self::of(id, restartable, ChildKind::Worker, SHUTDOWN.into())
    }

    /// A supervisor that `make` describes, once per incarnation. It may take any time to stop its
    /// own children.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`ChildSpec::supervisor_on`].
    pub fn supervisor(
        id: impl Into<String>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> (Self, SupervisorRef) {
        Self::supervisor_on(&here(), id, make)
    }

    /// As [`supervisor`](Self::supervisor), on this runtime.
    pub fn supervisor_on(
        runtime: &Handle,
        id: impl Into<String>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> (Self, SupervisorRef) {
        let (restartable, supervisor) = supervisor(runtime, make);
        supervisor.actor.keep_open();
        let mut spec = Self::of(
            id.into(),
            restartable,
            ChildKind::Supervisor,
            Shutdown::Infinity,
        );
        spec.subtree = Some(SystemRef::to(&supervisor.actor));
        (spec, supervisor)
    }

    fn of(
        id: String,
        restartable: Arc<dyn Restartable>,
        kind: ChildKind,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            id,
            handle: Arc::new(ChildHandle(restartable)),
            kind,
            restart: Restart::Permanent,
            shutdown,
            significant: false,
            backoff: None,
            subtree: None,
        }
    }

    /// When the child is restarted. Default: [`Restart::Permanent`].
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How the child is stopped. Default: a timeout of five seconds; for a supervisor,
    /// [`Shutdown::Infinity`].
    #[must_use]
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Makes the child significant for the supervisor's [`AutoShutdown`].
    #[must_use]
    pub fn significant(mut self) -> Self {
        self.significant = true;
        self
    }

    /// The delay before a restart. Default: none, as in OTP.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// The name of the child, which is unique in its supervisor.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl From<Duration> for Shutdown {
    fn from(within: Duration) -> Self {
        Self::Timeout(within)
    }
}

impl std::fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildSpec")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("restart", &self.restart)
            .field("shutdown", &self.shutdown)
            .field("significant", &self.significant)
            .field("backoff", &self.backoff)
            .finish()
    }
}

/// The specification of a supervisor: the strategy, the restart intensity, and the children from
/// left to right.
#[derive(Clone, Debug)]
#[must_use = "a supervisor does nothing until it is started"]
pub struct Supervisor {
    pub(super) strategy: Strategy,
    pub(super) intensity: Option<u32>,
    pub(super) period: Duration,
    pub(super) auto_shutdown: AutoShutdown,
    pub(super) children: Vec<ChildSpec>,
}

impl Supervisor {
    /// A supervisor without children. One restart in five seconds is allowed, as in OTP.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            intensity: Some(1),
            period: Duration::from_secs(5),
            auto_shutdown: AutoShutdown::Never,
            children: Vec::new(),
        }
    }

    /// The restart intensity: after more than `max` restarts within `period`, the supervisor stops
    /// all children and ends with a shutdown.
    pub fn intensity(mut self, max: u32, period: Duration) -> Self {
        self.intensity = Some(max);
        self.period = period;
        self
    }

    /// Allows any number of restarts. Use it with a [`Backoff`].
    pub fn unlimited_restarts(mut self) -> Self {
        self.intensity = None;
        self
    }

    /// Whether the supervisor ends when significant children end.
    pub fn auto_shutdown(mut self, auto_shutdown: AutoShutdown) -> Self {
        self.auto_shutdown = auto_shutdown;
        self
    }

    /// Adds a child to the right of the others.
    pub fn child(mut self, child: ChildSpec) -> Self {
        self.children.push(child);
        self
    }

    /// Starts the supervisor and its children, one after the other, and waits until all have
    /// started.
    ///
    /// # Errors
    /// A child did not start. The children before it were stopped.
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`Supervisor::start_on`].
    pub fn start(self) -> Result<SupervisorRef, SupervisorStartError> {
        self.start_on(&here())
    }

    /// As [`start`](Self::start), on this runtime. Any thread may call it.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(self, runtime: &Handle) -> Result<SupervisorRef, SupervisorStartError> {
        let (restartable, reference) = supervisor(runtime, move || self.clone());
        let (_, started) = restartable.start();
        match started.recv() {
            Ok(Ok(())) => Ok(reference),
            Ok(Err(reason)) => Err(match reason.downcast_ref::<SupervisorStartError>() {
                Some(error) => error.clone(),
                None => SupervisorStartError::Ended(reason),
            }),
            Err(_) => Err(SupervisorStartError::Ended(ExitReason::Stopped)),
        }
    }
}

fn supervisor(
    runtime: &Handle,
    mut make: impl FnMut() -> Supervisor + Send + 'static,
) -> (Arc<dyn Restartable>, SupervisorRef) {
    let maker = Box::new(move || SupervisorActor::new(make()).map_err(Into::into));
    let (restartable, actor) = restartable(runtime, None, Mailbox::default(), maker);
    (restartable, SupervisorRef { actor })
}

fn here() -> Handle {
    Handle::current()
        .expect("the caller is not an actor; in a thread, use the function with a runtime")
}
