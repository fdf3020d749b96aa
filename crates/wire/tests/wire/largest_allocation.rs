//! The system allocator, which records the largest allocation of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Recording;

// SAFETY: every call is forwarded to the system allocator.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Recording = Recording;

/// Forgets the allocations of this thread.
pub fn reset() {
    LARGEST.with(|largest| largest.set(0));
}

/// The size of the largest allocation of this thread since [`reset`].
pub fn get() -> usize {
    LARGEST.with(Cell::get)
}
