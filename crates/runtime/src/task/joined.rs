//! Who hears of a job's end: the joiner's place (`life`'s rule 1).

use std::sync::Arc;
use std::task::Waker;

use super::{Header, Task};
use crate::join_set::FinishedStack;
use crate::shim::Ordering;
use crate::worker;

/// Whom the end of a job wakes.
pub(crate) enum Sleeper {
    /// An actor, by its bare address: `life`'s rule 3.
    Actor(Task),
    Waker(Waker),
}

impl Sleeper {
    pub(crate) fn wake(self) {
        match self {
            Self::Actor(task) => task.wake(),
            Self::Waker(waker) => waker.wake(),
        }
    }
}

/// Who hears of the end of a job.
pub(crate) enum Joiner {
    One(Sleeper),
    /// A [`JoinSet`](crate::JoinSet).
    Set(Arc<FinishedStack>),
}

impl Header {
    /// # Safety
    /// `life`'s rule 1: the place is filled, and the caller's, who does this once.
    pub(super) unsafe fn take_joiner(&self) -> Joiner {
        // SAFETY: as said.
        self.joiner
            .with_mut(|place| unsafe { (*place).assume_init_read() })
    }
}

impl Task {
    /// The handle's: wakes `joiner` at the end. `false`: it has ended.
    ///
    /// # Safety
    /// The caller is the handle, and the place is its own (`life`'s rule 1). An actor is the current one, and does not go before
    /// it was woken or the place taken back.
    pub(crate) unsafe fn join(self, joiner: Joiner) -> bool {
        let header = self.header();
        let queue = match joiner {
            Joiner::One(Sleeper::Actor(_)) => {
                worker::current().map_or(std::ptr::null(), |w| std::ptr::from_ref(w.remote_queue))
            }
            Joiner::One(Sleeper::Waker(_)) | Joiner::Set(_) => std::ptr::null(),
        };
        header
            .joiner_queue
            .store(queue.cast_mut(), Ordering::Relaxed);
        // SAFETY: as said.
        header
            .joiner
            .with_mut(|place| unsafe { (*place).write(joiner) });
        let joined = header.life.join();
        if !joined {
            // SAFETY: it was just filled, and is the handle's again.
            drop(unsafe { header.take_joiner() });
        }
        joined
    }

    /// The handle's: takes the place back. `false`: it has ended, and the place is not the handle's.
    ///
    /// # Safety
    /// The caller is the handle, and has joined.
    pub(crate) unsafe fn unjoin(self) -> bool {
        let header = self.header();
        let taken = header.life.unjoin();
        if taken {
            // SAFETY: it was filled, and is the handle's again.
            drop(unsafe { header.take_joiner() });
        }
        taken
    }
}
