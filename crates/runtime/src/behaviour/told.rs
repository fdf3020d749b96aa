//! Messages to one incarnation that the core sends, before all that wait, for as long as they are wanted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::lane::{Contents, Sealed};
use super::turn::Body;
use super::{Actor, Context, Handler};
use crate::id::ActorId;

/// The way to one incarnation.
pub(crate) struct Teller<A: Actor> {
    body: Weak<Body<A>>,
    incarnation: ActorId,
    wanted: Arc<AtomicBool>,
}

struct Told<M> {
    message: M,
    incarnation: ActorId,
    wanted: Arc<AtomicBool>,
}

impl<A: Actor> Teller<A> {
    /// To the one that runs.
    pub(crate) fn to(context: &Context<'_, A>) -> Self {
        Self {
            body: Arc::downgrade(context.body),
            incarnation: context.id(),
            wanted: Arc::new(AtomicBool::new(true)),
        }
    }

    /// While it is true, messages are handled that were sent.
    pub(crate) fn wanted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.wanted)
    }

    /// Where no lock is held: it may be the last that keeps a mailbox, with whatever is in it.
    pub(crate) fn tell<M: Send + 'static>(&self, message: M)
    where
        A: Handler<M>,
    {
        if let Some(body) = self.body.upgrade() {
            body.put_system(Sealed::new(Told {
                message,
                incarnation: self.incarnation,
                wanted: Arc::clone(&self.wanted),
            }));
        }
    }
}

impl<A: Handler<M>, M: Send + 'static> Contents<A> for Told<M> {
    fn read(self, actor: &mut A, context: &Context<'_, A>) {
        if context.id() == self.incarnation && self.wanted.load(Ordering::Relaxed) {
            drop(actor.handle(self.message, context));
        }
    }
}
