//! The atomics and locks of this crate's protocols. Loom replaces them in its models.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use thalweg_queue::no_preempt::lock;

/// `thalweg_queue::no_preempt::lock` for loom's mutex.
#[cfg(loom)]
pub(crate) fn lock<T>(of: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    of.lock().expect("no model panics with a lock held")
}
