//! The body of a behaviour actor, which all references share, and its turns.
//!
//! A *turn* is one run of the actor on a worker. It handles up to [`MESSAGES_PER_TURN`] messages.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use thalweg_queue::{NoPreemptGuard, WakerList};

use super::cold_state::{ColdState, OnEnd};
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::incarnation::{StartReport, StateFactory};
use super::mailbox_state::{self, MailboxState, NextAction, ReserveResult};
use super::priority_queues::{Priority, PriorityQueues};
use super::{Actor, Context};
use crate::actor_info::{ActorSnapshot, ActorState, ActorStats, Occupancy, Snapshot};
use crate::control::{Control, Exit, KillFlag, SignalEffect, SignalTarget, Target};
use crate::exit::{Pid, Signal};
use crate::id::ActorId;
use crate::mailbox::Mailbox;
use crate::reason::{ExitReason, JoinError};
use crate::shim::{AtomicU64, AtomicUsize, Cell, Mutex, Ordering, lock, yield_now};
use crate::stack::overflow::Name;
use crate::task::{RunningTurn, Task, TurnOwner};
use crate::worker::Worker;
use crate::{Handle, wait, worker};

/// Messages that one turn handles before other actors get their turn: about as many short messages
/// as fit into one timeslice.
pub(super) const MESSAGES_PER_TURN: u64 = 64;

pub(super) struct Body<A: Actor> {
    pub(super) mailbox_state: MailboxState,
    queues: PriorityQueues<A>,
    pub(super) mailbox: Mailbox,
    /// `None`: the actor has ended. Only the running turn accesses it (rule 2 of `mailbox_state`).
    state: UnsafeCell<Option<A>>,
    pub(super) has_started: Cell<bool>,
    /// The number of `ActorRef`s.
    pub(super) references: AtomicUsize,
    /// Messages that were dropped because the mailbox was full.
    pub(super) dropped: AtomicU64,
    /// Senders that wait for capacity, and callers of `wait_restarted`.
    blocked_senders: Mutex<WakerList>,
    pub(super) kill_flag: KillFlag,
    pub(super) runtime: Handle,
    /// The number of the current incarnation.
    pub(super) id: AtomicU64,
    name: Option<Name>,
    pub(super) cold: Mutex<ColdState<A>>,
    /// Present if [`Config::inspect`](crate::Config::inspect) is on.
    pub(super) stats: Option<Box<ActorStats>>,
}

// SAFETY: only the running turn accesses `state`, `has_started` and the reading end of `queues`,
// and there is one turn at a time (rule 2 of `mailbox_state`). A turn can run on any thread; `A:
// Send` allows this.
unsafe impl<A: Actor> Sync for Body<A> {}
// SAFETY: as above.
unsafe impl<A: Actor> Send for Body<A> {}

/// Why a message was not pushed.
pub(super) enum PushError {
    Closed,
    Full,
}

impl<A: Actor> Body<A> {
    /// Creates an actor with this state, or with a factory that creates the state later.
    pub(super) fn new(
        state: Result<A, StateFactory<A>>,
        name: Option<Name>,
        mailbox: Mailbox,
        runtime: Handle,
        on_end: Option<OnEnd>,
    ) -> Arc<Self> {
        let (state, factory) = match state {
            Ok(state) => (Some(state), None),
            Err(factory) => (None, Some(factory)),
        };
        let id = ActorId::next();
        let table = runtime.scheduler.actor_table.as_ref();
        let stats = table.map(|table| Box::new(table.register(id, worker::current_actor())));
        let body = Arc::new(Self {
            stats,
            mailbox_state: MailboxState::new(),
            queues: PriorityQueues::new(),
            mailbox,
            state: UnsafeCell::new(state),
            has_started: Cell::new(false),
            references: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            blocked_senders: Mutex::default(),
            kill_flag: KillFlag::new(),
            runtime,
            id: AtomicU64::new(id.number()),
            name,
            cold: Mutex::new(ColdState::new(factory, on_end)),
        });
        if let Some(stats) = &body.stats {
            let weak: Weak<dyn Snapshot> = Arc::<Self>::downgrade(&body);
            stats.insert_body(weak);
        }
        body
    }

    pub(super) fn id(&self) -> ActorId {
        // SAFETY: only numbers of IDs are stored.
        unsafe { ActorId::from_number_unchecked(self.id.load(Ordering::Relaxed)) }
    }

    /// Schedules the first turn of an actor whose state exists.
    pub(super) fn schedule_first_turn(self: &Arc<Self>) {
        self.runtime.count(|counts| &counts.started_behaviours);
        self.schedule_system();
    }

    /// Reserves capacity and pushes the message, if the mailbox has capacity. Returns the number of
    /// messages that now wait.
    pub(super) fn push(
        self: &Arc<Self>,
        priority: Priority,
        envelope: impl FnOnce() -> BoxedEnvelope<A>,
    ) -> Result<u64, PushError> {
        // The reader spins for a message that is reserved but not pushed yet, so this must not be
        // preempted.
        let _no_preempt = NoPreemptGuard::enter();
        match self.mailbox_state.reserve(self.capacity(priority)) {
            ReserveResult::Reserved { is_idle, messages } => {
                self.queues.push(priority, envelope());
                if priority == Priority::High {
                    self.mailbox_state.set_system();
                }
                if is_idle {
                    self.schedule();
                }
                Ok(messages)
            }
            ReserveResult::Full => Err(PushError::Full),
            ReserveResult::Closed => Err(PushError::Closed),
        }
    }

    /// The number of waiting messages at which the mailbox is full for this priority.
    fn capacity(&self, priority: Priority) -> u64 {
        let capacity = u64::from(self.mailbox.capacity);
        if priority == Priority::High {
            (2 * capacity).min(mailbox_state::MESSAGES)
        } else {
            capacity
        }
    }

    /// Pushes a message that is handled before all others, whether or not the mailbox is full.
    pub(super) fn push_system(self: &Arc<Self>, envelope: BoxedEnvelope<A>) {
        self.queues.push_system(envelope);
        self.schedule_system();
    }

    fn schedule_system(self: &Arc<Self>) {
        if self.mailbox_state.notify_system() {
            self.schedule();
        }
    }

    /// The `Pid` of the current incarnation.
    pub(super) fn pid(self: &Arc<Self>) -> Pid {
        let mut cold = lock(&self.cold);
        let control = match &cold.control {
            Some(control) => Arc::clone(control),
            None => {
                let target = if cold.ended {
                    Target::Ended(ExitReason::NoActor)
                } else {
                    let body: Weak<dyn SignalTarget> = Arc::<Self>::downgrade(self);
                    Target::Body(body)
                };
                let control = Control::new(self.id(), target);
                cold.control = Some(Arc::clone(&control));
                control
            }
        };
        Pid::new(control)
    }

    /// Waits until the mailbox has capacity or is closed. `false`: the deadline passed.
    pub(super) fn wait_for_capacity(&self, priority: Priority, deadline: Option<u64>) -> bool {
        let capacity = self.capacity(priority);
        loop {
            self.register_waiter(wait::waker());
            if self.mailbox_state.has_capacity(capacity) {
                return true;
            }
            match wait::park(deadline) {
                wait::WakeReason::TimedOut | wait::WakeReason::Stopping => return false,
                wait::WakeReason::Woken | wait::WakeReason::Interrupted => {}
            }
        }
    }

    /// Registers a waker for capacity, for the close and for a restart. The caller must check its
    /// condition after this.
    pub(super) fn register_waiter(&self, waker: Waker) {
        // A sender that gave up stays in the list until the next wake-up.
        lock(&self.blocked_senders).insert(waker);
        self.mailbox_state.set_waiters();
    }

    /// As [`wait_for_capacity`](Self::wait_for_capacity), for a task.
    pub(super) fn poll_capacity(&self, priority: Priority, waker: &Waker) -> Poll<()> {
        self.register_waiter(waker.clone());
        if self.mailbox_state.has_capacity(self.capacity(priority)) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Removes the waker of a task that no longer waits. Another wait may use the same waker, so it
    /// is woken to check again.
    pub(super) fn cancel_wait(&self, waker: &Waker) {
        let left = lock(&self.blocked_senders).remove(waker);
        if let Some(waker) = left {
            waker.wake();
        }
    }

    pub(super) fn wake_senders(&self) {
        let all = lock(&self.blocked_senders).take();
        all.wake();
    }

    pub(super) fn len(&self) -> usize {
        self.mailbox_state.len() as usize
    }

    pub(super) fn is_closed(&self) -> bool {
        self.mailbox_state.is_closed()
    }

    /// Whether the caller is this actor's running turn, which must not wait for the actor.
    pub(super) fn is_caller(&self) -> bool {
        wait::current() == Some(self.id())
    }

    pub(super) fn stop(self: &Arc<Self>) {
        self.stopped(self.mailbox_state.stop());
    }

    /// Finishes a stop: schedules a turn if needed, and wakes blocked senders.
    fn stopped(self: &Arc<Self>, makes_turn: bool) {
        if makes_turn {
            self.schedule();
        }
        self.wake_senders();
    }

    /// Whether an `ActorRef` exists at this moment (rule 5 of `mailbox_state`).
    fn is_referenced(&self) -> bool {
        self.references.load(Ordering::Acquire) > 0
    }

    /// Called when the last reference was dropped.
    pub(super) fn close(self: &Arc<Self>) {
        if self.mailbox_state.close() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        self.schedule_turn(None, Worker::submit);
    }

    /// Schedules the first turn of an incarnation whose state must be created.
    pub(super) fn schedule_start(self: &Arc<Self>, report: StartReport) {
        self.schedule_turn(Some(report), Worker::submit);
    }

    fn schedule_turn(self: &Arc<Self>, report: Option<StartReport>, submit: fn(&Worker, Task)) {
        let turn = QueuedTurn {
            body: Some(Arc::clone(self)),
            report,
        };
        let owner = TurnOwner {
            id: self.id(),
            name: self.name.as_ref(),
        };
        self.runtime
            .schedule_job(Some(owner), submit, move || turn.run());
    }

    fn turn(self: Arc<Self>, report: Option<StartReport>) {
        let body: *const Self = Arc::as_ptr(&self);
        let turn = RunningTurn {
            id: self.id(),
            body,
            kill_flag: &self.kill_flag,
        };
        let mut failed = None;
        let result = turn.during(worker::running(), || {
            let context = Context { body: &self };
            // SAFETY: this is the running turn.
            let state = unsafe { &mut *self.state.get() };
            if let Some(report) = report {
                match self.create_state(state, &context) {
                    // The receiver may have stopped waiting.
                    Ok(()) => drop(report.send(Ok(()))),
                    Err(why) => {
                        failed = Some(report);
                        return Ok(self.end_state(Err(why)));
                    }
                }
            }
            let next = catch_unwind(AssertUnwindSafe(|| self.read_messages(state, &context)));
            let result = match next {
                Ok(NextAction::End) if self.kill_flag.is_set() => Err(self.kill_error()),
                Ok(NextAction::End) => Ok(()),
                Ok(next) => return Err(next),
                Err(payload) => Err(JoinError::from_payload(payload)),
            };
            Ok(self.end_state(result))
        });
        if let Some(stats) = &self.stats
            && let Some(turn) = worker::current().and_then(Worker::usage_of_running)
        {
            stats.add(turn);
        }
        match result {
            Ok(result) => self.end(result, failed),
            Err(NextAction::Idle) => {}
            Err(NextAction::ReadMessage | NextAction::ReadSystem | NextAction::End) => {
                self.schedule_turn(None, Worker::submit_again);
            }
        }
    }

    pub(super) fn kill_error(self: &Arc<Self>) -> JoinError {
        let reason = self.pid().control().exit_reason();
        JoinError::Exit(reason.unwrap_or(ExitReason::Killed))
    }

    /// Handles messages until none is left or the turn's budget is used up.
    fn read_messages(&self, state: &mut Option<A>, context: &Context<'_, A>) -> NextAction {
        let mut budget = MESSAGES_PER_TURN;
        if self.kill_flag.is_set() {
            return NextAction::End;
        }
        if let Some(state) = state
            && !self.has_started.replace(true)
        {
            state.started(context);
        }
        while budget > 0 {
            let envelope = match self.mailbox_state.next(|| self.is_referenced()) {
                // SAFETY: this is the running turn.
                NextAction::ReadMessage => unsafe { self.queues.pop(budget) },
                NextAction::ReadSystem => {
                    self.read_system(state, context);
                    if self.kill_flag.is_set() {
                        return NextAction::End;
                    }
                    if !self.mailbox_state.can_read() {
                        continue;
                    }
                    // SAFETY: as above.
                    let (envelope, more) = unsafe { self.queues.pop_with_high(budget) };
                    if more {
                        self.mailbox_state.set_system();
                    }
                    envelope
                }
                other => return other,
            };
            let (Some(envelope), Some(state)) = (envelope, state.as_mut()) else {
                // The sender has reserved capacity and has not pushed the message yet.
                return NextAction::ReadMessage;
            };
            let counted = CapacityGuard(self);
            envelope.deliver(state, context);
            drop(counted);
            budget -= 1;
            if budget > 0 {
                wait::check();
            }
        }
        if self.mailbox_state.try_idle() {
            NextAction::Idle
        } else {
            NextAction::ReadMessage
        }
    }

    fn read_system(&self, state: &mut Option<A>, context: &Context<'_, A>) {
        while !self.kill_flag.is_set() {
            // SAFETY: this is the running turn.
            let envelope = unsafe { self.queues.pop_system() };
            let (Some(envelope), Some(state)) = (envelope, state.as_mut()) else {
                return;
            };
            envelope.deliver(state, context);
        }
    }

    /// Drops the state. Returns the actor's result: if that was a success, a panic in `stopped` or
    /// in a destructor replaces it.
    fn end_state(&self, result: Result<(), JoinError>) -> Result<(), JoinError> {
        // SAFETY: this is the running turn.
        let state = unsafe { &mut *self.state.get() };
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            if let Some(state) = state
                && result.is_ok()
            {
                state.stopped();
            }
        }));
        let dropped = worker::ending(|| catch_unwind(AssertUnwindSafe(|| drop(state.take()))));
        result.and(stopped.and(dropped).map_err(JoinError::from_payload))
    }

    /// Ends the incarnation without running code of the state. `failed`: the report for an
    /// incarnation whose start failed.
    fn end(self: &Arc<Self>, result: Result<(), JoinError>, failed: Option<StartReport>) {
        let id = self.id();
        let (control, exit_listener, on_end) = {
            let mut cold = lock(&self.cold);
            let exit_listener = cold.exit_listener().cloned();
            if exit_listener.is_none() {
                // A supervisor that takes over now still sees the incarnation as running (rule 4 of
                // `incarnation`).
                drop(cold);
                self.close_down();
                cold = lock(&self.cold);
            }
            cold.ended = true;
            let on_end = cold.rare().and_then(|rare| rare.on_end.take());
            (cold.control.take(), exit_listener, on_end)
        };
        let asked = || control.as_ref().and_then(|control| control.exit_reason());
        let reason = match &result {
            Ok(()) => asked().unwrap_or(ExitReason::Normal),
            Err(why) => ExitReason::from(why),
        };
        self.runtime
            .count(|counts| counts.ended_behaviours.of(Some(reason.kind())));
        if !reason.is_orderly() {
            let name = self.name.as_ref().map(Name::text);
            self.runtime.scheduler.crashes.record(id, name, &reason);
        }
        // From here on, the supervisor of a restartable actor may start the next incarnation.
        if let Some(control) = control {
            control.end(reason.clone());
        }
        match (failed, exit_listener) {
            (Some(failed), _) => drop(failed.send(Err(reason))),
            (None, Some(exit_listener)) => exit_listener(id, reason),
            (None, None) => {}
        }
        if let Some(on_end) = on_end {
            on_end(Signal::of(id, result));
        }
    }

    /// Closes the mailbox for good and drops the waiting messages. No incarnation follows.
    pub(super) fn close_down(&self) {
        let mut messages = self.mailbox_state.end();
        self.end_identity();
        while messages > 0 {
            // SAFETY: this is the running turn, or no turn runs and none can start (rule 3 of
            // `mailbox_state`).
            match unsafe { self.queues.pop_with_high(0) }.0 {
                Some(envelope) => {
                    messages -= 1;
                    drop_catching_panic(envelope);
                }
                // Rule 4 of `mailbox_state`: the sender is a few instructions away from its push,
                // unless the kernel has preempted it.
                None => yield_now(),
            }
        }
        // SAFETY: as above.
        while let Some(envelope) = unsafe { self.queues.pop_system() } {
            drop_catching_panic(envelope);
        }
        self.wake_senders();
    }
}

/// Dropping a message may panic. The remaining messages are dropped anyway.
fn drop_catching_panic<A: Actor>(envelope: BoxedEnvelope<A>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(envelope)));
}

impl<A: Actor> SignalTarget for Body<A> {
    fn control(self: Arc<Self>) -> Arc<Control> {
        Arc::clone(self.pid().control())
    }

    fn kill(&self) -> SignalEffect {
        SignalEffect::WakeHandler(self.kill_flag.set())
    }

    fn shut_down(&self) -> SignalEffect {
        SignalEffect::ScheduleTurn(self.mailbox_state.stop())
    }

    fn finish_signal(self: Arc<Self>, effect: SignalEffect) {
        match effect {
            SignalEffect::WakeHandler(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                self.schedule_system();
            }
            SignalEffect::ScheduleTurn(makes_turn) => self.stopped(makes_turn),
        }
    }

    fn abandoned(self: Arc<Self>) {
        let (control, on_end) = {
            let mut cold = lock(&self.cold);
            cold.ended = true;
            let on_end = cold.rare().and_then(|rare| rare.on_end.take());
            (cold.control.take(), on_end)
        };
        // The message that the turn is handling is still counted but is no longer queued. The state
        // still belongs to the turn.
        let _ = self.mailbox_state.end();
        self.end_identity();
        // SAFETY: this replaces the running turn, which never continues.
        while let Some(envelope) = unsafe { self.queues.pop_with_high(0) }.0 {
            drop_catching_panic(envelope);
        }
        // SAFETY: as above.
        while let Some(envelope) = unsafe { self.queues.pop_system() } {
            drop_catching_panic(envelope);
        }
        self.wake_senders();
        let why = JoinError::Stopped;
        if let Some(control) = control {
            control.end(ExitReason::from(&why));
        }
        if let Some(on_end) = on_end {
            on_end(Signal::of(self.id(), Err(why)));
        }
    }

    fn deliver_exit(self: Arc<Self>, incarnation: ActorId, exit: Exit) {
        self.push_system(BoxedEnvelope::new(Trapped(incarnation, exit)));
    }
}

impl<A: Actor> Snapshot for Body<A> {
    fn snapshot(&self) -> ActorSnapshot {
        let is_running = !lock(&self.cold).ended;
        let name = self.name.as_ref().map(Name::text);
        ActorSnapshot {
            id: self.id(),
            name: name.map(str::to_owned),
            state: if is_running {
                self.mailbox_state.state()
            } else if self.is_closed() {
                ActorState::Ending
            } else {
                ActorState::Stopped
            },
            mailbox: Occupancy {
                len: self.len(),
                capacity: self.mailbox.capacity as usize,
            },
            parent: self.stats.as_ref().and_then(|stats| stats.parent()),
            supervised: self.stats.as_ref().is_some_and(|stats| stats.supervised()),
            stats: self.stats.as_ref().map(|stats| stats.totals()),
        }
    }
}

/// A trapped exit signal for one incarnation.
struct Trapped(ActorId, Exit);

impl<A: Actor> Payload<A> for Trapped {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        if context.id() == self.0 {
            actor.on_exit(self.1, context);
        }
    }
}

/// A scheduled turn. If the runtime stops before the turn runs, dropping this ends the actor.
struct QueuedTurn<A: Actor> {
    body: Option<Arc<Body<A>>>,
    report: Option<StartReport>,
}

impl<A: Actor> QueuedTurn<A> {
    fn run(self) {
        let mut this = ManuallyDrop::new(self);
        let report = this.report.take();
        if let Some(body) = this.body.take() {
            body.turn(report);
        }
    }
}

impl<A: Actor> Drop for QueuedTurn<A> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            let result = body.end_state(Err(JoinError::Stopped));
            body.end(result, self.report.take());
        }
    }
}

/// Releases the capacity of a message when it has been handled, also after a panic.
struct CapacityGuard<'a, A: Actor>(&'a Body<A>);

impl<A: Actor> Drop for CapacityGuard<'_, A> {
    fn drop(&mut self) {
        if let Some(worker) = worker::current() {
            worker.status.counts.messages.add(1);
        }
        if self.0.mailbox_state.release(1) {
            self.0.wake_senders();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Body;
    use crate::Actor;

    struct Idle;

    impl Actor for Idle {}

    #[test]
    fn idle_actor_takes_at_most_256_bytes() {
        let counters_of_the_arc = 2 * size_of::<usize>();
        let size = size_of::<Body<Idle>>() + counters_of_the_arc;
        assert!(size <= 256, "{size} bytes");
    }
}
