//! Periodic ticks.
//!
//! Each tick is one period after the tick before, not after the call that waited for it. So delays
//! do not accumulate.

use std::future::pending;
use std::time::{Duration, Instant};

use crate::sleep_future::sleep_until_async;
use crate::wait;

/// [`MissedTickBehavior::Delay`] counts a tick as missed from this delay on, even if the period is
/// longer. The same as tokio's; smaller delays come from the time slices of other actors.
const MISSED_AFTER: Duration = Duration::from_millis(5);

/// What happens to ticks that were not waited for in time. Like tokio's `MissedTickBehavior`.
///
/// With a period of 10 ms, and 25 ms of work after the first tick:
///
/// | | the ticks after the one at 0 ms |
/// | --- | --- |
/// | `Burst` | 25, 25, 30, 40: all of them, as early as possible |
/// | `Delay` | 25, 35, 45: a whole period between two ticks |
/// | `Skip` | 25, 30, 40: at multiples of the period, without the missed ones |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// Missed ticks follow without a pause until the interval has caught up.
    #[default]
    Burst,
    /// The next tick is one period after a late one. A tick is late by more than 5 ms, or by a
    /// period.
    Delay,
    /// Missed ticks are skipped; the next one is at a multiple of the period.
    Skip,
}

/// Periodic ticks, from [`interval`].
#[derive(Debug)]
pub struct Interval {
    /// `None`: beyond the range of the clock, so never.
    next: Option<Instant>,
    period: Duration,
    missed: MissedTickBehavior,
}

/// Ticks every `period`; the first tick is immediate. Like tokio's.
///
/// # Panics
/// If `period` is zero.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg_runtime::{interval, run};
///
/// run(|| {
///     let begun = Instant::now();
///     let mut ticks = interval(Duration::from_millis(2));
///     let first = ticks.tick();
///     assert_eq!(ticks.tick(), first + Duration::from_millis(2));
///     assert!(begun.elapsed() >= Duration::from_millis(2));
/// });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Like [`interval`], with the first tick at `start`.
///
/// # Panics
/// If `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "an interval's period must be longer than zero"
    );
    Interval {
        next: Some(start),
        period,
        missed: MissedTickBehavior::default(),
    }
}

impl Interval {
    /// Sets what happens to missed ticks. Default: [`MissedTickBehavior::Burst`].
    #[must_use]
    pub fn missed_tick_behavior(self, missed: MissedTickBehavior) -> Self {
        Self { missed, ..self }
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Waits for the next tick, like [`sleep_until`](crate::sleep_until), and returns its scheduled
    /// time. If the tick is already due, the call is a [`check!`](crate::check), so that an actor
    /// that is always late lets other actors run.
    ///
    /// A tick beyond the range of the clock never comes.
    pub fn tick(&mut self) -> Instant {
        let Some(at) = self.next else {
            wait::sleep(Duration::MAX);
            return Instant::now();
        };
        if at <= Instant::now() {
            wait::check();
        }
        wait::sleep_until(at);
        self.next = self.missed.next(at, Instant::now(), self.period);
        at
    }

    /// Like [`tick`](Self::tick), as a future. If it is dropped, the tick is not consumed.
    pub async fn tick_async(&mut self) -> Instant {
        let Some(at) = self.next else {
            return pending().await;
        };
        sleep_until_async(at).await;
        self.next = self.missed.next(at, Instant::now(), self.period);
        at
    }

    /// Schedules the next tick one period from now.
    pub fn reset(&mut self) {
        self.next = Instant::now().checked_add(self.period);
    }
}

impl MissedTickBehavior {
    /// The tick after the one at `at`, which was delivered at `now`.
    fn next(self, at: Instant, now: Instant, period: Duration) -> Option<Instant> {
        let late = now.saturating_duration_since(at);
        match self {
            Self::Delay if late > MISSED_AFTER || late >= period => now.checked_add(period),
            Self::Skip if late >= period => {
                let beyond = late.as_nanos() % period.as_nanos();
                now.checked_sub(duration(beyond))?.checked_add(period)
            }
            Self::Burst | Self::Delay | Self::Skip => at.checked_add(period),
        }
    }
}

fn duration(nanoseconds: u128) -> Duration {
    let second = Duration::from_secs(1).as_nanos();
    let seconds = u64::try_from(nanoseconds / second).unwrap_or(u64::MAX);
    Duration::new(seconds, (nanoseconds % second) as u32)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{MissedTickBehavior, interval};
    use std::time::{Duration, Instant};

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// The times of the ticks, in milliseconds after the first, if the waits for them begin at
    /// `begun`.
    fn ticks(missed: MissedTickBehavior, period: u64, begun: &[u64]) -> Vec<u64> {
        let start = Instant::now();
        let mut next = start;
        begun
            .iter()
            .map(|begun| {
                let came = (start + ms(*begun)).max(next);
                next = missed.next(next, came, ms(period)).unwrap();
                (came - start).as_millis() as u64
            })
            .collect()
    }

    #[test]
    fn missed_tick_behavior_matches_the_documented_table() {
        let begun = [0, 25, 25, 26, 30];
        assert_eq!(
            ticks(MissedTickBehavior::Burst, 10, &begun),
            [0, 25, 25, 30, 40]
        );
        assert_eq!(
            ticks(MissedTickBehavior::Delay, 10, &begun),
            [0, 25, 35, 45, 55]
        );
        assert_eq!(
            ticks(MissedTickBehavior::Skip, 10, &begun),
            [0, 25, 30, 40, 50]
        );
    }

    #[test]
    fn small_delays_do_not_shift_later_ticks() {
        for missed in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            let late = [3, 14, 22, 34, 41, 50];
            assert_eq!(ticks(missed, 10, &late), late, "{missed:?}");
            assert_eq!(ticks(missed, 10, &[4, 0, 0, 0]), [4, 10, 20, 30]);
        }
    }

    #[test]
    fn tick_late_by_a_whole_period_is_missed() {
        assert_eq!(ticks(MissedTickBehavior::Delay, 2, &[0, 4, 0]), [0, 4, 6]);
        assert_eq!(ticks(MissedTickBehavior::Skip, 2, &[0, 4, 0]), [0, 4, 6]);
        assert_eq!(ticks(MissedTickBehavior::Burst, 2, &[0, 4, 4]), [0, 4, 4]);
    }

    #[test]
    fn next_tick_beyond_the_clock_is_none() {
        let now = Instant::now();
        for missed in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            assert_eq!(missed.next(now, now, Duration::MAX), None);
            assert_eq!(missed.next(now, now + ms(50), Duration::MAX), None);
        }
    }

    #[test]
    fn tick_times_do_not_depend_on_the_work_between() {
        let mut ticks = interval(ms(1));
        let first = ticks.tick();
        std::thread::sleep(ms(3));
        for n in 1..=8 {
            assert_eq!(ticks.tick(), first + n * ms(1));
            assert!(Instant::now() >= first + n * ms(1));
        }
        ticks.reset();
        let before = Instant::now();
        assert!(ticks.tick() > before);
    }

    #[test]
    #[should_panic(expected = "an interval's period must be longer than zero")]
    fn interval_with_period_zero_panics() {
        interval(Duration::ZERO);
    }
}
