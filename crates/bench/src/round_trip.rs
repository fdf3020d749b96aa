//! How far apart two processors are: the time in which a cache line goes from one to the other and
//! back.
//!
//! On a virtual machine, the hypervisor decides where the processors run. They can be the two threads
//! of one core at one time (50 ns on a Zen 4), and in different parts of the chip a minute later
//! (340 ns). All that two threads pass to each other then costs several times as much, so a run says
//! how far apart its processors were.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::placement;

/// Round trips of a measurement; it takes about a millisecond.
const ROUNDS: u32 = 3_000;

/// When a measurement is given up: other programs use the processors.
const PATIENCE: Duration = Duration::from_millis(200);

/// The round trips that were measured during a workload, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoundTrips {
    /// The shortest.
    pub least: f64,
    /// The longest.
    pub greatest: f64,
}

impl RoundTrips {
    /// `None` without measurements.
    #[must_use]
    pub fn of(measured: &[f64]) -> Option<Self> {
        let least = measured.iter().copied().reduce(f64::min)?;
        let greatest = measured.iter().copied().reduce(f64::max)?;
        Some(Self { least, greatest })
    }

    /// Whether the processors were at times much farther apart than at others.
    #[must_use]
    pub fn differ(self) -> bool {
        self.greatest > 2.0 * self.least
    }
}

/// A counter on two lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Ball(AtomicU32);

impl Ball {
    /// Waits until the count is `wanted`, and then adds one. Returns `false` if that takes too long.
    fn pass(&self, wanted: u32, until: Instant) -> bool {
        let mut looks = 0_u32;
        while self.0.load(Ordering::Acquire) != wanted {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1 << 16) && Instant::now() > until {
                return false;
            }
            spin_loop();
        }
        self.0.store(wanted + 1, Ordering::Release);
        true
    }
}

/// Measures the round trip between the first two processors that this thread may use, in ns. `None`:
/// there is only one, or other programs use them.
#[must_use]
pub fn measure() -> Option<f64> {
    let [first, second] = *placement::allowed().first_chunk()?;
    let ball = &Ball::default();
    let until = Instant::now() + PATIENCE;
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            placement::move_this_thread(second).ok()?;
            let mut turns = (0..ROUNDS).map(|round| 2 * round + 1);
            turns.all(|turn| ball.pass(turn, until)).then_some(())
        });
        let here = scope.spawn(move || {
            placement::move_this_thread(first).ok()?;
            // The other thread has started when it has passed for the first time.
            if !ball.pass(0, until) || !ball.pass(2, until) {
                return None;
            }
            let begin = Instant::now();
            let mut turns = (2..ROUNDS).map(|round| 2 * round);
            turns
                .all(|turn| ball.pass(turn, until))
                .then(|| begin.elapsed())
        });
        let taken = here.join().ok()??;
        other.join().ok()??;
        Some(taken.as_secs_f64() * 1e9 / f64::from(ROUNDS - 2))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_takes_time() {
        // On a busy machine there may be no result.
        if let Some(ns) = measure() {
            assert!(ns > 1.0 && ns < PATIENCE.as_secs_f64() * 1e9, "{ns}");
        }
    }

    #[test]
    fn round_trips_differ_if_one_takes_more_than_twice_as_long_as_another() {
        assert_eq!(RoundTrips::of(&[]), None);
        let of = |measured: &[f64]| RoundTrips::of(measured).unwrap();
        assert_eq!(
            of(&[60.0, 341.0, 52.0]),
            RoundTrips {
                least: 52.0,
                greatest: 341.0
            }
        );
        assert!(of(&[60.0, 341.0, 52.0]).differ());
        assert!(!of(&[60.0, 52.0]).differ());
    }

    #[test]
    fn a_player_without_a_partner_gives_up() {
        let until = Instant::now() + Duration::from_millis(1);
        assert!(!Ball::default().pass(1, until));
    }
}
