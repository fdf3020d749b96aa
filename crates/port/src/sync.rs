//! The atomics and the locks of this crate's own protocols, so that loom can take their place.

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
pub(crate) use thalweg_queue::quiet::lock;

/// As `thalweg_queue::quiet::lock`, for loom's lock.
#[cfg(loom)]
pub(crate) fn lock<T>(of: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    of.lock().expect("no model panics with a lock held")
}

/// A value on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);
