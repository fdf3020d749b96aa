//! A fiber: a stack on which one closure after another runs, and which is suspended while a closure
//! waits.
//!
//! 1. One worker creates, resumes and ends a fiber. A started stack never changes thread.
//! 2. Between two tasks the fiber is suspended in its own loop, so that starting the next task is
//!    as fast as resuming another. If it is resumed there without a task, it leaves the loop, and
//!    its stack is free.
//! 3. The fiber's yielder lives in its first frame as long as the loop runs.

use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;

use crate::stack::Stack;
use crate::switch::{Coroutine, CoroutineResult, Yielder};
use crate::task::Task;
use crate::wheel::TimerEntry;

/// Why a fiber was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// Its actor waits to be woken, or is in its worker's queue.
    Waiting,
    /// Its task has ended. The fiber is free for another task.
    Finished,
}

pub(crate) struct Fiber {
    coroutine: UnsafeCell<Coroutine<Option<Task>, Suspended, (), Stack>>,
    yielder: Cell<*const Yielder<Option<Task>, Suspended>>,
    /// The task that runs on the fiber.
    pub(crate) task: Cell<Option<Task>>,
    /// The index of the fiber in its worker's list.
    pub(crate) index: Cell<usize>,
    /// The timer of a wait with a deadline. It is here and not on the fiber's stack because timers
    /// are inserted, moved and fired many at a time, and each stack would be a separate page.
    pub(crate) timer: TimerEntry,
}

impl Fiber {
    pub(crate) fn new(stack: Stack) -> Box<Self> {
        let coroutine =
            Coroutine::with_stack(stack, |yielder: &Yielder<_, _>, mut next: Option<Task>| {
                if let Some(fiber) = next.and_then(|task| task.header().fiber.get()) {
                    // SAFETY: rule 1. It is this fiber, and its worker keeps it until it has left
                    // the loop.
                    unsafe { fiber.as_ref() }.yielder.set(yielder);
                }
                while let Some(task) = next {
                    // SAFETY: the worker passed the task to this fiber to start it.
                    unsafe { task.run() };
                    next = yielder.suspend(Suspended::Finished);
                }
            });
        Box::new(Self {
            coroutine: UnsafeCell::new(coroutine),
            yielder: Cell::new(std::ptr::null()),
            task: Cell::new(None),
            index: Cell::new(0),
            timer: TimerEntry::new(std::ptr::null()),
        })
    }

    /// Starts `task` on the fiber, or continues it.
    ///
    /// # Safety
    /// The caller is the worker of rule 1 and does not run on this fiber.
    #[inline(always)]
    pub(crate) unsafe fn resume(this: NonNull<Self>, task: Task) -> Suspended {
        // SAFETY: by the contract, no other code resumes it, and code on the fiber accesses only
        // its other fields.
        let coroutine = unsafe { &mut *this.as_ref().coroutine.get() };
        match coroutine.resume(Some(task)) {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => unreachable!("it leaves its loop only without a task"),
        }
    }

    /// Rule 2: takes the stack after the last task has ended, or if no task ever started.
    pub(crate) fn into_stack(self) -> Stack {
        let mut coroutine = self.coroutine.into_inner();
        if coroutine.started() {
            coroutine.resume(None);
        } else {
            // SAFETY: the coroutine never ran, so it has no frames.
            unsafe { coroutine.force_reset() };
        }
        coroutine.into_stack()
    }

    /// Suspends the running task: returns the thread to the worker until the next resume.
    ///
    /// # Safety
    /// The caller runs on this fiber.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self, why: Suspended) {
        // SAFETY: rule 3, and the loop has set it.
        unsafe { (*self.yielder.get()).suspend(why) };
    }
    /// Runs `f` on the thread's own stack, on top of the worker's frames.
    ///
    /// # Safety
    /// The caller runs on this fiber, and `f` does not suspend it.
    pub(crate) unsafe fn on_worker_stack<R>(&self, f: impl FnOnce() -> R) -> R {
        let f = AssertSend(f);
        // SAFETY: rule 3, and the loop has set it.
        unsafe { (*self.yielder.get()).on_parent_stack(move || f.call()) }
    }
}

/// A closure that stays on its thread, so that it need not be `Send`.
struct AssertSend<F>(F);

// SAFETY: `on_parent_stack` runs the closure on the caller's thread and returns after it. The
// `Send` bound exists to prevent a suspension in the closure, which the contract of
// `on_worker_stack` forbids.
unsafe impl<F> Send for AssertSend<F> {}

impl<F: FnOnce() -> R, R> AssertSend<F> {
    /// A method, because a closure that names the field would capture only the field.
    fn call(self) -> R {
        (self.0)()
    }
}
