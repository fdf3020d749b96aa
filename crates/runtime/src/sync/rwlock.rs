//! A value that many may read or one may write.
//!
//! It is [`RawSemaphore`]: who reads takes one, who writes takes all.

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

/// A value that many may read at a time, or one may write. Who has to wait leaves its worker to others.
///
/// Its guards may be held over anything and sent to another thread. There is no poison, as at a [`Mutex`](super::Mutex).
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
/// That of the calls, strictly: a writer waits for those who read when it comes and for no later ones; readers that come one after the other read together. So neither
/// starves. Who reads and reads again while a writer waits in between waits for itself: take one guard.
///
/// # Waits that cannot be
/// As at a [`Mutex`](super::Mutex).
pub struct RwLock<T: ?Sized> {
    raw: RawSemaphore,
    value: UnsafeCell<T>,
}

// SAFETY: it hands its value to one thread after another.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: and lends it to many.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    crate::shim::const_fn! {
        /// Open.
        pub fn new(value: T) -> Self {
            Self {
                raw: RawSemaphore::new(MAX_PERMITS),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until the value may be read.
    ///
    /// # Panics
    /// If somebody writes or waits to, in a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()).
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.acquire(1);
        self.reading()
    }

    /// Waits until the value may be written.
    ///
    /// # Panics
    /// If somebody uses it, in a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()).
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.acquire(MAX_PERMITS);
        self.writing()
    }

    /// To read, if nobody writes or waits.
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.raw.try_acquire(1).ok().map(|()| self.reading())
    }

    /// To write, if nobody uses it or waits.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.raw
            .try_acquire(MAX_PERMITS)
            .ok()
            .map(|()| self.writing())
    }

    /// As [`read`](Self::read), for at most `timeout`. What is open is locked whatever the time.
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

    /// As [`write`](Self::write), for at most `timeout`.
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

    /// As [`read`](Self::read), until `deadline`.
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

    /// As [`write`](Self::write), until `deadline`.
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

    /// As [`read`](Self::read), for a task. Dropped, the future leaves the line, and what it may have been given is given back.
    pub async fn read_async(&self) -> RwLockReadGuard<'_, T> {
        self.acquire_async(1).await;
        self.reading()
    }

    /// As [`write`](Self::write), for a task. Dropped, the future leaves the line, and what it may have been given is given back.
    pub async fn write_async(&self) -> RwLockWriteGuard<'_, T> {
        self.acquire_async(MAX_PERMITS).await;
        self.writing()
    }

    /// The value, which nobody else can use just now.
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
        // Nobody closes it.
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

    /// The caller has one permit.
    #[inline(always)]
    fn reading(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard {
            lock: self,
            value: PhantomData,
        }
    }

    /// The caller has all permits.
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

/// The value of an [`RwLock`], to read; dropped, it unlocks.
#[must_use = "the lock is unlocked when this is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    value: PhantomData<&'a T>,
}

/// The value of an [`RwLock`], to write; dropped, it unlocks.
#[must_use = "the lock is unlocked when this is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on reading, with nobody writing in between. Readers that are next in the line read, too.
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
        // SAFETY: while the guard has its permit nobody writes.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while the guard has all permits nobody else has the value.
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
