//! Weak references to an actor and its identity over all incarnations, for the registry and for
//! groups.
//!
//! 1. The identity of a body is a [`Control`] that no [`Pid`] refers to. It is created on first use
//!    and ends when the body is closed for good, so it survives restarts. An actor that is started
//!    again after that gets another identity.
//! 2. The mailbox is marked `ENDED` before the lock is taken and the identity is removed. Creating
//!    an identity checks the mark under the lock. Therefore no identity outlives its body.
//! 3. The identity of an actor without a supervisor ends before its incarnation does: a join or a
//!    monitor reports the exit afterwards.

use std::sync::{Arc, Weak};

use super::body::Body;
use super::incarnation::Restartable;
use super::priority_queues::Priority;
use super::{Actor, ActorRef};
use crate::control::{Control, SignalTarget, Target};
use crate::exit::Pid;
use crate::reason::ExitReason;
use crate::shim::{Ordering, lock};

/// Ends the control when it is dropped (rule 1).
pub(super) struct Identity(Arc<Control>);

impl Drop for Identity {
    fn drop(&mut self) {
        self.0.end(ExitReason::Normal);
    }
}

impl<A: Actor> Body<A> {
    fn identity(self: &Arc<Self>) -> Option<Arc<Control>> {
        let mut cold = lock(&self.cold);
        if let Some(identity) = cold.rare().and_then(|rare| rare.identity.as_ref()) {
            return Some(Arc::clone(&identity.0));
        }
        // Rule 2.
        if self.is_closed() {
            return None;
        }
        let body: Weak<dyn SignalTarget> = Arc::<Self>::downgrade(self);
        let control = Control::new(self.id(), Target::Body(body));
        cold.rare_or_new().identity = Some(Identity(Arc::clone(&control)));
        Some(control)
    }

    /// The body is closed for good (rule 1).
    pub(super) fn end_identity(&self) {
        let mut cold = lock(&self.cold);
        let identity = cold.rare().and_then(|rare| rare.identity.take());
        drop(cold);
        drop(identity);
    }
}

impl<A: Actor> ActorRef<A> {
    /// `None`: the actor has ended.
    pub(crate) fn identity(&self) -> Option<Arc<Control>> {
        self.body.identity()
    }
}

/// A reference that does not keep the actor alive.
pub(crate) struct WeakActorRef<A: Actor>(Weak<Body<A>>);

impl<A: Actor> WeakActorRef<A> {
    pub(crate) fn of(actor: &ActorRef<A>) -> Self {
        Self(Arc::downgrade(&actor.body))
    }

    /// `None`: there is no reference left, so the actor ends or has ended.
    pub(crate) fn upgrade(&self) -> Option<ActorRef<A>> {
        let body = self.0.upgrade()?;
        let one_more = |references: usize| (references > 0).then_some(references + 1);
        let counted = body
            .references
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        // Created only if the reference was counted, since its drop releases one.
        counted.is_ok().then(|| ActorRef {
            body,
            priority: Priority::Normal,
        })
    }

    /// The `Pid` of the running incarnation.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.0.upgrade()?.running_pid()
    }
}

impl<A: Actor> Clone for WeakActorRef<A> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}
