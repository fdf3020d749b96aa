//! The condition that opens a breaker, and the results of the last calls.

use std::collections::VecDeque;
use std::time::Duration;

use crate::InvalidSetting;

/// When a [`CircuitBreaker`](crate::CircuitBreaker) opens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trip {
    /// After this many failures without a success in between, if the first of them is not older
    /// than `within`.
    Consecutive {
        /// The number of failures, 1 to 65,536.
        failures: u32,
        /// The maximum time since the first failure.
        within: Duration,
    },
    /// When the failure rate of the calls that ended within `within` reaches `rate`. The time is
    /// divided into ten buckets, and the oldest bucket is removed as a whole.
    Rate {
        /// The failure rate, above 0.0 and up to 1.0.
        rate: f64,
        /// The minimum number of calls for a decision.
        min_calls: u32,
        /// The length of the window.
        within: Duration,
    },
}

impl Trip {
    const MAX_CONSECUTIVE: u32 = 1 << 16;

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let within = match *self {
            Self::Consecutive { failures, within } => {
                InvalidSetting::unless(
                    (1..=Self::MAX_CONSECUTIVE).contains(&failures),
                    "a breaker opens after 1 to 65,536 consecutive failures",
                )?;
                within
            }
            Self::Rate {
                rate,
                min_calls,
                within,
            } => {
                InvalidSetting::unless(
                    rate > 0.0 && rate <= 1.0,
                    "a failure rate is above 0.0 and at most 1.0",
                )?;
                InvalidSetting::unless(min_calls > 0, "a failure rate needs at least 1 call")?;
                within
            }
        };
        InvalidSetting::unless(
            !within.is_zero(),
            "the window of a breaker is longer than 0",
        )
    }
}

/// The number of buckets in a window.
const BUCKETS: usize = 10;

#[derive(Debug)]
pub(super) enum Window {
    Consecutive {
        failures: usize,
        within: u64,
        /// The times of the last failures.
        times: VecDeque<u64>,
    },
    Rate {
        rate: f64,
        min_calls: u64,
        bucket_ns: u64,
        /// The number of the current bucket.
        latest: u64,
        /// Bucket number n is at index n modulo ten.
        buckets: [Bucket; BUCKETS],
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    calls: u64,
    failures: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Window {
    pub(super) fn new(trip: Trip) -> Self {
        match trip {
            Trip::Consecutive { failures, within } => Self::Consecutive {
                failures: failures as usize,
                within: nanos(within),
                times: VecDeque::new(),
            },
            Trip::Rate {
                rate,
                min_calls,
                within,
            } => Self::Rate {
                rate,
                min_calls: u64::from(min_calls),
                bucket_ns: nanos(within).div_ceil(BUCKETS as u64),
                latest: 0,
                buckets: [Bucket::default(); BUCKETS],
            },
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Consecutive { times, .. } => times.clear(),
            Self::Rate { buckets, .. } => *buckets = [Bucket::default(); BUCKETS],
        }
    }

    /// Counts a call. `true`: the breaker must open.
    pub(super) fn ended(&mut self, failed: bool, now: u64) -> bool {
        match self {
            Self::Consecutive { times, .. } if !failed => {
                times.clear();
                false
            }
            Self::Consecutive {
                failures,
                within,
                times,
            } => {
                if times.len() == *failures {
                    times.pop_front();
                }
                times.push_back(now);
                times.len() == *failures
                    && times
                        .front()
                        .is_some_and(|first| now.saturating_sub(*first) <= *within)
            }
            Self::Rate {
                rate,
                min_calls,
                bucket_ns,
                latest,
                buckets,
            } => {
                // Threads may read the clock in one order and get here in another.
                let current = (now / *bucket_ns).max(*latest);
                let gone = (current - *latest).min(BUCKETS as u64);
                for back in 0..gone {
                    buckets[((current - back) % BUCKETS as u64) as usize] = Bucket::default();
                }
                *latest = current;
                let bucket = &mut buckets[(current % BUCKETS as u64) as usize];
                bucket.calls += 1;
                bucket.failures += u64::from(failed);
                let calls: u64 = buckets.iter().map(|bucket| bucket.calls).sum();
                let failures: u64 = buckets.iter().map(|bucket| bucket.failures).sum();
                calls >= *min_calls && failures as f64 >= *rate * calls as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Trip, Window};
    use std::time::Duration;

    /// Compares the rate with its definition, computed from a list of all calls.
    #[test]
    fn rate_counts_the_calls_of_the_last_ten_buckets() {
        // Knuth's MMIX generator: a number from 0 to 1.
        let mut state = 11_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1 << 24) as f64
        };
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let (rate, min_calls) = (0.1 + 0.9 * random(), 1 + (random() * 20.0) as u64);
            let mut window = Window::new(Trip::Rate {
                rate,
                min_calls: min_calls as u32,
                within: Duration::from_nanos(1_000),
            });
            let (mut all, mut now) = (Vec::new(), 0);
            for _ in 0..500 {
                now += (random() * random() * 120.0) as u64;
                let failed = random() < 0.5;
                all.push((now / 100, failed));
                let counted = all.iter().filter(|(bucket, _)| bucket + 10 > now / 100);
                let calls = counted.clone().count() as u64;
                let failures = counted.filter(|(_, failed)| *failed).count();
                let trips = calls >= min_calls && failures as f64 >= rate * calls as f64;
                assert_eq!(window.ended(failed, now), trips);
            }
        }
    }
}
