//! The bulkhead: a semaphore with a bounded number of waiters.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg_runtime::sync::{ClosableWaitError, Permit, Semaphore};

use crate::InvalidSetting;

/// Admits a fixed number of callers at a time, and lets a fixed number wait, in order of arrival. A
/// slow operation therefore blocks only its own callers.
///
/// ```
/// use std::time::Duration;
/// use thalweg_patterns::{Bulkhead, BulkheadError};
///
/// let bulkhead = Bulkhead::new(1, 0)?;
/// let inside = bulkhead.try_enter().expect("the bulkhead is empty");
/// let second = bulkhead.run(Duration::from_secs(1), || 5);
/// assert_eq!(second, Err(BulkheadError::Full { waiting: 0 }));
/// drop(inside);
/// assert_eq!(bulkhead.run(Duration::from_secs(1), || 5), Ok(5));
/// # Ok::<(), thalweg_patterns::InvalidSetting>(())
/// ```
pub struct Bulkhead {
    permits: Semaphore,
    running: u32,
    max_waiting: u32,
    /// Waiters that were not woken yet.
    waiting: AtomicU32,
}

/// Why a caller was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkheadError {
    /// The maximum number of callers already waits.
    Full {
        /// That number.
        waiting: u32,
    },
    /// No permit was released in time.
    TimedOut,
    /// The runtime of the waiting actor stops.
    Stopped,
}

/// Admission to the bulkhead until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it releases the permit"]
pub struct BulkheadPermit<'a> {
    _permit: Permit<'a>,
}

impl<'a> From<Permit<'a>> for BulkheadPermit<'a> {
    fn from(permit: Permit<'a>) -> Self {
        Self { _permit: permit }
    }
}

/// Counts a waiter until it is dropped.
struct WaitingGuard<'a>(&'a AtomicU32);

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Bulkhead {
    /// Admits at most `running` callers at a time, at least 1, and lets at most `waiting` wait.
    ///
    /// # Errors
    /// `running` is 0.
    pub fn new(running: u32, waiting: u32) -> Result<Self, InvalidSetting> {
        InvalidSetting::unless(running > 0, "a bulkhead admits at least 1 caller")?;
        Ok(Self {
            permits: Semaphore::new(running as usize),
            running,
            max_waiting: waiting,
            waiting: AtomicU32::new(0),
        })
    }

    /// Enters if a permit is free and nobody waits for it.
    ///
    /// # Errors
    /// [`BulkheadError::Full`]: there is none.
    pub fn try_enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        let permit = self.permits.try_acquire();
        permit.map(Into::into).map_err(|_| BulkheadError::Full {
            waiting: self.waiting(),
        })
    }

    /// Enters, and waits without a timeout.
    ///
    /// # Errors
    /// The maximum number of callers already waits, or the runtime of the waiting actor stops.
    pub fn enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|permits| permits.acquire())
    }

    /// Enters, and waits for at most `timeout`.
    ///
    /// # Errors
    /// As [`enter`](Self::enter), or [`BulkheadError::TimedOut`].
    pub fn enter_timeout(&self, timeout: Duration) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|permits| permits.acquire_timeout(1, timeout))
    }

    /// Enters, and waits until `deadline`.
    ///
    /// # Errors
    /// As [`enter`](Self::enter), or [`BulkheadError::TimedOut`].
    pub fn enter_deadline(&self, deadline: Instant) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|permits| permits.acquire_deadline(1, deadline))
    }

    /// As [`enter`](Self::enter), as a future for tasks and for [`select!`](thalweg_runtime::select).
    /// Dropping it leaves the queue; a permit that it was given goes to the next waiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_patterns::Bulkhead;
    /// use thalweg_runtime::{run, select, sleep_async};
    ///
    /// run(|| {
    ///     let bulkhead = Bulkhead::new(1, 1)?;
    ///     let inside = bulkhead.try_enter().expect("the bulkhead is empty");
    ///     select! {
    ///         _ = bulkhead.enter_async() => panic!("the bulkhead is full"),
    ///         () = sleep_async(Duration::from_millis(1)) => drop(inside),
    ///     }
    ///     assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
    ///     Ok::<(), thalweg_patterns::InvalidSetting>(())
    /// })?;
    /// # Ok::<(), thalweg_patterns::InvalidSetting>(())
    /// ```
    ///
    /// # Errors
    /// [`BulkheadError::Full`]: the maximum number of callers already waits.
    pub async fn enter_async(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit.into());
        }
        let _waiting = self.wait()?;
        let permit = self.permits.acquire_async(1).await;
        // The semaphore is never closed.
        permit.map(Into::into).map_err(|_| BulkheadError::Stopped)
    }

    /// Runs `f` inside the bulkhead, and waits for admission for at most `timeout`.
    ///
    /// # Errors
    /// The caller was not admitted, and `f` did not run.
    pub fn run<T>(&self, timeout: Duration, f: impl FnOnce() -> T) -> Result<T, BulkheadError> {
        let _permit = self.enter_timeout(timeout)?;
        Ok(f())
    }

    /// The number of callers inside.
    pub fn running(&self) -> u32 {
        self.running - self.permits.available() as u32
    }

    /// The number of waiting callers.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Counts a waiter, if the maximum permits one more.
    fn wait(&self) -> Result<WaitingGuard<'_>, BulkheadError> {
        let add = |waiting| (waiting < self.max_waiting).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|waiting| BulkheadError::Full { waiting })?;
        Ok(WaitingGuard(&self.waiting))
    }

    fn enter_by<'a>(
        &'a self,
        wait: impl FnOnce(&'a Semaphore) -> Result<Permit<'a>, ClosableWaitError>,
    ) -> Result<BulkheadPermit<'a>, BulkheadError> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit.into());
        }
        let _waiting = self.wait()?;
        match wait(&self.permits) {
            Ok(permit) => Ok(permit.into()),
            Err(ClosableWaitError::TimedOut) => Err(BulkheadError::TimedOut),
            // The semaphore is never closed.
            Err(ClosableWaitError::Stopping | ClosableWaitError::Closed) => {
                Err(BulkheadError::Stopped)
            }
        }
    }
}

impl fmt::Debug for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkhead")
            .field("running", &self.running())
            .field("waiting", &self.waiting())
            .finish()
    }
}

impl fmt::Display for BulkheadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { waiting } => write!(f, "the bulkhead is full, and {waiting} callers wait"),
            Self::TimedOut => f.write_str("no permit of the bulkhead was released in time"),
            Self::Stopped => f.write_str("the runtime stops"),
        }
    }
}

impl std::error::Error for BulkheadError {}
