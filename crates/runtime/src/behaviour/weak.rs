//! An actor through all its incarnations, as those know it that keep none of it alive: the registry, and groups.
//!
//! 1. A body has a life when somebody first asks for it: a [`Control`] of its own, which nobody has a [`Pid`] of. It ends when the body is closed down, so it
//!    stays over restarts; an actor that may be begun again then has another one.
//! 2. `ENDED` is said in the owner's word before the lock is taken and the life with it; who makes one looks at the word under the lock. So none is left behind.
//! 3. The life of an actor that nobody keeps ends before its incarnation does: who joins or monitors it hears of that after.

use std::sync::{Arc, Weak};

use super::incarnation::Kept;
use super::lanes::Priority;
use super::turn::Body;
use super::{Actor, ActorRef};
use crate::exit::{Control, ExitReason, Pid, Reach, Reached};
use crate::shim::{Ordering, lock};

/// Ends with what it is in: rule 1.
pub(super) struct Life(Arc<Control>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.end(ExitReason::Normal);
    }
}

impl<A: Actor> Body<A> {
    fn life(self: &Arc<Self>) -> Option<Arc<Control>> {
        let mut named = lock(&self.named);
        if let Some(life) = &named.life {
            return Some(Arc::clone(&life.0));
        }
        // Rule 2.
        if self.is_over() {
            return None;
        }
        let body: Weak<dyn Reached> = Arc::<Self>::downgrade(self);
        let control = Control::new(self.id(), Reach::Body(body));
        named.life = Some(Life(Arc::clone(&control)));
        Some(control)
    }

    /// It is closed down: rule 1.
    pub(super) fn end_life(&self) {
        let life = lock(&self.named).life.take();
        drop(life);
    }
}

impl<A: Actor> ActorRef<A> {
    /// `None`: it has ended.
    pub(crate) fn life(&self) -> Option<Arc<Control>> {
        self.body.life()
    }
}

/// Reaches an actor as long as somebody else does.
pub(crate) struct WeakRef<A: Actor>(Weak<Body<A>>);

impl<A: Actor> WeakRef<A> {
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
        self.0.upgrade()?.living()
    }
}

impl<A: Actor> Clone for WeakRef<A> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}
