//! The name of one incarnation of an actor.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Control, ExitReason, Kind, Monitor};
use crate::id::ActorId;
use crate::{wait, worker};

/// Names one incarnation of an actor, for signals and monitors; it keeps nothing of the actor alive. Two are equal if they name the same one.
#[derive(Clone)]
pub struct Pid {
    control: Arc<Control>,
}

/// A signal to an actor that has ended.
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

    /// The caller's. `None`: a thread.
    pub fn current() -> Option<Self> {
        let task = worker::running()?;
        Some(Self::new(task.actor_control()))
    }

    /// Its number.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// Whether it has not ended. It may at any time.
    pub fn is_alive(&self) -> bool {
        self.control.is_alive()
    }

    /// Sends it an exit signal. [`Normal`](ExitReason::Normal) ends nobody, and is a message to who traps exits.
    ///
    /// # Errors
    /// It has ended.
    pub fn exit(&self, reason: ExitReason) -> Result<(), NotAlive> {
        self.send(reason, Kind::Asked)
    }

    /// Sends it an exit signal that is not trapped. Where [`NoKill`](super::NoKill) keeps it off it comes after.
    ///
    /// # Errors
    /// It has ended.
    pub fn kill(&self) -> Result<(), NotAlive> {
        self.send(ExitReason::Killed, Kind::Kill)
    }

    /// Its supervisor's [`ExitReason::Shutdown`].
    pub(crate) fn shut_down(&self) -> Result<(), NotAlive> {
        self.send(ExitReason::Shutdown, Kind::Parent)
    }

    fn send(&self, reason: ExitReason, kind: Kind) -> Result<(), NotAlive> {
        if self.control.signal(wait::current(), reason, kind) {
            Ok(())
        } else {
            Err(NotAlive(self.id()))
        }
    }

    /// Links the caller to it: when one of them ends, the other gets an exit signal with its reason. Once, however often it is called. If it has
    /// ended already the caller gets [`ExitReason::NoActor`], at its next wait.
    ///
    /// # Panics
    /// If the caller is no actor.
    pub fn link(&self) {
        let me = Self::current().expect("a link is for actors");
        if !me.control.link(&self.control) {
            me.control
                .signal(Some(self.id()), ExitReason::NoActor, Kind::Asked);
        }
    }

    /// Takes the caller's link back: from now on neither hears of the other's end.
    ///
    /// # Panics
    /// If the caller is no actor.
    pub fn unlink(&self) {
        let me = Self::current().expect("a link is for actors");
        me.control.unlink(&self.control);
    }

    /// Hears of its end.
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
