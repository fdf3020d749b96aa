//! The switch between a worker and its tasks. There are two implementations with the same
//! interface, that of corosensei:
//!
//! * corosensei, on stacks of [`crate::stack`], in two nanoseconds;
//! * a thread per coroutine, for Miri, loom and ThreadSanitizer, which do not support switching
//!   stacks. They check the rest of this crate unchanged.

#[cfg(not(any(miri, loom, thalweg_threads)))]
pub(crate) use corosensei::{Coroutine, CoroutineResult, Yielder};

#[cfg(any(miri, loom, thalweg_threads))]
mod thread;
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) use thread::{Coroutine, CoroutineResult, Yielder};
