//! Stretches of code within which what the thread is running must not be made to let others run.
//!
//! A runtime whose actors share threads may preempt one wherever it allocates. Whoever allocates while a lock is held, or while what
//! others on the thread can reach is half changed, does it in a [`NoPreemptGuard`] stretch; [`lock`] begins one with the lock.
//!
//! The depth is the thread's: 0 is "user code of an actor runs here, and may be preempted". It is 1 where no actor runs, and the
//! runtime keeps each actor's own while the actor is put aside.

#[cfg(not(loom))]
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(not(loom))]
thread_local! {
    // Neither lazily made nor dropped: an allocator reads it.
    static DEPTH: Cell<u32> = const { Cell::new(1) };
}

/// From here until it is dropped nothing preempts what runs on this thread. They nest.
#[derive(Debug)]
#[must_use = "the stretch ends when this is dropped"]
pub struct NoPreemptGuard {
    of_one_thread: PhantomData<*const ()>,
}

impl NoPreemptGuard {
    /// Begins one.
    #[inline(always)]
    pub fn enter() -> Self {
        #[cfg(not(loom))]
        DEPTH.set(DEPTH.get().wrapping_add(1));
        Self {
            of_one_thread: PhantomData,
        }
    }
}

impl Drop for NoPreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(not(loom))]
        DEPTH.set(DEPTH.get().wrapping_sub(1));
    }
}

/// How many stretches this thread is in; 0: what runs may be preempted.
#[inline(always)]
pub fn depth() -> u32 {
    #[cfg(not(loom))]
    return DEPTH.get();
    // Models do not allocate at points.
    #[cfg(loom)]
    0
}

/// For a runtime, which goes from one actor to another: sets the depth, and gives what it was.
#[inline(always)]
pub fn set_depth(depth: u32) -> u32 {
    #[cfg(not(loom))]
    return DEPTH.replace(depth);
    #[cfg(loom)]
    depth
}

/// What a lock guards, and the stretch that lasts as long.
pub struct LockGuard<'a, T> {
    // In this order: the lock is open before the stretch ends.
    guard: MutexGuard<'a, T>,
    _no_preempt: NoPreemptGuard,
}

/// Locks, in a quiet stretch: an actor that was preempted with a lock held would keep the next one on its thread waiting for ever. Poison is
/// ignored: it is for locks under which nothing panics.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> LockGuard<'_, T> {
    let no_preempt = NoPreemptGuard::enter();
    LockGuard {
        guard: mutex.lock().unwrap_or_else(PoisonError::into_inner),
        _no_preempt: no_preempt,
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: fmt::Debug> fmt::Debug for LockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{NoPreemptGuard, depth, lock, set_depth};

    #[test]
    fn a_stretch_ends_with_its_guard_and_with_the_lock() {
        let before = set_depth(0);
        let outer = NoPreemptGuard::enter();
        let mutex = std::sync::Mutex::new(1);
        {
            let mut value = lock(&mutex);
            *value += 1;
            assert_eq!((*value, depth()), (2, 2));
        }
        assert_eq!(depth(), 1);
        drop(outer);
        assert_eq!(depth(), 0);
        set_depth(before);
    }
}
