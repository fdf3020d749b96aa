//! Dynamic children of one kind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backoff::Backoff;
use super::error::ChildError;
use super::reference::SupervisorRef;
use super::spec::{ChildSpec, Restart, Shutdown};
use crate::behaviour::{Actor, ActorRef};
use crate::mailbox::Mailbox;
use crate::reason::ExitReason;

/// A template for dynamic children of one kind, as the child spec of OTP's `simple_one_for_one`
/// supervisor.
///
/// Each child is a behaviour actor whose state is created from the arguments of its start. A
/// restart creates the state from the same arguments again. The children are named `NAME-1`,
/// `NAME-2` and so on. A new template makes [`Restart::Temporary`] children: a child that has ended
/// is removed.
///
/// ```
/// use thalweg_runtime::supervisor::{ChildTemplate, Strategy, Supervisor};
/// use thalweg_runtime::{Actor, Context, Handler, run};
///
/// struct Session { user: String }
/// struct Greet;
/// impl Actor for Session {}
/// impl Handler<Greet> for Session {
///     type Reply = String;
///     fn handle(&mut self, _: Greet, _: &Context<'_, Self>) -> String {
///         format!("hello {}", self.user)
///     }
/// }
///
/// run(|| {
///     let sessions = Supervisor::new(Strategy::SimpleOneForOne).start()?;
///     let template = ChildTemplate::new("session", |user: &String| Session { user: user.clone() });
///     let ann = template.start(&sessions, "Ann".into())?;
///     let bob = template.start(&sessions, "Bob".into())?;
///     assert_eq!(ann.call(Greet)?, "hello Ann");
///     assert_eq!(bob.call(Greet)?, "hello Bob");
///     assert_eq!(sessions.count_children()?.active, 2);
///     # Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChildTemplate<T, A: Actor> {
    name: String,
    make: Arc<dyn Fn(&T) -> A + Send + Sync>,
    mailbox: Mailbox,
    restart: Restart,
    shutdown: Option<Shutdown>,
    backoff: Option<Backoff>,
    started: AtomicU64,
}

impl<T: Send + 'static, A: Actor> ChildTemplate<T, A> {
    /// A template whose children are created by `make` and named after `name`.
    pub fn new(name: impl Into<String>, make: impl Fn(&T) -> A + Send + Sync + 'static) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(make),
            mailbox: Mailbox::default(),
            restart: Restart::Temporary,
            shutdown: None,
            backoff: None,
            started: AtomicU64::new(0),
        }
    }

    /// When a child is restarted. Default: [`Restart::Temporary`].
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// How a child is stopped. Default: as [`ChildSpec::shutdown`].
    #[must_use]
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = Some(shutdown);
        self
    }

    /// The delay before a child is restarted. Default: none.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// The mailbox of each child.
    #[must_use]
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = mailbox;
        self
    }

    /// Starts a child with these arguments, on the runtime of `supervisor`, and waits until its
    /// state has been created.
    ///
    /// # Errors
    /// As [`SupervisorRef::start_child`].
    pub fn start(&self, supervisor: &SupervisorRef, args: T) -> Result<ActorRef<A>, ChildError> {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let id = format!("{}-{number}", self.name);
        let make = Arc::clone(&self.make);
        let (mut spec, actor) =
            ChildSpec::actor_on(supervisor.actor.runtime(), id, self.mailbox, move || {
                Ok::<_, ExitReason>(make(&args))
            });
        spec.restart = self.restart;
        spec.backoff = self.backoff;
        spec.shutdown = self.shutdown.unwrap_or(spec.shutdown);
        supervisor.start_child(spec)?;
        Ok(actor)
    }
}

impl<T, A: Actor> fmt::Debug for ChildTemplate<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildTemplate")
            .field("name", &self.name)
            .field("restart", &self.restart)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
