//! The members of a [`JoinSet`](crate::JoinSet) that have ended.

use std::ptr::NonNull;

use super::state::look_until;
use super::{Header, JoinWaker, Task};
use crate::shim::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, UnsafeCell};
use crate::wake_reason::WakeReason;
use crate::worker;

/// Rules 2 to 5 of [`join_set`](crate::join_set).
pub(crate) struct FinishedStack {
    top: AtomicPtr<Header>,
    sleeper: UnsafeCell<Option<JoinWaker>>,
    /// Whether there is a sleeper that the owner has not taken back, and that no task has taken.
    has_sleeper: AtomicBool,
    /// Rule 5. It wraps: members may subtract before the owner adds.
    unpushed: AtomicUsize,
    #[cfg(loom)]
    memory: crate::shim::Memory,
}

// SAFETY: the sleeper has one owner at a time by rule 4.
unsafe impl Send for FinishedStack {}
// SAFETY: as above.
unsafe impl Sync for FinishedStack {}

const EMPTY: *mut Header = std::ptr::null_mut();
const OWNER_WAITING: *mut Header = std::ptr::without_provenance_mut(1);
const CLOSED: *mut Header = std::ptr::without_provenance_mut(2);

impl FinishedStack {
    fn new() -> Self {
        Self {
            top: AtomicPtr::new(EMPTY),
            sleeper: UnsafeCell::new(None),
            has_sleeper: AtomicBool::new(false),
            unpushed: AtomicUsize::new(0),
            #[cfg(loom)]
            memory: crate::shim::Memory::new(),
        }
    }

    /// # Safety
    /// The task has ended and exists until this call returns. It is a member, and is pushed once: the stack
    /// may be freed from then on.
    pub(crate) unsafe fn push(this: NonNull<Self>, task: Task) {
        // SAFETY: rule 5: this member has not been pushed.
        let stack = unsafe { this.as_ref() };
        #[cfg(loom)]
        stack.memory.touch();
        let mut top = stack.top.load(Ordering::Relaxed);
        loop {
            let before = match top {
                OWNER_WAITING => None,
                // SAFETY: the caller's contract.
                CLOSED => return unsafe { Self::subtract(this, 1) },
                // SAFETY: rule 3: the pointer came from `into_raw`. Rule 1 keeps the task alive
                // while the owner exists; after that, nobody follows the pointer.
                top => unsafe { Task::from_raw(top) },
            };
            task.header().next.set(before);
            match stack.top.compare_exchange_weak(
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
            // SAFETY: rule 4. Until `has_sleeper` is false, the owner keeps the stack.
            let sleeper = stack.sleeper.with_mut(|place| unsafe { (*place).take() });
            #[cfg(loom)]
            stack.memory.touch();
            stack.has_sleeper.store(false, Ordering::Release);
            if let Some(sleeper) = sleeper {
                match worker::current() {
                    Some(worker) => worker.report_end(|| sleeper.wake()),
                    None => sleeper.wake(),
                }
            }
        }
    }

    /// Rule 5: frees the stack if no member will be pushed any more.
    ///
    /// # Safety
    /// The stack is closed. The owner passes the negative number of members that were not pushed before, once;
    /// or such a member passes 1, instead of being pushed.
    unsafe fn subtract(this: NonNull<Self>, count: usize) {
        // SAFETY: the caller is counted.
        let before = unsafe { this.as_ref() }
            .unpushed
            .fetch_sub(count, Ordering::AcqRel);
        if before == count {
            // SAFETY: it came from a `Box`. All members and the owner are done with it.
            let stack = unsafe { Box::from_raw(this.as_ptr()) };
            #[cfg(loom)]
            stack.memory.free();
            drop(stack);
        }
    }

    fn replace_top(&self, from: *mut Header, to: *mut Header) -> bool {
        self.top
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// The owner's end of a [`FinishedStack`].
pub(crate) struct FinishedTasks {
    stack: NonNull<FinishedStack>,
    /// The number of members that were not taken from the stack.
    untaken: usize,
}

// SAFETY: the rules define which thread accesses what; the owner may be any one thread.
unsafe impl Send for FinishedTasks {}

impl FinishedTasks {
    pub(crate) fn new() -> Self {
        Self {
            stack: NonNull::from(Box::leak(Box::new(FinishedStack::new()))),
            untaken: 0,
        }
    }

    /// Counts a new member. Returns the stack to which it is pushed once.
    pub(crate) fn for_new_member(&mut self) -> NonNull<FinishedStack> {
        self.untaken += 1;
        self.stack
    }

    fn stack(&self) -> &FinishedStack {
        // SAFETY: rule 5: the owner exists.
        let stack = unsafe { self.stack.as_ref() };
        #[cfg(loom)]
        stack.memory.touch();
        stack
    }

    /// Takes all finished tasks, oldest first.
    pub(crate) fn take(&mut self) -> Option<Task> {
        let top = self.stack().top.load(Ordering::Relaxed);
        if top == EMPTY || top == OWNER_WAITING {
            return None;
        }
        let top = self.stack().top.swap(EMPTY, Ordering::Acquire);
        self.reverse(top)
    }

    /// The tasks from `top` on, in the opposite order.
    fn reverse(&mut self, top: *mut Header) -> Option<Task> {
        // SAFETY: rule 3; only the owner writes the other values.
        let mut next = unsafe { Task::from_raw(top) };
        let mut first = None;
        while let Some(task) = next {
            self.untaken -= 1;
            next = task.header().next.replace(first);
            first = Some(task);
        }
        first
    }

    /// Registers the waker for the next end. `false`: a member has ended.
    pub(crate) fn register(&self, sleeper: JoinWaker) -> bool {
        // There may be a waker of an earlier wait.
        if !self.unregister() {
            return false;
        }
        let stack = self.stack();
        // SAFETY: rule 4: the word is not `OWNER_WAITING`, and only the owner writes that.
        stack
            .sleeper
            .with_mut(|place| unsafe { *place = Some(sleeper) });
        stack.has_sleeper.store(true, Ordering::Relaxed);
        let registered = stack.replace_top(EMPTY, OWNER_WAITING);
        if !registered {
            stack.has_sleeper.store(false, Ordering::Relaxed);
        }
        registered
    }

    /// Ends the wait. `false`: a member has ended.
    fn unregister(&self) -> bool {
        let stack = self.stack();
        if stack.replace_top(OWNER_WAITING, EMPTY) {
            stack.has_sleeper.store(false, Ordering::Relaxed);
            return true;
        }
        stack.top.load(Ordering::Relaxed) == EMPTY
    }

    /// See [`JoinSet::wait_as_actor`](crate::JoinSet).
    pub(crate) fn park(&self, me: Task, park: impl Fn() -> WakeReason) -> bool {
        if !self.register(JoinWaker::Actor(me)) {
            return true;
        }
        loop {
            let woke = park();
            if self.stack().top.load(Ordering::Relaxed) != OWNER_WAITING {
                return true;
            }
            if woke == WakeReason::Stopping && self.unregister() {
                return false;
            }
        }
    }
}

impl Drop for FinishedTasks {
    fn drop(&mut self) {
        let top = self.stack().top.swap(CLOSED, Ordering::AcqRel);
        if top == OWNER_WAITING {
            // SAFETY: rule 4.
            let sleeper = self
                .stack()
                .sleeper
                .with_mut(|place| unsafe { (*place).take() });
            drop(sleeper);
        } else {
            // Counts them.
            self.reverse(top);
            look_until(|| !self.stack().has_sleeper.load(Ordering::Acquire));
        }
        // SAFETY: it is closed, and the members that were pushed have been subtracted.
        unsafe { FinishedStack::subtract(self.stack, self.untaken.wrapping_neg()) };
    }
}
