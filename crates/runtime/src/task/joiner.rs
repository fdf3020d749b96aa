//! The joiner: what the end of a task wakes or notifies (`task::state`'s rule 1).

use std::hint::unreachable_unchecked;
use std::ptr::NonNull;
use std::task::Waker;

use super::{FinishedStack, Header, Task};
use crate::remote_queue::RemoteQueue;
use crate::shim::Ordering;

/// What the end of a task wakes.
pub(crate) enum JoinWaker {
    /// An actor, through its bare address (`task::state`'s rule 3).
    Actor(Task),
    Waker(Waker),
}

impl JoinWaker {
    pub(crate) fn wake(self) {
        match self {
            Self::Actor(task) => task.wake(),
            Self::Waker(waker) => waker.wake(),
        }
    }
}

/// What is notified of the end of a task.
pub(crate) enum Joiner {
    Waker(JoinWaker),
    /// A [`JoinSet`](crate::JoinSet).
    /// Its memory exists until the task is pushed.
    Set(NonNull<FinishedStack>),
}

impl Header {
    /// # Safety
    /// `task::state`'s rule 1: the joiner field is initialised and belongs to the caller, which
    /// takes it once.
    pub(super) unsafe fn take_joiner(&self) -> Joiner {
        // SAFETY: the caller's contract.
        self.joiner
            .with_mut(|place| unsafe { (*place).assume_init_read() })
    }

    /// [`take_joiner`](Self::take_joiner) of a task whose joiner is an actor, since `joiner_queue` is set.
    ///
    /// # Safety
    /// As for `take_joiner`, and `joiner_queue` is not null.
    #[inline(always)]
    pub(super) unsafe fn take_joining_actor(&self) -> Task {
        // SAFETY: the caller's contract.
        match unsafe { self.take_joiner() } {
            Joiner::Waker(JoinWaker::Actor(actor)) => actor,
            // SAFETY: `join` sets the queue only with an actor, and before the joiner.
            Joiner::Waker(JoinWaker::Waker(_)) | Joiner::Set(_) => unsafe {
                unreachable_unchecked()
            },
        }
    }
}

impl Task {
    /// Registers a joiner on behalf of the handle. Returns `false` if the task has ended. `queue` is
    /// that of the worker on which the joiner runs, if the joiner is an actor; otherwise null.
    ///
    /// # Safety
    /// The caller is the handle, and the joiner field belongs to it (`task::state`'s rule 1). If
    /// the joiner is an actor, it is the current one, and it does not end before it is woken or the
    /// joiner is taken back.
    pub(crate) unsafe fn join(self, joiner: Joiner, queue: *const RemoteQueue) -> bool {
        let header = self.header();
        header
            .joiner_queue
            .store(queue.cast_mut(), Ordering::Relaxed);
        // SAFETY: the caller's contract.
        header
            .joiner
            .with_mut(|place| unsafe { (*place).write(joiner) });
        let joined = header.state.set_joiner();
        if !joined {
            // SAFETY: the field was just initialised, and belongs to the handle again.
            drop(unsafe { header.take_joiner() });
        }
        joined
    }

    /// [`join`](Self::join), before the task is in any queue. The joiner is not an actor.
    pub(crate) fn join_first(self, joiner: Joiner) {
        let header = self.header();
        // SAFETY: no other thread knows the task, and it has no joiner.
        header
            .joiner
            .with_mut(|place| unsafe { (*place).write(joiner) });
        header.state.set_first_joiner();
    }

    /// Takes the joiner back on behalf of the handle. Returns `false` if the task has ended; the
    /// field then does not belong to the handle.
    ///
    /// # Safety
    /// The caller is the handle, and has registered a joiner.
    pub(crate) unsafe fn unjoin(self) -> bool {
        let header = self.header();
        let taken = header.state.clear_joiner();
        if taken {
            // SAFETY: the field was initialised, and belongs to the handle again.
            drop(unsafe { header.take_joiner() });
        }
        taken
    }
}
