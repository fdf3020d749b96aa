//! The identifier of one incarnation of an actor.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Monitor;
use crate::control::{Control, SignalKind};
use crate::id::ActorId;
use crate::reason::ExitReason;
use crate::{wait, worker};

/// Identifies one incarnation of an actor, for signals and monitors. It does not keep the actor
/// alive. Two are equal if they identify the same incarnation.
#[derive(Clone)]
pub struct Pid {
    control: Arc<Control>,
}

/// A signal was sent to an actor that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAlive(pub ActorId);

impl fmt::Display for NotAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {} has ended", self.0)
    }
}

impl std::error::Error for NotAlive {}

impl Pid {
    pub(crate) fn new(control: Arc<Control>) -> Self {
        Self { control }
    }

    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// The calling actor. `None`: the caller is a thread.
    pub fn current() -> Option<Self> {
        let task = worker::running()?;
        Some(Self::new(task.actor_control()))
    }

    /// The number of the incarnation.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// Whether it has not ended. It may end at any time.
    pub fn is_alive(&self) -> bool {
        self.control.is_alive()
    }

    /// Sends an exit signal. [`Normal`](ExitReason::Normal) ends no actor; an actor that traps
    /// exits receives it as a message.
    ///
    /// # Errors
    /// The actor has ended.
    pub fn exit(&self, reason: ExitReason) -> Result<(), NotAlive> {
        self.send(reason, SignalKind::Requested)
    }

    /// Sends an exit signal that cannot be trapped. In a [`NoKill`](super::NoKill) section, it
    /// takes effect after the section.
    ///
    /// # Errors
    /// The actor has ended.
    pub fn kill(&self) -> Result<(), NotAlive> {
        self.send(ExitReason::Killed, SignalKind::Kill)
    }

    /// Sends [`ExitReason::Shutdown`] from the supervisor.
    pub(crate) fn shut_down(&self) -> Result<(), NotAlive> {
        self.send(ExitReason::Shutdown, SignalKind::Supervisor)
    }

    fn send(&self, reason: ExitReason, kind: SignalKind) -> Result<(), NotAlive> {
        if self.control.signal(wait::current(), reason, kind) {
            Ok(())
        } else {
            Err(NotAlive(self.id()))
        }
    }

    /// Links the calling actor to this one: when either ends, the other receives an exit signal
    /// with its reason. A second call has no effect. If this actor has already ended, the caller
    /// receives [`ExitReason::NoActor`] at its next wait.
    ///
    /// # Panics
    /// If the caller is not an actor.
    pub fn link(&self) {
        let me = Self::current().expect("a link requires an actor");
        if !me.control.link(&self.control) {
            me.control
                .signal(Some(self.id()), ExitReason::NoActor, SignalKind::Requested);
        }
    }

    /// Removes the caller's link: from now on, neither receives the other's exit.
    ///
    /// # Panics
    /// If the caller is not an actor.
    pub fn unlink(&self) {
        let me = Self::current().expect("a link requires an actor");
        me.control.unlink(&self.control);
    }

    /// Monitors the actor.
    pub fn monitor(&self) -> Monitor {
        Monitor::new(&self.control)
    }
}

impl PartialEq for Pid {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Pid {}

impl Hash for Pid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pid").field(&self.id().number()).finish()
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}
