//! The atomics and locks of this crate's protocols. Loom replaces them in its models.

#[cfg(not(loom))]
pub(crate) use self::real::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use thalweg_queue::no_preempt::lock;

/// `thalweg_queue::no_preempt::lock` for loom's mutex.
#[cfg(loom)]
pub(crate) fn lock<T>(of: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    of.lock().expect("no model panics with a lock held")
}

#[cfg(not(loom))]
mod real {
    /// The standard cell with loom's interface.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
