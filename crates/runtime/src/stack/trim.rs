//! Memory that stacks no longer use goes back to the system, while a worker has nothing better to do.
//!
//! A page that an actor touched stays with its stack. One actor that went deep would so cost its depth for ever. The kernel
//! is not asked first which pages are there: to say so (`mincore`, 1.3 to 1.7 us) costs it more than to find nothing to take
//! (`MADV_DONTNEED`, 1.1 us). What was taken costs 5 us a page when it is touched again, so the top of each stack stays, and a
//! magazine keeps its warmest as they are.

use super::{Depot, Magazine, Shape, Slot};

/// Bytes from the top that keep their memory: what most actors need.
const KEPT: usize = 16 << 10;
/// Stacks for each call. Where all were used to 64 KiB, that is 80 us in which the worker does not look for work.
pub(super) const AT_ONCE: usize = 4;
/// Stacks on top of a magazine that are left as they are: a worker that wakes for one short actor after the other, or a few,
/// runs all of them on these.
const WARM: usize = 4;

impl Magazine {
    /// Gives back what a few stacks used, of this magazine or else of the depot. Whether there are more: then it can be called
    /// again, after a look for work.
    #[cold]
    pub(crate) fn trim(&mut self) -> bool {
        let end = self.slots.len().saturating_sub(WARM);
        if self.clean >= end {
            return self.depot.trim();
        }
        let from = self.clean;
        self.clean = end.min(from + AT_ONCE);
        for &slot in &self.slots[from..self.clean] {
            shrink(self.depot.shape(), slot);
        }
        self.clean < end || self.depot.needs_trim()
    }
}

impl Depot {
    /// Gives back what a few stacks used that nobody holds. Whether there are more.
    #[cold]
    pub(crate) fn trim(&self) -> bool {
        // Outside of its lock, which workers in need of a stack wait for.
        let (slots, more) = self.take_used();
        for &slot in &slots {
            shrink(self.shape(), slot);
        }
        self.take_back_clean(&slots);
        more
    }
}

/// The memory between guard and top is as if never touched. The caller has the slot (rule 2).
#[cfg(target_os = "linux")]
fn shrink(shape: &Shape, slot: Slot) {
    let start = shape.start(slot).get() + shape.guard;
    let len = shape.size - shape.guard - KEPT.next_multiple_of(super::page_size());
    // It fails where the application locks its memory, and then there is nothing to give back.
    let _ = super::guard::advise(start, len, libc::MADV_DONTNEED);
}

/// Elsewhere the advice has other meanings.
#[cfg(not(target_os = "linux"))]
fn shrink(_: &Shape, _: Slot) {}
