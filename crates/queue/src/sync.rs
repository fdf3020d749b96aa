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

/// In the place of the system's futex. A deadline has passed whenever a model's thread waits for one.
#[cfg(loom)]
pub(crate) mod futex {
    use super::{Mutex, lock};
    use crate::park::ParkResult;
    use loom::sync::Condvar;

    #[derive(Debug)]
    pub(crate) struct Word {
        notified: Mutex<bool>,
        changed: Condvar,
    }

    impl Word {
        pub(crate) fn new() -> Self {
            Self {
                notified: Mutex::new(false),
                changed: Condvar::new(),
            }
        }

        pub(crate) fn wake(&self) {
            *lock(&self.notified) = true;
            self.changed.notify_one();
        }

        pub(crate) fn park(&self, deadline: Option<u64>) -> ParkResult {
            let waits = deadline.is_none_or(|ns| ns == u64::MAX);
            let mut notified = lock(&self.notified);
            while waits && !*notified {
                let again = self.changed.wait(notified);
                notified = again.expect("loom's locks are not poisoned");
            }
            match std::mem::take(&mut *notified) {
                true => ParkResult::Woken,
                false => ParkResult::TimedOut,
            }
        }
    }
}

/// A figure that users may ask for and on which nothing depends: none of loom's business.
pub(crate) use std::sync::atomic::AtomicU64 as Figure;
