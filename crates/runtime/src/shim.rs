//! The atomics, locks and cells that this crate's protocols use, so that loom can replace them.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{Cell, UnsafeCell},
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

#[cfg(not(loom))]
pub(crate) use self::real::UnsafeCell;
#[cfg(not(loom))]
pub(crate) use std::{
    cell::Cell,
    hint::spin_loop,
    sync::Mutex,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

/// The lock for sections that access an atomic. loom may switch threads at an atomic, and must not
/// do so while a lock of the system is held.
#[cfg(not(loom))]
pub(crate) use thalweg_queue::no_preempt::{LockGuard, lock};

#[cfg(loom)]
pub(crate) type LockGuard<'a, T> = loom::sync::MutexGuard<'a, T>;

#[cfg(loom)]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
    mutex.lock().expect("loom's locks are not poisoned")
}

/// Defines a function that is `const`, except under loom, whose cells cannot be created before a
/// model begins.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $of:ty),*) -> $out:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $vis const fn $name($($arg: $of),*) -> $out $body

        $(#[$meta])*
        #[cfg(loom)]
        $vis fn $name($($arg: $of),*) -> $out $body
    };
}
pub(crate) use const_fn;

#[cfg(not(loom))]
mod real {
    /// `std`'s cell with loom's interface.
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

/// Memory for loom's checks: each use reads it, and the free writes it once. loom therefore finds a
/// use that is concurrent with the free or comes after it, and memory that is never freed.
#[cfg(loom)]
pub(crate) struct Memory {
    used: UnsafeCell<()>,
    kept: Cell<Option<loom::sync::Arc<()>>>,
}

#[cfg(loom)]
impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            used: UnsafeCell::new(()),
            kept: Cell::new(Some(loom::sync::Arc::new(()))),
        }
    }

    #[track_caller]
    pub(crate) fn touch(&self) {
        self.used.with(|_| ());
    }

    #[track_caller]
    pub(crate) fn free(&self) {
        self.used.with_mut(|_| ());
        drop(self.kept.take().expect("memory is freed once"));
    }
}
