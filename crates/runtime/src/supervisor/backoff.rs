//! The delay before a restart.

use std::time::Duration;

/// The delay before a child that fails repeatedly is restarted: it doubles from `first` up to
/// `max`, less a random part. After "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015):
/// the jitter keeps children that failed together from restarting together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Before the first restart. If it is zero, the first restart is immediate, and the following
    /// delays double from 1 ms.
    pub first: Duration,
    /// The longest delay.
    pub max: Duration,
    /// The random fraction of the delay, from 0.0 to 1.0.
    pub jitter: f64,
    /// A child that ran this long starts again at `first`.
    pub reset_after: Duration,
}

impl Default for Backoff {
    /// No delay, then 1 ms doubling to 30 s, half of it random; reset after a minute.
    fn default() -> Self {
        Self {
            first: Duration::ZERO,
            max: Duration::from_secs(30),
            jitter: 0.5,
            reset_after: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The delay after this number of consecutive failures, at least 1. `random` is from 0 to 1.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::supervisor::Backoff;
    ///
    /// let backoff = Backoff { first: Duration::from_millis(10), ..Backoff::default() };
    /// assert_eq!(backoff.delay(3, 0.0), Duration::from_millis(40));
    /// // Half of the delay is random.
    /// assert_eq!(backoff.delay(3, 1.0), Duration::from_millis(20));
    /// ```
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1);
        let (from, doublings) = if self.first.is_zero() {
            match doublings.checked_sub(1) {
                None => return Duration::ZERO,
                Some(doublings) => (Duration::from_millis(1), doublings),
            }
        } else {
            (self.first, doublings)
        };
        let whole = 2u32
            .checked_pow(doublings)
            .and_then(|times| from.checked_mul(times))
            .map_or(self.max, |delay| delay.min(self.max));
        whole.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * random)
    }
}

/// A generator for numbers that need not be secure: SplitMix64 (Steele, Lea, Flood, "Fast
/// Splittable Pseudorandom Number Generators", 2014).
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number from 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Random};
    use std::time::Duration;

    #[test]
    fn delay_doubles_up_to_the_maximum() {
        let backoff = Backoff {
            first: Duration::from_millis(10),
            max: Duration::from_millis(100),
            jitter: 0.5,
            reset_after: Duration::ZERO,
        };
        let delays: Vec<_> = (1..7).map(|n| backoff.delay(n, 0.0).as_millis()).collect();
        assert_eq!(delays, [10, 20, 40, 80, 100, 100]);
        assert_eq!(backoff.delay(1, 1.0), Duration::from_millis(5));
        assert_eq!(backoff.delay(u32::MAX, 0.0), backoff.max);
    }

    #[test]
    fn default_backoff_restarts_immediately_first() {
        let backoff = Backoff::default();
        let delays: Vec<_> = (1..5).map(|n| backoff.delay(n, 0.0).as_millis()).collect();
        assert_eq!(delays, [0, 1, 2, 4]);
    }

    #[test]
    fn random_numbers_are_uniform_in_the_unit_interval() {
        let mut random = Random(7);
        let all: Vec<_> = (0..1_000).map(|_| random.next()).collect();
        assert!(all.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = all.iter().sum::<f64>() / 1_000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }
}
