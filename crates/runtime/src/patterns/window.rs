//! What trips a breaker: how the last calls went.

use std::collections::VecDeque;
use std::time::Duration;

use super::Invalid;

/// When a [`CircuitBreaker`](super::CircuitBreaker) opens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trip {
    /// After so many failures with no success in between, 1 to 65,536, of which the first is no longer ago than `within`.
    Row {
        /// How many.
        failures: u32,
        /// Since the first of them.
        within: Duration,
    },
    /// When this part of the calls that ended in the last `within` failed, and there were enough of them to say so. It is counted in tenths of
    /// that time, of which the oldest is given up as a whole.
    Rate {
        /// More than 0.0, to 1.0.
        rate: f64,
        /// Fewer calls than that say nothing.
        at_least: u32,
        /// How far it looks back.
        within: Duration,
    },
}

impl Trip {
    const MOST_IN_A_ROW: u32 = 1 << 16;

    pub(super) fn check(&self) -> Result<(), Invalid> {
        let within = match *self {
            Self::Row { failures, within } => {
                Invalid::unless(
                    (1..=Self::MOST_IN_A_ROW).contains(&failures),
                    "a breaker trips after 1 to 65,536 failures in a row",
                )?;
                within
            }
            Self::Rate {
                rate,
                at_least,
                within,
            } => {
                Invalid::unless(
                    rate > 0.0 && rate <= 1.0,
                    "a rate of failures is more than 0.0, and 1.0 at most",
                )?;
                Invalid::unless(
                    at_least > 0,
                    "a rate of failures is that of 1 call at least",
                )?;
                within
            }
        };
        Invalid::unless(!within.is_zero(), "a breaker looks back for some time")
    }
}

/// Parts of the time that a rate is counted over.
const TENTHS: usize = 10;

#[derive(Debug)]
pub(super) enum Window {
    Row {
        failures: usize,
        within: u64,
        /// When the last ones were.
        times: VecDeque<u64>,
    },
    Rate {
        rate: f64,
        at_least: u64,
        tenth: u64,
        /// Which one is counted in now.
        number: u64,
        /// That of number n is at n modulo ten.
        counts: [Count; TENTHS],
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    calls: u64,
    failures: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Window {
    pub(super) fn new(trip: Trip) -> Self {
        match trip {
            Trip::Row { failures, within } => Self::Row {
                failures: failures as usize,
                within: nanos(within),
                times: VecDeque::new(),
            },
            Trip::Rate {
                rate,
                at_least,
                within,
            } => Self::Rate {
                rate,
                at_least: u64::from(at_least),
                tenth: nanos(within).div_ceil(TENTHS as u64),
                number: 0,
                counts: [Count::default(); TENTHS],
            },
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Row { times, .. } => times.clear(),
            Self::Rate { counts, .. } => *counts = [Count::default(); TENTHS],
        }
    }

    /// One call more. `true`: that trips it.
    pub(super) fn ended(&mut self, failed: bool, now: u64) -> bool {
        match self {
            Self::Row { times, .. } if !failed => {
                times.clear();
                false
            }
            Self::Row {
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
                at_least,
                tenth,
                number,
                counts,
            } => {
                // Threads may look at the clock in one order and come here in another.
                let current = (now / *tenth).max(*number);
                let gone = (current - *number).min(TENTHS as u64);
                for back in 0..gone {
                    counts[((current - back) % TENTHS as u64) as usize] = Count::default();
                }
                *number = current;
                let count = &mut counts[(current % TENTHS as u64) as usize];
                count.calls += 1;
                count.failures += u64::from(failed);
                let calls: u64 = counts.iter().map(|count| count.calls).sum();
                let failures: u64 = counts.iter().map(|count| count.failures).sum();
                calls >= *at_least && failures as f64 >= *rate * calls as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Trip, Window};
    use std::time::Duration;

    /// The rate as it is defined, from a list of all calls.
    #[test]
    fn a_rate_is_that_of_the_tenths_it_looks_back_over() {
        let mut random = crate::supervisor::Random(11);
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let (rate, at_least) = (0.1 + 0.9 * random.next(), 1 + (random.next() * 20.0) as u64);
            let mut window = Window::new(Trip::Rate {
                rate,
                at_least: at_least as u32,
                within: Duration::from_nanos(1_000),
            });
            let (mut all, mut now) = (Vec::new(), 0);
            for _ in 0..500 {
                now += (random.next() * random.next() * 120.0) as u64;
                let failed = random.next() < 0.5;
                all.push((now / 100, failed));
                let counted = all.iter().filter(|(tenth, _)| tenth + 10 > now / 100);
                let calls = counted.clone().count() as u64;
                let failures = counted.filter(|(_, failed)| *failed).count();
                let trips = calls >= at_least && failures as f64 >= rate * calls as f64;
                assert_eq!(window.ended(failed, now), trips);
            }
        }
    }
}
