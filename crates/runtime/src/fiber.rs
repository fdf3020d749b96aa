//! A closure on a stack of its own, and which one this thread is running. The one file here with `unsafe`.
//!
//! 1. A fiber is made, resumed and dropped by one worker thread: it never leaves that worker's table.
//! 2. `CURRENT` points to the seat of the fiber that runs on this thread, from just before `resume` to just after it; the seat
//!    is boxed and outlives the resume.
//! 3. The yielder that a fiber stores at its start lives on its own stack as long as the fiber does.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::actor::Actor;
use crate::scheduler::{Scheduler, Seat};

/// Why a fiber stopped running for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// Until its actor is woken.
    Parked,
    /// Until others had their turn.
    Yielded,
    /// For good.
    Finished,
}

/// A stack, and the notes of who runs on it, between two closures.
pub(crate) struct Berth {
    stack: DefaultStack,
    running: Box<Running>,
}

impl Berth {
    /// `None`: the system has no memory for a stack.
    pub(crate) fn new(scheduler: &Arc<Scheduler>) -> Option<Self> {
        Some(Self {
            stack: DefaultStack::new(scheduler.config.stack_size).ok()?,
            running: Box::new(Running {
                yielder: Cell::new(std::ptr::null()),
                actor: OnceCell::new(),
                scheduler: Arc::clone(scheduler),
                seat: Seat {
                    worker: 0,
                    place: 0,
                },
                since: Cell::new(0),
                others: Cell::new(false),
            }),
        })
    }
}

/// A started closure, with what it needs while it runs.
pub(crate) struct Fiber {
    coroutine: Coroutine<(), Suspended, (), DefaultStack>,
    running: Box<Running>,
}

/// What the running fiber knows of its place.
pub(crate) struct Running {
    yielder: Cell<*const Yielder<(), Suspended>>,
    actor: OnceCell<Arc<Actor>>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) seat: Seat,
    /// When this turn's time slice began: at its first `check`. 0: not yet.
    pub(crate) since: Cell<u64>,
    /// Others waited on the same worker when this turn began.
    pub(crate) others: Cell<bool>,
}

thread_local! {
    static CURRENT: Cell<*const Running> = const { Cell::new(std::ptr::null()) };
}

impl Fiber {
    /// Binds the closure to the stack; it runs at the first resume. It must not unwind.
    pub(crate) fn new(berth: Berth, seat: Seat, body: impl FnOnce() + 'static) -> Self {
        let Berth { stack, mut running } = berth;
        running.seat = seat;
        let coroutine = Coroutine::with_stack(stack, |yielder: &Yielder<(), Suspended>, ()| {
            with_current(|running| running.yielder.set(yielder));
            body();
        });
        Self { coroutine, running }
    }

    /// Runs it until it suspends.
    pub(crate) fn resume(&mut self, others: bool) -> Suspended {
        self.running.since.set(0);
        self.running.others.set(others);
        CURRENT.set(&*self.running);
        let result = self.coroutine.resume(());
        CURRENT.set(std::ptr::null());
        match result {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => Suspended::Finished,
        }
    }

    /// What a finished fiber leaves behind.
    pub(crate) fn into_berth(self) -> Berth {
        let Self {
            coroutine,
            mut running,
        } = self;
        running.actor.take();
        Berth {
            stack: coroutine.into_stack(),
            running,
        }
    }
}

/// Calls `f` with the fiber that this thread is running; `None` outside of any.
pub(crate) fn with_current<R>(f: impl FnOnce(&Running) -> R) -> Option<R> {
    let running = CURRENT.get();
    if running.is_null() {
        return None;
    }
    // SAFETY: rule 2: the pointer is set only while the fiber, and with it its box, is borrowed by `resume` further
    // down this thread's stack.
    Some(f(unsafe { &*running }))
}

impl Running {
    /// The actor of this fiber, made when somebody first asks how to wake it.
    pub(crate) fn actor(&self) -> &Arc<Actor> {
        self.actor
            .get_or_init(|| Arc::new(Actor::new(Arc::clone(&self.scheduler), self.seat)))
    }

    /// Gives the thread back to the worker until the next resume.
    pub(crate) fn suspend(&self, why: Suspended) {
        // SAFETY: rule 3: this is the running fiber, so its first frame, which holds the yielder, is on this very stack.
        unsafe { (*self.yielder.get()).suspend(why) };
    }
}
