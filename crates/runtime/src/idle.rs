//! Which workers sleep and how many search, by `scheduler`'s rules 1, 3 and 4.
//!
//! Who puts in a job and who looks for one have a full fence each, so that one of the two sees the other; the words need no order of their own. But
//! the bit passes two things on: who takes it sees where its worker sleeps, and the worker sees what it was taken for.

use crate::shim::{AtomicU64, AtomicUsize, Ordering, fence};

pub(crate) struct Idle {
    /// A bit for each worker that has lain down and whom nobody has chosen since.
    idle: AtomicU64,
    searching: AtomicUsize,
}

/// What is to be done about a job that any worker may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Nothing: a worker searches.
    Awaited,
    /// This one is to be woken.
    Wakes(usize),
    /// Nobody is idle.
    Unheard,
}

impl Idle {
    pub(crate) fn new() -> Self {
        Self {
            idle: AtomicU64::new(0),
            searching: AtomicUsize::new(0),
        }
    }

    /// After the job was put where others see it.
    pub(crate) fn announce(&self) -> Announced {
        fence(Ordering::SeqCst);
        if self.searching.load(Ordering::Relaxed) > 0 {
            return Announced::Awaited;
        }
        let mut idle = self.idle.load(Ordering::Relaxed);
        while idle != 0 {
            let bit = idle & idle.wrapping_neg();
            let before = self.idle.fetch_and(!bit, Ordering::AcqRel);
            if before & bit != 0 {
                return Announced::Wakes(bit.trailing_zeros() as usize);
            }
            idle = before & !bit;
        }
        Announced::Unheard
    }

    pub(crate) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// One that has found something. `true`: it was the last, and looks whether there is more.
    pub(crate) fn end_search(&self) -> bool {
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        if last {
            fence(Ordering::SeqCst);
        }
        last
    }

    /// One that has found nothing, and has said where it sleeps: who takes its bit sees that. Another look comes next.
    pub(crate) fn set_idle(&self, index: usize) {
        self.idle.fetch_or(1 << index, Ordering::Release);
        self.searching.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// One that was woken, or found something at its other look. It looks whether there is more.
    pub(crate) fn clear_idle(&self, index: usize) {
        self.idle.fetch_and(!(1 << index), Ordering::AcqRel);
    }
}
