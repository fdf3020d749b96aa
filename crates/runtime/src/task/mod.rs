//! A task: one allocation that contains a closure, later its output, and the state that the
//! scheduler needs.
//!
//! 1. The owner of a [`Task`] owns one of its references, or is certain that another owner keeps
//!    one meanwhile. References: the runtime has one from the spawn to the end; a
//!    [`JoinHandle`](crate::JoinHandle), a waker, and an entry in a remote queue have one each.
//! 2. Until it is started, a task belongs to the queue that contains it. From then on, `next`,
//!    `phase`, `notified` and `fiber` belong to its home worker. No other thread accesses them,
//!    except `next` of a task that has ended (`join_set`). `remote_queue` is written once, at the
//!    start, before any waker of the task exists.
//! 3. `stage` belongs to the closure until the start, to the running worker until `COMPLETE` is
//!    set, and then to the handle or the worker, as [`task::state`](self::state) specifies.
//! 4. `control` is created by the first thread that needs it and has a reference. It is released
//!    with the task. Only the control sets `kill_flag`, which is never cleared. `masks`, `raised`,
//!    `ending`, `actor` and `scope` belong to the running code.
//! 5. `parent`, `supervised`, `on_shortage` and `watcher` are written by the creator of the task,
//!    before the task is in any queue. The watcher is notified of the end before any thread can have
//!    joined the task.
//! 6. Another thread wakes a task through the remote queue of its home worker. The thread that
//!    changes `in_remote_queue` to `true` pushes the task, with a reference. The home worker
//!    changes it back before it handles the wake-up. A task is therefore in the queue at most once.

pub(crate) mod blocks;
mod control;
mod finished_stack;
mod job;
mod joiner;
pub(crate) mod state;
mod turn;

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

pub(crate) use self::control::RunningTurn;
pub(crate) use self::finished_stack::{FinishedStack, FinishedTasks};
pub(crate) use self::joiner::{JoinWaker, Joiner};
use self::state::TaskState;
pub use self::turn::{Run, TurnSlot};
use crate::control::{Control, OnDown};
use crate::fiber::Fiber;
use crate::id::ActorId;
use crate::reason::{ExitReason, JoinError};
use crate::remote_queue::RemoteQueue;
use crate::scope_node::TokenNode;
use crate::sections;
use crate::shim::{AtomicBool, AtomicPtr, Cell, Ordering, UnsafeCell};
use crate::stack::overflow::Name;
use crate::trace_context::TraceContext;
use crate::worker;
use thalweg_queue::barrier;

/// The state of a task, as seen by its home worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not started. The task has no home worker yet.
    Unstarted,
    Running,
    /// Suspended until it is woken.
    Parked,
    /// In its worker's queue.
    Ready,
}

/// What a task does if no stack is free when it is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnShortage {
    /// It ends with [`JoinError::NoStack`].
    End,
    /// It waits until a stack is returned.
    Wait,
    /// It waits, but if no stack is returned, the task is dropped, and its owner refuses the work
    /// behind it.
    Refuse,
}

pub(crate) struct Header {
    vtable: &'static VTable,
    pub(crate) state: TaskState,
    /// Initialised while `task::state` has `JOINER` set and the joiner has not been taken.
    joiner: UnsafeCell<MaybeUninit<Joiner>>,
    /// The remote queue of the worker whose actor is the joiner. Null if the joiner is not an
    /// actor.
    joiner_queue: AtomicPtr<RemoteQueue>,
    pub(crate) next: Cell<Option<Task>>,
    pub(crate) fiber: Cell<Option<NonNull<Fiber>>>,
    /// The stack pointer when the task was last suspended: a hint for `prefetch`.
    pub(crate) frame: Cell<*const u8>,
    remote_queue: AtomicPtr<RemoteQueue>,
    /// The next task in the remote queue.
    pub(crate) next_remote: Cell<Option<Task>>,
    /// The index of the task's handle in a [`JoinSet`](crate::JoinSet). Belongs to the owner of the
    /// set.
    pub(crate) join_set_index: Cell<u32>,
    pub(crate) phase: Cell<Phase>,
    /// Whether a worker has placed the task with another one (`scheduler`'s rule 6).
    pub(crate) placed: Cell<bool>,
    /// Whether the task was woken while it was not suspended. Its next wait then returns at once.
    pub(crate) notified: Cell<bool>,
    /// Whether a wait has reported to the task that the runtime is stopping.
    pub(crate) stop_notified: Cell<bool>,
    /// How often the task continued after such a report (`shutdown`'s rule 1).
    pub(crate) stop_notices: Cell<u8>,
    in_remote_queue: AtomicBool,
    /// The control through which other threads reach the task, from `Arc::into_raw`. Null if it was
    /// never needed.
    control: AtomicPtr<Control>,
    /// Set when an exit signal must unwind the task.
    pub(crate) kill_flag: AtomicBool,
    /// Whether the exit signal was raised. It determines how the task ends.
    pub(crate) raised: Cell<bool>,
    /// Whether the destructors of a behaviour actor's state are running.
    pub(crate) ending: Cell<bool>,
    /// The number of [`NoKill`](crate::NoKill) guards.
    pub(crate) masks: Cell<u16>,
    /// The behaviour actor whose turn the task runs. Null if there is none.
    actor: Cell<*const RunningTurn>,
    /// The innermost scope, which is in a frame of the task. Null if there is none or it is
    /// shielded.
    pub(crate) scope: Cell<*const TokenNode>,
    /// Whether `actor` or `scope` is set, or the runtime is stopping, so that more than `kill_flag`
    /// can interrupt the task.
    pub(crate) has_context: Cell<bool>,
    pub(crate) id: ActorId,
    /// The ID that reports use: that of the behaviour actor whose turn this is, or the task's own.
    pub(crate) reported_id: Cell<ActorId>,
    /// How often the task got the worker.
    pub(crate) slices: Cell<u64>,
    /// The time that the task has had the worker, in nanoseconds, without the current slice. 0
    /// unless `Config::inspect` is on.
    pub(crate) run_time_ns: Cell<u64>,
    /// The trace context of the task (`worker::trace`), from `Arc::into_raw`. Null if it has none.
    trace: Cell<*const TraceContext>,
    /// The actor that spawned the task.
    pub(crate) parent: Cell<Option<ActorId>>,
    /// Whether the parent is its supervisor.
    pub(crate) supervised: Cell<bool>,
    /// Whether the task is a turn of another actor, and not an actor itself.
    pub(crate) is_turn: bool,
    /// Whether the task never waits, and runs on its worker's own stack instead of a fiber.
    pub(crate) on_worker_stack: bool,
    /// Rule 5.
    pub(crate) on_shortage: Cell<OnShortage>,
    /// Rule 5. Initialised while `task::state` has `WATCHED` set and the task has not ended.
    watcher: Cell<MaybeUninit<Arc<dyn OnDown>>>,
    pub(crate) name: Option<Name>,
    #[cfg(loom)]
    memory: crate::shim::Memory,
}

impl Header {
    /// The header of a task that is in no queue. `turn`: what a turn does on a shortage of stacks;
    /// `None` for an actor.
    #[inline(always)]
    fn new(
        vtable: &'static VTable,
        state: TaskState,
        turn: Option<OnShortage>,
        id: ActorId,
        name: Option<Name>,
    ) -> Self {
        Self {
            vtable,
            state,
            joiner: UnsafeCell::new(MaybeUninit::uninit()),
            joiner_queue: AtomicPtr::new(std::ptr::null_mut()),
            next: Cell::new(None),
            fiber: Cell::new(None),
            frame: Cell::new(std::ptr::null()),
            remote_queue: AtomicPtr::new(std::ptr::null_mut()),
            next_remote: Cell::new(None),
            join_set_index: Cell::new(0),
            phase: Cell::new(Phase::Unstarted),
            placed: Cell::new(false),
            notified: Cell::new(false),
            stop_notified: Cell::new(false),
            stop_notices: Cell::new(0),
            in_remote_queue: AtomicBool::new(false),
            control: AtomicPtr::new(std::ptr::null_mut()),
            kill_flag: AtomicBool::new(false),
            raised: Cell::new(false),
            ending: Cell::new(false),
            masks: Cell::new(0),
            actor: Cell::new(std::ptr::null()),
            scope: Cell::new(std::ptr::null()),
            has_context: Cell::new(false),
            id,
            reported_id: Cell::new(id),
            slices: Cell::new(0),
            run_time_ns: Cell::new(0),
            trace: Cell::new(std::ptr::null()),
            parent: Cell::new(None),
            supervised: Cell::new(false),
            is_turn: turn.is_some(),
            on_worker_stack: false,
            on_shortage: Cell::new(turn.unwrap_or(OnShortage::End)),
            watcher: Cell::new(MaybeUninit::uninit()),
            name,
            #[cfg(loom)]
            memory: crate::shim::Memory::new(),
        }
    }
}

/// A reference to a task (rule 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task(NonNull<Header>);

// SAFETY: rules 2 to 4 define which thread accesses which field.
unsafe impl Send for Task {}

/// The behaviour actor whose turn a task runs.
#[derive(Clone, Copy)]
pub(crate) struct TurnOwner<'a> {
    pub(crate) id: ActorId,
    pub(crate) name: Option<&'a Name>,
}

/// The functions that depend on the closure's type.
struct VTable {
    /// Returns the reason if the task did not end normally.
    run: unsafe fn(NonNull<Header>) -> Option<ExitReason>,
    cancel: unsafe fn(NonNull<Header>, JoinError),
    /// Moves the output to the pointer, which points to a `Result<T, JoinError>`.
    take: unsafe fn(NonNull<Header>, *mut ()),
    discard: unsafe fn(NonNull<Header>),
    free: unsafe fn(NonNull<Header>),
}

enum Stage<F, T> {
    Unstarted(F),
    Taken,
    Done(Result<T, JoinError>),
}

#[repr(C)]
struct TaskCell<F, T> {
    header: Header,
    stage: UnsafeCell<Stage<F, T>>,
}

impl<F: FnOnce() -> T, T> TaskCell<F, T> {
    const VTABLE: VTable = VTable {
        run: Self::run,
        cancel: Self::cancel,
        take: Self::take,
        discard: Self::discard,
        free: Self::free,
    };

    fn stage<'a>(header: NonNull<Header>) -> &'a UnsafeCell<Stage<F, T>> {
        // SAFETY: rule 1 keeps the task alive, and the vtable belongs to the type with which the
        // task was created.
        &unsafe { header.cast::<Self>().as_ref() }.stage
    }

    /// # Safety
    /// Rule 3: the stage belongs to the caller.
    unsafe fn replace_stage(header: NonNull<Header>, stage: Stage<F, T>) -> Stage<F, T> {
        // SAFETY: the caller's contract.
        Self::stage(header).with_mut(|old| unsafe { std::mem::replace(&mut *old, stage) })
    }

    /// # Safety
    /// Rule 3: the caller's worker starts the task now.
    unsafe fn run(header: NonNull<Header>) -> Option<ExitReason> {
        let stage = Self::stage(header);
        // The closure is moved out of its place; to replace the whole stage would copy it twice.
        // SAFETY: rule 3. The place counts as empty from then on.
        let f = stage.with_mut(|stage| unsafe {
            let Stage::Unstarted(f) = &*stage else {
                unreachable!("a task is started once");
            };
            let f = std::ptr::read(f);
            stage.write(Stage::Taken);
            f
        });
        let output = sections::user_code(|| catch_unwind(AssertUnwindSafe(f)));
        // SAFETY: rule 1.
        let raised = unsafe { header.as_ref() }.raised.get();
        match output {
            Ok(value) if !raised => {
                // SAFETY: rule 3. The old value needs no drop.
                stage.with_mut(|stage| unsafe { stage.write(Stage::Done(Ok(value))) });
                None
            }
            output => Self::end_badly(header, output.map_err(JoinError::from_payload), raised),
        }
    }

    #[cold]
    fn end_badly(
        header: NonNull<Header>,
        output: Result<T, JoinError>,
        raised: bool,
    ) -> Option<ExitReason> {
        let output = if raised {
            apply_exit_signal(Task(header), output)
        } else {
            output
        };
        let how = output.as_ref().err().map(ExitReason::from);
        // SAFETY: rule 3: the caller runs the task. The old value needs no drop.
        Self::stage(header).with_mut(|stage| unsafe { stage.write(Stage::Done(output)) });
        how
    }

    /// # Safety
    /// As for `run`.
    unsafe fn cancel(header: NonNull<Header>, why: JoinError) {
        // SAFETY: rule 3.
        drop_quietly(unsafe { Self::replace_stage(header, Stage::Done(Err(why))) });
    }

    /// # Safety
    /// Rule 3: the output belongs to the caller. `to` is valid for writing.
    unsafe fn take(header: NonNull<Header>, to: *mut ()) {
        // As in `run`.
        // SAFETY: the caller's contract. The place counts as empty from then on.
        Self::stage(header).with_mut(|stage| unsafe {
            let Stage::Done(output) = &*stage else {
                unreachable!("an output is taken once");
            };
            std::ptr::copy_nonoverlapping(output, to.cast(), 1);
            stage.write(Stage::Taken);
        });
    }

    /// # Safety
    /// Rule 3: the output belongs to the caller.
    unsafe fn discard(header: NonNull<Header>) {
        // SAFETY: the caller's contract.
        let is_ok =
            Self::stage(header).with_mut(|stage| unsafe { matches!(&*stage, Stage::Done(Ok(_))) });
        if is_ok && !std::mem::needs_drop::<T>() {
            return;
        }
        // SAFETY: the caller's contract.
        drop_quietly(unsafe { Self::replace_stage(header, Stage::Taken) });
    }

    /// # Safety
    /// The caller dropped the last reference.
    unsafe fn free(header: NonNull<Header>) {
        // Dropping the stage reads it.
        #[cfg(loom)]
        Self::stage(header).with_mut(|_| ());
        // SAFETY: the caller's contract. The stage has no output that needs a drop, because the
        // output was taken or discarded.
        unsafe { Task(header).free_cell(header.cast::<Self>()) };
    }
}

/// Replaces the output of a task that was unwound by an exit signal but swallowed the unwind.
#[cold]
fn apply_exit_signal<T>(task: Task, output: Result<T, JoinError>) -> Result<T, JoinError> {
    match output {
        Err(JoinError::Exit(_) | JoinError::Panic(_)) => output,
        swallowed => {
            drop_quietly(swallowed);
            Err(JoinError::Exit(task.exit_reason()))
        }
    }
}

/// Drops a value whose drop may panic.
fn drop_quietly<T>(value: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
    if let Err(payload) = dropped {
        std::mem::forget(payload);
    }
}

impl Task {
    /// Creates a task that is not in any queue yet. The runtime and a handle have a reference each.
    #[inline(always)]
    pub(crate) fn new<F: FnOnce() -> T, T>(id: ActorId, name: Option<Name>, f: F) -> Self {
        // Built in place: the compiler would build the cell on the stack and copy it.
        let cell = blocks::allocate::<TaskCell<F, T>>();
        let place = cell.as_ptr();
        let header = Header::new(&TaskCell::<F, T>::VTABLE, TaskState::new(), None, id, name);
        // SAFETY: the block is valid for writing.
        unsafe {
            (&raw mut (*place).header).write(header);
            (&raw mut (*place).stage).write(UnsafeCell::new(Stage::Unstarted(f)));
        }
        Self(cell.cast())
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: rule 1.
        let header = unsafe { self.0.as_ref() };
        #[cfg(loom)]
        header.memory.touch();
        header
    }

    pub(crate) fn into_raw(self) -> *mut Header {
        self.0.as_ptr()
    }

    /// # Safety
    /// The pointer came from `into_raw`, and rule 1 holds.
    pub(crate) unsafe fn from_raw(raw: *mut Header) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Binds the task to its home worker (rule 2), at the start. It runs on `fiber`, if it needs one.
    #[inline(always)]
    pub(crate) fn bind(&self, queue: &'static RemoteQueue, fiber: Option<NonNull<Fiber>>) {
        let header = self.header();
        header.fiber.set(fiber);
        header
            .remote_queue
            .store(std::ptr::from_ref(queue).cast_mut(), Ordering::Relaxed);
        // A thread that sets the kill flag either is seen after this barrier, or sees the remote
        // queue.
        barrier::light_or_full();
    }

    /// Runs the closure to its end, on the fiber's stack, and completes the task.
    ///
    /// # Safety
    /// Rule 3: the caller's worker has just started the task. The caller passes on the runtime's
    /// reference.
    #[inline(always)]
    pub(crate) unsafe fn run(self) {
        // It has not begun, so it has no masks and is no turn.
        if self.header().kill_flag.load(Ordering::Acquire) {
            let why = JoinError::Exit(self.exit_reason());
            // SAFETY: the caller's contract.
            return unsafe { self.cancel(why) };
        }
        // SAFETY: the caller's contract.
        let how = unsafe { (self.header().vtable.run)(self.0) };
        match how {
            Some(how) => self.end(Some(&how)),
            None if self.header().state.is_only_running() => self.end_unobserved(),
            None if self.end_for_local_joiner() => {}
            None => self.end(None),
        }
    }

    /// Completes a task that will never start.
    ///
    /// # Safety
    /// As for `run`.
    pub(crate) unsafe fn cancel(self, why: JoinError) {
        let how = ExitReason::from(&why);
        // SAFETY: the caller's contract.
        unsafe { (self.header().vtable.cancel)(self.0, why) };
        self.end(Some(&how));
    }

    /// `shutdown`'s rule 2: completes a task that stays suspended forever. Its stack is kept.
    ///
    /// # Safety
    /// The caller is the task's worker, and never resumes the task.
    pub(crate) unsafe fn abandon(self) {
        // The header is never freed, because the stack, and threads that use the bare address, may
        // point to it.
        self.header().state.add_reference();
        if let Some(turn) = self.running_turn() {
            turn.abandoned();
        }
        let why = JoinError::Stopped;
        let how = ExitReason::from(&why);
        // SAFETY: rule 3: the stage belongs to this worker. It is empty, because the closure is on
        // the stack that is never resumed.
        unsafe { (self.header().vtable.cancel)(self.0, why) };
        self.end(Some(&how));
    }

    /// The usual end of a turn, and of a task without a handle: no other thread can see it.
    #[inline]
    fn end_unobserved(self) {
        let header = self.header();
        // A turn has no output, and is no actor.
        if !header.is_turn {
            if let Some(worker) = worker::current() {
                worker.count_end(self, None);
            }
            // SAFETY: `task::state`'s rule 2: there is no handle.
            unsafe { (header.vtable.discard)(self.0) };
        }
        self.stop_running();
        self.free();
    }

    /// The normal end of a task that nobody observes but an actor of the same worker, which waits for it.
    /// Returns `false` if it is not such a task.
    #[inline(always)]
    fn end_for_local_joiner(self) -> bool {
        let header = self.header();
        let Some(worker) = worker::current() else {
            return false;
        };
        let queue = header.joiner_queue.load(Ordering::Relaxed);
        if !header.state.has_only_joiner() || !std::ptr::eq(queue, worker.remote_queue) {
            return false;
        }
        worker.count_end(self, None);
        // SAFETY: `task::state`'s rule 1. The joiner is an actor of this worker, which does not run now.
        let joiner = unsafe { header.take_joining_actor() };
        worker.clear_running(self);
        if header.state.complete_for_local_joiner() {
            self.notify_control(None);
        }
        worker.wake(joiner);
        true
    }

    fn end(self, how: Option<&ExitReason>) {
        let header = self.header();
        let worker = worker::current();
        if !header.is_turn
            && let Some(worker) = worker
        {
            worker.count_end(self, how);
        }
        let observers = header.state.observers();
        if observers.watcher {
            self.notify_watcher(how);
        }
        // The control is notified before any thread can have joined the task, because a thread that
        // has joined it must not find its name in the registry.
        let notified = observers.control;
        if notified {
            self.notify_control(how);
        }
        let completed = header.state.complete();
        if completed.notify_control && !notified {
            self.notify_control(how);
        }
        if completed.drop_output {
            // SAFETY: `task::state`'s rule 2.
            unsafe { (header.vtable.discard)(self.0) };
        }
        if completed.wake_joiner {
            // SAFETY: `task::state`'s rule 1.
            match unsafe { header.take_joiner() } {
                Joiner::Waker(waker) => waker.wake(),
                // SAFETY: the task has ended, and the runtime's reference still exists.
                Joiner::Set(stack) => unsafe { FinishedStack::push(stack, self) },
            }
        }
        self.stop_running();
        if header.state.release() {
            self.free();
        }
    }

    /// The task may be freed from here on, so its worker must not refer to it. A task that never
    /// ran is not the running one.
    #[inline(always)]
    fn stop_running(self) {
        if let Some(worker) = worker::current() {
            worker.clear_running(self);
        }
    }

    /// Takes the output for the handle.
    ///
    /// # Safety
    /// The caller is the handle of a task with an output of this type. It has seen `COMPLETE`, and
    /// takes the output once.
    pub(crate) unsafe fn take<T>(self) -> Result<T, JoinError> {
        let mut output = MaybeUninit::<Result<T, JoinError>>::uninit();
        // SAFETY: the caller's contract; `take` initialises the output.
        unsafe {
            (self.header().vtable.take)(self.0, output.as_mut_ptr().cast());
            output.assume_init()
        }
    }

    /// Drops the handle's interest in the output, and its reference.
    ///
    /// # Safety
    /// The caller is the handle and has not taken the output.
    pub(crate) unsafe fn drop_handle(self) {
        if self.header().state.drop_join_interest() {
            // SAFETY: `task::state`'s rule 2.
            unsafe { (self.header().vtable.discard)(self.0) };
        }
        self.drop_reference();
    }

    pub(crate) fn drop_reference(self) {
        if self.header().state.drop_reference() {
            self.free();
        }
    }

    /// Drops the control and the trace context of a task without references. Returns whether it had
    /// a control.
    #[cfg(not(loom))]
    fn drop_parts(self) -> bool {
        let header = self.header();
        if !header.trace.get().is_null() {
            drop(self.replace_trace(None));
        }
        let control = header.control.load(Ordering::Relaxed);
        if !control.is_null() {
            // SAFETY: rule 4. The pointer came from `into_raw`, and this field owned it.
            drop(unsafe { Arc::from_raw(control) });
        }
        !control.is_null()
    }

    /// Frees the memory of a task without references, whose closure and output were dropped.
    ///
    /// # Safety The caller dropped the last reference. `cell` is the task's memory, from
    /// [`blocks::allocate`].
    unsafe fn free_cell<C>(self, cell: NonNull<C>) {
        #[cfg(loom)]
        {
            // The memory is leaked, so that loom detects a later use.
            let _ = cell;
            self.header().memory.free();
        }
        #[cfg(not(loom))]
        {
            self.drop_parts();
            // SAFETY: the caller's contract.
            unsafe {
                self.0.drop_in_place();
                blocks::free(cell);
            }
        }
    }

    fn free(self) {
        // SAFETY: the caller dropped the last reference.
        unsafe { (self.header().vtable.free)(self.0) };
    }

    /// Wakes the task, from any thread.
    pub(crate) fn wake(self) {
        let header = self.header();
        let queue = header.remote_queue.load(Ordering::Relaxed);
        if let Some(worker) = worker::current()
            && std::ptr::eq(queue, worker.remote_queue)
        {
            if !header.state.is_complete() {
                worker.wake(self);
            }
            return;
        }
        if !header.state.is_complete() && !header.in_remote_queue.swap(true, Ordering::AcqRel) {
            header.state.add_reference();
            // SAFETY: rule 2. A waker exists, so the task has been started. Remote queues are never
            // freed.
            unsafe { &*queue }.push(self);
        }
    }

    /// Rule 6: the home worker handles a task that it took from its remote queue.
    pub(crate) fn wake_from_remote_queue(self, wake: impl FnOnce(Self)) {
        let header = self.header();
        header.in_remote_queue.swap(false, Ordering::AcqRel);
        if !header.state.is_complete() {
            wake(self);
        }
        self.drop_reference();
    }

    pub(crate) fn waker(self) -> Waker {
        self.header().state.add_reference();
        // SAFETY: the vtable below satisfies the contract of `RawWaker`; the reference was just
        // added.
        unsafe { Waker::from_raw(RawWaker::new(self.0.as_ptr().cast_const().cast(), &WAKER)) }
    }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |raw| {
        let task = of_waker(raw);
        task.header().state.add_reference();
        RawWaker::new(raw, &WAKER)
    },
    |raw| {
        let task = of_waker(raw);
        task.wake();
        task.drop_reference();
    },
    |raw| of_waker(raw).wake(),
    |raw| of_waker(raw).drop_reference(),
);

fn of_waker(raw: *const ()) -> Task {
    // SAFETY: the waker came from `Task::waker` and owns a reference.
    unsafe { Task(NonNull::new_unchecked(raw.cast_mut().cast())) }
}
