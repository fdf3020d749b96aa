//! The members of a [`JoinSet`](crate::JoinSet) that have ended.

use super::{Header, JoinWaker, Task};
use crate::shim::{AtomicPtr, Ordering, UnsafeCell};
use crate::wake_reason::WakeReason;
use crate::worker;

/// Rules 2 to 4 of [`join_set`](crate::join_set).
pub(crate) struct FinishedStack {
    top: AtomicPtr<Header>,
    sleeper: UnsafeCell<Option<JoinWaker>>,
}

// SAFETY: the sleeper has one owner at a time by rule 4.
unsafe impl Send for FinishedStack {}
// SAFETY: as above.
unsafe impl Sync for FinishedStack {}

const EMPTY: *mut Header = std::ptr::null_mut();
const OWNER_WAITING: *mut Header = std::ptr::without_provenance_mut(1);

impl Default for FinishedStack {
    fn default() -> Self {
        Self {
            top: AtomicPtr::new(EMPTY),
            sleeper: UnsafeCell::new(None),
        }
    }
}

impl FinishedStack {
    /// # Safety
    /// The task has ended, exists until this call returns, and is pushed once.
    pub(crate) unsafe fn push(&self, task: Task) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            let before = match top {
                OWNER_WAITING => None,
                // SAFETY: rule 3: the pointer came from `into_raw`. Rule 1 keeps the task alive
                // while the owner exists; after that, nobody follows the pointer.
                top => unsafe { Task::from_raw(top) },
            };
            task.header().next.set(before);
            match self.top.compare_exchange_weak(
                top,
                task.into_raw(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => top = now,
            }
        }
        if top == OWNER_WAITING {
            // SAFETY: rule 4.
            let sleeper = self.sleeper.with_mut(|place| unsafe { (*place).take() });
            if let Some(sleeper) = sleeper {
                match worker::current() {
                    Some(worker) => worker.report_end(|| sleeper.wake()),
                    None => sleeper.wake(),
                }
            }
        }
    }

    /// Called by the owner: takes all finished tasks, oldest first.
    pub(crate) fn take(&self) -> Option<Task> {
        let top = self.top.load(Ordering::Relaxed);
        if top == EMPTY || top == OWNER_WAITING {
            return None;
        }
        let top = self.top.swap(EMPTY, Ordering::Acquire);
        // SAFETY: rule 3; only the owner writes `OWNER_WAITING`.
        let mut next = unsafe { Task::from_raw(top) };
        let mut first = None;
        while let Some(task) = next {
            next = task.header().next.replace(first);
            first = Some(task);
        }
        first
    }

    /// Called by the owner: registers the waker for the next end. `false`: a member has ended.
    pub(crate) fn register(&self, sleeper: JoinWaker) -> bool {
        // There may be a waker of an earlier wait.
        if !self.unregister() {
            return false;
        }
        // SAFETY: rule 4: the word is not `OWNER_WAITING`, and only the owner writes that.
        self.sleeper
            .with_mut(|place| unsafe { *place = Some(sleeper) });
        self.replace_top(EMPTY, OWNER_WAITING)
    }

    /// Called by the owner: ends its wait. `false`: a member has ended.
    fn unregister(&self) -> bool {
        self.replace_top(OWNER_WAITING, EMPTY) || self.top.load(Ordering::Relaxed) == EMPTY
    }

    fn replace_top(&self, from: *mut Header, to: *mut Header) -> bool {
        self.top
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Called by the owner: see [`JoinSet::wait_as_actor`](crate::JoinSet).
    pub(crate) fn park(&self, me: Task, park: impl Fn() -> WakeReason) -> bool {
        if !self.register(JoinWaker::Actor(me)) {
            return true;
        }
        loop {
            let woke = park();
            if self.top.load(Ordering::Relaxed) != OWNER_WAITING {
                return true;
            }
            if woke == WakeReason::Stopping && self.unregister() {
                return false;
            }
        }
    }
}
