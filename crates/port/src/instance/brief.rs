//! Brief methods: short, and without waits. A caller's thread may run them while the instance is
//! idle.
//!
//! 1. A thread [claims](crate::mailbox::Mailbox::claim_turn) the turn of an idle instance with an
//!    empty mailbox. Until it ends the turn, no other thread serves the instance, and calls that are
//!    submitted meanwhile wait in the mailbox, so calls are served in their order.
//! 2. The thread serves one call. If the mailbox has work afterwards, it schedules an ordinary turn.
//! 3. A wait in a brief method panics ([`NoWait`]), on the actor as well. Such a call ends as
//!    `would_park`, and so does one that is not answered when its method returns.
//! 4. Only a thread that may wait runs brief methods for others: neither an actor, whose stack is
//!    small, nor code in a brief method. The service must already exist, because its constructor
//!    may wait, and must not be about to be replaced.

use std::sync::{Arc, MutexGuard};

use thalweg_runtime::preempt::NoWait;
use thalweg_runtime::wait;

use super::{ActorState, Instance};
use crate::call::{CallOwner as _, CallRef, Destination, catch_in_call};
use crate::code::{Code, Failure, append, must_not_wait};
use crate::completion::{CallBuffer, Completion, Outcome};
use crate::incoming::Incoming;
use crate::resource::ResourceOwner as _;
use crate::service::Dispatch;
use crate::spare::{SpareCall, SpareKey};

/// The turn of an idle instance, which belongs to the caller's thread until this is dropped.
pub(super) struct ClaimedTurn<'a> {
    instance: &'a Arc<Instance>,
    /// `None` while this is being dropped.
    actor: Option<MutexGuard<'a, ActorState>>,
}

impl Drop for ClaimedTurn<'_> {
    #[inline]
    fn drop(&mut self) {
        // Before the end of the turn, so that the next one finds the lock free.
        self.actor = None;
        if !self.instance.end_turn() {
            self.instance.schedule();
        }
    }
}

impl ClaimedTurn<'_> {
    /// Makes a call and serves it. Returns its completion.
    ///
    /// # Errors
    /// The call did not begin.
    #[inline]
    pub(super) fn call(
        mut self,
        method: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), Failure>,
        deadline: u64,
    ) -> Result<Completion, Failure> {
        let Some(actor) = &mut self.actor else {
            return Err(busy());
        };
        let spare = match actor.brief_memory.take() {
            Some(spare) => spare,
            None => self.instance.take_spare(SpareKey::WAITERS)?,
        };
        let to = Destination::Waiter;
        let (call, buffer) =
            self.instance
                .begin_in(spare, method, write, to, deadline, CallRef::clone)?;
        if let Some(buffer) = buffer {
            self.instance.serve_brief(actor, &call, buffer);
        }
        let Some(mut ended) = call.result.take() else {
            drop(self);
            let mut ended = completion_of(&call);
            ended.handle = 0;
            return Ok(ended);
        };
        // The memory of the call stays here, and the caller gets its result.
        let mut outcome = Outcome::spare();
        outcome.take_result(ended.0.contents());
        outcome.is_idempotent = call.is_idempotent();
        let memory = SpareCall::reclaim(ended.into_buffer().into_outcome(), call);
        // No generation is used twice.
        actor.brief_memory = memory.filter(|spare| !spare.core().open_state.is_exhausted());
        Ok(Completion(CallBuffer::without_call(outcome)))
    }
}

#[cold]
fn busy() -> Failure {
    Code::WouldPark.because("the service is busy: submit the call")
}

impl Instance {
    /// Claims the turn of this instance for one call of `method`, if the method is brief and the
    /// caller's thread may run it (rule 4).
    #[inline]
    pub(super) fn claim_turn(self: &Arc<Self>, method: u32) -> Option<ClaimedTurn<'_>> {
        let method = self.package.methods.get(method as usize)?;
        if !method.options.is_brief {
            return None;
        }
        self.claim_idle_turn()
    }

    fn claim_idle_turn(self: &Arc<Self>) -> Option<ClaimedTurn<'_>> {
        if !wait::is_thread_that_can_park() {
            return None;
        }
        if self.guest_port.is_some() || self.is_forked() || self.runtime.is_stopping() {
            return None;
        }
        if !self.mailbox.claim_turn() {
            return None;
        }
        // It fails if the thread of the previous turn has not dropped its guard yet.
        let actor = self.actor.try_lock().ok();
        let is_ready = actor.as_ref().is_some_and(|actor| actor.service.is_some());
        let turn = ClaimedTurn {
            instance: self,
            actor,
        };
        is_ready.then_some(turn)
    }

    /// Calls a brief method on this thread. The returned completion contains the outcome.
    ///
    /// # Errors
    /// `would_park`: the thread may not run it, or the instance is busy. The call did not begin.
    pub(crate) fn call_brief(
        self: &Arc<Self>,
        method: u32,
        args: &[u8],
        deadline: u64,
    ) -> Result<Completion, Failure> {
        let Some(turn) = self.claim_turn(method) else {
            return Err(busy());
        };
        let write = |buffer: &mut Vec<u8>| append(buffer, &self.convert_arguments(method, args)?);
        turn.call(method, write, deadline)
    }

    /// Serves a call in a claimed turn.
    #[inline]
    fn serve_brief(self: &Arc<Self>, actor: &mut ActorState, call: &CallRef, buffer: CallBuffer) {
        self.drop_replaced_service(actor);
        if !self.must_serve(&buffer) {
            return;
        }
        let Some(service) = &mut actor.service else {
            return;
        };
        call.set_incarnation(self.incarnation());
        if let Err(why) = Self::dispatch_brief(&mut **service, call, buffer) {
            Arc::clone(self).replace();
            call.stop(why);
        }
    }

    /// Rule 3.
    ///
    /// # Errors
    /// The method panicked or waited.
    #[inline]
    pub(super) fn dispatch_brief(
        service: &mut dyn Dispatch,
        call: &CallRef,
        buffer: CallBuffer,
    ) -> Result<(), Failure> {
        let section = NoWait::new(call.method_name());
        let served = catch_in_call(call.handle(), || service.dispatch(Incoming::new(buffer)));
        served.map_err(|why| match section.has_refused() {
            true => must_not_wait(call.method_name()),
            false => why,
        })?;
        if !call.has_ended() {
            call.stop(Code::WouldPark.because(format!(
                "{} is brief, and did not answer before it returned",
                call.method_name()
            )));
        }
        Ok(())
    }
}

/// The completion of a call that has ended, or that another thread is ending.
pub(super) fn completion_of(call: &CallRef) -> Completion {
    loop {
        if let Some(completion) = call.result.take() {
            return completion;
        }
        if call.result.arm(wait::waker()) {
            wait::park(None);
        }
    }
}
