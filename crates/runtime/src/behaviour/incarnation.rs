//! Behaviour actors that are kept: one may end, and another incarnation goes on with the same mailbox.
//!
//! 1. Between two incarnations the body is the keeper's, who begins the next one or closes it down: no turn of it is made (`mailbox_state`'s rule 3). It
//!    becomes the keeper's when an incarnation ends, just before that is told; so two incarnations never overlap.
//! 2. Messages that were accepted stay in the mailbox and are the next incarnation's, but for the one that was being handled: it was handled, in part.
//!    What was meant for an incarnation, such as the ends that it monitored, is for no other.
//! 3. The state is made, and [`Actor::started`] runs, in the first turn of an incarnation; who began it hears how that went.
//! 4. Without a keeper it ends for good, and its mailbox is closed down, which one alone may do: the incarnation that ends, before it says so, if it
//!    has no keeper then; else the keeper, before it gives up its place. So who keeps it next comes after that. Both look and say under one lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use thalweg_queue::oneshot;

use super::body::Body;
use super::envelope_queue::BoxedEnvelope;
use super::reference::{Later, Message};
use super::{Actor, ActorRef, Context, Handler, Mailbox};
use crate::Handle;
use crate::exit::{ExitReason, Pid};
use crate::id::ActorId;
use crate::join::JoinError;
use crate::shim::{Ordering, lock};
use crate::stack::overflow::Name;

/// Makes a state.
pub(crate) type StateFactory<A> = Box<dyn FnMut() -> Result<A, ExitReason> + Send>;

/// Hears which incarnation ended, and why. It neither waits nor runs code of a user.
pub(crate) type ExitListener = Arc<dyn Fn(ActorId, ExitReason) + Send + Sync>;

/// Hears whether an incarnation came to be.
pub(crate) type StartReport = oneshot::Sender<Result<(), ExitReason>>;

/// What is kept, as its keeper sees it.
pub(crate) trait Restartable: Send + Sync {
    /// From now on `keeper` hears of its ends, until it is abandoned. `false`: another one does.
    fn set_exit_listener(&self, listener: ExitListener) -> bool;
    /// The incarnation that lives: a keeper that was killed may have left one behind.
    fn running_pid(self: Arc<Self>) -> Option<Pid>;
    /// Begins an incarnation. None lives. The name is the new one's.
    fn start(self: Arc<Self>) -> (Pid, oneshot::Receiver<Result<(), ExitReason>>);
    /// None will follow, unless it is kept and begun again: what waits is dropped and nothing more accepted, at once or when the one that lives has
    /// ended. For its keeper, and for whom no other can become it.
    fn release(&self);
    /// Messages that wait.
    fn queue_len(&self) -> usize;
}

/// An actor that is to be kept, and what others reach it by from now on: what they send waits for the first incarnation.
pub(crate) fn restartable<A: Actor>(
    runtime: &Handle,
    name: Option<Name>,
    mailbox: Mailbox,
    factory: StateFactory<A>,
) -> (Arc<dyn Restartable>, ActorRef<A>) {
    mailbox.check();
    let body = Body::new(Err(factory), name, mailbox, runtime.clone(), None);
    body.mailbox_state.mark_restartable();
    (Arc::<Body<A>>::clone(&body), ActorRef::new(&body))
}

impl<A: Actor> Restartable for Body<A> {
    fn set_exit_listener(&self, listener: ExitListener) -> bool {
        let mut cold = lock(&self.cold);
        let is_free = cold.exit_listener.is_none();
        if is_free {
            cold.exit_listener = Some(listener);
        }
        is_free
    }

    fn running_pid(self: Arc<Self>) -> Option<Pid> {
        let runs = !lock(&self.cold).ended;
        runs.then(|| self.pid())
    }

    fn start(self: Arc<Self>) -> (Pid, oneshot::Receiver<Result<(), ExitReason>>) {
        let (report, reported) = oneshot::channel();
        self.id.store(ActorId::next().number(), Ordering::Relaxed);
        self.has_started.set(false);
        self.kill_flag.clear();
        {
            let mut cold = lock(&self.cold);
            cold.ended = false;
            cold.control = None;
            if let Some(books) = &self.books {
                books.begin(cold.exit_listener.is_some());
            }
        }
        self.runtime.count(|counts| &counts.started_behaviours);
        let pid = self.pid();
        self.mailbox_state.restart();
        self.schedule_turn(Some(report));
        (pid, reported)
    }

    fn release(&self) {
        let is_vacant = {
            let mut cold = lock(&self.cold);
            if !cold.ended {
                cold.exit_listener = None;
            }
            cold.ended
        };
        // Rule 4.
        if is_vacant {
            self.close_down();
            lock(&self.cold).exit_listener = None;
        }
    }

    fn queue_len(&self) -> usize {
        self.len()
    }
}

impl<A: Actor> Body<A> {
    /// Rule 3. The caller is the first turn.
    pub(super) fn make(
        self: &Arc<Self>,
        state: &mut Option<A>,
        context: &Context<'_, A>,
    ) -> Result<(), JoinError> {
        if self.kill_flag.is_set() {
            return Err(self.doomed());
        }
        let factory = lock(&self.cold).factory.take();
        let Some(mut factory) = factory else {
            return Err(JoinError::Stopped);
        };
        let made = catch_unwind(AssertUnwindSafe(|| {
            let made = state.insert(factory()?);
            self.has_started.set(true);
            made.started(context);
            Ok(())
        }));
        lock(&self.cold).factory = Some(factory);
        match made {
            Ok(made) => made.map_err(JoinError::Exit),
            Err(payload) => Err(JoinError::from_payload(payload)),
        }
    }
}

/// An actor's way to itself that nobody else has, and no full mailbox delays.
pub(crate) struct SystemRef<A: Actor>(Weak<Body<A>>);

impl<A: Actor> SystemRef<A> {
    pub(crate) fn of(context: &Context<'_, A>) -> Self {
        Self(Arc::downgrade(context.body))
    }

    /// The same for who supervises it, or looks on.
    pub(crate) fn to(actor: &ActorRef<A>) -> Self {
        Self(Arc::downgrade(&actor.body))
    }

    pub(crate) fn send<M: Send + 'static>(&self, message: M)
    where
        A: Handler<M>,
    {
        if let Some(body) = self.0.upgrade() {
            body.push_system(BoxedEnvelope::new(Message {
                message,
                reply: None,
            }));
        }
    }

    /// `None`: it has gone.
    pub(crate) fn send_after<M: Send + 'static>(&self, delay: Duration, message: M) -> Option<Later>
    where
        A: Handler<M>,
    {
        Some(self.0.upgrade()?.send_after(delay, message))
    }
}

impl<A: Actor> Clone for SystemRef<A> {
    fn clone(&self) -> Self {
        Self(Weak::clone(&self.0))
    }
}
