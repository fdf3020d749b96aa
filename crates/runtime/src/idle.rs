//! The idle workers and the number of searching workers, for `scheduler`'s rules 1, 3 and 4.
//!
//! A thread that publishes a task and a worker that looks for one each execute a full fence, so
//! that one of them sees the other. The two words therefore need no ordering of their own. The
//! exception is the idle bit, which passes on two things: the thread that clears it sees where its
//! worker sleeps, and the worker sees the task for which the bit was cleared.

use crate::shim::{AtomicU64, AtomicUsize, Ordering, fence};

pub(crate) struct Idle {
    /// One bit for each worker that is idle and has not been selected since.
    idle: AtomicU64,
    searching: AtomicUsize,
}

/// What to do for a new task that any worker may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announcement {
    /// Nothing: a worker is searching.
    Searching,
    /// Wake this worker.
    Wake(usize),
    /// No worker is idle.
    NoneIdle,
}

impl Idle {
    pub(crate) fn new() -> Self {
        Self {
            idle: AtomicU64::new(0),
            searching: AtomicUsize::new(0),
        }
    }

    /// Called after the task was published.
    #[inline(always)]
    pub(crate) fn announce(&self) -> Announcement {
        fence(Ordering::SeqCst);
        if self.searching.load(Ordering::Relaxed) > 0 {
            return Announcement::Searching;
        }
        let mut idle = self.idle.load(Ordering::Relaxed);
        while idle != 0 {
            let bit = idle & idle.wrapping_neg();
            let before = self.idle.fetch_and(!bit, Ordering::AcqRel);
            if before & bit != 0 {
                return Announcement::Wake(bit.trailing_zeros() as usize);
            }
            idle = before & !bit;
        }
        Announcement::NoneIdle
    }

    /// The number of workers that have no task now.
    pub(crate) fn without_task(&self) -> usize {
        let idle = self.idle.load(Ordering::Relaxed).count_ones() as usize;
        idle + self.searching.load(Ordering::Relaxed)
    }

    pub(crate) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// Called by a searcher that has found work. Returns `true` if it was the last one; it then
    /// checks whether there is more work.
    pub(crate) fn end_search(&self) -> bool {
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            fence(Ordering::SeqCst);
        }
        last
    }

    /// Called by a worker that has found no work and has published where it sleeps. The thread that
    /// clears its bit sees that. The worker looks for work once more afterwards.
    pub(crate) fn set_idle(&self, index: usize) {
        self.idle.fetch_or(1 << index, Ordering::Release);
        self.searching.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Called by a worker that was woken, or found work in its last look. It checks whether there
    /// is more work afterwards.
    pub(crate) fn clear_idle(&self, index: usize) {
        self.idle.fetch_and(!(1 << index), Ordering::AcqRel);
    }
}
