//! A reader-writer lock.
//!
//! It is a [`RawSemaphore`]: a reader takes one permit, a writer takes all.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::pin;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::WaitError;
use super::raw_semaphore::{MAX_PERMITS, RawSemaphore};
use super::wait_future;

/// A reader-writer lock: many readers or one writer at a time. An actor that waits for it parks,
/// and its worker runs other actors.
///
/// The guards may be held across waits and sent to another thread. There is no poisoning, as with
/// [`Mutex`](super::Mutex).
///
/// ```
/// use thalweg_runtime::sync::RwLock;
///
/// let value = RwLock::new(1);
/// {
///     let (one, other) = (value.read(), value.read());
///     assert_eq!(*one + *other, 2);
///     assert!(value.try_write().is_none());
/// }
/// *value.write() += 1;
/// assert_eq!(value.into_inner(), 2);
/// ```
///
/// # Order
/// Strictly FIFO: a writer waits for the readers that came before it and for no later ones;
/// consecutive readers read together. So neither readers nor writers starve. An actor that reads
/// again while it already has a read guard deadlocks if a writer waits in between: take one guard.
///
/// # When an actor cannot wait
/// As with [`Mutex`](super::Mutex#when-an-actor-cannot-wait).
pub struct RwLock<T: ?Sized> {
    raw: RawSemaphore,
    value: UnsafeCell<T>,
}

// SAFETY: a writer may be on any thread, one at a time.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers on several threads share `&T`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    crate::shim::const_fn! {
        /// Creates an unlocked lock.
        pub fn new(value: T) -> Self {
            Self {
                raw: RawSemaphore::new(MAX_PERMITS),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.acquire(1);
        self.reading()
    }

    /// Waits for exclusive access.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.acquire(MAX_PERMITS);
        self.writing()
    }

    /// Locks for reading if there is no writer and no waiter.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.raw.try_acquire(1).ok().map(|()| self.reading())
    }

    /// Locks for writing if there is no reader, no writer and no waiter.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.raw
            .try_acquire(MAX_PERMITS)
            .ok()
            .map(|()| self.writing())
    }

    /// Like [`read`](Self::read), for at most `timeout`. Succeeds with any timeout if the lock is
    /// available.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`read`](Self::read).
    pub fn read_timeout(&self, timeout: Duration) -> Result<RwLockReadGuard<'_, T>, WaitError> {
        self.acquire_until(1, || clock::deadline(timeout))?;
        Ok(self.reading())
    }

    /// Like [`write`](Self::write), for at most `timeout`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_timeout(&self, timeout: Duration) -> Result<RwLockWriteGuard<'_, T>, WaitError> {
        self.acquire_until(MAX_PERMITS, || clock::deadline(timeout))?;
        Ok(self.writing())
    }

    /// Like [`read`](Self::read), until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`read`](Self::read).
    pub fn read_deadline(&self, deadline: Instant) -> Result<RwLockReadGuard<'_, T>, WaitError> {
        self.acquire_until(1, || clock::at(deadline))?;
        Ok(self.reading())
    }

    /// Like [`write`](Self::write), until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_deadline(&self, deadline: Instant) -> Result<RwLockWriteGuard<'_, T>, WaitError> {
        self.acquire_until(MAX_PERMITS, || clock::at(deadline))?;
        Ok(self.writing())
    }

    /// Like [`read`](Self::read), as a future. If it is dropped, it leaves the wait list and
    /// releases what it was already granted.
    pub async fn read_async(&self) -> RwLockReadGuard<'_, T> {
        self.acquire_async(1).await;
        self.reading()
    }

    /// Like [`write`](Self::write), as a future. If it is dropped, it leaves the wait list and
    /// releases what it was already granted.
    pub async fn write_async(&self) -> RwLockWriteGuard<'_, T> {
        self.acquire_async(MAX_PERMITS).await;
        self.writing()
    }

    /// The value. No lock is needed, because the reference is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[inline(always)]
    fn acquire(&self, permits: usize) {
        if self.raw.try_acquire(permits).is_err() {
            self.acquire_slow(permits);
        }
    }

    #[cold]
    fn acquire_slow(&self, permits: usize) {
        // It cannot fail: the semaphore is never closed.
        let _ = wait_future::block(pin!(self.raw.acquire_future(permits)));
    }

    fn acquire_until(
        &self,
        permits: usize,
        deadline: impl FnOnce() -> u64,
    ) -> Result<(), WaitError> {
        if self.raw.try_acquire(permits).is_err() {
            // As above.
            let _ =
                wait_future::block_until(pin!(self.raw.acquire_future(permits)), Some(deadline()))?;
        }
        Ok(())
    }

    async fn acquire_async(&self, permits: usize) {
        if self.raw.try_acquire(permits).is_err() {
            // As above.
            let _ = self.raw.acquire_future(permits).await;
        }
    }

    /// Precondition: the caller has one permit.
    #[inline(always)]
    fn reading(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard {
            lock: self,
            value: PhantomData,
        }
    }

    /// Precondition: the caller has all permits.
    #[inline(always)]
    fn writing(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard {
            lock: self,
            value: PhantomData,
        }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Some(guard) => shown.field("value", &&*guard),
            None => shown.field("value", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

/// Shared access to the value of an [`RwLock`]. Dropping it unlocks.
#[must_use = "the lock is unlocked when this is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    value: PhantomData<&'a T>,
}

/// Exclusive access to the value of an [`RwLock`]. Dropping it unlocks.
#[must_use = "the lock is unlocked when this is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Converts exclusive into shared access; no writer gets in between. Readers that are next in
    /// the wait list proceed too.
    ///
    /// ```
    /// use thalweg_runtime::sync::{RwLock, RwLockWriteGuard};
    ///
    /// let value = RwLock::new(1);
    /// let mut writing = value.write();
    /// *writing = 2;
    /// let reading = RwLockWriteGuard::downgrade(writing);
    /// assert_eq!((*reading, *value.read()), (2, 2));
    /// ```
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T> {
        let lock = guard.lock;
        std::mem::forget(guard);
        lock.raw.release(MAX_PERMITS - 1);
        lock.reading()
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: there is no writer while the guard has its permit.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: nobody else has access while the guard has all permits.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.raw.release(1);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.raw.release(MAX_PERMITS);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
