//! A value that one at a time may use.

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

/// A value that one at a time may use. Who has to wait for it leaves its worker to others.
///
/// Its guard may be held over anything, a wait or a slice's end too, and may be sent to another thread. It is dropped where the actor that has it panics or
/// is ended; the value is as it was left then, and the next one gets it: there is no poison.
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
/// Who finds it open takes it, also where others wait. Who has waited, was woken, and finds that another was faster is given it by whoever unlocks it next: nobody
/// is passed over twice in a row.
///
/// # Waits that cannot be
/// A wait ends at once, with [`WaitError::Stopping`], in an actor whose runtime stops and in one that is being unwound; [`lock`](Self::lock), which has no error to
/// return, unwinds the first, and keeps the worker of the second waiting. So a destructor asks with [`try_lock`](Self::try_lock) or with a deadline. An actor that is
/// killed while it waits is unwound.
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: it hands its value to one thread after another.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    crate::shim::const_fn! {
        /// Open.
        pub fn new(value: T) -> Self {
            Self {
                raw: RawMutex::new(),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the value may be used.
    ///
    /// # Panics
    /// If it is locked, in a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()).
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

    /// The value, if nobody uses it just now.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock().then(|| self.guard())
    }

    /// As [`lock`](Self::lock), for at most `timeout`.
    ///
    /// # Errors
    /// [`WaitError`]. An open one is locked whatever the time.
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

    /// As [`lock`](Self::lock), until `deadline`.
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

    /// As [`lock`](Self::lock), for a task. Dropped, the future leaves the line, and what it may have been given goes to the next.
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

    /// The value, which nobody else can use just now.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Whether somebody uses it. It may be otherwise when this returns.
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// The caller has locked it.
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

/// The value of a locked [`Mutex`]; dropped, it unlocks.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The same guard, which keeps the mutex alive by itself: for what outlives the caller, such as a task or a message.
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
    /// `mutex` is not the one that is locked.
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
        // SAFETY: who has the guard has the lock.
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

/// As [`MutexGuard`], with a reference to the mutex of its own: from [`MutexGuard::into_owned`].
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
    value: PhantomData<*mut T>,
}

// SAFETY: it is the right to use the value, and to unlock, which any thread may.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: `&Self` gives `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: who has the guard has the lock.
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
