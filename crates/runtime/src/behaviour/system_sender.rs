//! System messages to one incarnation, which can be cancelled after they were sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::body::Body;
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::{Actor, Context, Handler};
use crate::id::ActorId;

/// Sends system messages to one incarnation.
pub(crate) struct SystemSender<A: Actor> {
    body: Weak<Body<A>>,
    incarnation: ActorId,
    active: Arc<AtomicBool>,
}

struct SystemMessage<M> {
    message: M,
    incarnation: ActorId,
    active: Arc<AtomicBool>,
}

impl<A: Actor> SystemSender<A> {
    /// A sender to the running incarnation.
    pub(crate) fn to(context: &Context<'_, A>) -> Self {
        Self {
            body: Arc::downgrade(context.body),
            incarnation: context.id(),
            active: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Messages, also those sent already, are handled only while this is `true`.
    pub(crate) fn active(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.active)
    }

    /// Call it without a lock: it may drop the last reference to the body, and with it the waiting
    /// messages.
    pub(crate) fn send<M: Send + 'static>(&self, message: M)
    where
        A: Handler<M>,
    {
        if let Some(body) = self.body.upgrade() {
            body.push_system(BoxedEnvelope::new(SystemMessage {
                message,
                incarnation: self.incarnation,
                active: Arc::clone(&self.active),
            }));
        }
    }
}

impl<A: Handler<M>, M: Send + 'static> Payload<A> for SystemMessage<M> {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        if context.id() == self.incarnation && self.active.load(Ordering::Relaxed) {
            drop(actor.handle(self.message, context));
        }
    }
}
