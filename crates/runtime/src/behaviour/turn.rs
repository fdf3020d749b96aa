//! One actor's body, and its turns.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use thalweg_queue::Quiet;

use super::incarnation::{Keeper, Maker, Report};
use super::lane::{Contents, Sealed};
use super::lanes::{Lanes, Priority};
use super::owner::{self, Counted, Next, Owner};
use super::weak::Life;
use super::{Actor, Context, Mailbox};
use crate::exit::{self, Control, Doom, Exit, ExitReason, Marked, Pid, Reach, Reached};
use crate::id::ActorId;
use crate::inspect::{ActorState, Books, Occupancy, Seen};
use crate::join::JoinError;
use crate::shim::{AtomicU64, AtomicUsize, Cell, Locked, Mutex, Ordering, lock, yield_now};
use crate::stack::overflow::Name;
use crate::supervised::Signal;
use crate::task::{Turning, Who};
use crate::worker::Worker;
use crate::{Handle, wait, worker};

/// Messages that one turn handles before others get theirs: what a slice holds of short ones.
const MESSAGES_A_TURN: u64 = 64;

/// Hears how it ended.
type OnEnd = Box<dyn FnOnce(Signal) + Send>;

pub(super) struct Body<A: Actor> {
    pub(super) owner: Owner,
    lanes: Lanes<A>,
    pub(super) mailbox: Mailbox,
    /// `None`: it has ended. The running turn's alone (`owner`'s rule 2).
    state: UnsafeCell<Option<A>>,
    pub(super) begun: Cell<bool>,
    /// References to it that can send.
    pub(super) references: AtomicUsize,
    /// Messages that found no room and were dropped.
    pub(super) dropped: AtomicU64,
    /// Those that wait for room.
    waiting: Mutex<Vec<Waker>>,
    pub(super) doom: Doom,
    pub(super) runtime: Handle,
    /// The incarnation's number.
    pub(super) id: AtomicU64,
    name: Option<Name>,
    pub(super) named: Mutex<Named<A>>,
    /// Where they are kept.
    pub(super) books: Option<Box<Books>>,
}

/// What few actors have, and what is looked at when one ends.
pub(super) struct Named<A> {
    pub(super) on_end: Option<OnEnd>,
    pub(super) control: Option<Arc<Control>>,
    /// No incarnation lives.
    pub(super) ended: bool,
    pub(super) keeper: Option<Keeper>,
    pub(super) maker: Option<Maker<A>>,
    pub(super) life: Option<Life>,
}

// SAFETY: `state`, `begun` and the reading end of `lane` are the running turn's, of which there is one at a time (`owner`'s rule 2). A turn runs on
// any thread, which `A: Send` allows.
unsafe impl<A: Actor> Sync for Body<A> {}
// SAFETY: as above.
unsafe impl<A: Actor> Send for Body<A> {}

/// Why a letter was not put in.
pub(super) enum Refused {
    Closed,
    Full,
}

impl<A: Actor> Body<A> {
    /// An actor with this state, or one that is to be made.
    pub(super) fn new(
        state: Result<A, Maker<A>>,
        name: Option<Name>,
        mailbox: Mailbox,
        runtime: Handle,
        on_end: Option<OnEnd>,
    ) -> Arc<Self> {
        let (state, maker) = match state {
            Ok(state) => (Some(state), None),
            Err(maker) => (None, Some(maker)),
        };
        let id = ActorId::next();
        let register = runtime.scheduler.register.as_ref();
        let books = register.map(|register| Box::new(register.books(id)));
        let body = Arc::new(Self {
            books,
            owner: Owner::new(),
            lanes: Lanes::new(),
            mailbox,
            state: UnsafeCell::new(state),
            begun: Cell::new(false),
            references: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            waiting: Mutex::default(),
            doom: Doom::new(),
            runtime,
            id: AtomicU64::new(id.number()),
            name,
            named: Mutex::new(Named {
                on_end,
                control: None,
                ended: maker.is_some(),
                keeper: None,
                maker,
                life: None,
            }),
        });
        if let Some(books) = &body.books {
            let weak: Weak<dyn Reached> = Arc::<Self>::downgrade(&body);
            books.enter(weak);
        }
        body
    }

    pub(super) fn id(&self) -> ActorId {
        ActorId::of_number(self.id.load(Ordering::Relaxed))
    }

    /// Its first turn.
    pub(super) fn begin(self: &Arc<Self>) {
        self.runtime.count(|counts| &counts.started_behaviours);
        self.look_at_system();
    }

    /// Counts a letter and puts it in, if there is room.
    pub(super) fn put(
        self: &Arc<Self>,
        priority: Priority,
        letter: impl FnOnce() -> Sealed<A>,
    ) -> Result<(), Refused> {
        // Whoever sees that it is counted waits for it by looking again and again.
        let _quiet = Quiet::begin();
        match self.owner.count(self.room(priority)) {
            Counted::In(idle) => {
                self.lanes.push(priority, letter());
                if priority == Priority::High {
                    self.owner.look_first();
                }
                if idle {
                    self.schedule();
                }
                Ok(())
            }
            Counted::Full => Err(Refused::Full),
            Counted::Closed => Err(Refused::Closed),
        }
    }

    /// Letters that may wait before one of this priority.
    fn room(&self, priority: Priority) -> u64 {
        let capacity = u64::from(self.mailbox.capacity);
        if priority == Priority::High {
            (2 * capacity).min(owner::LETTERS)
        } else {
            capacity
        }
    }

    /// Puts it where it comes before all letters, and whether there is room does not matter.
    pub(super) fn put_system(self: &Arc<Self>, letter: Sealed<A>) {
        self.lanes.push_system(letter);
        self.look_at_system();
    }

    fn look_at_system(self: &Arc<Self>) {
        if self.owner.system() {
            self.schedule();
        }
    }

    /// What others know of it.
    pub(super) fn pid(self: &Arc<Self>) -> Pid {
        let mut named = lock(&self.named);
        let control = match &named.control {
            Some(control) => Arc::clone(control),
            None => {
                let reach = if named.ended {
                    Reach::Ended(ExitReason::NoActor)
                } else {
                    let body: Weak<dyn Reached> = Arc::<Self>::downgrade(self);
                    Reach::Body(body)
                };
                let control = Control::new(self.id(), reach);
                named.control = Some(Arc::clone(&control));
                control
            }
        };
        Pid::new(control)
    }

    /// Waits until there is room, or there will be none. `false`: the deadline passed.
    pub(super) fn wait_for_room(&self, priority: Priority, deadline: Option<u64>) -> bool {
        let room = self.room(priority);
        loop {
            self.ask_for_room(wait::waker());
            if self.owner.has_room(room) {
                return true;
            }
            match wait::park(deadline) {
                wait::Woke::TimedOut | wait::Woke::Stopping => return false,
                wait::Woke::Woken | wait::Woke::Interrupted => {}
            }
        }
    }

    /// Wakes it when there is room, or there will be none. Look once more then.
    fn ask_for_room(&self, waker: Waker) {
        {
            let mut waiting = self.waiting();
            // Those that gave up are in it until there is room.
            if !waiting.iter().any(|other| other.will_wake(&waker)) {
                waiting.push(waker);
            }
        }
        self.owner.wait();
    }

    /// The same for a task.
    pub(super) fn poll_for_room(&self, priority: Priority, waker: &Waker) -> Poll<()> {
        self.ask_for_room(waker.clone());
        if self.owner.has_room(self.room(priority)) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// A task waits for room no more. Another wait may have the same waker: it looks again.
    pub(super) fn leave_room(&self, waker: &Waker) {
        let left = {
            let mut waiting = self.waiting();
            let place = waiting.iter().position(|other| other.will_wake(waker));
            place.map(|place| waiting.swap_remove(place))
        };
        if let Some(waker) = left {
            waker.wake();
        }
    }

    fn waiting(&self) -> Locked<'_, Vec<Waker>> {
        lock(&self.waiting)
    }

    fn wake_all(&self) {
        let all = std::mem::take(&mut *self.waiting());
        all.into_iter().for_each(Waker::wake);
    }

    pub(super) fn len(&self) -> usize {
        self.owner.letters() as usize
    }

    pub(super) fn is_over(&self) -> bool {
        self.owner.is_over()
    }

    /// Whether the caller is its running turn: what would wait for itself.
    pub(super) fn is_caller(&self) -> bool {
        wait::current() == Some(self.id())
    }

    pub(super) fn stop(self: &Arc<Self>) {
        self.stopped(self.owner.stop());
    }

    /// The rest of it.
    fn stopped(self: &Arc<Self>, makes_turn: bool) {
        if makes_turn {
            self.schedule();
        }
        self.wake_all();
    }

    /// Whether anybody could send just now (`owner`'s rule 5).
    fn is_referenced(&self) -> bool {
        self.references.load(Ordering::Acquire) > 0
    }

    /// The last reference was dropped.
    pub(super) fn close(self: &Arc<Self>) {
        if self.owner.close() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        self.schedule_turn(None);
    }

    /// With a report: the first turn of an incarnation that is to be made.
    pub(super) fn schedule_turn(self: &Arc<Self>, report: Option<Report>) {
        let turn = Turn {
            body: Some(Arc::clone(self)),
            report,
        };
        let who = Who {
            id: self.id(),
            name: self.name.as_ref(),
        };
        self.runtime.schedule_job(Some(who), move || turn.run());
    }

    fn turn(self: Arc<Self>, report: Option<Report>) {
        let body: *const Self = Arc::as_ptr(&self);
        let turning = Turning {
            id: self.id(),
            body,
            doom: &self.doom,
        };
        let mut failed = None;
        let how = turning.during(worker::running(), || {
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
            let next = catch_unwind(AssertUnwindSafe(|| self.read(state, &context)));
            let how = match next {
                Ok(Next::End) if self.doom.is_set() => Err(self.doomed()),
                Ok(Next::End) => Ok(()),
                Ok(next) => return Err(next),
                Err(payload) => Err(JoinError::panicked(payload)),
            };
            Ok(self.end_state(how))
        });
        if let Some(books) = &self.books
            && let Some(turn) = worker::current().and_then(Worker::books_of_running)
        {
            books.add(turn);
        }
        match how {
            Ok(how) => self.end(how, failed),
            Err(Next::Rest) => {}
            Err(Next::Read | Next::System | Next::End) => self.schedule(),
        }
    }

    pub(super) fn doomed(self: &Arc<Self>) -> JoinError {
        let reason = self.pid().control().exit_reason();
        JoinError::Exit(reason.unwrap_or(ExitReason::Killed))
    }

    /// Reads letters until there are none, or it has read enough for one turn.
    fn read(&self, state: &mut Option<A>, context: &Context<'_, A>) -> Next {
        let mut budget = MESSAGES_A_TURN;
        if self.doom.is_set() {
            return Next::End;
        }
        if let Some(state) = state
            && !self.begun.replace(true)
        {
            state.started(context);
        }
        while budget > 0 {
            let letter = match self.owner.next(|| self.is_referenced()) {
                // SAFETY: this is the running turn.
                Next::Read => unsafe { self.lanes.pop(budget) },
                Next::System => {
                    self.read_system(state, context);
                    if self.doom.is_set() {
                        return Next::End;
                    }
                    if !self.owner.may_read() {
                        continue;
                    }
                    // SAFETY: as above.
                    let (letter, more) = unsafe { self.lanes.pop_any(budget) };
                    if more {
                        self.owner.look_first();
                    }
                    letter
                }
                other => return other,
            };
            let (Some(letter), Some(state)) = (letter, state.as_mut()) else {
                // Its sender has counted it and is about to put it in.
                return Next::Read;
            };
            let counted = CountedLetter(self);
            letter.read(state, context);
            drop(counted);
            budget -= 1;
            if budget > 0 {
                wait::check();
            }
        }
        if self.owner.rest() {
            Next::Rest
        } else {
            Next::Read
        }
    }

    fn read_system(&self, state: &mut Option<A>, context: &Context<'_, A>) {
        while !self.doom.is_set() {
            // SAFETY: this is the running turn.
            let letter = unsafe { self.lanes.pop_system() };
            let (Some(letter), Some(state)) = (letter, state.as_mut()) else {
                return;
            };
            letter.read(state, context);
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
        how.and(stopped.and(dropped).map_err(JoinError::panicked))
    }

    /// The rest of it, which runs no code of the state. `failed`: who began it hears that it did not come to be.
    fn end(self: &Arc<Self>, how: Result<(), JoinError>, failed: Option<Report>) {
        let id = self.id();
        let (control, keeper, on_end) = {
            let mut named = lock(&self.named);
            let keeper = named.keeper.clone();
            if keeper.is_none() {
                // Whoever keeps it from now on takes it for alive meanwhile (`incarnation`'s rule 4).
                drop(named);
                self.close_down();
                named = lock(&self.named);
            }
            named.ended = true;
            (named.control.take(), keeper, named.on_end.take())
        };
        let asked = || control.as_ref().and_then(|control| control.exit_reason());
        let reason = match &how {
            Ok(()) => asked().unwrap_or(ExitReason::Normal),
            Err(why) => ExitReason::from(why),
        };
        self.runtime
            .count(|counts| counts.ended_behaviours.of(Some(&reason)));
        if !reason.is_orderly() {
            let name = self.name.as_ref().map(Name::text);
            self.runtime.scheduler.crashes.note(id, name, &reason);
        }
        // From here on, where it is kept, the next incarnation may begin.
        if let Some(control) = control {
            control.end(reason.clone());
        }
        match (failed, keeper) {
            (Some(failed), _) => drop(failed.send(Err(reason))),
            (None, Some(keeper)) => keeper(id, reason),
            (None, None) => {}
        }
        if let Some(on_end) = on_end {
            on_end(Signal::of(id, how));
        }
    }

    /// No incarnation will follow: nothing is accepted any more, and what waits is dropped.
    pub(super) fn close_down(&self) {
        let mut letters = self.owner.end();
        self.end_life();
        while letters > 0 {
            // SAFETY: this is the running turn, or there is none and none can be (`owner`'s rule 3).
            match unsafe { self.lanes.pop_any(0) }.0 {
                Some(letter) => {
                    letters -= 1;
                    drop_quietly(letter);
                }
                // `owner`'s rule 4: a few instructions of its sender at most, unless that has lost its processor.
                None => yield_now(),
            }
        }
        // SAFETY: as above.
        while let Some(letter) = unsafe { self.lanes.pop_system() } {
            drop_quietly(letter);
        }
        self.wake_all();
    }
}

/// What it holds may panic when it is dropped; the others are dropped all the same.
fn drop_quietly<A: Actor>(letter: Sealed<A>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(letter)));
}

impl<A: Actor> Reached for Body<A> {
    fn control(self: Arc<Self>) -> Arc<Control> {
        Arc::clone(self.pid().control())
    }

    fn doom(&self) -> Marked {
        Marked::Doomed(self.doom.set())
    }

    fn shut_down(&self) -> Marked {
        Marked::Stopped(self.owner.stop())
    }

    fn hear(self: Arc<Self>, marked: Marked) {
        match marked {
            Marked::Doomed(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
                self.look_at_system();
            }
            Marked::Stopped(makes_turn) => self.stopped(makes_turn),
        }
    }

    fn abandoned(self: Arc<Self>) {
        let (control, on_end) = {
            let mut named = lock(&self.named);
            named.ended = true;
            (named.control.take(), named.on_end.take())
        };
        // The letter that the turn reads is counted, and is not there. The state is still the turn's.
        let _ = self.owner.end();
        self.end_life();
        // SAFETY: this stands for the running turn, which never goes on.
        while let Some(letter) = unsafe { self.lanes.pop_any(0) }.0 {
            drop_quietly(letter);
        }
        // SAFETY: as above.
        while let Some(letter) = unsafe { self.lanes.pop_system() } {
            drop_quietly(letter);
        }
        self.wake_all();
        let why = JoinError::Stopped;
        if let Some(control) = control {
            control.end(ExitReason::from(&why));
        }
        if let Some(on_end) = on_end {
            on_end(Signal::of(self.id(), Err(why)));
        }
    }

    fn trapped(self: Arc<Self>, incarnation: ActorId, exit: Exit) {
        self.put_system(Sealed::new(Trapped(incarnation, exit)));
    }

    fn seen(&self) -> Seen {
        let lives = !lock(&self.named).ended;
        let name = self.name.as_ref().map(Name::text);
        Seen {
            id: self.id(),
            name: name.map(str::to_owned),
            state: if lives {
                self.owner.state()
            } else if self.is_over() {
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

impl<A: Actor> Contents<A> for Trapped {
    fn read(self, actor: &mut A, context: &Context<'_, A>) {
        if context.id() == self.0 {
            actor.on_exit(self.1, context);
        }
    }
}

/// A turn that is to be. Where the runtime stops before it comes, the actor ends.
struct Turn<A: Actor> {
    body: Option<Arc<Body<A>>>,
    report: Option<Report>,
}

impl<A: Actor> Turn<A> {
    fn run(mut self) {
        if let Some(body) = self.body.take() {
            body.turn(self.report.take());
        }
    }
}

impl<A: Actor> Drop for Turn<A> {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            let how = body.end_state(Err(JoinError::Stopped));
            body.end(how, self.report.take());
        }
    }
}

/// Gives a letter's place back when it has been read, also by a panic.
struct CountedLetter<'a, A: Actor>(&'a Body<A>);

impl<A: Actor> Drop for CountedLetter<'_, A> {
    fn drop(&mut self) {
        if let Some(worker) = worker::current() {
            worker.pulse.counts.messages.add(1);
        }
        if self.0.owner.has_read(1) {
            self.0.wake_all();
        }
    }
}
