//! A worker: the loop that selects the next task, and the idle protocol.
//!
//! 1. One thread enters and leaves a worker. No other thread accesses the worker, so its cells
//!    belong to that thread.
//! 2. The worker selects tasks in this order. At every [`UNSTARTED_INTERVAL`]th tick it runs
//!    stealable (unstarted) tasks: [`UNSTARTED_IN_A_ROW`] of them, or, if the last task used its
//!    whole time slice, as many as fit into one slice. Otherwise it takes the LIFO slot, at most
//!    [`MAX_LIFO_IN_A_ROW`] times in a row; then its own queue, oldest task first; then its
//!    stealable tasks and the injector. If all of these are empty, it steals from other workers.
//!    Other ticks are *quick*: they look only at remote wake-ups, the LIFO slot and the worker's own
//!    queue.
//! 3. While a task runs, the worker's own frames wait on the thread's stack. Functions of this
//!    module that the task calls run on the task's stack.

mod fibers;
mod idle;
mod inspect;
mod park_hooks;
mod polling;
mod requests;
mod shortage;
mod spawn;
mod stop;
mod suspend;
pub(crate) mod trace;
mod unwind;

use std::cell::{Cell, OnceCell, RefCell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::Arc;

use thalweg_queue::{AdaptiveSpin, clock};

use self::fibers::Fibers;
use self::park_hooks::PARK_HOOKS;
pub(crate) use self::requests::WorkerRequests;
use self::unwind::is_unwinding;
pub(crate) use self::unwind::{ending, raise_if_due, unwind_if_possible};
use crate::affinity::Pinned;
use crate::fiber::{Fiber, Suspended};
use crate::fifo::Fifo;
use crate::id::{ActorId, IdBlock};
use crate::panics;
use crate::poller::{EventBuffer, Poller};
use crate::prefetch;
use crate::remote_queue::RemoteQueue;
use crate::scheduler::{Scheduler, WorkerShared};
use crate::sections;
use crate::shim::Ordering;
use crate::stack::Depot;
use crate::stack::overflow::{self, AlternateStack, Name};
use crate::stall::{WatchedWorker, WorkerStatus};
use crate::task::blocks::Blocks;
use crate::task::{Phase, Task};
use crate::timeslice::TimeSlice;
use crate::wheel::Wheel;

/// The number of ticks after which the worker looks for unstarted tasks although started tasks
/// wait. With tokio's 61, a prototype starved unstarted actors behind yielding actors and took 2.2
/// times as long as tokio. With 8 it took 0.75 times as long as tokio.
const UNSTARTED_INTERVAL: u32 = 8;
/// The number of unstarted tasks that run in a row at that interval, so that started and unstarted
/// tasks get equally many ticks. With 1 of 8, eight yielding actors on a worker doubled the run
/// time of a storm of short actors.
const UNSTARTED_IN_A_ROW: u32 = UNSTARTED_INTERVAL / 2;
/// The number of ticks between two clock readings (for deadlines). A clock reading costs as much as
/// two ticks.
const CLOCK_INTERVAL: u32 = 64;
/// The number of fibers whose tasks are not prefetched. A switch reads about 900 bytes of a task,
/// its fiber and its stack, so these fit into a first-level cache of 32 KiB.
const CACHED_FIBERS: usize = 32;
/// The value of tokio. Two actors that wake each other must not starve the others.
const MAX_LIFO_IN_A_ROW: u32 = 3;
/// The number of turns of an actor in a row if one other task is ready: one from the queue, and the
/// others from the LIFO slot.
pub(crate) const TURNS_IN_A_ROW: u64 = MAX_LIFO_IN_A_ROW as u64 + 1;

pub(crate) struct Worker {
    index: usize,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) remote_queue: &'static RemoteQueue,
    running: Cell<Option<Task>>,
    /// The task that was woken last, or the first spawned task in reserve (`scheduler`'s rule 2).
    lifo_slot: Cell<Option<Task>>,
    lifo_in_a_row: Cell<u32>,
    /// When [`report_end`](Self::report_end) last woke an owner while other tasks were ready.
    owner_woken_at: Cell<u64>,
    /// The number of unstarted tasks to run before started tasks get ticks again.
    unstarted_left: Cell<u32>,
    /// Until this time unstarted tasks go first, because the previous task used its whole slice. 0
    /// if they do not.
    unstarted_until: Cell<u64>,
    /// The number of ticks before the worker looks again for anything but started tasks and remote
    /// wake-ups.
    quick_ticks: Cell<u32>,
    ready: Fifo,
    fibers: UnsafeCell<Fibers>,
    /// Whether there are more than [`CACHED_FIBERS`] of them, or `tracks_time`.
    prepares_slices: Cell<bool>,
    /// The stack for overflow reports, if this thread had none.
    _alternate: Option<AlternateStack>,
    wheel: Wheel,
    /// Polls the descriptors that actors of this worker wait for.
    poller: OnceCell<Arc<Poller>>,
    event_buffer: RefCell<EventBuffer>,
    /// The time at which a long-running actor last caused a poll.
    last_poll: Cell<u64>,
    /// Also counts the ticks.
    pub(crate) status: Arc<WorkerStatus>,
    /// Whether the time that each actor uses is recorded (`Config::inspect`).
    tracks_time: bool,
    /// The time at which the current task got the worker. Only set if `tracks_time`.
    slice_began: Cell<u64>,
    /// The number of yields at which no other task waited.
    uncontended_yields: Cell<u32>,
    slice: TimeSlice,
    ids: IdBlock,
    /// Memory for the tasks that are spawned here.
    pub(crate) task_blocks: Blocks,
    /// The value of [`Scheduler::shortages`] when this worker last checked whether it has a stack
    /// for a waiting task.
    seen_shortages: Cell<usize>,
    /// The time at which the idle worker checks again.
    retry_at: Cell<Option<u64>>,
    /// The number of slices when the worker last became idle, and the time from which it returns memory.
    trim_at: Cell<(u64, u64)>,
    /// Until when the idle worker leaves tasks that were placed with others to them.
    left_until: Cell<Option<u64>>,
    /// Whether the system refused the last stack that this worker did not get.
    short_of_memory: Cell<bool>,
    /// Whether the tasks that are being cancelled here are cancelled because of a stack shortage.
    refusing: Cell<bool>,
}

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(std::ptr::null()) };
}

/// Returns the worker of the current thread.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Worker> {
    // SAFETY: the pointer is set from the beginning to the end of `enter`, whose frame contains the
    // worker. The reference is used further up that stack, or on a fiber that this worker resumes
    // from there.
    unsafe { CURRENT.get().as_ref() }
}

/// The thread-local state of a worker's thread, for the thread that is one of its fibers.
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) struct ThreadContext(*const Worker, sections::PointsLeft);

#[cfg(any(miri, loom, thalweg_threads))]
impl ThreadContext {
    pub(crate) fn capture() -> Self {
        Self(CURRENT.get(), sections::PointsLeft::capture())
    }

    pub(crate) fn install(self) {
        CURRENT.set(self.0);
        self.1.install();
        thalweg_queue::set_park_hooks(Some(&PARK_HOOKS));
    }
}

/// Returns the actor that runs on the current thread.
pub(crate) fn current_actor() -> Option<ActorId> {
    current()?.current_actor()
}

/// Returns the task that runs on the current thread. `None` if the thread is not a worker, or runs
/// no task.
pub(crate) fn running() -> Option<Task> {
    current()?.running()
}

/// A preemption point at which the actor yields at once if others wait.
#[cold]
#[inline(never)]
pub(crate) fn yield_if_allowed() {
    if let Some(worker) = current()
        && sections::is_allowed()
    {
        worker.yield_now();
    }
}

/// Returns the name of the task that runs on the current thread. A signal handler may call it:
/// `running` is cleared before the task is freed (`Task::end`).
fn running_name() -> Option<NonNull<Name>> {
    running()?.header().name.as_ref().map(NonNull::from)
}

/// Prefetches the stack of `next`, which runs next, and the header of the task behind it.
#[inline(always)]
fn prefetch_task(next: Option<Task>) {
    let Some(next) = next else { return };
    let header = next.header();
    if let Some(behind) = header.next.get() {
        prefetch::prefetch_header(behind.into_raw().cast());
    }
    if let Some(fiber) = header.fiber.get() {
        prefetch::fetch(fiber.as_ptr().cast());
        prefetch::prefetch_frames(header.frame.get());
    }
}

impl Worker {
    /// Makes the current thread worker `index` while `f` runs. Then ends all tasks that are left on
    /// this worker.
    pub(crate) fn enter<R>(
        index: usize,
        scheduler: Arc<Scheduler>,
        f: impl FnOnce(&Self) -> R,
    ) -> R {
        if scheduler.config.note_panics {
            panics::set_hook(|| running().is_some());
        }
        // Kept to the end: a thread that is lent to the runtime gets its own affinity mask back.
        let _pinned = Pinned::to(&scheduler.processors, index);
        let reports = scheduler.config.report_overflow && overflow::install().is_ok();
        // Without an alternate stack, an overflow ends the process without a message.
        let alternate = reports.then(AlternateStack::where_missing).flatten();
        let status = Arc::clone(&scheduler.workers[index].status);
        // Kept as long as any task runs here.
        let _watched = WatchedWorker::new(&scheduler.watcher, &status);
        let worker = Self {
            index,
            remote_queue: scheduler.workers[index].remote_queue,
            running: Cell::new(None),
            lifo_slot: Cell::new(None),
            lifo_in_a_row: Cell::new(0),
            owner_woken_at: Cell::new(0),
            unstarted_left: Cell::new(0),
            unstarted_until: Cell::new(0),
            quick_ticks: Cell::new(0),
            ready: Fifo::default(),
            fibers: UnsafeCell::new(Fibers::new(Depot::of(scheduler.config.stack_size))),
            prepares_slices: Cell::new(scheduler.config.inspect),
            _alternate: alternate,
            tracks_time: scheduler.config.inspect,
            slice_began: Cell::new(0),
            scheduler,
            wheel: Wheel::new(clock::now()),
            poller: OnceCell::new(),
            event_buffer: RefCell::default(),
            last_poll: Cell::new(0),
            status,
            uncontended_yields: Cell::new(0),
            slice: TimeSlice::new(),
            ids: IdBlock::default(),
            task_blocks: Blocks::new(),
            seen_shortages: Cell::new(0),
            retry_at: Cell::new(None),
            trim_at: Cell::default(),
            left_until: Cell::new(None),
            short_of_memory: Cell::new(false),
            refusing: Cell::new(false),
        };
        CURRENT.set(&worker);
        overflow::set_running_name(Some(running_name));
        let points = sections::AllocationPoints::begin(worker.scheduler.config.alloc_interval);
        let before = thalweg_queue::set_park_hooks(Some(&PARK_HOOKS));
        let result = f(&worker);
        worker.end_actors();
        worker.end_io();
        worker.shared().requests.close();
        thalweg_queue::set_park_hooks(before);
        drop(points);
        overflow::set_running_name(None);
        CURRENT.set(std::ptr::null());
        result
    }

    fn shared(&self) -> &WorkerShared {
        &self.scheduler.workers[self.index]
    }

    fn is_alone(&self) -> bool {
        self.scheduler.workers.len() == 1
    }

    /// Returns the actor that runs here: the behaviour actor during its turn, or the task's own
    /// actor.
    #[inline(always)]
    pub(crate) fn current_actor(&self) -> Option<ActorId> {
        Some(self.running.get()?.header().reported_id.get())
    }

    /// Records that the task no longer runs here, if it did.
    #[inline(always)]
    pub(crate) fn clear_running(&self, task: Task) {
        if self.running.get() == Some(task) {
            self.running.set(None);
        }
    }

    /// Returns the task that runs here.
    pub(crate) fn running(&self) -> Option<Task> {
        self.running.get()
    }

    /// Runs tasks until `until` returns `true` or the runtime stops.
    pub(crate) fn work(&self, until: impl Fn() -> bool) {
        let mut spin = AdaptiveSpin::new();
        loop {
            // One subtraction in memory decides and counts.
            let (left, is_over) = self.quick_ticks.get().overflowing_sub(1);
            self.quick_ticks.set(left);
            let task = if !is_over {
                if !self.remote_queue.is_empty() {
                    self.drain_remote_queue();
                    continue;
                }
                let Some(task) = self.pick_started() else {
                    self.quick_ticks.set(0);
                    continue;
                };
                task
            } else {
                self.quick_ticks.set(0);
                if until() || self.scheduler.is_stopping() {
                    return;
                }
                if !self.remote_queue.is_empty() {
                    self.drain_remote_queue();
                }
                let Some(task) = self.pick() else {
                    self.idle(&mut spin);
                    continue;
                };
                task
            };
            let has_ended = self.run(task);
            if has_ended && until() {
                return;
            }
        }
    }

    /// Rule 2, at a tick that is not quick.
    #[inline(always)]
    fn pick(&self) -> Option<Task> {
        let tick = self.status.tick();
        if tick.is_multiple_of(CLOCK_INTERVAL) {
            self.fire_timers();
            self.poll();
            self.serve_waiting();
        }
        let left = self.unstarted_left.get();
        if left > 0 || tick.is_multiple_of(UNSTARTED_INTERVAL) || self.must_run_unstarted() {
            if let Some(task) = self.take_unstarted() {
                self.unstarted_left
                    .set(left.checked_sub(1).unwrap_or(UNSTARTED_IN_A_ROW - 1));
                return Some(task);
            }
            self.unstarted_left.set(0);
            self.unstarted_until.set(0);
        }
        self.quick_ticks
            .set(UNSTARTED_INTERVAL - 1 - tick % UNSTARTED_INTERVAL);
        self.pick_started().or_else(|| self.take_unstarted())
    }

    /// Takes a started task, or the task in the LIFO slot.
    #[inline(always)]
    fn pick_started(&self) -> Option<Task> {
        if self.lifo_slot.get().is_some()
            && let Some(task) = self.lifo_slot.take()
        {
            let lifo_in_a_row = self.lifo_in_a_row.get();
            if lifo_in_a_row < MAX_LIFO_IN_A_ROW {
                self.lifo_in_a_row.set(lifo_in_a_row + 1);
                return Some(task);
            }
            if self.ready.is_empty() {
                return Some(task);
            }
            self.enqueue(task);
        }
        self.lifo_in_a_row.set(0);
        self.ready.pop()
    }

    /// Ticks alone are not fair: an actor that spawns others and never yields would use four slices
    /// for each four unstarted tasks.
    #[inline(always)]
    fn must_run_unstarted(&self) -> bool {
        self.unstarted_until.get() != 0 && self.must_still_run_unstarted()
    }

    #[cold]
    fn must_still_run_unstarted(&self) -> bool {
        let owes = clock::now() < self.unstarted_until.get();
        if !owes {
            self.unstarted_until.set(0);
        }
        owes
    }

    /// Takes an unstarted task from the worker's own ring, or from the places into which other
    /// threads put tasks. The order alternates, so that neither source waits until the other is
    /// empty.
    #[inline]
    fn take_unstarted(&self) -> Option<Task> {
        if self.is_alone() {
            return self.scheduler.take_injected();
        }
        self.take_unstarted_of_all()
    }

    fn take_unstarted_of_all(&self) -> Option<Task> {
        if self.status.tick().is_multiple_of(2 * UNSTARTED_INTERVAL) {
            self.take_unstarted_of_others()
                .or_else(|| self.shared().take_own())
        } else {
            self.shared()
                .take_own()
                .or_else(|| self.take_unstarted_of_others())
        }
    }

    #[inline]
    fn take_unstarted_of_others(&self) -> Option<Task> {
        let placed = self.shared().placed.pop();
        let sent = placed.or_else(|| self.scheduler.take_injected())?;
        if self.scheduler.moved.is_watched() {
            self.scheduler.note_moved(sent);
        }
        Some(sent)
    }

    /// Runs the task until it waits, yields or ends. Returns whether it has ended.
    #[inline(always)]
    fn run(&self, task: Task) -> bool {
        let header = task.header();
        let fiber = match header.fiber.get() {
            Some(fiber) => fiber,
            None if header.on_worker_stack => return self.run_here(task),
            None => {
                let free = self.fibers(Fibers::take);
                let Some(fiber) = free.or_else(|| self.obtain_fiber(task)) else {
                    self.status.begin_empty_tick();
                    return true;
                };
                self.bind(fiber, task);
                fiber
            }
        };
        self.begin_slice(task);
        // SAFETY: the fiber belongs to this worker, and this code runs on the worker's own stack,
        // not on a fiber.
        let why = unsafe { Fiber::resume(fiber, task) };
        self.running.set(None);
        if self.tracks_time {
            // A finished task may have been freed.
            self.record_slice((why != Suspended::Finished).then_some(header));
        }
        let has_ended = why == Suspended::Finished;
        if has_ended {
            // The task may have been freed.
            // SAFETY: as above.
            unsafe { fiber.as_ref() }.task.set(None);
            if !self.fibers(|fibers| fibers.give(fiber)) {
                self.put_back(fiber);
            }
        }
        has_ended
    }

    /// Runs a task that never waits, on this stack.
    fn run_here(&self, task: Task) -> bool {
        task.bind(self.remote_queue, None);
        self.begin_slice(task);
        // SAFETY: this worker starts the task, and had its reference in a queue.
        unsafe { task.run() };
        self.running.set(None);
        if self.tracks_time {
            self.record_slice(None);
        }
        true
    }

    #[inline(always)]
    fn begin_slice(&self, task: Task) {
        let header = task.header();
        header.phase.set(Phase::Running);
        self.running.set(Some(task));
        let status = &*self.status;
        status.counts.slices.add(1);
        status.set_actor(header.reported_id.get().number());
        self.slice.begin();
        header.slices.set(header.slices.get().wrapping_add(1));
        if self.prepares_slices.get() {
            self.prepare_slice();
        }
    }

    fn prepare_slice(&self) {
        if self.tracks_time {
            self.slice_began.set(clock::now());
        }
        prefetch_task(self.ready.first());
    }

    /// Binds the task to this fiber.
    #[inline(always)]
    fn bind(&self, fiber: NonNull<Fiber>, task: Task) {
        // SAFETY: the fiber belongs to this worker, and all of its fibers live as long as it does.
        unsafe { fiber.as_ref() }.task.set(Some(task));
        task.bind(self.remote_queue, Some(fiber));
    }

    fn count_fibers(&self) {
        let (fibers, slots) = self.fibers(|fibers| (fibers.len(), fibers.slots()));
        self.prepares_slices
            .set(self.tracks_time || slots > CACHED_FIBERS);
        self.shared().stacks.store(fibers, Ordering::Relaxed);
    }

    fn fibers<R>(&self, f: impl FnOnce(&mut Fibers) -> R) -> R {
        // SAFETY: rule 1, and no `f` calls this function.
        f(unsafe { &mut *self.fibers.get() })
    }

    /// Makes the worker look for everything at its next tick.
    #[cfg(not(loom))]
    pub(crate) fn end_quick_ticks(&self) {
        self.quick_ticks.set(0);
    }

    #[cold]
    fn drain_remote_queue(&self) {
        for task in self.remote_queue.drain() {
            task.wake_from_remote_queue(|task| {
                self.status.counts.remote_wakes.add(1);
                self.wake(task);
            });
        }
        if self.shared().requests.is_pending() {
            self.shared().requests.run(self);
        }
    }

    /// Wakes the tasks whose deadlines have passed, in the order of the deadlines.
    #[inline]
    fn fire_timers(&self) {
        if !self.wheel.is_empty() {
            self.fire_due_timers();
        }
        self.scheduler.timers.fire_without_thread();
    }

    fn fire_due_timers(&self) {
        self.wheel.advance(clock::now(), |entry| {
            // SAFETY: the entry is in the fiber of a parked actor of this worker.
            let named = unsafe { entry.as_ref() }.data.get();
            // SAFETY: `park` stored the task there, and the task is alive as long as it is parked.
            if let Some(task) = unsafe { Task::from_raw(named.cast_mut().cast()) }
                && Self::mark_woken(task)
            {
                self.status.counts.deadlines.add(1);
                self.ready.push(task);
            }
        });
    }

    /// Whether this worker could run anything other than the current task.
    #[inline(always)]
    fn has_other_work(&self) -> bool {
        !self.ready.is_empty()
            || self.lifo_slot.get().is_some()
            || !self.remote_queue.is_empty()
            || self.scheduler.has_injected()
            || (!self.is_alone() && self.shared().has_some())
    }
}
