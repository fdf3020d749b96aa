//! So many at a time: a semaphore, and a count of those that wait for it.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::Invalid;
use crate::sync::{ClosableWaitError, Permit, Semaphore};

/// Lets at most so many be at something at a time, and at most so many wait for it: what is slow fills its own part of the ship and no other. First come,
/// first served.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::patterns::{Bulkhead, BulkheadError};
///
/// let bulkhead = Bulkhead::new(1, 0)?;
/// let inside = bulkhead.try_enter().expect("nobody is");
/// let second = bulkhead.run(Duration::from_secs(1), || 5);
/// assert_eq!(second, Err(BulkheadError::Full { waiting: 0 }));
/// drop(inside);
/// assert_eq!(bulkhead.run(Duration::from_secs(1), || 5), Ok(5));
/// # Ok::<(), thalweg_runtime::patterns::Invalid>(())
/// ```
pub struct Bulkhead {
    places: Semaphore,
    running: u32,
    most_waiting: u32,
    /// Until they have been woken.
    waiting: AtomicU32,
}

/// Why somebody did not get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkheadError {
    /// As many wait as may.
    Full {
        /// How many.
        waiting: u32,
    },
    /// No place came free in time.
    TimedOut,
    /// The runtime of the actor that waited stops.
    Stopped,
}

/// A place, until it is dropped.
#[derive(Debug)]
#[must_use = "the place is free when this is dropped"]
pub struct BulkheadPermit<'a> {
    _place: Permit<'a>,
}

impl<'a> From<Permit<'a>> for BulkheadPermit<'a> {
    fn from(place: Permit<'a>) -> Self {
        Self { _place: place }
    }
}

/// One of those that wait.
struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Bulkhead {
    /// At most `running` at a time, of which there is 1 at least, and at most `waiting` that wait.
    ///
    /// # Errors
    /// None could ever run.
    pub fn new(running: u32, waiting: u32) -> Result<Self, Invalid> {
        Invalid::unless(running > 0, "a bulkhead lets 1 run at least")?;
        Ok(Self {
            places: Semaphore::new(running as usize),
            running,
            most_waiting: waiting,
            waiting: AtomicU32::new(0),
        })
    }

    /// A place, if one is free and nobody waits for it.
    ///
    /// # Errors
    /// None is: [`BulkheadError::Full`].
    pub fn try_enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        let place = self.places.try_acquire();
        place.map(Into::into).map_err(|_| BulkheadError::Full {
            waiting: self.waiting(),
        })
    }

    /// A place; waits for it, as long as it takes.
    ///
    /// # Errors
    /// As many wait as may, or the runtime of the actor that waits stops.
    pub fn enter(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|places| places.acquire())
    }

    /// A place; waits for it for at most `timeout`.
    ///
    /// # Errors
    /// There was none.
    pub fn enter_timeout(&self, timeout: Duration) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|places| places.acquire_timeout(1, timeout))
    }

    /// A place; waits for it until `deadline`.
    ///
    /// # Errors
    /// There was none.
    pub fn enter_deadline(&self, deadline: Instant) -> Result<BulkheadPermit<'_>, BulkheadError> {
        self.enter_by(|places| places.acquire_deadline(1, deadline))
    }

    /// As [`enter`](Self::enter), as a future, for tasks and for [`select!`](crate::select). Dropped, it leaves the line, and a place that it may have
    /// been given goes to the next.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::{patterns::Bulkhead, run, select, sleep_async};
    ///
    /// run(|| {
    ///     let bulkhead = Bulkhead::new(1, 1)?;
    ///     let inside = bulkhead.try_enter().expect("nobody is");
    ///     select! {
    ///         _ = bulkhead.enter_async() => panic!("it is full"),
    ///         () = sleep_async(Duration::from_millis(1)) => drop(inside),
    ///     }
    ///     assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
    ///     Ok::<(), thalweg_runtime::patterns::Invalid>(())
    /// })?;
    /// # Ok::<(), thalweg_runtime::patterns::Invalid>(())
    /// ```
    ///
    /// # Errors
    /// As many wait as may: [`BulkheadError::Full`].
    pub async fn enter_async(&self) -> Result<BulkheadPermit<'_>, BulkheadError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place.into());
        }
        let _waiting = self.wait()?;
        let place = self.places.acquire_async(1).await;
        // Nobody closes it.
        place.map(Into::into).map_err(|_| BulkheadError::Stopped)
    }

    /// Runs `f` in a place that is waited for, for at most `timeout`.
    ///
    /// # Errors
    /// There was none, and `f` did not run.
    pub fn run<T>(&self, timeout: Duration, f: impl FnOnce() -> T) -> Result<T, BulkheadError> {
        let _place = self.enter_timeout(timeout)?;
        Ok(f())
    }

    /// How many are in it.
    pub fn running(&self) -> u32 {
        self.running - self.places.available() as u32
    }

    /// How many wait.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// One more that waits, if there may be one more.
    fn wait(&self) -> Result<Waiting<'_>, BulkheadError> {
        let room = |waiting| (waiting < self.most_waiting).then_some(waiting + 1);
        self.waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .map_err(|waiting| BulkheadError::Full { waiting })?;
        Ok(Waiting(&self.waiting))
    }

    fn enter_by<'a>(
        &'a self,
        wait: impl FnOnce(&'a Semaphore) -> Result<Permit<'a>, ClosableWaitError>,
    ) -> Result<BulkheadPermit<'a>, BulkheadError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place.into());
        }
        let _waiting = self.wait()?;
        match wait(&self.places) {
            Ok(place) => Ok(place.into()),
            Err(ClosableWaitError::TimedOut) => Err(BulkheadError::TimedOut),
            // Nobody closes it.
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
            Self::Full { waiting } => write!(f, "the bulkhead is full, and {waiting} wait"),
            Self::TimedOut => f.write_str("no place of the bulkhead came free in time"),
            Self::Stopped => f.write_str("the runtime stops"),
        }
    }
}

impl std::error::Error for BulkheadError {}
