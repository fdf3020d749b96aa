//! References to supervisors.

use std::fmt;
use std::time::Duration;

use super::actor::{
    CountChildren, DeleteChild, RestartChild, StartChild, SupervisorActor, TerminateChild,
    WhichChildren,
};
use super::child::{ChildCounts, ChildInfo};
use super::error::ChildError;
use super::spec::ChildSpec;
use crate::behaviour::{ActorRef, Handler};
use crate::exit::Pid;

/// A reference to a supervisor. As in OTP, its requests wait without a timeout: a supervisor that
/// is starting or stopping a child replies afterwards. When the last reference is dropped, the
/// supervisor stops its children and ends. A supervisor that is a child lives as long as its parent
/// keeps it.
#[derive(Clone)]
pub struct SupervisorRef {
    pub(super) actor: ActorRef<SupervisorActor>,
}

impl SupervisorRef {
    fn ask<M: Send + 'static>(
        &self,
        message: M,
    ) -> Result<<SupervisorActor as Handler<M>>::Reply, ChildError>
    where
        SupervisorActor: Handler<M>,
    {
        let reply = self.actor.call_timeout(message, Duration::MAX);
        reply.map_err(|_| ChildError::Ended)
    }

    /// The `Pid` of the current incarnation, for signals and monitors.
    pub fn pid(&self) -> Pid {
        self.actor.pid()
    }

    /// Starts a further child, to the right of all others, and waits until it has started.
    ///
    /// # Errors
    /// The child did not start and is not added, or the supervisor has ended.
    pub fn start_child(&self, spec: ChildSpec) -> Result<Pid, ChildError> {
        self.ask(StartChild(spec))?
    }

    /// Stops a child and waits for its end. Its waiting messages are dropped. It can be started
    /// again, unless it is temporary.
    ///
    /// # Errors
    /// There is no child of this name, or the supervisor has ended.
    pub fn terminate_child(&self, id: impl Into<String>) -> Result<(), ChildError> {
        self.ask(TerminateChild(id.into()))?
    }

    /// Starts a child that ended or was stopped, and waits until it has started.
    ///
    /// # Errors
    /// There is no child of this name, it is running, or it did not start; or the supervisor has
    /// ended.
    pub fn restart_child(&self, id: impl Into<String>) -> Result<Pid, ChildError> {
        self.ask(RestartChild(id.into()))?
    }

    /// Removes a child that ended or was stopped.
    ///
    /// # Errors
    /// There is no child of this name, or it is running; or the supervisor has ended.
    pub fn delete_child(&self, id: impl Into<String>) -> Result<(), ChildError> {
        self.ask(DeleteChild(id.into()))?
    }

    /// All children, from left to right.
    ///
    /// # Errors
    /// The supervisor has ended.
    pub fn which_children(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.ask(WhichChildren)
    }

    /// The number of children.
    ///
    /// # Errors
    /// The supervisor has ended.
    pub fn count_children(&self) -> Result<ChildCounts, ChildError> {
        self.ask(CountChildren)
    }

    /// Stops the children, from right to left, and ends the supervisor. Does not wait; to wait,
    /// monitor its [`pid`](Self::pid).
    pub fn stop(&self) {
        self.actor.stop();
    }
}

impl fmt::Debug for SupervisorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SupervisorRef")
            .field(&self.actor.id())
            .finish()
    }
}
