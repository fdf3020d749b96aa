//! Preemption points in allocations.

use std::alloc::{GlobalAlloc, Layout};

use crate::sections::{
    NOT_A_WORKER, is_allocation_point, is_allowed_in_allocation, set_allocations_left,
};
use crate::worker;

#[inline(always)]
fn allocated() {
    if is_allocation_point() {
        point();
    }
}

#[cold]
#[inline(never)]
fn point() {
    let Some(worker) = worker::current() else {
        return set_allocations_left(NOT_A_WORKER);
    };
    set_allocations_left(worker.scheduler.config.alloc_interval);
    match is_allowed_in_allocation() {
        // The module's rule 3.
        Some(true) if !std::thread::panicking() => worker.allocated(),
        Some(true) | None => {}
        // The next allocation may be outside of the section.
        Some(false) => set_allocations_left(1),
    }
}

/// An allocator that wraps another one: every [`alloc_interval`](crate::Config::alloc_interval)th
/// allocation of an actor is a preemption point.
/// [`preempting_allocator!`](crate::preempting_allocator) installs one as the global allocator.
#[derive(Debug)]
pub struct Preempting<A> {
    inner: A,
}

impl<A> Preempting<A> {
    /// Wraps `inner`.
    ///
    /// # Safety
    /// See [`preempting_allocator!`](crate::preempting_allocator).
    pub const unsafe fn new(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call is forwarded to `inner`. The code that follows does not unwind, and by the
// module's rules returns on the same thread.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Preempting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let memory = unsafe { self.inner.alloc(layout) };
        allocated();
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { self.inner.dealloc(memory, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        allocated();
        memory
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        let memory = unsafe { self.inner.realloc(memory, layout, size) };
        allocated();
        memory
    }
}

/// Installs a global allocator that preempts: every
/// [`alloc_interval`](crate::Config::alloc_interval)th allocation of an actor is a preemption point
/// like [`check!`](crate::check), so that a loop that allocates lets other actors run. Use it in
/// the root of a program, never in a library:
///
/// ```
/// // SAFETY: no actor of this program allocates where another one of its worker must not come in between.
/// thalweg_runtime::preempting_allocator!(unsafe);
/// # fn main() { thalweg_runtime::run(|| drop(vec![1])); }
/// ```
///
/// To wrap another allocator than the system's, pass the path of a type with one value:
/// `preempting_allocator!(unsafe mimalloc::MiMalloc)`.
///
/// On other threads, and between two points, an allocation costs one additional thread-local
/// decrement.
///
/// # Safety
///
/// With this allocator, *any* allocation of an actor may let another actor of the same thread run.
/// Everything that an actor uses on its thread across an allocation must tolerate that, or be in a
/// [`NoPreempt`](crate::preempt::NoPreempt) section:
///
/// * Undefined behaviour otherwise: scoped thread-locals, and any `unsafe` code that relies on the
///   thread leaving its regions in the order in which it entered them. Also a thread-local whose
///   initial value allocates, if two actors access it for the first time concurrently; access it in
///   a section first.
/// * Deadlock otherwise: a `std` lock, a `OnceLock` or `LazyLock` during its initialisation, and a
///   `Backtrace` during its capture. Another actor of the thread that needs it blocks the thread,
///   and the owner cannot continue.
/// * Panic otherwise: a thread-local `RefCell` that is borrowed, if another actor borrows it.
///
/// The runtime, its channels and its timers tolerate preemption, and objects that implement
/// [`Run`](crate::Run) are not preempted in allocations. A thread that unwinds has no preemption
/// points. An actor that only allocates is not ended when its runtime stops, because an allocator
/// cannot unwind; [`check!`](crate::check) can.
#[macro_export]
macro_rules! preempting_allocator {
    (unsafe) => {
        $crate::preempting_allocator!(unsafe ::std::alloc::System);
    };
    (unsafe $inner:path) => {
        #[global_allocator]
        static PREEMPTING_ALLOCATOR: $crate::preempt::Preempting<$inner> =
            // SAFETY: the application vouches for it with the word `unsafe`.
            unsafe { $crate::preempt::Preempting::new($inner) };
    };
}
