//! What a supervisor is to do, and with whom.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::Backoff;
use super::error::StartError;
use super::job::{Job, Outcome};
use super::reference::SupervisorRef;
use super::tree::Tree;
use super::view::Below;
use crate::behaviour::{Actor, ActorRef, Mailbox, Restartable, SystemRef, restartable};
use crate::exit::ExitReason;
use crate::runtime::Handle;
use crate::stack::overflow::Name;

/// Who is restarted with a child that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Nobody.
    OneForOne,
    /// All others: they are ended, from right to left, and all are started, from left to right.
    OneForAll,
    /// Those that were started after it.
    RestForOne,
    /// Nobody, and the children, of which there may be many, are ended all at once and in no order.
    SimpleOneForOne,
}

/// When a child is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Always.
    Permanent,
    /// When it ended other than by [`Normal`](ExitReason::Normal) or a shutdown.
    Transient,
    /// Never; when it has ended there is no such child any more.
    Temporary,
}

/// How a child is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// By a kill.
    Brutal,
    /// By the exit signal [`Shutdown`](ExitReason::Shutdown), and a kill if it takes longer.
    Within(Duration),
    /// By the exit signal, however long it takes.
    Forever,
}

/// Whether a supervisor ends when significant children have ended by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoShutdown {
    /// It does not, and has none.
    Never,
    /// When one has.
    AnySignificant,
    /// When all have.
    AllSignificant,
}

/// What a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// An actor.
    Worker,
    /// A supervisor.
    Supervisor,
}

/// A child, before and after its start. A clone is the same child. Messages that it is sent before wait for its first start; when its supervisor has
/// ended, or no spec of it is left, they are refused.
#[derive(Clone)]
pub struct ChildSpec {
    pub(super) id: String,
    pub(super) place: Arc<Place>,
    pub(super) kind: ChildKind,
    pub(super) restart: Restart,
    pub(super) shutdown: Shutdown,
    pub(super) significant: bool,
    pub(super) backoff: Option<Backoff>,
    /// A supervisor's: what it is asked by for what is below it.
    pub(super) below: Option<Below>,
}

/// Where a child's incarnations follow each other, whoever supervises it. When no spec of it is left nobody can start it any more, and it takes no more
/// messages.
pub(super) struct Place(Arc<dyn Restartable>);

impl Place {
    pub(super) fn restartable(&self) -> Arc<dyn Restartable> {
        Arc::clone(&self.0)
    }
}

impl Deref for Place {
    type Target = dyn Restartable;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// What OTP gives a worker.
const SHUTDOWN: Duration = Duration::from_secs(5);

impl ChildSpec {
    /// A behaviour actor whose state `make` makes, once for each incarnation, and what reaches it, from now on.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`ChildSpec::actor_on`].
    pub fn actor<A: Actor>(
        id: impl Into<String>,
        mut make: impl FnMut() -> A + Send + 'static,
    ) -> (Self, ActorRef<A>) {
        Self::actor_on(&here(), id, Mailbox::default(), move || {
            Ok::<_, ExitReason>(make())
        })
    }

    /// The same on a runtime, with a mailbox, and with a state that can fail to be made.
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

    /// An actor with a stack of its own, which runs `job` once for each incarnation. What `job` gives is how it ends.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`ChildSpec::job_on`].
    pub fn job<O: Outcome>(id: impl Into<String>, job: impl FnMut() -> O + Send + 'static) -> Self {
        Self::job_on(&here(), id, job)
    }

    /// The same on a runtime.
    pub fn job_on<O: Outcome>(
        runtime: &Handle,
        id: impl Into<String>,
        mut job: impl FnMut() -> O + Send + 'static,
    ) -> Self {
        let id = id.into();
        let restartable = Job::restartable(runtime, &id, move || job().into_end());
        Self::of(id, restartable, ChildKind::Worker, SHUTDOWN.into())
    }

    /// A supervisor, which `make` describes, once for each incarnation. It has as long as it takes to end its own children.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`ChildSpec::supervisor_on`].
    pub fn supervisor(
        id: impl Into<String>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> (Self, SupervisorRef) {
        Self::supervisor_on(&here(), id, make)
    }

    /// The same on a runtime.
    pub fn supervisor_on(
        runtime: &Handle,
        id: impl Into<String>,
        make: impl FnMut() -> Supervisor + Send + 'static,
    ) -> (Self, SupervisorRef) {
        let (restartable, supervisor) = supervisor(runtime, make);
        supervisor.tree.keep_open();
        let mut spec = Self::of(
            id.into(),
            restartable,
            ChildKind::Supervisor,
            Shutdown::Forever,
        );
        spec.below = Some(SystemRef::to(&supervisor.tree));
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
            place: Arc::new(Place(restartable)),
            kind,
            restart: Restart::Permanent,
            shutdown,
            significant: false,
            backoff: None,
            below: None,
        }
    }

    /// When it is restarted. Default: [`Restart::Permanent`].
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How it is ended. Default: within five seconds; a supervisor: [`Shutdown::Forever`].
    #[must_use]
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// That its end counts for the supervisor's [`AutoShutdown`].
    #[must_use]
    pub fn significant(mut self) -> Self {
        self.significant = true;
        self
    }

    /// How long to wait before a restart. Default: not at all, as OTP.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Its name among its supervisor's children.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl From<Duration> for Shutdown {
    fn from(within: Duration) -> Self {
        Self::Within(within)
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

/// What a supervisor is to do: the strategy, the limits, and the children from left to right.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until it is started"]
pub struct Supervisor {
    pub(super) strategy: Strategy,
    pub(super) intensity: Option<u32>,
    pub(super) period: Duration,
    pub(super) auto_shutdown: AutoShutdown,
    pub(super) children: Vec<ChildSpec>,
}

impl Supervisor {
    /// Without children; one restart in five seconds is allowed, as in OTP.
    pub fn new(strategy: Strategy) -> Self {
        Self {
            strategy,
            intensity: Some(1),
            period: Duration::from_secs(5),
            auto_shutdown: AutoShutdown::Never,
            children: Vec::new(),
        }
    }

    /// With more than `most` restarts within `period` it ends all children and then itself, with a shutdown.
    pub fn intensity(mut self, most: u32, period: Duration) -> Self {
        self.intensity = Some(most);
        self.period = period;
        self
    }

    /// It restarts for ever. With [`Backoff`], that is.
    pub fn tireless(mut self) -> Self {
        self.intensity = None;
        self
    }

    /// Whether it ends with its significant children.
    pub fn auto_shutdown(mut self, auto_shutdown: AutoShutdown) -> Self {
        self.auto_shutdown = auto_shutdown;
        self
    }

    /// One child more, to the right.
    pub fn child(mut self, child: ChildSpec) -> Self {
        self.children.push(child);
        self
    }

    /// Starts it and its children, one after the other, and waits for all.
    ///
    /// # Errors
    /// One of them did not start; those before it were ended.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`Supervisor::start_on`].
    pub fn start(self) -> Result<SupervisorRef, StartError> {
        self.start_on(&here())
    }

    /// The same on a runtime, from anywhere.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_on(self, runtime: &Handle) -> Result<SupervisorRef, StartError> {
        let (restartable, reference) = supervisor(runtime, move || self.clone());
        let (_, started) = restartable.start();
        match started.recv() {
            Ok(Ok(())) => Ok(reference),
            Ok(Err(reason)) => Err(match reason.downcast_ref::<StartError>() {
                Some(error) => error.clone(),
                None => StartError::Ended(reason),
            }),
            Err(_) => Err(StartError::Ended(ExitReason::Stopped)),
        }
    }
}

fn supervisor(
    runtime: &Handle,
    mut make: impl FnMut() -> Supervisor + Send + 'static,
) -> (Arc<dyn Restartable>, SupervisorRef) {
    let maker = Box::new(move || Tree::new(make()).map_err(Into::into));
    let (restartable, tree) = restartable(runtime, None, Mailbox::default(), maker);
    (restartable, SupervisorRef { tree })
}

fn here() -> Handle {
    Handle::current().expect("this is for actors: a thread says on which runtime")
}
