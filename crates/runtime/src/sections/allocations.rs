//! The number of allocations before the next preemption point of a worker's thread.

use std::cell::Cell;

use thalweg_queue::no_preempt;

use super::WORKER_DEPTH;

thread_local! {
    // Neither lazily initialised nor dropped, because an allocator must be able to read it at any
    // time.
    /// The number of allocations before the next point.
    static LEFT: Cell<u32> = const { Cell::new(NOT_A_WORKER) };
}

/// The value on threads that are not workers.
pub(crate) const NOT_A_WORKER: u32 = u32::MAX;

/// Enables the points of a worker's thread until it is dropped.
pub(crate) struct AllocationPoints {
    depth: u32,
}

impl AllocationPoints {
    pub(crate) fn begin(interval: u32) -> Self {
        LEFT.set(interval);
        Self {
            depth: no_preempt::set_depth(WORKER_DEPTH),
        }
    }
}

impl Drop for AllocationPoints {
    fn drop(&mut self) {
        LEFT.set(NOT_A_WORKER);
        no_preempt::set_depth(self.depth);
    }
}

/// The counter of a worker's thread, for the thread that is one of its fibers.
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) struct PointsLeft(u32);

#[cfg(any(miri, loom, thalweg_threads))]
impl PointsLeft {
    pub(crate) fn capture() -> Self {
        Self(LEFT.get())
    }

    pub(crate) fn install(self) {
        let begins = LEFT.replace(self.0) == NOT_A_WORKER;
        if begins {
            no_preempt::set_depth(WORKER_DEPTH);
        }
    }
}

/// Counts an allocation. Returns whether it is a preemption point.
#[inline(always)]
pub(crate) fn is_allocation_point() -> bool {
    let left = LEFT.get().wrapping_sub(1);
    LEFT.set(left);
    left == 0
}

/// Sets the number of allocations before the next point.
pub(crate) fn set_allocations_left(count: u32) {
    LEFT.set(count);
}
