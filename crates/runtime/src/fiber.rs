//! A stack on which one closure after another runs, and is put aside where it waits.
//!
//! 1. A fiber is made, resumed and ended by one worker: a started stack never changes thread.
//! 2. Between two jobs it is suspended in its own loop, so that the next one starts as fast as another is resumed. Resumed there
//!    without a job it leaves the loop, and its stack is free.
//! 3. Its yielder lives in its first frame, as long as the loop runs.

use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;

use crate::stack::Stack;
use crate::switch::{Coroutine, CoroutineResult, Yielder};
use crate::task::Task;
use crate::wheel::Entry;

/// Why a fiber stopped running for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// Until its actor is woken.
    Parked,
    /// Until others had their turn.
    Yielded,
    /// Its job is done; it is free for another.
    Finished,
}

pub(crate) struct Fiber {
    coroutine: UnsafeCell<Coroutine<Option<Task>, Suspended, (), Stack>>,
    yielder: Cell<*const Yielder<Option<Task>, Suspended>>,
    /// What runs on it.
    pub(crate) task: Cell<Option<Task>>,
    /// Its place among its worker's.
    pub(crate) place: Cell<usize>,
    /// For what waits on it with a deadline. Here and not on its stack: timers are set, moved and fired many at a time, and each stack is a page
    /// of its own.
    pub(crate) timer: Entry,
}

impl Fiber {
    pub(crate) fn new(stack: Stack) -> Box<Self> {
        let coroutine =
            Coroutine::with_stack(stack, |yielder: &Yielder<_, _>, mut next: Option<Task>| {
                while let Some(task) = next {
                    if let Some(fiber) = task.header().fiber.get() {
                        // SAFETY: rule 1: this very fiber, which its worker keeps until it has left this loop.
                        unsafe { fiber.as_ref() }.yielder.set(yielder);
                    }
                    // SAFETY: the worker gave it to us to start it.
                    unsafe { task.run() };
                    next = yielder.suspend(Suspended::Finished);
                }
            });
        Box::new(Self {
            coroutine: UnsafeCell::new(coroutine),
            yielder: Cell::new(std::ptr::null()),
            task: Cell::new(None),
            place: Cell::new(0),
            timer: Entry::new(std::ptr::null()),
        })
    }

    /// The worker: starts `task` on it, or goes on with it.
    ///
    /// # Safety
    /// The caller is the worker of rule 1, and not on this fiber.
    #[inline(always)]
    pub(crate) unsafe fn resume(this: NonNull<Self>, task: Task) -> Suspended {
        // SAFETY: as said: nobody else resumes it, and from inside only its other fields are touched.
        let coroutine = unsafe { &mut *this.as_ref().coroutine.get() };
        match coroutine.resume(Some(task)) {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => unreachable!("it leaves its loop without a job only"),
        }
    }

    /// The worker, when the last job is done, or none ever began: rule 2.
    pub(crate) fn into_stack(self) -> Stack {
        let mut coroutine = self.coroutine.into_inner();
        if coroutine.started() {
            coroutine.resume(None);
        } else {
            // SAFETY: it never ran, so no frame of it holds anything.
            unsafe { coroutine.force_reset() };
        }
        coroutine.into_stack()
    }

    /// The running job: gives the thread back to the worker until the next resume.
    ///
    /// # Safety
    /// The caller runs on this fiber.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, why: Suspended) {
        // SAFETY: rule 3, and the loop has set it.
        unsafe { (*self.yielder.get()).suspend(why) };
    }
    /// The running job: runs `f` below the worker's frames, on the thread's own stack.
    ///
    /// # Safety
    /// The caller runs on this fiber, and `f` does not suspend it.
    pub(crate) unsafe fn on_worker_stack<R>(&self, f: impl FnOnce() -> R) -> R {
        let here = Here(f);
        // SAFETY: rule 3, and the loop has set it.
        unsafe { (*self.yielder.get()).on_parent_stack(move || here.call()) }
    }
}

/// What may stay on its thread although it need not be `Send`.
struct Here<F>(F);

// SAFETY: `on_parent_stack` runs it on the caller's thread, before it comes back. What the bound is to keep out is a suspension from
// there, which `on_worker_stack` forbids.
unsafe impl<F> Send for Here<F> {}

impl<F: FnOnce() -> R, R> Here<F> {
    /// A closure that names the field would take that alone with it.
    fn call(self) -> R {
        (self.0)()
    }
}
