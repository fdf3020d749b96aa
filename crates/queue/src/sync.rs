//! The atomics, locks and cells of this crate, so that loom can take their place.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Mutex},
    thread::yield_now,
    thread_local,
};

#[cfg(not(loom))]
pub(crate) use self::real::UnsafeCell;
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Arc, Mutex},
    thread::yield_now,
};

#[cfg(not(loom))]
mod real {
    /// `std`'s cell behind loom's interface.
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

/// What a lock guards. No code of a user runs under the locks of this crate, so what a panic left is whole.
#[cfg(not(loom))]
pub(crate) use crate::no_preempt::lock;

/// As above.
#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("loom's locks are not poisoned")
}

/// A figure that users may ask for and on which nothing depends: none of loom's business.
pub(crate) use std::sync::atomic::AtomicU64 as StdAtomicU64;
