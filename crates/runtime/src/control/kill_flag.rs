//! Whether a behaviour actor was killed, and which job to wake for that: one word.
//!
//! 1. Before the running turn of such an actor is suspended, it stores its job here with a
//!    reference, and removes it when it continues. A job with a stack of its own does not need
//!    this: its [`Control`](super::Control) points to it while it lives.
//! 2. A kill swaps the word for `KILLED`, takes over the reference to the stored job and wakes it.
//! 3. The word stays `KILLED` until the next incarnation starts, whose [`Pid`](crate::Pid) nobody
//!    has yet. It is set under the lock of the incarnation's [`Control`](super::Control), so never
//!    after that incarnation has ended.

use std::task::Waker;

use crate::shim::{AtomicPtr, Ordering};
use crate::task::{Header, Task};

const KILLED: *mut Header = std::ptr::without_provenance_mut(1);

#[derive(Debug)]
pub(crate) struct KillFlag(AtomicPtr<Header>);

impl KillFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) == KILLED
    }

    /// Suspends the running job by `suspend`, unless it was killed. A job with masked signals is
    /// suspended anyway, and a kill does not wake it.
    pub(crate) fn suspend(&self, task: Task, suspend: impl FnOnce()) {
        let is_masked = task.header().masks.get() > 0;
        if is_masked || self.register(task) {
            suspend();
            self.deregister(task);
        }
    }

    /// Rule 1. `false`: the actor was killed and must not wait.
    fn register(&self, task: Task) -> bool {
        task.header().state.add_reference();
        let stored = self.0.compare_exchange(
            std::ptr::null_mut(),
            task.into_raw(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if stored.is_err() {
            task.drop_reference();
        }
        stored.is_ok()
    }

    /// Rule 1: the job continues.
    fn deregister(&self, task: Task) {
        let taken = self.0.compare_exchange(
            task.into_raw(),
            std::ptr::null_mut(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if taken.is_ok() {
            task.drop_reference();
        }
    }

    /// Rule 2. Returns the waker of the stored job.
    pub(crate) fn set(&self) -> Option<Waker> {
        let before = self.0.swap(KILLED, Ordering::AcqRel);
        if before == KILLED {
            return None;
        }
        // SAFETY: the pointer came from `into_raw`, and its reference belongs to this call now.
        let task = unsafe { Task::from_raw(before) }?;
        let waker = task.waker();
        task.drop_reference();
        Some(waker)
    }

    /// Rule 3. Nothing of the actor runs.
    pub(crate) fn clear(&self) {
        self.0.store(std::ptr::null_mut(), Ordering::Release);
    }
}
