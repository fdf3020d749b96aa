//! Trimming: returns unused memory of stacks to the system when a worker has been idle for a while.
//!
//! A page that an actor touched stays with its stack. Without trimming, one actor with a deep stack
//! would cost that memory forever. The kernel is not asked first which pages have memory: that call
//! (`mincore`, 1.3 to 1.7 us) costs more than a `MADV_DONTNEED` that finds nothing (1.1 us). A page
//! that was returned costs 5 us when it is touched again. Therefore the top of each stack keeps its
//! memory, and the most recently used stacks of a magazine are not trimmed.
//!
//! When a runtime ends, its stacks may never be used again. All but a few are returned completely,
//! including their tops. Adjacent slots need only one call. Their guards remain: `MADV_DONTNEED`
//! removes neither kind. The page tables also remain, 4 KiB per 2 MiB of addresses.

use super::{Depot, Magazine, SlotLayout, StackSlot};

/// The bytes at the top that keep their memory. Most actors need no more.
const KEPT_TOP: usize = 16 << 10;
/// The number of stacks per call. If all of them were used to 64 KiB, a call takes 80 us, during
/// which the worker does not look for work.
pub(super) const BATCH: usize = 4;
/// The number of stacks on top of a magazine that are not trimmed. A worker that wakes up for a few
/// short actors runs all of them on these.
const WARM_STACKS: usize = 4;
/// The number of stacks that are not trimmed when a runtime ends. A program that starts one runtime
/// after another, as tests do, runs most of its actors on these.
const WARM_STACKS_AT_RELEASE: usize = 64;

impl Magazine {
    /// Whether a trim would find stacks that were used since the last one.
    pub(crate) fn needs_trim(&self) -> bool {
        self.clean < self.slots.len().saturating_sub(WARM_STACKS) || self.depot.needs_trim()
    }

    /// Trims a few stacks of this magazine, or else of the depot. Returns whether there are more;
    /// the caller then looks for work before it calls this again.
    #[cold]
    pub(crate) fn trim(&mut self) -> bool {
        let end = self.slots.len().saturating_sub(WARM_STACKS);
        if self.clean >= end {
            return self.depot.trim();
        }
        let from = self.clean;
        self.clean = end.min(from + BATCH);
        for &slot in &self.slots[from..self.clean] {
            shrink(self.depot.layout(), slot, KEPT_TOP);
        }
        self.clean < end || self.depot.needs_trim()
    }
}

impl Depot {
    /// Trims a few free stacks. Returns whether there are more.
    #[cold]
    pub(crate) fn trim(&self) -> bool {
        // Without the lock, because workers that need a stack wait for it.
        let taken = self.take_trim_batch();
        let kept = if taken.keeps_top { KEPT_TOP } else { 0 };
        for &slot in &taken.slots {
            shrink(self.layout(), slot, kept);
        }
        self.take_back_trimmed(&taken);
        taken.more
    }

    /// Returns the memory of all free stacks, except for those that the next small runtime needs.
    /// Called at the end of a runtime.
    pub(crate) fn release(&self) {
        let mut slots = self.take_all_but(WARM_STACKS_AT_RELEASE);
        slots.sort_unstable_by_key(|slot| slot.base);
        let layout = self.layout();
        for run in slots.chunk_by(|one, next| {
            layout.start(*next).get() - layout.start(*one).get() == layout.stride
        }) {
            give_back(layout, run);
        }
        self.take_back_bare(&slots);
    }
}

/// Returns the memory between the guard and the top, except for `kept` bytes at the top. The caller
/// owns the slot (rule 2).
#[cfg(target_os = "linux")]
fn shrink(layout: &SlotLayout, slot: StackSlot, kept: usize) {
    let start = layout.start(slot).get() + layout.guard;
    let len = layout.size - layout.guard - kept.next_multiple_of(super::page_size());
    // This fails if the application has locked its memory; then there is nothing to return.
    let _ = super::guard::advise(start, len, libc::MADV_DONTNEED);
}

/// Returns all memory of adjacent slots, in ascending order. The caller owns the slots (rule 2).
#[cfg(target_os = "linux")]
fn give_back(layout: &SlotLayout, run: &[StackSlot]) {
    if let [first, .., last] | [first @ last] = run {
        let start = layout.start(*first).get();
        let _ = super::guard::advise(start, layout.top(*last) - start, libc::MADV_DONTNEED);
    }
}

/// On other systems the advice has other meanings.
#[cfg(not(target_os = "linux"))]
fn shrink(_: &SlotLayout, _: StackSlot, _: usize) {}

#[cfg(not(target_os = "linux"))]
fn give_back(_: &SlotLayout, _: &[StackSlot]) {}
