//! The switch from a worker to what it runs and back. Two do it, behind one interface, corosensei's own:
//!
//! * corosensei, on stacks of [`crate::stack`], in two nanoseconds;
//! * a thread for each, and a baton: for Miri, loom and ThreadSanitizer, which cannot follow a change of stacks. They see everything else
//!   of this crate as it is.

#[cfg(not(any(miri, loom, thalweg_threads)))]
pub(crate) use corosensei::{Coroutine, CoroutineResult, Yielder};

#[cfg(any(miri, loom, thalweg_threads))]
mod thread;
#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) use thread::{Coroutine, CoroutineResult, Yielder};
