//! An actor through all its incarnations, as those know it that keep none of it alive: the registry, and groups.
//!
//! 1. A body has a life when somebody first asks for it: a [`Control`] of its own, which nobody has a [`Pid`] of. It ends when the body is closed down, so it
//!    stays over restarts; an actor that may be begun again then has another one.
//! 2. `ENDED` is said in the owner's word before the lock is taken and the life with it; who makes one looks at the word under the lock. So none is left behind.
//! 3. The life of an actor that nobody keeps ends before its incarnation does: who joins or monitors it hears of that after.

use std::sync::{Arc, Weak};

use super::body::Body;
use super::incarnation::Restartable;
use super::priority_queues::Priority;
use super::{Actor, ActorRef};
use crate::exit::{Control, ExitReason, Pid, Reach, Reached};
use crate::shim::{Ordering, lock};

/// Ends with what it is in: rule 1.
pub(super) struct Identity(Arc<Control>);

impl Drop for Identity {
    fn drop(&mut self) {
        self.0.end(ExitReason::Normal);
    }
}

impl<A: Actor> Body<A> {
    fn identity(self: &Arc<Self>) -> Option<Arc<Control>> {
        let mut cold = lock(&self.cold);
        if let Some(identity) = &cold.identity {
            return Some(Arc::clone(&identity.0));
        }
        // Rule 2.
        if self.is_closed() {
            return None;
        }
        let body: Weak<dyn Reached> = Arc::<Self>::downgrade(self);
        let control = Control::new(self.id(), Reach::Body(body));
        cold.identity = Some(Identity(Arc::clone(&control)));
        Some(control)
    }

    /// It is closed down: rule 1.
    pub(super) fn end_identity(&self) {
        let identity = lock(&self.cold).identity.take();
        drop(identity);
    }
}

impl<A: Actor> ActorRef<A> {
    /// `None`: it has ended.
    pub(crate) fn identity(&self) -> Option<Arc<Control>> {
        self.body.identity()
    }
}

/// Reaches an actor as long as somebody else does.
pub(crate) struct WeakActorRef<A: Actor>(Weak<Body<A>>);

impl<A: Actor> WeakActorRef<A> {
    pub(crate) fn of(actor: &ActorRef<A>) -> Self {
        Self(Arc::downgrade(&actor.body))
    }

    /// `None`: nobody reaches it any more, so it ends, or has ended.
    pub(crate) fn upgrade(&self) -> Option<ActorRef<A>> {
        let body = self.0.upgrade()?;
        let one_more = |references: usize| (references > 0).then_some(references + 1);
        let counted = body
            .references
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        // Made only if it was counted: its drop takes one away.
        counted.is_ok().then(|| ActorRef {
            body,
            priority: Priority::Normal,
        })
    }

    /// That of the incarnation that lives.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.0.upgrade()?.running_pid()
    }
}

impl<A: Actor> Clone for WeakActorRef<A> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}
