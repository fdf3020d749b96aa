//! When an actor lets others run without having said so, and how it says that it must not.
//!
//! An actor is asked to yield at *points* only: [`check!`](crate::check), a send, a receive, and, where the application has chosen
//! [`preempting_allocator!`](crate::preempting_allocator), an allocation. It yields there if it has had its
//! [`timeslice`](crate::Config::timeslice) since others were first seen to wait.
//!
//! The rules:
//!
//! 1. A point yields only at depth 0 ([`thalweg_queue::quiet`]). The depth is 0 when a job's closure begins, and 1 on the worker's own frames;
//!    it is the actor's, and kept with it while it is put aside.
//! 2. Code of this crate and of the queues that allocates while a lock is held, a cell is borrowed, or what other actors of the thread
//!    can reach is half changed, does it in a quiet stretch: locks are taken by [`thalweg_queue::quiet::lock`].
//! 3. A point in an allocation comes after the inner allocator has returned, never while the thread unwinds, and never unwinds itself: where the
//!    runtime stops it does nothing.
//! 4. What the runtime is given as [`Run`](crate::Run) has no points in allocations: services hold locks of their own.

mod allocator;
mod counter;
mod guards;

pub use allocator::Preempting;
pub(crate) use counter::duration_of;
pub use counter::{rdtsc, tsc_hz};
pub use guards::{NoPark, NoPreempt};

#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) use allocator::Left;
pub(crate) use allocator::Points;
pub(crate) use guards::{
    Native, NoAllocationPoints, OF_WORKER, can_park, is_allowed, is_native, may_park, may_yield,
    user_code,
};

use std::time::Duration;

/// What is left to the actor that calls this before a point makes it yield; its whole slice while nobody waits. `None` on a thread.
///
/// ```
/// use thalweg_runtime::{Config, preempt, run};
///
/// assert_eq!(preempt::slice_remaining(), None);
/// assert!(run(|| preempt::slice_remaining() <= Some(Config::default().timeslice)));
/// ```
pub fn slice_remaining() -> Option<Duration> {
    crate::worker::current()?.slice_remaining()
}

/// A point at which the actor yields if its time slice is over: [`wait::check`](crate::wait::check) as a macro, for loops that compute.
///
/// ```
/// use thalweg_runtime::{check, run};
///
/// let sum = run(|| {
///     let mut sum = 0u64;
///     for chunk in (0..100_000u64).collect::<Vec<_>>().chunks(4096) {
///         sum += chunk.iter().sum::<u64>();
///         check!();
///     }
///     sum
/// });
/// assert_eq!(sum, 4_999_950_000);
/// ```
#[macro_export]
macro_rules! check {
    () => {
        $crate::wait::check()
    };
}
