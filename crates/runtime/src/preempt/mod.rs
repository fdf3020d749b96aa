//! Preemption: when an actor yields without an explicit call, and how it prevents this.
//!
//! An actor yields only at *preemption points*: [`check!`](crate::check), a send, a receive, and,
//! if the application uses [`preempting_allocator!`](crate::preempting_allocator), an allocation.
//! At such a point it yields if it has used its [`timeslice`](crate::Config::timeslice), which
//! begins when other tasks are first seen to wait.
//!
//! The rules:
//!
//! 1. A point yields only at depth 0 ([`thalweg_queue::no_preempt`]). The depth is 0 when a task's
//!    closure begins, and 1 on the worker's own frames. It belongs to the actor and is saved while
//!    the actor is suspended.
//! 2. Code of this crate and of the queue crate uses a no-preempt section if it allocates while a
//!    lock is held, a cell is borrowed, or data that other actors of the thread can reach is
//!    inconsistent. [`thalweg_queue::no_preempt::lock`] takes locks in this way.
//! 3. A point in an allocation comes after the inner allocator has returned. It never yields while
//!    the thread unwinds, and it never unwinds; if the runtime is stopping, it does nothing.
//! 4. Objects that implement [`Run`](crate::Run) have no points in allocations, because services
//!    have locks of their own.

mod allocator;
mod guards;

pub use crate::tsc::{rdtsc, tsc_hz};
pub use allocator::Preempting;
pub use guards::{NoPark, NoPreempt, NoWait};

use std::time::Duration;

/// Returns the rest of the calling actor's time slice. That is the whole slice while no other task
/// waits. `None` if the caller is not an actor.
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
