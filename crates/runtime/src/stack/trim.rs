//! Memory that stacks no longer use goes back to the system, while a worker has nothing better to do.
//!
//! A page that an actor touched stays with its stack. One actor that went deep would so cost its depth for ever. The kernel
//! is not asked first which pages are there: to say so (`mincore`, 1.3 to 1.7 us) costs it more than to find nothing to take
//! (`MADV_DONTNEED`, 1.1 us). What was taken costs 5 us a page when it is touched again, so the top of each stack stays, and a
//! magazine keeps its warmest as they are.
//!
//! Where a runtime has ended nobody may want its stacks again: all but a few go back as a whole, tops and all. Slots that lie side by side need one call.
//! Their guards stay: neither kind is taken away by `MADV_DONTNEED`. What stays with them is the page tables, 4 KiB for each 2 MiB of addresses.

use super::{Depot, Magazine, Shape, Slot};

/// Bytes from the top that keep their memory: what most actors need.
const KEPT: usize = 16 << 10;
/// Stacks for each call. Where all were used to 64 KiB, that is 80 us in which the worker does not look for work.
pub(super) const AT_ONCE: usize = 4;
/// Stacks on top of a magazine that are left as they are: a worker that wakes for one short actor after the other, or a few,
/// runs all of them on these.
const WARM: usize = 4;
/// Stacks that stay as they are when a runtime ends: a program that starts one after the other, as tests do, runs most of its actors on these.
const LEFT_WARM: usize = 64;

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
            shrink(self.depot.shape(), slot, KEPT);
        }
        self.clean < end || self.depot.needs_trim()
    }
}

impl Depot {
    /// Gives back what a few stacks used that nobody holds. Whether there are more.
    #[cold]
    pub(crate) fn trim(&self) -> bool {
        // Outside of its lock, which workers in need of a stack wait for.
        let taken = self.take_used();
        let kept = if taken.keeps_top { KEPT } else { 0 };
        for &slot in &taken.slots {
            shrink(self.shape(), slot, kept);
        }
        self.take_back_trimmed(&taken);
        taken.more
    }

    /// Gives back all memory of the stacks that nobody holds, but for those of the next small runtime. For the end of a runtime.
    pub(crate) fn release(&self) {
        let mut slots = self.take_all_but(LEFT_WARM);
        slots.sort_unstable_by_key(|slot| slot.base);
        let shape = self.shape();
        for run in slots.chunk_by(|one, next| {
            shape.start(*next).get() - shape.start(*one).get() == shape.stride
        }) {
            give_back(shape, run);
        }
        self.take_back_bare(&slots);
    }
}

/// The memory between guard and top is as if never touched, but for `kept` bytes at the top. The caller has the slot (rule 2).
#[cfg(target_os = "linux")]
fn shrink(shape: &Shape, slot: Slot, kept: usize) {
    let start = shape.start(slot).get() + shape.guard;
    let len = shape.size - shape.guard - kept.next_multiple_of(super::page_size());
    // It fails where the application locks its memory, and then there is nothing to give back.
    let _ = super::guard::advise(start, len, libc::MADV_DONTNEED);
}

/// The same for all memory of slots that lie side by side, in ascending order. The caller has them (rule 2).
#[cfg(target_os = "linux")]
fn give_back(shape: &Shape, run: &[Slot]) {
    if let [first, .., last] | [first @ last] = run {
        let start = shape.start(*first).get();
        let _ = super::guard::advise(start, shape.top(*last) - start, libc::MADV_DONTNEED);
    }
}

/// Elsewhere the advice has other meanings.
#[cfg(not(target_os = "linux"))]
fn shrink(_: &Shape, _: Slot, _: usize) {}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &Shape, _: &[Slot]) {}
