//! Points in allocations.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use thalweg_queue::quiet;

use super::guards::{OF_WORKER, is_allowed_in_allocation};
use crate::worker;

thread_local! {
    // Neither lazily made nor dropped: an allocator must be able to read it at any time.
    /// Allocations left before the next point.
    static LEFT: Cell<u32> = const { Cell::new(FAR) };
}

/// On a thread that is no worker.
const FAR: u32 = u32::MAX;

/// A worker's, as long as it is one.
pub(crate) struct Points {
    depth: u32,
}

impl Points {
    pub(crate) fn begin(interval: u32) -> Self {
        LEFT.set(interval);
        Self {
            depth: quiet::set_depth(OF_WORKER),
        }
    }
}

impl Drop for Points {
    fn drop(&mut self) {
        LEFT.set(FAR);
        quiet::set_depth(self.depth);
    }
}

/// What a worker's thread counts, for the thread that is one of its fibers.
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) struct Left(u32);

#[cfg(any(miri, loom, thalweg_threads))]
impl Left {
    pub(crate) fn of_this_thread() -> Self {
        Self(LEFT.get())
    }

    pub(crate) fn take_up(self) {
        let begins = LEFT.replace(self.0) == FAR;
        if begins {
            quiet::set_depth(OF_WORKER);
        }
    }
}

#[inline(always)]
fn allocated() {
    let left = LEFT.get().wrapping_sub(1);
    LEFT.set(left);
    if left == 0 {
        due();
    }
}

#[cold]
#[inline(never)]
fn due() {
    let Some(worker) = worker::current() else {
        return LEFT.set(FAR);
    };
    LEFT.set(worker.scheduler.config.alloc_interval);
    match is_allowed_in_allocation() {
        // The module's rule 3.
        Some(true) if !std::thread::panicking() => worker.allocated(),
        Some(true) | None => {}
        // The next one may be outside.
        Some(false) => LEFT.set(1),
    }
}

/// An allocator around another: every [`alloc_interval`](crate::Config::alloc_interval)th allocation of an actor is a point.
/// [`preempting_allocator!`](crate::preempting_allocator) makes one the application's.
#[derive(Debug)]
pub struct Preempting<A> {
    inner: A,
}

impl<A> Preempting<A> {
    /// Around `inner`.
    ///
    /// # Safety
    /// What [`preempting_allocator!`](crate::preempting_allocator) says.
    pub const unsafe fn new(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call is `inner`'s. What is added after it does not unwind, and by the module's rules comes back to the same thread.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Preempting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.inner.alloc(layout) };
        allocated();
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.inner.dealloc(memory, layout) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.inner.alloc_zeroed(layout) };
        allocated();
        memory
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.inner.realloc(memory, layout, size) };
        allocated();
        memory
    }
}

/// Makes the application's allocator one that preempts: every [`alloc_interval`](crate::Config::alloc_interval)th allocation of an actor is a point
/// like [`check!`](crate::check), so that a loop that allocates lets others run although it never says so. In the root of a program, never of a library:
///
/// ```
/// // SAFETY: no actor of this program allocates where another one of its worker must not come in between.
/// thalweg_runtime::preempting_allocator!(unsafe);
/// # fn main() { thalweg_runtime::run(|| drop(vec![1])); }
/// ```
///
/// or, around another allocator than the system's, by the path of a type with one value: `preempting_allocator!(unsafe mimalloc::MiMalloc)`.
///
/// Elsewhere an allocation costs a thread-local decrement more.
///
/// # Safety
///
/// With it *any* allocation of an actor may let another actor of the same thread run. What an actor has open on its thread over
/// an allocation must bear that, or be in a [`NoPreempt`](crate::preempt::NoPreempt) section:
///
/// * A scoped thread-local, or any `unsafe` code that relies on a thread's regions being left in the order in which they were entered, is
///   undefined behaviour otherwise. So is a thread-local whose initial value allocates and is first touched by two actors at once: touch it in
///   such a section first.
/// * A `std` lock, a `OnceLock` or `LazyLock` being initialised, a `Backtrace` being captured: another actor of the thread that wants it waits for
///   one that cannot go on, for ever. A thread-local `RefCell` that is borrowed: another actor that borrows it panics.
///
/// The runtime, its channels and its timers bear it, and what runs as a [`Run`](crate::Run) is left alone. There are no points while a
/// thread unwinds. An actor that does nothing but allocate is not ended when its runtime stops: an allocator cannot unwind, [`check!`](crate::check) does.
#[macro_export]
macro_rules! preempting_allocator {
    (unsafe) => {
        $crate::preempting_allocator!(unsafe ::std::alloc::System);
    };
    (unsafe $inner:path) => {
        #[global_allocator]
        static PREEMPTING_ALLOCATOR: $crate::preempt::Preempting<$inner> =
            // SAFETY: the application says so, by the word `unsafe`.
            unsafe { $crate::preempt::Preempting::new($inner) };
    };
}
