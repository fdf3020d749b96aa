//! A counting semaphore.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::{ClosableWaitError, Closed, TryAcquireError};
use super::raw_semaphore::{MAX_PERMITS, RawSemaphore};
use super::wait_future;

/// A number of permits. Callers acquire one or more and release them by dropping the [`Permit`];
/// this limits how many proceed at a time. Like `tokio::sync::Semaphore`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use thalweg_runtime::{run, spawn, sync::Semaphore, yield_now};
///
/// run(|| {
///     let (two, inside) = (Arc::new(Semaphore::new(2)), Arc::new(AtomicUsize::new(0)));
///     let actors: Vec<_> = (0..10)
///         .map(|_| {
///             let (two, inside) = (two.clone(), inside.clone());
///             spawn(move || {
///                 let _permit = two.acquire().expect("nobody closes it");
///                 assert!(inside.fetch_add(1, Ordering::Relaxed) < 2);
///                 yield_now();
///                 inside.fetch_sub(1, Ordering::Relaxed);
///             })
///         })
///         .collect();
///     actors.into_iter().for_each(|actor| actor.join().unwrap());
///     assert_eq!(two.available(), 2);
/// });
/// ```
///
/// # Order
/// Strictly FIFO: a caller that requests many permits waits until that many are available, and all
/// later callers wait behind it, even for one permit.
pub struct Semaphore {
    raw: RawSemaphore,
}

impl Semaphore {
    /// The maximum number of permits.
    pub const MAX_PERMITS: usize = MAX_PERMITS;

    crate::shim::const_fn! {
        /// Creates a semaphore with `permits` permits.
        ///
        /// # Panics
        /// If `permits` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: usize) -> Self {
            assert!(permits <= MAX_PERMITS, "a semaphore has MAX_PERMITS at most");
            Self {
                raw: RawSemaphore::new(permits),
            }
        }
    }

    /// The number of permits that are not acquired. Some of them may be reserved for the first
    /// waiter, if it requests more.
    pub fn available(&self) -> usize {
        self.raw.available()
    }

    /// Waits for one permit.
    ///
    /// # Errors
    /// [`ClosableWaitError::Closed`], [`ClosableWaitError::Stopping`].
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_>, ClosableWaitError> {
        self.acquire_many(1)
    }

    /// Waits for `permits` permits at once. A request for more than the semaphore will ever have
    /// waits until the semaphore is closed.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_many(&self, permits: usize) -> Result<Permit<'_>, ClosableWaitError> {
        self.acquire_until(permits, || None)
    }

    /// Like [`acquire_many`](Self::acquire_many), but succeeds only if the permits are available
    /// and there are no waiters.
    ///
    /// # Errors
    /// [`TryAcquireError`].
    ///
    /// ```
    /// use thalweg_runtime::sync::{Semaphore, TryAcquireError};
    ///
    /// let semaphore = Semaphore::new(3);
    /// let two = semaphore.try_acquire_many(2)?;
    /// assert_eq!(semaphore.try_acquire_many(2).unwrap_err(), TryAcquireError::NoPermits);
    /// drop(two);
    /// semaphore.try_acquire_many(2)?.forget();
    /// assert_eq!(semaphore.available(), 1);
    /// # Ok::<(), TryAcquireError>(())
    /// ```
    #[inline]
    pub fn try_acquire_many(&self, permits: usize) -> Result<Permit<'_>, TryAcquireError> {
        self.raw.try_acquire(permits)?;
        Ok(self.permit(permits))
    }

    /// Like [`try_acquire_many`](Self::try_acquire_many), for one permit.
    ///
    /// # Errors
    /// [`TryAcquireError`].
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Like [`acquire_many`](Self::acquire_many), for at most `timeout`. Succeeds with any timeout
    /// if the permits are available.
    ///
    /// # Errors
    /// [`ClosableWaitError`].
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    pub fn acquire_timeout(
        &self,
        permits: usize,
        timeout: Duration,
    ) -> Result<Permit<'_>, ClosableWaitError> {
        self.acquire_until(permits, || Some(clock::deadline(timeout)))
    }

    /// Like [`acquire_many`](Self::acquire_many), until `deadline`.
    ///
    /// # Errors
    /// [`ClosableWaitError`].
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    pub fn acquire_deadline(
        &self,
        permits: usize,
        deadline: Instant,
    ) -> Result<Permit<'_>, ClosableWaitError> {
        self.acquire_until(permits, || Some(clock::at(deadline)))
    }

    #[inline(always)]
    fn acquire_until(
        &self,
        permits: usize,
        deadline: impl FnOnce() -> Option<u64>,
    ) -> Result<Permit<'_>, ClosableWaitError> {
        if self.raw.try_acquire(permits).is_err() {
            self.acquire_slow(permits, deadline())?;
        }
        Ok(self.permit(permits))
    }

    #[cold]
    fn acquire_slow(&self, permits: usize, deadline: Option<u64>) -> Result<(), ClosableWaitError> {
        if self.is_closed() {
            return Err(ClosableWaitError::Closed);
        }
        Ok(wait_future::block_until(
            pin!(self.raw.acquire_future(permits)),
            deadline,
        )??)
    }

    /// Like [`acquire_many`](Self::acquire_many), as a future. If it is dropped, it leaves the wait
    /// list, and permits that it was already granted go to the next waiter.
    ///
    /// # Errors
    /// The semaphore is closed.
    pub async fn acquire_async(&self, permits: usize) -> Result<Permit<'_>, Closed> {
        match self.raw.try_acquire(permits) {
            Ok(()) => {}
            Err(TryAcquireError::Closed) => return Err(Closed),
            Err(TryAcquireError::NoPermits) => self.raw.acquire_future(permits).await?,
        }
        Ok(self.permit(permits))
    }

    /// Adds `permits` new permits.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    pub fn add_permits(&self, permits: usize) {
        assert!(
            self.raw.release(permits),
            "a semaphore has MAX_PERMITS at most"
        );
    }

    /// Removes up to `permits` available permits for good, and returns how many. It takes none
    /// while there are waiters.
    pub fn forget_permits(&self, permits: usize) -> usize {
        self.raw.forget_up_to(permits)
    }

    /// Closes the semaphore: all present and future waits end with [`ClosableWaitError::Closed`].
    /// Permits that are held stay valid.
    ///
    /// ```
    /// use thalweg_runtime::sync::{ClosableWaitError, Semaphore};
    ///
    /// let semaphore = Semaphore::new(0);
    /// std::thread::scope(|scope| {
    ///     let waits = scope.spawn(|| semaphore.acquire().map(drop));
    ///     semaphore.close();
    ///     assert_eq!(waits.join().unwrap(), Err(ClosableWaitError::Closed));
    /// });
    /// ```
    pub fn close(&self) {
        self.raw.close();
    }

    /// Whether the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        self.raw.is_closed()
    }

    /// Precondition: the caller has acquired them.
    fn permit(&self, permits: usize) -> Permit<'_> {
        Permit {
            semaphore: self,
            permits,
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// Permits of a [`Semaphore`]. Dropping it releases them.
#[derive(Debug)]
#[must_use = "permits are given back when this is dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl Permit<'_> {
    /// The number of permits.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// Removes the permits from the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Splits `permits` permits off. Returns `None` if there are fewer.
    ///
    /// ```
    /// let semaphore = thalweg_runtime::sync::Semaphore::new(5);
    /// let mut five = semaphore.try_acquire_many(5)?;
    /// let two = five.split(2).unwrap();
    /// drop(five);
    /// assert_eq!((two.permits(), semaphore.available()), (2, 3));
    /// # Ok::<(), thalweg_runtime::sync::TryAcquireError>(())
    /// ```
    pub fn split(&mut self, permits: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(permits)?;
        Some(self.semaphore.permit(permits))
    }

    /// Converts the permits into ones that own a reference to the semaphore, for a task or a
    /// message that outlives the caller.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use thalweg_runtime::{run, spawn, sync::Semaphore};
    ///
    /// run(|| {
    ///     let few = Arc::new(Semaphore::new(2));
    ///     for _ in 0..10 {
    ///         // Waits here, so that there are never more than two.
    ///         let permit = few.acquire().expect("nobody closes it").into_owned(&few);
    ///         spawn(move || drop(permit));
    ///     }
    /// });
    /// ```
    ///
    /// # Panics
    /// If `semaphore` is not the one that the permits came from.
    pub fn into_owned(mut self, semaphore: &Arc<Semaphore>) -> OwnedPermit {
        assert!(
            std::ptr::eq(self.semaphore, Arc::as_ptr(semaphore)),
            "the permits are another semaphore's"
        );
        OwnedPermit {
            semaphore: Arc::clone(semaphore),
            permits: std::mem::take(&mut self.permits),
        }
    }
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}

/// Like [`Permit`], but owns a reference to the semaphore. From [`Permit::into_owned`].
#[derive(Debug)]
#[must_use = "permits are given back when this is dropped"]
pub struct OwnedPermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedPermit {
    /// The number of permits.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// Removes the permits from the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}
