//! Restartable actors: when an incarnation ends, another one can continue with the same mailbox.
//!
//! 1. Between two incarnations the body belongs to the supervisor, which starts the next
//!    incarnation or releases the body. No turn runs meanwhile (rule 3 of `mailbox_state`). The
//!    body passes to the supervisor when an incarnation ends, just before the exit listener is
//!    called, so two incarnations never overlap.
//! 2. Messages that were accepted stay in the mailbox for the next incarnation. The exception is
//!    the message that was being handled, because it was handled in part. A message meant for one
//!    incarnation, such as the down message of its monitor, is never delivered to another one.
//! 3. The first turn of an incarnation creates the state and runs [`Actor::started`]. The start
//!    report carries the result.
//! 4. Without an exit listener the actor ends for good and its mailbox is closed. Exactly one party
//!    closes it: the incarnation that ends, before it reports its end, if no listener is set then;
//!    otherwise the supervisor, before it clears the listener. A later supervisor therefore sets
//!    its listener after the close. Both parties decide under one lock.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use thalweg_queue::oneshot;

use super::body::Body;
use super::envelope_queue::BoxedEnvelope;
use super::reference::{DelayedSend, Message};
use super::{Actor, ActorRef, Context, Handler};
use crate::Handle;
use crate::exit::Pid;
use crate::id::ActorId;
use crate::mailbox::Mailbox;
use crate::reason::{ExitReason, JoinError};
use crate::shim::{Ordering, lock};
use crate::stack::overflow::Name;
use crate::wake_reason::WakeReason;
use crate::{wait, worker};

/// Creates a state.
pub(crate) type StateFactory<A> = Box<dyn FnMut() -> Result<A, ExitReason> + Send>;

/// Receives the incarnation that ended and its exit reason. It neither waits nor runs user code.
pub(crate) type ExitListener = Arc<dyn Fn(ActorId, ExitReason) + Send + Sync>;

/// Receives the result of the start of an incarnation.
pub(crate) type StartReport = oneshot::Sender<Result<(), ExitReason>>;

/// An actor that a supervisor can start again.
pub(crate) trait Restartable: Send + Sync {
    /// Sets the listener that receives each exit until [`release`](Self::release). `false`: another
    /// supervisor has set one.
    fn set_exit_listener(&self, listener: ExitListener) -> bool;
    /// The running incarnation. There may be one if the previous supervisor was killed.
    fn running_pid(self: Arc<Self>) -> Option<Pid>;
    /// Starts an incarnation, and returns its `Pid` and its start report. No incarnation may be
    /// running.
    fn start(self: Arc<Self>) -> (Pid, oneshot::Receiver<Result<(), ExitReason>>);
    /// Clears the listener, so that no incarnation follows until a supervisor sets one and starts
    /// the actor again. The mailbox is closed and its messages are dropped, at once or when the
    /// running incarnation has ended. Only the supervisor calls this, or a caller that excludes
    /// other supervisors.
    fn release(&self);
    /// The number of waiting messages.
    fn queue_len(&self) -> usize;
}

/// Creates a restartable actor and its reference. Messages sent before the first start wait in the
/// mailbox.
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
        let is_unset = cold.exit_listener().is_none();
        if is_unset {
            cold.rare_or_new().exit_listener = Some(listener);
        }
        is_unset
    }

    fn running_pid(self: Arc<Self>) -> Option<Pid> {
        let is_running = !lock(&self.cold).ended;
        is_running.then(|| self.pid())
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
            if let Some(stats) = &self.stats {
                stats.start_incarnation(worker::current_actor(), cold.exit_listener().is_some());
            }
        }
        self.runtime.count(|counts| &counts.started_behaviours);
        let pid = self.pid();
        self.mailbox_state.restart();
        // Senders that wait for capacity check again, and so do callers of `wait_restarted`.
        self.wake_senders();
        self.schedule_start(report);
        (pid, reported)
    }

    fn release(&self) {
        let has_ended = {
            let mut cold = lock(&self.cold);
            if !cold.ended {
                cold.rare_or_new().exit_listener = None;
            }
            cold.ended
        };
        // Rule 4.
        if has_ended {
            self.close_down();
            lock(&self.cold).rare_or_new().exit_listener = None;
        }
    }

    fn queue_len(&self) -> usize {
        self.len()
    }
}

impl<A: Actor> Body<A> {
    /// Waits for an incarnation other than `old`. `None`: the deadline passed, the waiting actor is
    /// about to end, or no incarnation can follow.
    ///
    /// [`start`](Restartable::start) marks the incarnation as running before it wakes the waiters,
    /// and this function registers before it checks, so no wake-up is lost.
    pub(super) fn wait_restarted(self: &Arc<Self>, old: &Pid, deadline: u64) -> Option<Pid> {
        loop {
            self.register_waiter(wait::waker());
            let is_closed = self.is_closed();
            if is_closed && !self.mailbox_state.is_restartable() {
                return None;
            }
            let running = Arc::clone(self).running_pid();
            if let Some(new) = running.filter(|pid| !is_closed && pid != old) {
                return Some(new);
            }
            match wait::park(Some(deadline)) {
                WakeReason::TimedOut | WakeReason::Stopping => return None,
                WakeReason::Woken | WakeReason::Interrupted => {}
            }
        }
    }

    /// Rule 3. The caller is the first turn.
    pub(super) fn create_state(
        self: &Arc<Self>,
        state: &mut Option<A>,
        context: &Context<'_, A>,
    ) -> Result<(), JoinError> {
        if self.kill_flag.is_set() {
            return Err(self.kill_error());
        }
        let factory = lock(&self.cold).rare_or_new().factory.take();
        let Some(mut factory) = factory else {
            return Err(JoinError::Stopped);
        };
        let created = catch_unwind(AssertUnwindSafe(|| {
            let created = state.insert(factory()?);
            self.has_started.set(true);
            created.started(context);
            Ok(())
        }));
        lock(&self.cold).rare_or_new().factory = Some(factory);
        match created {
            Ok(created) => created.map_err(JoinError::Exit),
            Err(payload) => Err(JoinError::from_payload(payload)),
        }
    }
}

/// Sends system messages to an actor without keeping it alive. A full mailbox does not delay them.
pub(crate) struct SystemRef<A: Actor>(Weak<Body<A>>);

impl<A: Actor> SystemRef<A> {
    pub(crate) fn of(context: &Context<'_, A>) -> Self {
        Self(Arc::downgrade(context.body))
    }

    /// For the supervisor of the actor, or a caller that inspects it.
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
                reply_to: (),
            }));
        }
    }

    /// `None`: the actor no longer exists.
    pub(crate) fn send_after<M: Send + 'static>(
        &self,
        delay: Duration,
        message: M,
    ) -> Option<DelayedSend>
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
