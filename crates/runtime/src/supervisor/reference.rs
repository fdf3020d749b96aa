//! How others reach a supervisor.

use std::fmt;
use std::time::Duration;

use super::child::{ChildInfo, Counts};
use super::error::ChildError;
use super::spec::ChildSpec;
use super::tree::{Count, Delete, Start, StartAgain, Terminate, Tree, Which};
use crate::behaviour::{ActorRef, Handler};
use crate::exit::Pid;

/// Reaches a supervisor. Its calls wait for as long as it takes, as OTP's do: a supervisor that starts or ends a child answers after. When the last
/// one is dropped the supervisor ends its children, and itself; one that is a child has its parent's.
#[derive(Clone)]
pub struct SupervisorRef {
    pub(super) tree: ActorRef<Tree>,
}

impl SupervisorRef {
    fn ask<M: Send + 'static>(&self, message: M) -> Result<<Tree as Handler<M>>::Reply, ChildError>
    where
        Tree: Handler<M>,
    {
        let reply = self.tree.call_timeout(message, Duration::MAX);
        reply.map_err(|_| ChildError::Ended)
    }

    /// Its name, for signals and monitors.
    pub fn pid(&self) -> Pid {
        self.tree.pid()
    }

    /// Starts one child more, to the right of all others, and waits until it has started.
    ///
    /// # Errors
    /// It did not start, and there is no such child; or the supervisor has ended.
    pub fn start_child(&self, spec: ChildSpec) -> Result<Pid, ChildError> {
        self.ask(Start(spec))?
    }

    /// Ends a child and waits for it. It can be started again, unless it is temporary; messages that wait for it are dropped.
    ///
    /// # Errors
    /// There is none of this name; or the supervisor has ended.
    pub fn terminate_child(&self, id: impl Into<String>) -> Result<(), ChildError> {
        self.ask(Terminate(id.into()))?
    }

    /// Starts a child again that ended or was ended, and waits until it has started.
    ///
    /// # Errors
    /// There is none of this name, it runs, or it did not start; or the supervisor has ended.
    pub fn restart_child(&self, id: impl Into<String>) -> Result<Pid, ChildError> {
        self.ask(StartAgain(id.into()))?
    }

    /// Forgets a child that ended or was ended.
    ///
    /// # Errors
    /// There is none of this name, or it runs; or the supervisor has ended.
    pub fn delete_child(&self, id: impl Into<String>) -> Result<(), ChildError> {
        self.ask(Delete(id.into()))?
    }

    /// All children, from left to right.
    ///
    /// # Errors
    /// The supervisor has ended.
    pub fn which_children(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.ask(Which)
    }

    /// How many there are.
    ///
    /// # Errors
    /// The supervisor has ended.
    pub fn count_children(&self) -> Result<Counts, ChildError> {
        self.ask(Count)
    }

    /// Ends its children, from right to left, and then itself; does not wait for it. [`pid`](Self::pid) and a monitor are for that.
    pub fn stop(&self) {
        self.tree.stop();
    }
}

impl fmt::Debug for SupervisorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SupervisorRef")
            .field(&self.tree.id())
            .finish()
    }
}
