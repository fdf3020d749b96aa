//! Ticks at equal distances.
//!
//! Each tick's moment is that of the one before and the period, not when somebody came to wait for it: what is late does not add up.

use std::future::pending;
use std::time::{Duration, Instant};

use crate::sleep_future::sleep_until_async;
use crate::wait;

/// From this lateness on [`MissedTickBehavior::Delay`] counts a tick as missed, also of a longer period. As tokio; less comes from others' time slices.
const MISSED_AFTER: Duration = Duration::from_millis(5);

/// What becomes of ticks that nobody waited for in time, as tokio's `MissedTickBehavior`.
///
/// With a period of 10 ms and 25 ms of work after the first tick:
///
/// | | the ticks after that at 0 |
/// | --- | --- |
/// | `Burst` | 25, 25, 30, 40: all of them, as soon as can be |
/// | `Delay` | 25, 35, 45: a whole period from one to the next |
/// | `Skip` | 25, 30, 40: at multiples of the period, without those that were missed |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// They come one after the other without a pause, until it has caught up.
    #[default]
    Burst,
    /// The next comes a period after the one that was late: more than 5 ms, or a period.
    Delay,
    /// They do not come; the next is at a multiple of the period.
    Skip,
}

/// Ticks at equal distances, from [`interval`].
#[derive(Debug)]
pub struct Interval {
    /// `None`: beyond the clock, so never.
    next: Option<Instant>,
    period: Duration,
    missed: MissedTickBehavior,
}

/// Ticks every `period`, the first one at once, as tokio's.
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

/// As [`interval`], with the first tick at `start`.
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
    /// What becomes of missed ticks; default: [`MissedTickBehavior::Burst`].
    #[must_use]
    pub fn missed_tick_behavior(self, missed: MissedTickBehavior) -> Self {
        Self { missed, ..self }
    }

    /// From one tick to the next.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Waits for the next tick, as [`sleep_until`](crate::sleep_until): the moment at which it was to come. A tick that is due already is a
    /// [`check!`](crate::check) too, so that an actor which is always late does not keep the others out.
    ///
    /// A tick beyond the clock's end never comes.
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

    /// As [`tick`](Self::tick), as a future. Dropped, the tick is still to come.
    pub async fn tick_async(&mut self) -> Instant {
        let Some(at) = self.next else {
            return pending().await;
        };
        sleep_until_async(at).await;
        self.next = self.missed.next(at, Instant::now(), self.period);
        at
    }

    /// The next tick comes a period from now.
    pub fn reset(&mut self) {
        self.next = Instant::now().checked_add(self.period);
    }
}

impl MissedTickBehavior {
    /// The tick after that at `at`, which came at `now`.
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

    /// When the next ticks come, in milliseconds from the first, where waiting for them begins at these moments.
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
    fn the_table_in_the_documentation() {
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
    fn what_is_a_little_late_does_not_move_those_after() {
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
    fn a_tick_that_is_late_by_a_whole_short_period_was_missed() {
        assert_eq!(ticks(MissedTickBehavior::Delay, 2, &[0, 4, 0]), [0, 4, 6]);
        assert_eq!(ticks(MissedTickBehavior::Skip, 2, &[0, 4, 0]), [0, 4, 6]);
        assert_eq!(ticks(MissedTickBehavior::Burst, 2, &[0, 4, 4]), [0, 4, 4]);
    }

    #[test]
    fn what_is_beyond_the_clock_is_never() {
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
    fn ticks_are_where_they_were_to_be_however_long_the_work_took() {
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
    fn a_period_of_nothing_is_refused() {
        interval(Duration::ZERO);
    }
}
