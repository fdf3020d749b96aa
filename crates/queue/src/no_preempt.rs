//! Sections in which an actor must not be preempted.
//!
//! A runtime whose actors share threads may preempt an actor at each allocation. Code that
//! allocates while it holds a lock, or while it modifies data that other actors of the thread can
//! access, must do so in a [`NoPreemptGuard`] section. [`lock`] starts such a section together with
//! a lock.
//!
//! The depth belongs to the thread. At depth 0, the code of an actor runs and may be preempted. The
//! depth is 1 while no actor runs. The runtime saves the depth of each actor while it is suspended.

#[cfg(not(loom))]
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(not(loom))]
thread_local! {
    // Neither initialised lazily nor dropped, because an allocator reads it.
    static DEPTH: Cell<u32> = const { Cell::new(1) };
}

/// The code on this thread is not preempted until the guard is dropped. Guards nest.
#[derive(Debug)]
#[must_use = "the stretch ends when this is dropped"]
pub struct NoPreemptGuard {
    of_one_thread: PhantomData<*const ()>,
}

impl NoPreemptGuard {
    /// Starts a section.
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

/// The number of sections that this thread is in. At 0 it may be preempted.
#[inline(always)]
pub fn depth() -> u32 {
    #[cfg(not(loom))]
    return DEPTH.get();
    // Models have no preemption in allocations.
    #[cfg(loom)]
    0
}

/// Sets the depth and returns the old one. For a runtime that switches from one actor to another.
#[inline(always)]
pub fn set_depth(depth: u32) -> u32 {
    #[cfg(not(loom))]
    return DEPTH.replace(depth);
    #[cfg(loom)]
    depth
}

/// The guard of a locked mutex and of a section that lasts as long.
pub struct LockGuard<'a, T> {
    // The order matters: the mutex is unlocked before the section ends.
    guard: MutexGuard<'a, T>,
    _no_preempt: NoPreemptGuard,
}

/// Locks a mutex in a section without preemption. If an actor were preempted while it holds a lock,
/// the next actor on its thread could wait for the lock for ever. Poison is ignored: use it for
/// locks under which nothing panics.
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
