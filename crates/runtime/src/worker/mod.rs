//! One worker: which of its jobs runs next, and what it does when there is none.
//!
//! 1. A worker is entered and left by one thread, and nobody else sees it; its cells are that thread's.
//! 2. The order: every [`TURNS_TO_FRESH`]th turn what others may take, and [`FRESH_IN_A_ROW`] of it, or as much as a slice has time for where a slice was used up; then the slot
//!    for what was woken last, at most [`MOST_IN_A_ROW`] times in a row; then its own queue, oldest first; then what others may take; then what others have.
//! 3. While a job runs the worker's own frames wait below it, on the thread's stack: what the job calls here runs on the job's stack.

mod events;
mod fibers;
mod idle;
mod listing;
mod points;
mod shortage;

use std::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::Arc;

use thalweg_queue::{Spin, clock};

use self::fibers::Fibers;
use crate::affinity::Pinned;
use crate::ahead;
use crate::fiber::{Fiber, Suspended};
use crate::fifo::Fifo;
use crate::id::{ActorId, Ids};
use crate::io::{EventBuffer, Poller};
use crate::join::JoinHandle;
use crate::panics;
use crate::preempt;
use crate::remote_queue::RemoteQueue;
use crate::runtime::Handle;
use crate::scheduler::{Scheduler, Seat, cancel};
use crate::shim::Ordering;
use crate::shutdown::{Left, Unfinished};
use crate::slice::Slice;
use crate::stack::Depot;
use crate::stack::overflow::{self, AlternateStack, Name};
use crate::stall::{Pulse, Watched};
use crate::task::{OnShortage, Phase, Task};
use crate::trace;
use crate::wait;
use crate::wheel::Wheel;

/// Fresh work is looked at every so many turns although started work waits: at 61, as tokio has it, a sketch
/// starved fresh actors behind yielders at 2.2 times tokio's time, at 8 it took 0.75 of it.
const TURNS_TO_FRESH: u32 = 8;
/// Of those turns, so that what has begun and what has not get as many: with one of 8, eight yielders on a worker held a storm of short actors up
/// for twice its time.
const FRESH_IN_A_ROW: u32 = TURNS_TO_FRESH / 2;
/// Turns between two looks at the clock, for deadlines: a look costs as much as two turns.
const TURNS_TO_CLOCK: u32 = 64;
/// Rounds of turns of actors that do not end when their runtime stops, before their worker sleeps between two of them ..
const ROUNDS_AT_ONCE: u32 = 64;
/// .. for so long: such an actor waits for something outside of the runtime.
const BETWEEN_ROUNDS_NS: u64 = 1_000_000;
/// As in tokio: two actors that wake each other must not keep the others out.
const MOST_IN_A_ROW: u32 = 3;

pub(crate) struct Worker {
    index: usize,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) remote_queue: &'static RemoteQueue,
    running: Cell<Option<Task>>,
    /// What was woken last, or the first job in reserve (`scheduler`'s rule 2).
    slot: Cell<Option<Task>>,
    in_a_row: Cell<u32>,
    /// What others may take, before started work has its turns again.
    fresh_left: Cell<u32>,
    /// PollTimeout when what others may take goes first, as what ran before had its whole slice; 0: it does not.
    fresh_until: Cell<u64>,
    ready: Fifo,
    fibers: UnsafeCell<Fibers>,
    /// Where an overflow is reported, if this thread had nowhere.
    _alternate: Option<AlternateStack>,
    wheel: Wheel,
    /// For the descriptors that actors of this worker wait for.
    poller: OnceCell<Arc<Poller>>,
    event_buffer: RefCell<EventBuffer>,
    /// When an actor that runs for long last had it polled.
    polled: Cell<u64>,
    /// Counts its turns, too.
    pub(crate) pulse: Arc<Pulse>,
    /// Books are kept of what each actor takes.
    keeps_books: bool,
    /// When what runs here was given the worker, where they are kept.
    since: Cell<u64>,
    /// Yields for which nobody waited.
    yields_alone: Cell<u32>,
    slice: Slice,
    ids: Ids,
    /// [`Scheduler::shortages`] when this worker last looked whether it has a stack for a job that
    /// waits.
    seen_shortages: Cell<usize>,
    /// When it looks again, while it has nothing else to do.
    retry_at: Cell<Option<u64>>,
    /// The last stack that it did not get was refused by the system.
    short_of_memory: Cell<bool>,
    /// Jobs are cancelled here since no stack came for them.
    refusing: Cell<bool>,
}

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

/// What an actor is unwound with that does not end when its runtime does.
pub(crate) struct GivenUp;

/// Ends what runs here, where that can be done: an unwind within an unwind would end the process, and frames of another language may lie between.
#[cold]
#[inline(never)]
pub(crate) fn give_up() {
    if !std::thread::panicking() && !preempt::is_native() {
        if let Some(worker) = current() {
            worker.told();
        }
        std::panic::resume_unwind(Box::new(GivenUp));
    }
}

/// Whether what runs here panics just now. It must not be put aside then: the count of panics is the thread's, and the next that panics
/// on it would end the process.
fn is_unwinding() -> bool {
    std::thread::panicking()
}

/// The worker that this thread is.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Worker> {
    // SAFETY: set from the beginning to the end of `enter`, on whose frame the worker is; the reference is used further up that stack, or on
    // a fiber that this worker resumes from there.
    unsafe { CURRENT.get().as_ref() }
}

/// What a worker's thread knows of itself, for the thread that is one of its fibers.
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) struct Belongings(*const Worker, preempt::Left);

#[cfg(any(miri, loom, thalweg_threads))]
impl Belongings {
    pub(crate) fn of_this_thread() -> Self {
        Self(CURRENT.get(), preempt::Left::of_this_thread())
    }

    pub(crate) fn take_up(self) {
        CURRENT.set(self.0);
        self.1.take_up();
        thalweg_queue::host(Some(&wait::HOST));
    }
}

/// Which actor runs on this thread.
pub(crate) fn acting() -> Option<ActorId> {
    current()?.acting()
}

/// What runs on this thread, if it is a worker and something does.
pub(crate) fn running() -> Option<Task> {
    current()?.running()
}

impl Worker {
    /// Makes this thread worker `index` while `f` runs; then ends what is left there.
    pub(crate) fn enter<R>(
        index: usize,
        scheduler: Arc<Scheduler>,
        f: impl FnOnce(&Self) -> R,
    ) -> R {
        if scheduler.config.note_panics {
            panics::set_hook();
        }
        // Kept to the end: a thread that is lent to the runtime gets its own processors back.
        let _pinned = Pinned::to(&scheduler.processors, index);
        let reports = scheduler.config.report_overflow && overflow::install().is_ok();
        // Without one an overflow ends the process without a word.
        let alternate = reports.then(AlternateStack::where_missing).flatten();
        let pulse = Arc::clone(&scheduler.seats[index].pulse);
        // As long as anything runs here.
        let _watched = Watched::by(&scheduler.watcher, &pulse);
        let worker = Self {
            index,
            remote_queue: scheduler.seats[index].remote_queue,
            running: Cell::new(None),
            slot: Cell::new(None),
            in_a_row: Cell::new(0),
            fresh_left: Cell::new(0),
            fresh_until: Cell::new(0),
            ready: Fifo::default(),
            fibers: UnsafeCell::new(Fibers::new(Depot::of(scheduler.config.stack_size))),
            _alternate: alternate,
            keeps_books: scheduler.config.inspect,
            since: Cell::new(0),
            scheduler,
            wheel: Wheel::new(clock::now()),
            poller: OnceCell::new(),
            event_buffer: RefCell::default(),
            polled: Cell::new(0),
            pulse,
            yields_alone: Cell::new(0),
            slice: Slice::new(),
            ids: Ids::default(),
            seen_shortages: Cell::new(0),
            retry_at: Cell::new(None),
            short_of_memory: Cell::new(false),
            refusing: Cell::new(false),
        };
        CURRENT.set(&worker);
        let points = preempt::Points::begin(worker.scheduler.config.alloc_interval);
        let before = thalweg_queue::host(Some(&wait::HOST));
        let result = f(&worker);
        worker.end_all();
        worker.end_io();
        worker.seat().asked.close();
        thalweg_queue::host(before);
        drop(points);
        CURRENT.set(std::ptr::null());
        result
    }

    fn seat(&self) -> &Seat {
        &self.scheduler.seats[self.index]
    }

    fn is_alone(&self) -> bool {
        self.scheduler.seats.len() == 1
    }

    /// Which actor runs here now: the one whose turn it is, if it is one.
    #[inline(always)]
    pub(crate) fn acting(&self) -> Option<ActorId> {
        Some(self.running.get()?.header().shown.get())
    }

    /// What runs here now.
    pub(crate) fn running(&self) -> Option<Task> {
        self.running.get()
    }

    /// Takes what is there to do until `until` or the runtime stops.
    pub(crate) fn work(&self, until: impl Fn() -> bool) {
        let mut spin = Spin::new();
        while !until() && !self.scheduler.is_stopping() {
            let turn = self.pulse.begin();
            if turn.is_multiple_of(TURNS_TO_CLOCK) {
                self.fire();
                self.poll();
                self.serve_waiting();
            }
            if !self.remote_queue.is_empty() {
                self.collect();
            }
            match self.pick(turn) {
                Some(task) => self.run(task),
                None => self.idle(&mut spin),
            }
        }
    }

    /// Rule 2.
    #[inline(always)]
    fn pick(&self, turn: u32) -> Option<Task> {
        let left = self.fresh_left.get();
        if left > 0 || turn.is_multiple_of(TURNS_TO_FRESH) || self.owes_fresh() {
            if let Some(task) = self.fresh() {
                self.fresh_left
                    .set(left.checked_sub(1).unwrap_or(FRESH_IN_A_ROW - 1));
                return Some(task);
            }
            self.fresh_left.set(0);
            self.fresh_until.set(0);
        }
        if let Some(task) = self.slot.take() {
            let in_a_row = self.in_a_row.get();
            if in_a_row < MOST_IN_A_ROW || self.ready.is_empty() {
                self.in_a_row.set(in_a_row + 1);
                return Some(task);
            }
            self.put_behind(task);
        }
        self.in_a_row.set(0);
        let Some(task) = self.ready.pop() else {
            return self.fresh();
        };
        ahead::fetch_task(self.ready.first());
        Some(task)
    }

    /// By turns alone, one that starts others and never yields would have four slices for four of them.
    #[inline(always)]
    fn owes_fresh(&self) -> bool {
        self.fresh_until.get() != 0 && self.still_owes_fresh()
    }

    #[cold]
    fn still_owes_fresh(&self) -> bool {
        let owes = clock::now() < self.fresh_until.get();
        if !owes {
            self.fresh_until.set(0);
        }
        owes
    }

    /// What others may take, too: from the own ring, or from where others put it. Neither waits for the other to run dry.
    fn fresh(&self) -> Option<Task> {
        if self.is_alone() {
            return self.scheduler.take_injected();
        }
        if self.pulse.turn().is_multiple_of(2 * TURNS_TO_FRESH) {
            self.sent().or_else(|| self.seat().take_own())
        } else {
            self.seat().take_own().or_else(|| self.sent())
        }
    }

    fn sent(&self) -> Option<Task> {
        let placed = self.seat().placed.pop();
        let sent = placed.or_else(|| self.scheduler.take_injected())?;
        if self.scheduler.moved.is_watched() {
            self.scheduler.moved.note(sent);
        }
        Some(sent)
    }

    /// What is not to run at once.
    fn put_behind(&self, task: Task) {
        if task.header().phase.get() == Phase::Fresh && !self.is_alone() {
            self.share(task);
        } else {
            self.ready.push(task);
        }
    }

    /// `scheduler`'s rule 1.
    fn share(&self, task: Task) {
        match self.seat().ring.push(task.into_raw()) {
            Ok(()) => self.scheduler.announce(),
            Err(_) => self.scheduler.inject(task),
        }
    }

    #[inline(always)]
    fn run(&self, task: Task) {
        let header = task.header();
        let fiber = match header.fiber.get() {
            Some(fiber) => fiber,
            None => {
                let free = self.fibers(Fibers::take);
                let Some(fiber) = free.or_else(|| self.obtain_fiber(task)) else {
                    return;
                };
                self.settle(fiber, task);
                fiber
            }
        };
        header.phase.set(Phase::Running);
        self.running.set(Some(task));
        self.pulse.run(header.shown.get().number());
        self.pulse.counts.slices.add(1);
        // SAFETY: the name is the job's, which takes it back before it goes (`Task::end`).
        unsafe { overflow::set_current(header.name.as_ref().map(NonNull::from)) };
        self.slice.begin();
        header.slices.set(header.slices.get().wrapping_add(1));
        if self.keeps_books {
            self.since.set(clock::now());
        }
        // SAFETY: one of ours; and this is not a fiber but the worker's own stack.
        let why = unsafe { Fiber::resume(fiber, task) };
        self.running.set(None);
        if self.keeps_books {
            // What has finished may be freed by now.
            self.book((why != Suspended::Finished).then_some(header));
        }
        match why {
            Suspended::Parked => {}
            Suspended::Yielded => {
                header.phase.set(Phase::Ready);
                self.ready.push(task);
            }
            // The job may be freed by now.
            Suspended::Finished => {
                // SAFETY: as above.
                unsafe { fiber.as_ref() }.task.set(None);
                if !self.fibers(|fibers| fibers.give(fiber)) {
                    self.put_back(fiber);
                }
            }
        }
    }

    /// The job runs on this fiber from now on.
    #[inline(always)]
    fn settle(&self, fiber: NonNull<Fiber>, task: Task) {
        // SAFETY: one of ours, all of which live as long as the worker.
        unsafe { fiber.as_ref() }.task.set(Some(task));
        task.settle(self.remote_queue, fiber);
    }

    fn count_fibers(&self) {
        let fibers = self.fibers(|fibers| fibers.len());
        self.seat().stacks.store(fibers, Ordering::Relaxed);
    }

    fn fibers<R>(&self, f: impl FnOnce(&mut Fibers) -> R) -> R {
        // SAFETY: rule 1, and no `f` comes back here.
        f(unsafe { &mut *self.fibers.get() })
    }

    /// A new job of the actor that runs here.
    #[inline(always)]
    pub(crate) fn spawn<T>(
        &self,
        name: Option<Name>,
        on_shortage: OnShortage,
        f: impl FnOnce() -> T,
    ) -> JoinHandle<T> {
        let task = Task::new(self.ids.next(), name, f);
        if on_shortage != OnShortage::End {
            task.header().on_shortage.set(on_shortage);
        }
        task.header().parent.set(self.acting());
        if trace::is_used() {
            trace::give_child(task);
        }
        self.pulse.counts.started_stacks.add(1);
        if self.scheduler.is_stopping() {
            cancel(task);
        } else if self.is_alone() {
            self.ready.push(task);
        } else if self.slot.get().is_none() {
            self.slot.set(Some(task));
        } else {
            self.share(task);
        }
        JoinHandle::new(task)
    }

    /// Whether what is dropped just now is a job that is cancelled since no stack came for it.
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.get()
    }

    /// Of a job that is made here.
    pub(crate) fn next_id(&self) -> ActorId {
        self.ids.next()
    }

    /// A job that was made before, next if nothing else is.
    pub(crate) fn submit(&self, task: Task) {
        if self.scheduler.is_stopping() {
            cancel(task);
        } else if self.slot.get().is_none() {
            self.slot.set(Some(task));
        } else {
            self.put_behind(task);
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::new(&self.scheduler)
    }

    /// A new job that stays here.
    pub(crate) fn spawn_here<T>(&self, f: impl FnOnce() -> T) -> JoinHandle<T> {
        let task = Task::new(self.ids.next(), None, f);
        self.pulse.counts.started_stacks.add(1);
        self.ready.push(task);
        JoinHandle::new(task)
    }

    /// One of this worker's jobs, by this thread.
    #[inline(always)]
    pub(crate) fn wake(&self, task: Task) {
        if Self::is_to_run(task)
            && let Some(before) = self.slot.replace(Some(task))
        {
            self.put_behind(before);
        }
    }

    /// Says that it is woken. `false`: it was not put aside.
    #[inline(always)]
    fn is_to_run(task: Task) -> bool {
        let header = task.header();
        let parked = header.phase.get() == Phase::Parked;
        if parked {
            header.phase.set(Phase::Ready);
        } else {
            header.notified.set(true);
        }
        parked
    }

    fn collect(&self) {
        for task in self.remote_queue.drain() {
            task.wake_from_remote_queue(|task| {
                self.pulse.counts.wakes_from_afar.add(1);
                self.wake(task);
            });
        }
        if self.seat().asked.is_asked() {
            self.seat().asked.answer(self);
        }
    }

    /// Wakes those whose deadline has passed, in the order of their deadlines.
    fn fire(&self) {
        if self.wheel.is_empty() {
            return;
        }
        self.wheel.advance(clock::now(), |entry| {
            // SAFETY: the entry is in the fiber of an actor of ours that is put aside.
            let named = unsafe { entry.as_ref() }.data.get();
            // SAFETY: `park` put the actor's name there, which is alive as long as it is put aside.
            if let Some(task) = unsafe { Task::from_raw(named.cast_mut().cast()) }
                && Self::is_to_run(task)
            {
                self.pulse.counts.deadlines.add(1);
                self.ready.push(task);
            }
        });
    }

    /// Whether anything but what runs could go on here.
    #[inline(always)]
    fn others_wait(&self) -> bool {
        !self.ready.is_empty()
            || self.slot.get().is_some()
            || !self.remote_queue.is_empty()
            || self.scheduler.has_injected()
            || (!self.is_alone() && self.seat().has_some())
    }

    /// What is left when the worker goes: each started actor may end by itself, its wait returns `Stopping`. Those that do not are left behind in time.
    fn end_all(&self) {
        self.empty();
        let mut rounds = 0;
        while self.resume_each() {
            let (now, deadline) = (clock::now(), self.scheduler.shutdown.deadline());
            if now >= deadline {
                self.abandon_each();
                break;
            }
            self.collect();
            rounds += 1;
            if rounds < ROUNDS_AT_ONCE {
                std::thread::yield_now();
            } else {
                let next = deadline.min(now + BETWEEN_ROUNDS_NS);
                self.remote_queue.parker.park(Some(next));
            }
        }
        self.collect();
        self.empty();
    }

    /// Gives each started actor a turn. Whether any did not end.
    fn resume_each(&self) -> bool {
        // What an actor spawns now is cancelled, so no fiber comes to these; and one that is taken out has its place filled by the last.
        for place in (0..self.fibers(|fibers| fibers.places())).rev() {
            let fiber = self.fibers(|fibers| fibers.get(place));
            if let Some(task) = self.fibers(|fibers| fibers.task(place))
                && !self.is_unbegun(fiber, task)
            {
                self.pulse.begin();
                self.run(task);
                // Those that it woke come by themselves, or have ended when the next one runs.
                self.empty();
            }
        }
        self.fibers(|fibers| fibers.has_any_task())
    }

    /// `shutdown`'s rule 2.
    #[cold]
    fn abandon_each(&self) {
        for place in (0..self.fibers(|fibers| fibers.places())).rev() {
            let Some(task) = self.fibers(|fibers| fibers.task(place)) else {
                continue;
            };
            self.fibers(|fibers| fibers.forget(place));
            let header = task.header();
            self.scheduler.shutdown.abandon(Unfinished {
                actor: Some(header.shown.get()),
                name: header.name.as_ref().map(|name| name.text().to_owned()),
                parent: header.parent.get(),
                worker: self.index,
                left: Left::Stack,
            });
            // SAFETY: it is this worker's, which resumes what is in its fibers only, and it was just taken out of these.
            unsafe { task.abandon() };
        }
    }

    /// Cancels what has not begun. What has begun is in a fiber.
    fn empty(&self) {
        while let Some(task) = self
            .slot
            .take()
            .or_else(|| self.ready.pop())
            .or_else(|| self.fresh())
        {
            if task.header().phase.get() == Phase::Fresh {
                cancel(task);
            }
        }
    }
}
