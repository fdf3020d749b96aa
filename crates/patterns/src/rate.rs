//! A limit for the number of operations per second.
//!
//! The generic cell rate algorithm (GCRA) as virtual scheduling: ITU-T Recommendation I.371, Annex
//! A; ATM Forum, Traffic Management 4.0. Let `T` be the interval between two permits at the rate,
//! and `b` the burst. `tat` is the theoretical arrival time of the next permit if all came at the
//! rate. A permit at `t` moves it to `max(tat, t) + T`, and conforms if that is not later than `t +
//! b * T`:
//!
//! ```text
//!           t           tat                 t + b * T
//!   --------|-----------|-------|---------------|--------> time
//!                        <- T ->
//! ```
//!
//! This one word is the complete state, and is updated by CAS. No other data depends on it, so
//! relaxed ordering suffices. The unit of time is a sixteenth of a nanosecond: a word covers 36
//! years, and at 10^9 per second the error is at most 1/32, towards the slower side.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_runtime::{sleep_until, sleep_until_async};

use crate::InvalidSetting;

/// Units in a nanosecond.
const UNITS_PER_NS: u64 = 16;

/// The longest time in which a full burst becomes available again: two years, so no sum overflows.
const MAX_BURST_UNITS: u64 = 1 << 60;

/// Admits a fixed rate per second, and a burst after a pause. The state is one atomic word, so
/// callers never wait for each other's updates.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg_patterns::{RateError, RateLimit};
///
/// let limit = RateLimit::new(10.0, 2)?;
/// let now = Instant::now();
/// assert!(limit.try_acquire_at(now).is_ok());
/// assert!(limit.try_acquire_at(now).is_ok());
/// let refused = limit.try_acquire_at(now);
/// assert!(matches!(refused, Err(RateError::Exhausted { retry_after }) if retry_after <= Duration::from_millis(100)));
/// assert!(limit.try_acquire_at(now + Duration::from_millis(100)).is_ok());
/// # Ok::<(), thalweg_patterns::InvalidSetting>(())
/// ```
pub struct RateLimit {
    /// The origin of the time units.
    base: Instant,
    /// `T`, in units.
    interval: u64,
    burst: u32,
    theoretical_arrival: AtomicU64,
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// There is none now.
    Exhausted {
        /// The time until there is one, unless others take it.
        retry_after: Duration,
    },
    /// More permits were requested than the burst.
    TooMany {
        /// The burst.
        burst: u32,
    },
}

impl RateLimit {
    /// `rate` permits per second, up to 10^9, and a burst of `burst` permits, which are available
    /// from the start.
    ///
    /// # Errors
    /// The rate is not positive and finite, or is greater than 10^9; the burst is 0; or a full
    /// burst takes more than two years.
    pub fn new(rate: f64, burst: u32) -> Result<Self, InvalidSetting> {
        InvalidSetting::unless(
            rate > 0.0 && rate <= 1e9,
            "a rate is a positive number of permits per second, at most 10^9",
        )?;
        InvalidSetting::unless(burst > 0, "a burst is at least 1")?;
        // Rounded up, so never more than the rate. A value beyond a word saturates.
        let interval = (1e9 * UNITS_PER_NS as f64 / rate).ceil() as u64;
        InvalidSetting::unless(
            interval
                .checked_mul(u64::from(burst))
                .is_some_and(|whole| whole <= MAX_BURST_UNITS),
            "a full burst takes at most two years",
        )?;
        Ok(Self {
            base: Instant::now(),
            interval,
            burst,
            theoretical_arrival: AtomicU64::new(0),
        })
    }

    /// Takes a permit, if there is one now.
    ///
    /// # Errors
    /// There is none.
    pub fn try_acquire(&self) -> Result<(), RateError> {
        self.try_acquire_at(Instant::now())
    }

    /// As [`try_acquire`](Self::try_acquire), at the time `now`. A time before the creation of the
    /// limit counts as the creation.
    ///
    /// # Errors
    /// There is none.
    pub fn try_acquire_at(&self, now: Instant) -> Result<(), RateError> {
        self.try_acquire_many_at(1, now)
    }

    /// Takes this many permits, all or none. Zero permits take nothing.
    ///
    /// # Errors
    /// There are fewer.
    pub fn try_acquire_many(&self, permits: u32) -> Result<(), RateError> {
        self.try_acquire_many_at(permits, Instant::now())
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), at the time `now`.
    ///
    /// # Errors
    /// There are fewer.
    pub fn try_acquire_many_at(&self, permits: u32, now: Instant) -> Result<(), RateError> {
        self.take(permits, self.units(now), 0).map(drop)
    }

    /// Waits for a permit. It is reserved at once, so callers are served in order of arrival. If
    /// the caller is unwound while it waits, the permit is used up.
    pub fn acquire(&self) {
        let taken = self.acquire_many_by(1, None);
        debug_assert!(taken.is_ok(), "a burst is at least 1");
    }

    /// As [`acquire`](Self::acquire), as a future for tasks and for [`select!`](thalweg_runtime::select). The
    /// permit is reserved at the first poll. A future that is dropped while it waits returns the
    /// permit if no other was reserved after it. Otherwise the permit is used up, because later
    /// callers already have their times.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_patterns::RateLimit;
    /// use thalweg_runtime::{run, select, sleep_async};
    ///
    /// run(|| {
    ///     let limit = RateLimit::new(0.001, 1)?;
    ///     limit.acquire();
    ///     let next = limit.retry_after();
    ///     select! {
    ///         () = limit.acquire_async() => panic!("the next permit takes a quarter of an hour"),
    ///         () = sleep_async(Duration::from_millis(1)) => assert!(limit.retry_after() <= next),
    ///     }
    ///     Ok::<(), thalweg_patterns::InvalidSetting>(())
    /// })?;
    /// # Ok::<(), thalweg_patterns::InvalidSetting>(())
    /// ```
    pub async fn acquire_async(&self) {
        let now = Instant::now();
        let taken = self.take(1, self.units(now), u64::MAX);
        let taken = taken.expect("a burst is at least 1, and any wait is short enough");
        if taken.wait.is_zero() {
            return;
        }
        let guard = TakenGuard { limit: self, taken };
        sleep_until_async(now + guard.taken.wait).await;
        std::mem::forget(guard);
    }

    /// Waits for a permit, if it is available within `timeout`. Otherwise returns at once and takes
    /// none.
    ///
    /// # Errors
    /// It would be available later.
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<(), RateError> {
        self.acquire_many_by(1, Some(timeout))
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), until `deadline`.
    ///
    /// # Errors
    /// It would be available later.
    pub fn acquire_deadline(&self, deadline: Instant) -> Result<(), RateError> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        self.acquire_many_by(1, Some(timeout))
    }

    fn acquire_many_by(&self, permits: u32, timeout: Option<Duration>) -> Result<(), RateError> {
        let now = Instant::now();
        let max_wait = timeout.map_or(u64::MAX, units);
        let wait = self.take(permits, self.units(now), max_wait)?.wait;
        if !wait.is_zero() {
            sleep_until(now + wait);
        }
        Ok(())
    }

    /// The time until the next permit. Zero: there is one now.
    pub fn retry_after(&self) -> Duration {
        self.retry_after_at(Instant::now())
    }

    /// As [`retry_after`](Self::retry_after), at the time `now`.
    pub fn retry_after_at(&self, now: Instant) -> Duration {
        let now = self.units(now);
        let theoretical_arrival = self.theoretical_arrival.load(Ordering::Relaxed);
        duration(self.wait(self.arrival_after(theoretical_arrival, now, 1), now))
    }

    /// The burst: the maximum number of permits at once.
    pub fn burst(&self) -> u32 {
        self.burst
    }

    fn units(&self, now: Instant) -> u64 {
        units(now.saturating_duration_since(self.base))
    }

    /// The new theoretical arrival time after this many permits.
    fn arrival_after(&self, theoretical_arrival: u64, now: u64, permits: u32) -> u64 {
        theoretical_arrival
            .max(now)
            .saturating_add(self.interval * u64::from(permits))
    }

    fn wait(&self, after: u64, now: u64) -> u64 {
        let conforms = now.saturating_add(self.interval * u64::from(self.burst));
        after.saturating_sub(conforms)
    }

    /// Reserves permits that are available within `max_wait` units.
    fn take(&self, permits: u32, now: u64, max_wait: u64) -> Result<TakenPermits, RateError> {
        if permits > self.burst {
            return Err(RateError::TooMany { burst: self.burst });
        }
        let mut theoretical_arrival = self.theoretical_arrival.load(Ordering::Relaxed);
        loop {
            let after = self.arrival_after(theoretical_arrival, now, permits);
            let wait = self.wait(after, now);
            if wait > max_wait {
                return Err(RateError::Exhausted {
                    retry_after: duration(wait),
                });
            }
            match self.theoretical_arrival.compare_exchange_weak(
                theoretical_arrival,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return Ok(TakenPermits {
                        before: theoretical_arrival.max(now),
                        after,
                        wait: duration(wait),
                    });
                }
                Err(seen) => theoretical_arrival = seen,
            }
        }
    }
}

/// Permits that were taken.
struct TakenPermits {
    /// The theoretical arrival time before, and after.
    before: u64,
    after: u64,
    /// The time until they are available.
    wait: Duration,
}

/// Returns the permits of a waiting future that is dropped.
struct TakenGuard<'a> {
    limit: &'a RateLimit,
    taken: TakenPermits,
}

impl Drop for TakenGuard<'_> {
    /// Succeeds only if no later caller has changed the word.
    fn drop(&mut self) {
        let TakenPermits { before, after, .. } = self.taken;
        let theoretical_arrival = &self.limit.theoretical_arrival;
        let _ = theoretical_arrival.compare_exchange(
            after,
            before,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

/// Saturates.
fn units(time: Duration) -> u64 {
    u64::try_from(time.as_nanos() * u128::from(UNITS_PER_NS)).unwrap_or(u64::MAX)
}

/// Rounds up.
fn duration(units: u64) -> Duration {
    Duration::from_nanos(units.div_ceil(UNITS_PER_NS))
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
            Self::TooMany { burst } => {
                write!(f, "at most {burst} permits are available at once")
            }
        }
    }
}

impl std::error::Error for RateError {}
