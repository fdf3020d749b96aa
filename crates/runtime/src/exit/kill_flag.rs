//! Whether a behaviour actor is to end at once, and whom to wake for that: one word.
//!
//! 1. The running turn of such an actor puts its job here, with a reference, before it is put aside, and takes it back when it goes on. A job with a
//!    stack of its own needs none of this: its [`Control`](super::Control) names it as long as it lives.
//! 2. Who dooms the actor swaps the word for `SET`; the job that was there is its to wake, with the reference.
//! 3. It stays so until the next incarnation begins, of which nobody outside has a [`Pid`](super::Pid) yet; and it is set under the lock of the
//!    incarnation's [`Control`](super::Control), so not after that has ended.

use std::task::Waker;

use crate::shim::{AtomicPtr, Ordering};
use crate::task::{Header, Task};

const SET: *mut Header = std::ptr::without_provenance_mut(1);

#[derive(Debug)]
pub(crate) struct KillFlag(AtomicPtr<Header>);

impl KillFlag {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) == SET
    }

    /// Puts the caller, which is what runs, aside by `suspend`, unless it is doomed. Where nothing may end it now it is not woken for that.
    pub(crate) fn suspend(&self, task: Task, suspend: impl FnOnce()) {
        let kept = task.header().masks.get() > 0;
        if kept || self.wait_as(task) {
            suspend();
            self.go_on_as(task);
        }
    }

    /// Rule 1. `false`: it is doomed, and must not wait.
    fn wait_as(&self, task: Task) -> bool {
        task.header().state.add_reference();
        let put = self.0.compare_exchange(
            std::ptr::null_mut(),
            task.into_raw(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if put.is_err() {
            task.drop_reference();
        }
        put.is_ok()
    }

    /// Rule 1: it goes on.
    fn go_on_as(&self, task: Task) {
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

    /// Rule 2: what wakes it.
    pub(crate) fn set(&self) -> Option<Waker> {
        let before = self.0.swap(SET, Ordering::AcqRel);
        if before == SET {
            return None;
        }
        // SAFETY: what was there came from `into_raw`, with a reference that is ours now.
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
