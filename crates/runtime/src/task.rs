//! A job: one allocation that holds a closure, then its output, and what the scheduler must know of it in between.
//!
//! 1. Whoever holds a [`Task`] holds one of its references, or knows somebody who does for as long: the runtime holds one from
//!    the spawn to the end, a [`JoinHandle`](crate::JoinHandle) one, a waker one, an entry in an inbox one.
//! 2. Until it is started a job belongs to the queue that it is in. From then on `next`, `phase`, `notified` and `fiber` are its home worker's
//!    alone: no other thread looks at them, but at `next` of one that has ended (`join_set`). `remote_queue` is written once, at the start, before any waker of the job exists.
//! 3. `stage` is the closure's until the start, the running worker's until `DONE`, and then by [`life`](crate::life) the
//!    handle's or the worker's.
//! 4. `control` is made by whoever first asks for it, with any reference, and given up with the job. `doomed` is set by it alone, and never cleared;
//!    `masks`, `raised`, `ending`, `actor` and `scope` are what runs' own.
//! 5. `parent`, `supervised` and `on_shortage` are written by who makes the job, before it is in any queue.
//! 6. From afar a job is woken by its home's inbox: who turns `woken` to true puts it in, with a reference; the home turns it back before it
//!    looks what the wake-up is for. So it is there at most once.

mod joined;
mod named;

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

pub(crate) use self::joined::{Joiner, Sleeper};
pub(crate) use self::named::Turning;
use crate::cancel::Node;
use crate::exit::{Control, ExitReason};
use crate::fiber::Fiber;
use crate::id::ActorId;
use crate::join::JoinError;
use crate::life::Life;
use crate::preempt;
use crate::remote_queue::RemoteQueue;
use crate::shim::{AtomicBool, AtomicPtr, Cell, Ordering, UnsafeCell};
use crate::stack::overflow::{self, Name};
use crate::trace::TraceContext;
use crate::worker;
use thalweg_queue::barrier;

/// Where a job is, to its home worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not begun, and no worker's.
    Fresh,
    Running,
    /// Put aside until it is woken.
    Parked,
    /// In the queue of its worker.
    Ready,
}

/// What a job does if no stack is free when it is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnShortage {
    /// It ends with [`JoinError::NoStack`].
    End,
    /// It waits until a stack is returned.
    Wait,
    /// The same, but if no stack comes, the job is dropped, and its owner refuses the work behind it.
    Refuse,
}

pub(crate) struct Header {
    table: &'static Table,
    pub(crate) life: Life,
    /// Filled while `life` says so, and nobody has emptied it.
    joiner: UnsafeCell<MaybeUninit<Joiner>>,
    /// Whose actor filled the joiner's place; null: none's.
    joiner_queue: AtomicPtr<RemoteQueue>,
    pub(crate) next: Cell<Option<Task>>,
    pub(crate) fiber: Cell<Option<NonNull<Fiber>>>,
    /// Where on its stack it was when it was last put aside: a hint, for `ahead`.
    pub(crate) frame: Cell<*const u8>,
    remote_queue: AtomicPtr<RemoteQueue>,
    /// The next in the inbox.
    pub(crate) next_remote: Cell<Option<Task>>,
    /// Where its handle is in a [`JoinSet`](crate::JoinSet), whose owner's this is.
    pub(crate) place: Cell<u32>,
    pub(crate) phase: Cell<Phase>,
    /// Woken while it was not put aside: the next time it does not have to be.
    pub(crate) notified: Cell<bool>,
    /// That its runtime stops.
    pub(crate) told: Cell<bool>,
    /// How often it went on after that (`shutdown`'s rule 1).
    pub(crate) times_told: Cell<u8>,
    woken: AtomicBool,
    /// What others know of it, from `Arc::into_raw`; null: nobody asked.
    control: AtomicPtr<Control>,
    /// A signal is to end it.
    pub(crate) doomed: AtomicBool,
    /// The signal was raised: this is how it ends.
    pub(crate) raised: Cell<bool>,
    /// The destructors of a behaviour actor's state run.
    pub(crate) ending: Cell<bool>,
    /// [`NoKill`](crate::NoKill)s.
    pub(crate) masks: Cell<u16>,
    /// The behaviour actor whose turn this is; null: it is none's.
    actor: Cell<*const Turning>,
    /// The innermost scope in which it is, which lies in a frame of it; null: none, or shielded.
    pub(crate) scope: Cell<*const Node>,
    pub(crate) id: ActorId,
    /// Whom a stall is reported of: the behaviour actor whose turn it is, or itself.
    pub(crate) shown: Cell<ActorId>,
    /// How often it was given its worker.
    pub(crate) slices: Cell<u64>,
    /// How long it had it, but for the slice that is under way, in nanoseconds; 0 where no books are kept.
    pub(crate) ran: Cell<u64>,
    /// What it works for (`trace`), from `Arc::into_raw`; null: nothing that is known.
    trace: Cell<*const TraceContext>,
    /// Who spawned it.
    pub(crate) parent: Cell<Option<ActorId>>,
    /// That was its supervisor.
    pub(crate) supervised: Cell<bool>,
    /// One of many of somebody else's, and no actor by itself.
    pub(crate) is_turn: bool,
    /// Rule 5.
    pub(crate) on_shortage: Cell<OnShortage>,
    pub(crate) name: Option<Name>,
    #[cfg(loom)]
    memory: crate::shim::Memory,
}

/// A reference to a job. See rule 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task(NonNull<Header>);

// SAFETY: rules 2 to 4 say which thread touches what.
unsafe impl Send for Task {}

/// The behaviour actor that a job is a turn of.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) id: ActorId,
    pub(crate) name: Option<&'a Name>,
}

/// What depends on the closure's type.
struct Table {
    /// How it ended; `None`: normally.
    run: unsafe fn(NonNull<Header>) -> Option<ExitReason>,
    cancel: unsafe fn(NonNull<Header>, JoinError),
    /// Moves the output to where the pointer, to a `Result<T, JoinError>`, says.
    take: unsafe fn(NonNull<Header>, *mut ()),
    discard: unsafe fn(NonNull<Header>),
    free: unsafe fn(NonNull<Header>),
}

enum Stage<F, T> {
    Fresh(F),
    Gone,
    Done(Result<T, JoinError>),
}

#[repr(C)]
struct Job<F, T> {
    header: Header,
    stage: UnsafeCell<Stage<F, T>>,
}

impl<F: FnOnce() -> T, T> Job<F, T> {
    const TABLE: Table = Table {
        run: Self::run,
        cancel: Self::cancel,
        take: Self::take,
        discard: Self::discard,
        free: Self::free,
    };

    fn stage<'a>(header: NonNull<Header>) -> &'a UnsafeCell<Stage<F, T>> {
        // SAFETY: rule 1 keeps it there, and the table goes with the type that the job was made with.
        &unsafe { header.cast::<Self>().as_ref() }.stage
    }

    /// # Safety
    /// Rule 3: the stage is the caller's.
    unsafe fn exchange(header: NonNull<Header>, stage: Stage<F, T>) -> Stage<F, T> {
        // SAFETY: as said.
        Self::stage(header).with_mut(|old| unsafe { std::mem::replace(&mut *old, stage) })
    }

    /// # Safety
    /// Rule 3: the caller's worker starts it now.
    unsafe fn run(header: NonNull<Header>) -> Option<ExitReason> {
        // SAFETY: rule 3.
        let Stage::Fresh(f) = (unsafe { Self::exchange(header, Stage::Gone) }) else {
            unreachable!("a job is started once");
        };
        let output = preempt::user_code(|| catch_unwind(AssertUnwindSafe(f)));
        let output = output.map_err(JoinError::from_payload);
        // SAFETY: rule 1.
        let raised = unsafe { header.as_ref() }.raised.get();
        let output = if raised {
            overruled(Task(header), output)
        } else {
            output
        };
        let how = output.as_ref().err().map(ExitReason::from);
        // SAFETY: rule 3. Nothing is there to be dropped.
        Self::stage(header).with_mut(|stage| unsafe { stage.write(Stage::Done(output)) });
        how
    }

    /// # Safety
    /// As `run`.
    unsafe fn cancel(header: NonNull<Header>, why: JoinError) {
        // SAFETY: rule 3.
        drop_quietly(unsafe { Self::exchange(header, Stage::Done(Err(why))) });
    }

    /// # Safety
    /// Rule 3: the output is the caller's. `to` is valid for writing.
    unsafe fn take(header: NonNull<Header>, to: *mut ()) {
        // SAFETY: as said.
        unsafe {
            if let Stage::Done(output) = Self::exchange(header, Stage::Gone) {
                to.cast::<Result<T, JoinError>>().write(output);
            } else {
                unreachable!("an output is taken once");
            }
        }
    }

    /// # Safety
    /// Rule 3: the output is the caller's.
    unsafe fn discard(header: NonNull<Header>) {
        // SAFETY: as said.
        drop_quietly(unsafe { Self::exchange(header, Stage::Gone) });
    }

    /// # Safety
    /// The caller dropped the last reference.
    unsafe fn free(header: NonNull<Header>) {
        // SAFETY: as said; it was boxed.
        let job = unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) };
        #[cfg(loom)]
        {
            job.header.memory.free();
            // What is dropped with it is read.
            job.stage.with_mut(|_| ());
            // So that loom sees who comes later.
            std::mem::forget(job);
        }
        #[cfg(not(loom))]
        {
            let control = job.header.control.load(Ordering::Relaxed);
            if !control.is_null() {
                // SAFETY: rule 4: it came from `into_raw`, and this was its place.
                drop(unsafe { Arc::from_raw(control) });
            }
            if !job.header.trace.get().is_null() {
                drop(Task(header).replace_trace(None));
            }
            drop(job);
        }
    }
}

/// Of an actor that was unwound for a signal: whatever it made of that.
#[cold]
fn overruled<T>(task: Task, output: Result<T, JoinError>) -> Result<T, JoinError> {
    match output {
        Err(JoinError::Exit(_) | JoinError::Panic(_)) => output,
        swallowed => {
            drop_quietly(swallowed);
            Err(JoinError::Exit(task.exit_reason()))
        }
    }
}

/// Drops what may panic when it is dropped.
fn drop_quietly<T>(value: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
    if let Err(payload) = dropped {
        std::mem::forget(payload);
    }
}

impl Task {
    /// A job that is not in any queue yet, with the runtime's reference and a handle's.
    #[inline(always)]
    pub(crate) fn new<F: FnOnce() -> T, T>(id: ActorId, name: Option<Name>, f: F) -> Self {
        Self::with(Life::new(), None, id, name, f)
    }

    /// The same without a handle, and perhaps somebody's turn.
    #[inline(always)]
    pub(crate) fn detached<F: FnOnce()>(
        id: ActorId,
        on_shortage: OnShortage,
        who: Option<Who<'_>>,
        f: F,
    ) -> Self {
        let name = who.and_then(|who| who.name.cloned());
        let task = Self::with(Life::detached(), Some(on_shortage), id, name, f);
        if let Some(who) = who {
            task.header().shown.set(who.id);
        }
        task
    }

    #[inline(always)]
    fn with<F: FnOnce() -> T, T>(
        life: Life,
        turn: Option<OnShortage>,
        id: ActorId,
        name: Option<Name>,
        f: F,
    ) -> Self {
        let job = Box::new(Job {
            header: Header {
                table: &Job::<F, T>::TABLE,
                life,
                joiner: UnsafeCell::new(MaybeUninit::uninit()),
                joiner_queue: AtomicPtr::new(std::ptr::null_mut()),
                next: Cell::new(None),
                fiber: Cell::new(None),
                frame: Cell::new(std::ptr::null()),
                remote_queue: AtomicPtr::new(std::ptr::null_mut()),
                next_remote: Cell::new(None),
                place: Cell::new(0),
                phase: Cell::new(Phase::Fresh),
                notified: Cell::new(false),
                told: Cell::new(false),
                times_told: Cell::new(0),
                woken: AtomicBool::new(false),
                control: AtomicPtr::new(std::ptr::null_mut()),
                doomed: AtomicBool::new(false),
                raised: Cell::new(false),
                ending: Cell::new(false),
                masks: Cell::new(0),
                actor: Cell::new(std::ptr::null()),
                scope: Cell::new(std::ptr::null()),
                id,
                shown: Cell::new(id),
                slices: Cell::new(0),
                ran: Cell::new(0),
                trace: Cell::new(std::ptr::null()),
                parent: Cell::new(None),
                supervised: Cell::new(false),
                is_turn: turn.is_some(),
                on_shortage: Cell::new(turn.unwrap_or(OnShortage::End)),
                name,
                #[cfg(loom)]
                memory: crate::shim::Memory::new(),
            },
            stage: UnsafeCell::new(Stage::<F, T>::Fresh(f)),
        });
        Self(NonNull::from(Box::leak(job)).cast())
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

    /// Rule 2, at the start.
    pub(crate) fn settle(&self, queue: &'static RemoteQueue, fiber: NonNull<Fiber>) {
        let header = self.header();
        header.fiber.set(Some(fiber));
        header
            .remote_queue
            .store(std::ptr::from_ref(queue).cast_mut(), Ordering::Relaxed);
        // Who dooms it either is seen from here on or sees the queue.
        barrier::light_or_full();
    }

    /// Runs the closure to its end, on the fiber's stack, and ends the job.
    ///
    /// # Safety
    /// Rule 3: the caller's worker has just started it; and gives up the runtime's reference.
    pub(crate) unsafe fn run(self) {
        if self.must_exit() {
            let why = JoinError::Exit(self.exit_reason());
            // SAFETY: as said.
            return unsafe { self.cancel(why) };
        }
        // SAFETY: as said.
        let how = unsafe { (self.header().table.run)(self.0) };
        self.end(how);
    }

    /// Ends a job that will never start.
    ///
    /// # Safety
    /// As `run`.
    pub(crate) unsafe fn cancel(self, why: JoinError) {
        let how = ExitReason::from(&why);
        // SAFETY: as said.
        unsafe { (self.header().table.cancel)(self.0, why) };
        self.end(Some(how));
    }

    /// `shutdown`'s rule 2: ends a job that is put aside for good, for all but its own stack.
    ///
    /// # Safety
    /// The caller is the job's worker, and never resumes it.
    pub(crate) unsafe fn abandon(self) {
        // For what points to the header from its stack, or by a bare address: it is never freed.
        self.header().life.add_reference();
        if let Some(turning) = self.turning() {
            turning.abandoned();
        }
        let why = JoinError::Stopped;
        let how = ExitReason::from(&why);
        // SAFETY: rule 3: the stage is this worker's. It is empty: the closure lies on the stack, which is never resumed.
        unsafe { (self.header().table.cancel)(self.0, why) };
        self.end(Some(how));
    }

    fn end(self, how: Option<ExitReason>) {
        let header = self.header();
        let worker = worker::current();
        if !header.is_turn
            && let Some(worker) = worker
        {
            worker.count_end(self, how.as_ref());
        }
        // Before anybody can have joined it: who has does not find its name any more.
        let told = header.life.is_named();
        if told {
            self.tell_end(how.as_ref());
        }
        if header.life.is_joined()
            && let Some(worker) = worker
            && std::ptr::eq(
                header.joiner_queue.load(Ordering::Relaxed),
                worker.remote_queue,
            )
        {
            // SAFETY: `life`'s rule 1: an actor of this very worker filled the place, and does not run.
            let joiner = unsafe { header.take_joiner() };
            let Joiner::One(Sleeper::Actor(joiner)) = joiner else {
                unreachable!("nobody else says where it is");
            };
            self.take_name_back();
            if header.life.end_joined_here() && !told {
                self.tell_end(how.as_ref());
            }
            worker.wake(joiner);
            return;
        }
        let ended = header.life.end();
        if ended.named && !told {
            self.tell_end(how.as_ref());
        }
        if ended.unwanted {
            // SAFETY: `life`'s rule 2.
            unsafe { (header.table.discard)(self.0) };
        }
        if ended.joined {
            // SAFETY: `life`'s rule 1.
            match unsafe { header.take_joiner() } {
                Joiner::One(sleeper) => sleeper.wake(),
                // SAFETY: it has ended, and the runtime's reference is still there.
                Joiner::Set(ends) => unsafe { ends.push(self) },
            }
        }
        self.take_name_back();
        if header.life.leave() {
            self.free();
        }
    }

    /// From now on nobody reads it to report who runs here. One that never ran is none of those.
    #[inline(always)]
    fn take_name_back(self) {
        if self.header().fiber.get().is_some() {
            // SAFETY: there is none.
            unsafe { overflow::set_current(None) };
        }
    }

    /// The handle's: the output.
    ///
    /// # Safety
    /// The caller is the handle, of a job with an output of this type, has seen `DONE`, and takes it once.
    pub(crate) unsafe fn take<T>(self) -> Result<T, JoinError> {
        let mut output = MaybeUninit::<Result<T, JoinError>>::uninit();
        // SAFETY: as said: `take` writes it.
        unsafe {
            (self.header().table.take)(self.0, output.as_mut_ptr().cast());
            output.assume_init()
        }
    }

    /// The handle's, which goes without the output.
    ///
    /// # Safety
    /// The caller is the handle, and has not taken the output.
    pub(crate) unsafe fn renounce(self) {
        if self.header().life.renounce() {
            // SAFETY: `life`'s rule 2.
            unsafe { (self.header().table.discard)(self.0) };
        }
        self.drop_reference();
    }

    pub(crate) fn drop_reference(self) {
        if self.header().life.drop_reference() {
            self.free();
        }
    }

    fn free(self) {
        // SAFETY: who calls this dropped the last reference. What is left in `stage` is nothing: the output was taken or discarded.
        unsafe { (self.header().table.free)(self.0) };
    }

    /// From any thread.
    pub(crate) fn wake(self) {
        let header = self.header();
        let queue = header.remote_queue.load(Ordering::Relaxed);
        if let Some(worker) = worker::current()
            && std::ptr::eq(queue, worker.remote_queue)
        {
            if !header.life.is_done() {
                worker.wake(self);
            }
            return;
        }
        if !header.life.is_done() && !header.woken.swap(true, Ordering::AcqRel) {
            header.life.add_reference();
            // SAFETY: rule 2: there was a waker, so the job has been started. Desks are never freed.
            unsafe { &*queue }.push(self);
        }
    }

    /// Rule 5, the home's, for one that it took out of its inbox.
    pub(crate) fn wake_from_remote_queue(self, wake: impl FnOnce(Self)) {
        let header = self.header();
        header.woken.swap(false, Ordering::AcqRel);
        if !header.life.is_done() {
            wake(self);
        }
        self.drop_reference();
    }

    pub(crate) fn waker(self) -> Waker {
        self.header().life.add_reference();
        // SAFETY: the table below keeps what `RawWaker` asks for; the reference was just added.
        unsafe { Waker::from_raw(RawWaker::new(self.0.as_ptr().cast_const().cast(), &WAKER)) }
    }
}

static WAKER: RawWakerVTable = RawWakerVTable::new(
    |raw| {
        let task = of_waker(raw);
        task.header().life.add_reference();
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
    // SAFETY: the waker was made of a job, and holds a reference.
    unsafe { Task(NonNull::new_unchecked(raw.cast_mut().cast())) }
}
