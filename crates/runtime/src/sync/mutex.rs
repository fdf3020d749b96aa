//! A mutual exclusion lock.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::WaitError;
use super::raw_mutex::RawMutex;
use super::wait_future;

/// A mutual exclusion lock. An actor that waits for it parks, and its worker runs other actors.
///
/// The guard may be held across waits and across the end of a time slice, and may be sent to
/// another thread. It is dropped if its actor panics or is ended; the value stays as it was left,
/// and the next holder gets it. There is no poisoning.
///
/// ```
/// use std::sync::Arc;
/// use thalweg_runtime::{run, spawn, sync::Mutex, yield_now};
///
/// let sum = run(|| {
///     let sum = Arc::new(Mutex::new(0));
///     let actors: Vec<_> = (1..=10)
///         .map(|n| {
///             let sum = sum.clone();
///             spawn(move || {
///                 let mut sum = sum.lock();
///                 let before = *sum;
///                 yield_now();
///                 *sum = before + n;
///             })
///         })
///         .collect();
///     actors.into_iter().for_each(|actor| actor.join().unwrap());
///     *sum.lock()
/// });
/// assert_eq!(sum, 55);
/// ```
///
/// # Order
/// A caller that finds the mutex unlocked takes it even if others wait. A waiter that was woken and
/// finds it locked again gets it from the next unlock: no waiter is overtaken twice in a row.
///
/// # When an actor cannot wait
/// In an actor whose runtime stops and in an actor that is being unwound, a wait ends at once with
/// [`WaitError::Stopping`]. [`lock`](Self::lock) has no error to return: it unwinds the former, and
/// blocks the worker of the latter. So use [`try_lock`](Self::try_lock) or a deadline in
/// destructors. An actor that is killed while it waits is unwound.
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: at most one thread at a time can access the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    crate::shim::const_fn! {
        /// Creates an unlocked mutex.
        pub fn new(value: T) -> Self {
            Self {
                raw: RawMutex::new(),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is unlocked, and locks it.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if !self.raw.try_lock() {
            self.lock_slow();
        }
        self.guard()
    }

    #[cold]
    fn lock_slow(&self) {
        wait_future::block(pin!(self.raw.lock_future()));
    }

    /// Locks the mutex if it is unlocked.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then(|| self.guard())
    }

    /// Like [`lock`](Self::lock), for at most `timeout`.
    ///
    /// # Errors
    /// [`WaitError`]. An unlocked mutex is locked with any timeout.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::sync::{Mutex, WaitError};
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.lock();
    /// assert_eq!(mutex.lock_timeout(Duration::from_millis(1)).unwrap_err(), WaitError::TimedOut);
    /// drop(guard);
    /// assert_eq!(*mutex.lock_timeout(Duration::ZERO)?, 1);
    /// # Ok::<(), WaitError>(())
    /// ```
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    pub fn lock_timeout(&self, timeout: Duration) -> Result<MutexGuard<'_, T>, WaitError> {
        self.lock_until(|| clock::deadline(timeout))
    }

    /// Like [`lock`](Self::lock), until `deadline`.
    ///
    /// # Errors
    /// As [`lock_timeout`](Self::lock_timeout).
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    pub fn lock_deadline(&self, deadline: Instant) -> Result<MutexGuard<'_, T>, WaitError> {
        self.lock_until(|| clock::at(deadline))
    }

    fn lock_until(&self, deadline: impl FnOnce() -> u64) -> Result<MutexGuard<'_, T>, WaitError> {
        if !self.raw.try_lock() {
            wait_future::block_until(pin!(self.raw.lock_future()), Some(deadline()))?;
        }
        Ok(self.guard())
    }

    /// Like [`lock`](Self::lock), as a future. If it is dropped, it leaves the wait list, and a
    /// lock or a wake-up that it was already granted goes to the next waiter.
    ///
    /// ```
    /// use thalweg_runtime::{block_on, sync::Mutex};
    ///
    /// let mutex = Mutex::new(vec![1]);
    /// block_on(async { mutex.lock_async().await.push(2) });
    /// assert_eq!(mutex.into_inner(), [1, 2]);
    /// ```
    pub async fn lock_async(&self) -> MutexGuard<'_, T> {
        if !self.raw.try_lock() {
            self.raw.lock_future().await;
        }
        self.guard()
    }

    /// The value. No lock is needed, because the reference is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Whether the mutex is locked. This may have changed when the call returns.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Precondition: the caller has locked it.
    #[inline(always)]
    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            value: PhantomData,
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => shown.field("value", &&*guard),
            None => shown.field("value", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

/// Access to the value of a locked [`Mutex`]. Dropping it unlocks the mutex.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Converts the guard into one that owns a reference to the mutex, for a task or a message that
    /// outlives the caller.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use thalweg_runtime::sync::{Mutex, MutexGuard};
    ///
    /// let mutex = Arc::new(Mutex::new(1));
    /// let guard = MutexGuard::into_owned(mutex.lock(), &mutex);
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert!(!mutex.is_locked());
    /// ```
    ///
    /// # Panics
    /// If the guard is not a guard of `mutex`.
    pub fn into_owned(guard: Self, mutex: &Arc<Mutex<T>>) -> OwnedMutexGuard<T> {
        assert!(
            std::ptr::addr_eq(guard.mutex, Arc::as_ptr(mutex)),
            "the guard is another mutex's"
        );
        std::mem::forget(guard);
        OwnedMutexGuard {
            mutex: Arc::clone(mutex),
            value: PhantomData,
        }
    }

    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Like [`MutexGuard`], but owns a reference to the mutex. From [`MutexGuard::into_owned`].
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
    value: PhantomData<*mut T>,
}

// SAFETY: it is the right to access the value and to unlock, which any thread may do.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: `&Self` gives `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while the lock is held.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    fn drop(&mut self) {
        self.mutex.raw.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
