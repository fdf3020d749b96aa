//! A stack on which one closure after another runs, and is put aside where it waits.
//!
//! 1. A fiber is made, resumed and dropped by one worker: a started stack never changes thread.
//! 2. Between two jobs it is suspended in its own loop, so that the next one starts as fast as another is resumed.
//! 3. Its yielder lives in its first frame, as long as the fiber does.

use std::cell::{Cell, UnsafeCell};
use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::task::Task;

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
    coroutine: UnsafeCell<Coroutine<Task, Suspended, (), DefaultStack>>,
    yielder: Cell<*const Yielder<Task, Suspended>>,
    /// What runs on it.
    pub(crate) task: Cell<Option<Task>>,
}

impl Fiber {
    /// `None`: the system has no memory for a stack.
    pub(crate) fn new(stack_size: usize) -> Option<Box<Self>> {
        let stack = DefaultStack::new(stack_size).ok()?;
        let coroutine = Coroutine::with_stack(stack, |yielder: &Yielder<_, _>, mut task: Task| {
            loop {
                if let Some(fiber) = task.header().fiber.get() {
                    // SAFETY: rule 1: this very fiber, which its worker keeps until it has suspended for the last time.
                    unsafe { fiber.as_ref() }.yielder.set(yielder);
                }
                // SAFETY: the worker gave it to us to start it.
                unsafe { task.run() };
                task = yielder.suspend(Suspended::Finished);
            }
        });
        Some(Box::new(Self {
            coroutine: UnsafeCell::new(coroutine),
            yielder: Cell::new(std::ptr::null()),
            task: Cell::new(None),
        }))
    }

    /// The worker: starts `task` on it, or goes on with it.
    ///
    /// # Safety
    /// The caller is the worker of rule 1, and not on this fiber.
    #[inline(always)]
    pub(crate) unsafe fn resume(this: NonNull<Self>, task: Task) -> Suspended {
        // SAFETY: as said: nobody else resumes it, and from inside only `yielder` and `task` are touched.
        let coroutine = unsafe { &mut *this.as_ref().coroutine.get() };
        match coroutine.resume(task) {
            CoroutineResult::Yield(why) => why,
            CoroutineResult::Return(()) => unreachable!("a fiber's loop has no end"),
        }
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
}
