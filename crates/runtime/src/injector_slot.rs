//! A place in front of the injector for one unstarted task. It takes one atomic operation where the
//! injector takes a lock.
//!
//! 1. A thread puts a task here only if the injector is empty, and workers look here first. Tasks
//!    from other threads therefore begin in order, apart from those that are added concurrently.
//! 2. Only tasks that were just created come here. They are in no queue that a list of actors has
//!    already read (`actor_info::moved`).
//! 3. A thread that has put a task here executes a full fence and then checks whether the runtime
//!    stops. A runtime that stops is marked, and the slot emptied after a full fence. One of the two
//!    takes the task.

use crate::shim::{AtomicPtr, Ordering};
use crate::task::{Header, Task};

pub(crate) struct InjectorSlot(AtomicPtr<Header>);

impl InjectorSlot {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Puts a task here. Returns `false` if the slot has one.
    #[inline(always)]
    pub(crate) fn put(&self, task: Task) -> bool {
        self.is_empty()
            && self
                .0
                .compare_exchange(
                    std::ptr::null_mut(),
                    task.into_raw(),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Task> {
        if self.is_empty() {
            return None;
        }
        let task = self.0.swap(std::ptr::null_mut(), Ordering::Acquire);
        // SAFETY: the pointer came from `into_raw`, with the runtime's reference. The swap took it
        // out.
        unsafe { Task::from_raw(task) }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }
}
