//! One actor's body, and its turns.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use thalweg_queue::NoPreemptGuard;

use super::envelope_queue::{BoxedEnvelope, Payload};
use super::incarnation::{ExitListener, StartReport, StateFactory};
use super::mailbox_state::{self, MailboxState, NextAction, ReserveResult};
use super::priority_queues::{Priority, PriorityQueues};
use super::weak_ref::Identity;
use super::{Actor, Context, Mailbox};
use crate::exit::Signal;
use crate::exit::{self, Control, Exit, ExitReason, KillFlag, Marked, Pid, Reach, Reached};
use crate::id::ActorId;
use crate::inspect::{ActorState, Books, Occupancy, Seen};
use crate::join::JoinError;
use crate::shim::{AtomicU64, AtomicUsize, Cell, LockGuard, Mutex, Ordering, lock, yield_now};
use crate::stack::overflow::Name;
use crate::task::{RunningTurn, TurnOwner};
use crate::worker::Worker;
use crate::{Handle, wait, worker};

/// Messages that one turn handles before others get theirs: what a slice holds of short ones.
const MESSAGES_PER_TURN: u64 = 64;

/// Hears how it ended.
type OnEnd = Box<dyn FnOnce(Signal) + Send>;

pub(super) struct Body<A: Actor> {
    pub(super) mailbox_state: MailboxState,
    queues: PriorityQueues<A>,
    pub(super) mailbox: Mailbox,
    /// `None`: it has ended. The running turn's alone (`mailbox_state`'s rule 2).
    state: UnsafeCell<Option<A>>,
    pub(super) has_started: Cell<bool>,
    /// References to it that can send.
    pub(super) references: AtomicUsize,
    /// Messages that found no room and were dropped.
    pub(super) dropped: AtomicU64,
    /// Those that wait for room.
    blocked_senders: Mutex<Vec<Waker>>,
    pub(super) kill_flag: KillFlag,
    pub(super) runtime: Handle,
    /// The incarnation's number.
    pub(super) id: AtomicU64,
    name: Option<Name>,
    pub(super) cold: Mutex<ColdState<A>>,
    /// Where they are kept.
    pub(super) books: Option<Box<Books>>,
}

/// What few actors have, and what is looked at when one ends.
pub(super) struct ColdState<A> {
    pub(super) on_end: Option<OnEnd>,
    pub(super) control: Option<Arc<Control>>,
    /// No incarnation lives.
    pub(super) ended: bool,
    pub(super) exit_listener: Option<ExitListener>,
    pub(super) factory: Option<StateFactory<A>>,
    pub(super) identity: Option<Identity>,
}

// SAFETY: `state`, `has_started` and the reading end of `lane` are the running turn's, of which there is one at a time (`mailbox_state`'s rule 2). A turn runs on
// any thread, which `A: Send` allows.
unsafe impl<A: Actor> Sync for Body<A> {}
// SAFETY: as above.
unsafe impl<A: Actor> Send for Body<A> {}

/// Why a letter was not put in.
pub(super) enum PushError {
    Closed,
    Full,
}

impl<A: Actor> Body<A> {
    /// An actor with this state, or one that is to be made.
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
        let register = runtime.scheduler.register.as_ref();
        let books = register.map(|register| Box::new(register.books(id)));
        let body = Arc::new(Self {
            books,
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
            cold: Mutex::new(ColdState {
                on_end,
                control: None,
                ended: factory.is_some(),
                exit_listener: None,
                factory,
                identity: None,
            }),
        });
        if let Some(books) = &body.books {
            let weak: Weak<dyn Reached> = Arc::<Self>::downgrade(&body);
            books.enter(weak);
        }
        body
    }

    pub(super) fn id(&self) -> ActorId {
        ActorId::from_number(self.id.load(Ordering::Relaxed))
    }

    /// Its first turn.
    pub(super) fn schedule_first_turn(self: &Arc<Self>) {
        self.runtime.count(|counts| &counts.started_behaviours);
        self.schedule_system();
    }

    /// Counts a letter and puts it in, if there is room.
    pub(super) fn push(
        self: &Arc<Self>,
        priority: Priority,
        envelope: impl FnOnce() -> BoxedEnvelope<A>,
    ) -> Result<(), PushError> {
        // Whoever sees that it is counted waits for it by looking again and again.
        let _no_preempt = NoPreemptGuard::enter();
        match self.mailbox_state.reserve(self.capacity(priority)) {
            ReserveResult::Reserved(idle) => {
                self.queues.push(priority, envelope());
                if priority == Priority::High {
                    self.mailbox_state.set_system();
                }
                if idle {
                    self.schedule();
                }
                Ok(())
            }
            ReserveResult::Full => Err(PushError::Full),
            ReserveResult::Closed => Err(PushError::Closed),
        }
    }

    /// Letters that may wait before one of this priority.
    fn capacity(&self, priority: Priority) -> u64 {
        let capacity = u64::from(self.mailbox.capacity);
        if priority == Priority::High {
            (2 * capacity).min(mailbox_state::MESSAGES)
        } else {
            capacity
        }
    }

    /// Puts it where it comes before all letters, and whether there is room does not matter.
    pub(super) fn push_system(self: &Arc<Self>, envelope: BoxedEnvelope<A>) {
        self.queues.push_system(envelope);
        self.schedule_system();
    }

    fn schedule_system(self: &Arc<Self>) {
        if self.mailbox_state.notify_system() {
            self.schedule();
        }
    }

    /// What others know of it.
    pub(super) fn pid(self: &Arc<Self>) -> Pid {
        let mut cold = lock(&self.cold);
        let control = match &cold.control {
            Some(control) => Arc::clone(control),
            None => {
                let reach = if cold.ended {
                    Reach::Ended(ExitReason::NoActor)
                } else {
                    let body: Weak<dyn Reached> = Arc::<Self>::downgrade(self);
                    Reach::Body(body)
                };
                let control = Control::new(self.id(), reach);
                cold.control = Some(Arc::clone(&control));
                control
            }
        };
        Pid::new(control)
    }

    /// Waits until there is room, or there will be none. `false`: the deadline passed.
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

    /// Wakes it when there is room, or there will be none. Look once more then.
    fn register_waiter(&self, waker: Waker) {
        {
            let mut blocked_senders = self.blocked_senders();
            // Those that gave up are in it until there is room.
            if !blocked_senders.iter().any(|other| other.will_wake(&waker)) {
                blocked_senders.push(waker);
            }
        }
        self.mailbox_state.set_waiters();
    }

    /// The same for a task.
    pub(super) fn poll_capacity(&self, priority: Priority, waker: &Waker) -> Poll<()> {
        self.register_waiter(waker.clone());
        if self.mailbox_state.has_capacity(self.capacity(priority)) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A task waits for room no more. Another wait may have the same waker: it looks again.
    pub(super) fn cancel_wait(&self, waker: &Waker) {
        let left = {
            let mut blocked_senders = self.blocked_senders();
            let place = blocked_senders
                .iter()
                .position(|other| other.will_wake(waker));
            place.map(|place| blocked_senders.swap_remove(place))
        };
        if let Some(waker) = left {
            waker.wake();
        }
    }

    fn blocked_senders(&self) -> LockGuard<'_, Vec<Waker>> {
        lock(&self.blocked_senders)
    }

    fn wake_senders(&self) {
        let all = std::mem::take(&mut *self.blocked_senders());
        all.into_iter().for_each(Waker::wake);
    }

    pub(super) fn len(&self) -> usize {
        self.mailbox_state.len() as usize
    }

    pub(super) fn is_closed(&self) -> bool {
        self.mailbox_state.is_closed()
    }

    /// Whether the caller is its running turn: what would wait for itself.
    pub(super) fn is_caller(&self) -> bool {
        wait::current() == Some(self.id())
    }

    pub(super) fn stop(self: &Arc<Self>) {
        self.stopped(self.mailbox_state.stop());
    }

    /// The rest of it.
    fn stopped(self: &Arc<Self>, makes_turn: bool) {
        if makes_turn {
            self.schedule();
        }
        self.wake_senders();
    }

    /// Whether anybody could send just now (`mailbox_state`'s rule 5).
    fn is_referenced(&self) -> bool {
        self.references.load(Ordering::Acquire) > 0
    }

    /// The last reference was dropped.
    pub(super) fn close(self: &Arc<Self>) {
        if self.mailbox_state.close() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        self.schedule_turn(None);
    }

    /// With a report: the first turn of an incarnation that is to be made.
    pub(super) fn schedule_turn(self: &Arc<Self>, report: Option<StartReport>) {
        let turn = QueuedTurn {
            body: Some(Arc::clone(self)),
            report,
        };
        let owner = TurnOwner {
            id: self.id(),
            name: self.name.as_ref(),
        };
        self.runtime.schedule_job(Some(owner), move || turn.run());
    }

    fn turn(self: Arc<Self>, report: Option<StartReport>) {
        let body: *const Self = Arc::as_ptr(&self);
        let turn = RunningTurn {
            id: self.id(),
            body,
            kill_flag: &self.kill_flag,
        };
        let mut failed = None;
        let how = turn.during(worker::running(), || {
            let context = Context { body: &self };
            // SAFETY: this is the running turn.
            let state = unsafe { &mut *self.state.get() };
            if let Some(report) = report {
                match self.make(state, &context) {
                    // Who began it may not wait for that any more.
                    Ok(()) => drop(report.send(Ok(()))),
                    Err(why) => {
                        failed = Some(report);
                        return Ok(self.end_state(Err(why)));
                    }
                }
            }
            let next = catch_unwind(AssertUnwindSafe(|| self.read_messages(state, &context)));
            let how = match next {
                Ok(NextAction::End) if self.kill_flag.is_set() => Err(self.doomed()),
                Ok(NextAction::End) => Ok(()),
                Ok(next) => return Err(next),
                Err(payload) => Err(JoinError::from_payload(payload)),
            };
            Ok(self.end_state(how))
        });
        if let Some(books) = &self.books
            && let Some(turn) = worker::current().and_then(Worker::usage_of_running)
        {
            books.add(turn);
        }
        match how {
            Ok(how) => self.end(how, failed),
            Err(NextAction::Idle) => {}
            Err(NextAction::ReadMessage | NextAction::ReadSystem | NextAction::End) => {
                self.schedule()
            }
        }
    }

    pub(super) fn doomed(self: &Arc<Self>) -> JoinError {
        let reason = self.pid().control().exit_reason();
        JoinError::Exit(reason.unwrap_or(ExitReason::Killed))
    }

    /// Reads letters until there are none, or it has read enough for one turn.
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
                // Its sender has counted it and is about to put it in.
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

    /// The state's end; how the actor ends, which that may change.
    fn end_state(&self, how: Result<(), JoinError>) -> Result<(), JoinError> {
        // SAFETY: this is the running turn.
        let state = unsafe { &mut *self.state.get() };
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            if let Some(state) = state
                && how.is_ok()
            {
                state.stopped();
            }
        }));
        let dropped = exit::ending(|| catch_unwind(AssertUnwindSafe(|| drop(state.take()))));
        how.and(stopped.and(dropped).map_err(JoinError::from_payload))
    }

    /// The rest of it, which runs no code of the state. `failed`: who began it hears that it did not come to be.
    fn end(self: &Arc<Self>, how: Result<(), JoinError>, failed: Option<StartReport>) {
        let id = self.id();
        let (control, exit_listener, on_end) = {
            let mut cold = lock(&self.cold);
            let exit_listener = cold.exit_listener.clone();
            if exit_listener.is_none() {
                // Whoever keeps it from now on takes it for alive meanwhile (`incarnation`'s rule 4).
                drop(cold);
                self.close_down();
                cold = lock(&self.cold);
            }
            cold.ended = true;
            (cold.control.take(), exit_listener, cold.on_end.take())
        };
        let asked = || control.as_ref().and_then(|control| control.exit_reason());
        let reason = match &how {
            Ok(()) => asked().unwrap_or(ExitReason::Normal),
            Err(why) => ExitReason::from(why),
        };
        self.runtime
            .count(|counts| counts.ended_behaviours.of(Some(reason.kind())));
        if !reason.is_orderly() {
            let name = self.name.as_ref().map(Name::text);
            self.runtime.scheduler.crashes.note(id, name, &reason);
        }
        // From here on, where it is kept, the next incarnation may begin.
        if let Some(control) = control {
            control.end(reason.clone());
        }
        match (failed, exit_listener) {
            (Some(failed), _) => drop(failed.send(Err(reason))),
            (None, Some(exit_listener)) => exit_listener(id, reason),
            (None, None) => {}
        }
        if let Some(on_end) = on_end {
            on_end(Signal::of(id, how));
        }
    }

    /// No incarnation will follow: nothing is accepted any more, and what waits is dropped.
    pub(super) fn close_down(&self) {
        let mut messages = self.mailbox_state.end();
        self.end_identity();
        while messages > 0 {
            // SAFETY: this is the running turn, or there is none and none can be (`mailbox_state`'s rule 3).
            match unsafe { self.queues.pop_with_high(0) }.0 {
                Some(envelope) => {
                    messages -= 1;
                    drop_catching_panic(envelope);
                }
                // `mailbox_state`'s rule 4: a few instructions of its sender at most, unless that has lost its processor.
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

/// What it holds may panic when it is dropped; the others are dropped all the same.
fn drop_catching_panic<A: Actor>(envelope: BoxedEnvelope<A>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(envelope)));
}

impl<A: Actor> Reached for Body<A> {
    fn control(self: Arc<Self>) -> Arc<Control> {
        Arc::clone(self.pid().control())
    }

    fn set_kill_flag(&self) -> Marked {
        Marked::Doomed(self.kill_flag.set())
    }

    fn shut_down(&self) -> Marked {
        Marked::Stopped(self.mailbox_state.stop())
    }

    fn hear(self: Arc<Self>, marked: Marked) {
        match marked {
            Marked::Doomed(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                self.schedule_system();
            }
            Marked::Stopped(makes_turn) => self.stopped(makes_turn),
        }
    }

    fn abandoned(self: Arc<Self>) {
        let (control, on_end) = {
            let mut cold = lock(&self.cold);
            cold.ended = true;
            (cold.control.take(), cold.on_end.take())
        };
        // The letter that the turn reads is counted, and is not there. The state is still the turn's.
        let _ = self.mailbox_state.end();
        self.end_identity();
        // SAFETY: this stands for the running turn, which never goes on.
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

    fn trapped(self: Arc<Self>, incarnation: ActorId, exit: Exit) {
        self.push_system(BoxedEnvelope::new(Trapped(incarnation, exit)));
    }

    fn seen(&self) -> Seen {
        let lives = !lock(&self.cold).ended;
        let name = self.name.as_ref().map(Name::text);
        Seen {
            id: self.id(),
            name: name.map(str::to_owned),
            state: if lives {
                self.mailbox_state.state()
            } else if self.is_closed() {
                ActorState::Ending
            } else {
                ActorState::Between
            },
            mailbox: Occupancy {
                len: self.len(),
                capacity: self.mailbox.capacity as usize,
            },
            parent: self.books.as_ref().and_then(|books| books.parent()),
            supervised: self.books.as_ref().is_some_and(|books| books.supervised()),
            books: self.books.as_ref().map(|books| books.total()),
        }
    }
}

/// An exit signal on its way to the incarnation that traps it.
struct Trapped(ActorId, Exit);

impl<A: Actor> Payload<A> for Trapped {
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        if context.id() == self.0 {
            actor.on_exit(self.1, context);
        }
    }
}

/// A turn that is to be. Where the runtime stops before it comes, the actor ends.
struct QueuedTurn<A: Actor> {
    body: Option<Arc<Body<A>>>,
    report: Option<StartReport>,
}

impl<A: Actor> QueuedTurn<A> {
    fn run(mut self) {
        if let Some(body) = self.body.take() {
            body.turn(self.report.take());
        }
    }
}

impl<A: Actor> Drop for QueuedTurn<A> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            let how = body.end_state(Err(JoinError::Stopped));
            body.end(how, self.report.take());
        }
    }
}

/// Gives a letter's place back when it has been read, also by a panic.
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
