//! A number of permits.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::{ClosableWaitError, Closed, TryAcquireError};
use super::raw_semaphore::{MAX_PERMITS, RawSemaphore};
use super::wait_future;

/// A number of permits, of which each caller takes one or more and gives them back by dropping its [`Permit`]: so many at a time, as
/// `tokio::sync::Semaphore`.
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
/// That of the calls, strictly: who wants many waits until there are as many, and all who come later wait behind, also for one.
pub struct Semaphore {
    raw: RawSemaphore,
}

impl Semaphore {
    /// The most permits that one can hold.
    pub const MAX_PERMITS: usize = MAX_PERMITS;

    crate::shim::const_fn! {
        /// With so many permits.
        ///
        /// # Panics
        /// More than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub fn new(permits: usize) -> Self {
            assert!(permits <= MAX_PERMITS, "a semaphore has MAX_PERMITS at most");
            Self {
                raw: RawSemaphore::new(permits),
            }
        }
    }

    /// Permits that are there now. Some of them may be kept for who is first in the line and wants more.
    pub fn available(&self) -> usize {
        self.raw.available()
    }

    /// Waits for one permit.
    ///
    /// # Errors
    /// [`ClosableWaitError::Closed`], [`ClosableWaitError::Stopping`].
    ///
    /// # Panics
    /// If there is none, in a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()).
    #[inline]
    pub fn acquire(&self) -> Result<Permit<'_>, ClosableWaitError> {
        self.acquire_many(1)
    }

    /// Waits for so many permits at once. More than there will ever be is waited for until the semaphore is closed.
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

    /// As [`acquire_many`](Self::acquire_many), if they are there and nobody waits.
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

    /// One permit, as [`try_acquire_many`](Self::try_acquire_many).
    ///
    /// # Errors
    /// [`TryAcquireError`].
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// As [`acquire_many`](Self::acquire_many), for at most `timeout`. What is there is had whatever the time.
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

    /// As [`acquire_many`](Self::acquire_many), until `deadline`.
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

    /// As [`acquire_many`](Self::acquire_many), for a task. Dropped, the future leaves the line, and what it may have been given goes to the next.
    ///
    /// # Errors
    /// It is closed.
    pub async fn acquire_async(&self, permits: usize) -> Result<Permit<'_>, Closed> {
        match self.raw.try_acquire(permits) {
            Ok(()) => {}
            Err(TryAcquireError::Closed) => return Err(Closed),
            Err(TryAcquireError::NoPermits) => self.raw.acquire_future(permits).await?,
        }
        Ok(self.permit(permits))
    }

    /// So many more permits.
    ///
    /// # Panics
    /// There would be more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    pub fn add_permits(&self, permits: usize) {
        assert!(
            self.raw.release(permits),
            "a semaphore has MAX_PERMITS at most"
        );
    }

    /// Takes up to so many permits for good, of those that are there and nobody waits for. How many it took.
    pub fn forget_permits(&self, permits: usize) -> usize {
        self.raw.forget_up_to(permits)
    }

    /// Ends all waits and all that come, with [`ClosableWaitError::Closed`]. Permits that are out stay good.
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

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.raw.is_closed()
    }

    /// The caller has taken them.
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

/// Permits of a [`Semaphore`]; dropped, it gives them back.
#[derive(Debug)]
#[must_use = "permits are given back when this is dropped"]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl Permit<'_> {
    /// How many they are.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// They do not come back.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Takes so many of them apart; `None`: it has less.
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

    /// The same permits, with a reference to the semaphore of their own: for what outlives the caller, such as a task or a message.
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
    /// They are another semaphore's.
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

/// As [`Permit`], with a reference to the semaphore of its own: from [`Permit::into_owned`].
#[derive(Debug)]
#[must_use = "permits are given back when this is dropped"]
pub struct OwnedPermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedPermit {
    /// How many they are.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// They do not come back.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for OwnedPermit {
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}
