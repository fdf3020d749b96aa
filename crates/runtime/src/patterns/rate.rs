//! A limit of how many a second.
//!
//! The generic cell rate algorithm (GCRA), as virtual scheduling: ITU-T Recommendation I.371, Annex A; ATM Forum, Traffic Management 4.0. With `T` between two
//! permits at the rate and a burst of `b`, the word is when the next one would come if all came at the rate. One that comes at `t` moves it to
//! `max(word, t) + T`, and conforms if that is no later than `t + b * T`:
//!
//! ```text
//!           t          word                 t + b * T
//!   --------|-----------|-------|---------------|--------> time
//!                        <- T ->
//! ```
//!
//! The word is all there is, and is moved by CAS. No data goes with it, so its order does not matter. Time is in sixteenths of a nanosecond: 36 years in a
//! word, and at 10^9 a second an error of a 32nd at most, to the slower side.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Invalid;
use crate::sleep_future::sleep_until_async;
use crate::wait;

/// In a nanosecond.
const UNITS: u64 = 16;

/// A burst takes this long to come back at most: two years, so no sum overflows.
const LONGEST: u64 = 1 << 60;

/// So many permits a second, and so many at once where there was a pause. One atomic word: who asks never waits for who else asks.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg_runtime::patterns::{RateError, RateLimit};
///
/// let limit = RateLimit::new(10.0, 2)?;
/// let now = Instant::now();
/// assert!(limit.try_acquire_at(now).is_ok());
/// assert!(limit.try_acquire_at(now).is_ok());
/// let refused = limit.try_acquire_at(now);
/// assert!(matches!(refused, Err(RateError::Exhausted { retry_after }) if retry_after <= Duration::from_millis(100)));
/// assert!(limit.try_acquire_at(now + Duration::from_millis(100)).is_ok());
/// # Ok::<(), thalweg_runtime::patterns::Invalid>(())
/// ```
pub struct RateLimit {
    /// Units are counted from here.
    base: Instant,
    /// `T`, in units.
    interval: u64,
    burst: u32,
    word: AtomicU64,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// There will be, if nobody else takes them.
    Exhausted {
        /// After this time.
        retry_after: Duration,
    },
    /// So many at once there never are.
    TooMany {
        /// How many there may be.
        burst: u32,
    },
}

impl RateLimit {
    /// `rate` permits a second, up to 10^9; `burst` at once, which are there from the start.
    ///
    /// # Errors
    /// The rate is not positive and finite, or beyond 10^9; the burst is 0; or it takes more than two years to come back.
    pub fn new(rate: f64, burst: u32) -> Result<Self, Invalid> {
        Invalid::unless(
            rate > 0.0 && rate <= 1e9,
            "a rate is a positive number of permits a second, 10^9 at most",
        )?;
        Invalid::unless(burst > 0, "a burst is 1 at least")?;
        // Rounded up: never more than the rate. What is beyond a word becomes its maximum.
        let interval = (1e9 * UNITS as f64 / rate).ceil() as u64;
        Invalid::unless(
            interval
                .checked_mul(u64::from(burst))
                .is_some_and(|whole| whole <= LONGEST),
            "a burst comes back within two years",
        )?;
        Ok(Self {
            base: Instant::now(),
            interval,
            burst,
            word: AtomicU64::new(0),
        })
    }

    /// A permit, if there is one now.
    ///
    /// # Errors
    /// There is none.
    pub fn try_acquire(&self) -> Result<(), RateError> {
        self.try_acquire_at(Instant::now())
    }

    /// As [`try_acquire`](Self::try_acquire), where it is `now`. A time before the limit was made is that time.
    ///
    /// # Errors
    /// There is none.
    pub fn try_acquire_at(&self, now: Instant) -> Result<(), RateError> {
        self.try_acquire_many_at(1, now)
    }

    /// So many permits, all or none. None: nothing is taken.
    ///
    /// # Errors
    /// There are not as many.
    pub fn try_acquire_many(&self, permits: u32) -> Result<(), RateError> {
        self.try_acquire_many_at(permits, Instant::now())
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), where it is `now`.
    ///
    /// # Errors
    /// There are not as many.
    pub fn try_acquire_many_at(&self, permits: u32, now: Instant) -> Result<(), RateError> {
        self.take(permits, self.units(now), 0).map(drop)
    }

    /// Waits for a permit. Its place is taken at once, so who comes first goes first. Who is unwound while it waits has had its permit.
    pub fn acquire(&self) {
        let taken = self.acquire_many_by(1, None);
        debug_assert!(taken.is_ok(), "a burst is 1 at least");
    }

    /// As [`acquire`](Self::acquire), as a future, for tasks and for [`select!`](crate::select): its place is taken when it is first polled. Dropped before
    /// its end it gives the place back, if nobody has come after it; else its time passes unused, since nobody behind it may go sooner.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::{patterns::RateLimit, run, select, sleep_async};
    ///
    /// run(|| {
    ///     let limit = RateLimit::new(0.001, 1)?;
    ///     limit.acquire();
    ///     let next = limit.retry_after();
    ///     select! {
    ///         () = limit.acquire_async() => panic!("that takes a quarter of an hour"),
    ///         () = sleep_async(Duration::from_millis(1)) => assert!(limit.retry_after() <= next),
    ///     }
    ///     Ok::<(), thalweg_runtime::patterns::Invalid>(())
    /// })?;
    /// # Ok::<(), thalweg_runtime::patterns::Invalid>(())
    /// ```
    pub async fn acquire_async(&self) {
        let now = Instant::now();
        let taken = self.take(1, self.units(now), u64::MAX);
        let taken = taken.expect("a burst is 1 at least, and any wait is short enough");
        if taken.wait.is_zero() {
            return;
        }
        let place = Place { limit: self, taken };
        sleep_until_async(now + place.taken.wait).await;
        std::mem::forget(place);
    }

    /// Waits for a permit, unless it would come only after `timeout`: then it does not wait at all, and takes none.
    ///
    /// # Errors
    /// It would come later.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<(), RateError> {
        self.acquire_many_by(1, Some(timeout))
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), for one that comes after `deadline`.
    ///
    /// # Errors
    /// It would come later.
    pub fn acquire_deadline(&self, deadline: Instant) -> Result<(), RateError> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        self.acquire_many_by(1, Some(timeout))
    }

    fn acquire_many_by(&self, permits: u32, timeout: Option<Duration>) -> Result<(), RateError> {
        let now = Instant::now();
        let most = timeout.map_or(u64::MAX, units);
        let wait = self.take(permits, self.units(now), most)?.wait;
        if !wait.is_zero() {
            wait::sleep_until(now + wait);
        }
        Ok(())
    }

    /// When the next permit comes: zero if there is one now.
    pub fn retry_after(&self) -> Duration {
        self.retry_after_at(Instant::now())
    }

    /// As [`retry_after`](Self::retry_after), where it is `now`.
    pub fn retry_after_at(&self, now: Instant) -> Duration {
        let now = self.units(now);
        let word = self.word.load(Ordering::Relaxed);
        duration(self.wait(self.after(word, now, 1), now))
    }

    /// How many there may be at once.
    pub fn burst(&self) -> u32 {
        self.burst
    }

    fn units(&self, now: Instant) -> u64 {
        units(now.saturating_duration_since(self.base))
    }

    /// Where the word goes.
    fn after(&self, word: u64, now: u64, permits: u32) -> u64 {
        word.max(now)
            .saturating_add(self.interval * u64::from(permits))
    }

    fn wait(&self, after: u64, now: u64) -> u64 {
        let conforms = now.saturating_add(self.interval * u64::from(self.burst));
        after.saturating_sub(conforms)
    }

    /// Permits that come after `most` units or sooner.
    fn take(&self, permits: u32, now: u64, most: u64) -> Result<Taken, RateError> {
        if permits > self.burst {
            return Err(RateError::TooMany { burst: self.burst });
        }
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let after = self.after(word, now, permits);
            let wait = self.wait(after, now);
            if wait > most {
                return Err(RateError::Exhausted {
                    retry_after: duration(wait),
                });
            }
            match self
                .word
                .compare_exchange_weak(word, after, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    return Ok(Taken {
                        before: word.max(now),
                        after,
                        wait: duration(wait),
                    });
                }
                Err(seen) => word = seen,
            }
        }
    }
}

/// Permits that were taken.
struct Taken {
    /// Where the word was, and where it went.
    before: u64,
    after: u64,
    /// When they come.
    wait: Duration,
}

/// That of one who waits.
struct Place<'a> {
    limit: &'a RateLimit,
    taken: Taken,
}

impl Drop for Place<'_> {
    /// Who came after counts on the word as it is.
    fn drop(&mut self) {
        let Taken { before, after, .. } = self.taken;
        let word = &self.limit.word;
        let _ = word.compare_exchange(after, before, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What is beyond a word is its maximum.
fn units(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() * u128::from(UNITS)).unwrap_or(u64::MAX)
}

/// Not before it.
fn duration(units: u64) -> Duration {
    Duration::from_nanos(units.div_ceil(UNITS))
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("interval", &duration(self.interval))
            .field("burst", &self.burst)
            .field("retry_after", &self.retry_after())
            .finish()
    }
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { retry_after } => {
                write!(
                    f,
                    "the rate is exhausted: the next permit is in {retry_after:?}"
                )
            }
            Self::TooMany { burst } => write!(f, "there are {burst} permits at once at most"),
        }
    }
}

impl std::error::Error for RateError {}
