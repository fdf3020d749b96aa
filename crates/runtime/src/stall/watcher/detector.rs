//! The stall detector: finds runs that last too long from samples of the workers' statuses. It uses
//! neither threads nor clocks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::stall::status::{ASLEEP, SEARCHING, WORKER, WorkerStatus};

/// The number of checks per limit. A stall is therefore reported at most a quarter of the limit
/// late.
const CHECKS_PER_LIMIT: u32 = 4;
/// With less time between two checks, the watcher would be a ticker.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// If a check is later than this, the whole process was stopped: by a debugger, by SIGSTOP, or
/// because the machine was suspended. Earlier samples are then meaningless.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// A sample of a worker's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusSample {
    pub(super) interval: RunInterval,
    actor: u64,
}

/// A run of an actor, or the part of a run since the actor last offered to yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunInterval {
    tick: u32,
    offer: u32,
}

impl WorkerStatus {
    pub(super) fn interval(&self) -> RunInterval {
        RunInterval {
            tick: self.tick(),
            offer: self.offer.load(Ordering::Relaxed),
        }
    }

    pub(super) fn read(&self) -> StatusSample {
        StatusSample {
            interval: self.interval(),
            actor: self.actor.load(Ordering::Relaxed),
        }
    }
}

impl StatusSample {
    pub(super) fn is_awake(self) -> bool {
        self.actor != ASLEEP
    }

    /// Whether an actor or the worker itself may keep other tasks waiting.
    fn is_busy(self) -> bool {
        self.actor != ASLEEP && self.actor != SEARCHING
    }

    /// Returns the running actor. `None` if the worker itself runs.
    pub(super) fn actor(self) -> Option<u64> {
        (self.is_busy() && self.actor != WORKER).then_some(self.actor)
    }
}

/// The results of earlier checks.
pub(super) struct StallDetector {
    limit: u64,
    every: u64,
    seen: Vec<Observation>,
    last: u64,
}

/// The observation of one worker.
#[derive(Clone, Copy)]
struct Observation {
    sample: StatusSample,
    /// The time at which the sample was first seen, moved forward by the time that the thread has
    /// waited for a processor since.
    since: u64,
    /// How long the thread had waited for a processor until then.
    waited: u64,
    reported: bool,
    /// How often the thread did not respond.
    failed_attempts: u8,
}

/// The number of attempts to sample a thread that does not respond. On a machine under load it may
/// have had no processor.
const MAX_TRIES: u8 = 3;

/// A run that has lasted for the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stalled {
    pub(super) worker: usize,
    pub(super) sample: StatusSample,
    /// A lower bound, in nanoseconds.
    pub(super) lasted: u64,
}

impl StallDetector {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit: nanoseconds(limit),
            every: nanoseconds((limit / CHECKS_PER_LIMIT).max(MIN_INTERVAL)),
            seen: Vec::new(),
            last: 0,
        }
    }

    /// Returns the time at which the next check is due.
    pub(super) fn next(&self) -> u64 {
        self.last.saturating_add(self.every)
    }

    /// Checks each worker once, from its status and the time that its thread has waited for a
    /// processor so far. Returns whether there was activity since the last check: a new tick, or a
    /// worker that is awake.
    pub(super) fn check(
        &mut self,
        now: u64,
        samples: impl Iterator<Item = (StatusSample, u64)>,
        mut stalled: impl FnMut(Stalled),
    ) -> bool {
        let late = now > self.next().saturating_add(nanoseconds(MAX_DELAY));
        self.last = now;
        let mut active = false;
        for (worker, (sample, waited)) in samples.enumerate() {
            let fresh = Observation {
                sample,
                since: now,
                waited,
                reported: false,
                failed_attempts: 0,
            };
            let Some(seen) = self.seen.get_mut(worker) else {
                active |= sample.is_awake();
                self.seen.push(fresh);
                continue;
            };
            active |= sample.is_awake() || seen.sample != sample;
            // In the tick in which it found an actor, the worker itself may have been slow, which
            // is not the actor's fault.
            if seen.sample != sample || !sample.is_busy() || late {
                let reported = late && seen.reported && seen.sample.interval == sample.interval;
                *seen = Observation { reported, ..fresh };
                continue;
            }
            let lasted = seen.lasted(now, waited);
            if lasted >= self.limit && !seen.reported {
                seen.reported = true;
                stalled(Stalled {
                    worker,
                    sample,
                    lasted,
                });
            }
        }
        active
    }

    /// Measures a stall again at `now`, with the updated waiting time of its thread: the kernel
    /// records waiting time only when it is over. Returns `None` if the run is not a stall yet.
    pub(super) fn settle(&mut self, stalled: Stalled, now: u64, waited: u64) -> Option<Stalled> {
        let seen = &mut self.seen[stalled.worker];
        let lasted = seen.lasted(now, waited);
        seen.reported = lasted >= self.limit;
        seen.reported.then_some(Stalled { lasted, ..stalled })
    }
}

impl StallDetector {
    /// The thread was not sampled. The stall is found again at one of the next checks.
    pub(super) fn retry(&mut self, stalled: &Stalled) {
        self.seen[stalled.worker].reported = false;
    }

    /// The thread did not respond. Returns `true` if it is sampled again at one of the next checks.
    pub(super) fn retry_after_no_response(&mut self, stalled: &Stalled) -> bool {
        let seen = &mut self.seen[stalled.worker];
        seen.failed_attempts += 1;
        seen.reported = seen.failed_attempts >= MAX_TRIES;
        !seen.reported
    }
}

impl Observation {
    /// Returns the duration without the time that the thread waited for a processor, which is not
    /// the actor's fault.
    fn lasted(&mut self, now: u64, waited: u64) -> u64 {
        self.since += waited.saturating_sub(self.waited);
        self.waited = waited.max(self.waited);
        now.saturating_sub(self.since)
    }
}

/// The maximum number of reports per period.
const MAX_REPORTS: u32 = 5;
/// The period, as in Seastar. An actor that stalls usually stalls often, and the first reports are
/// sufficient.
const PERIOD: Duration = Duration::from_secs(60);

/// Limits the number of reports.
#[derive(Default)]
pub(super) struct Rate {
    began: Option<u64>,
    made: u32,
    left_out: u32,
}

impl Rate {
    /// Whether another report may be made. Returns the number of stalls that were not reported
    /// before it.
    pub(super) fn allows(&mut self, now: u64) -> Option<u32> {
        let over = |began: u64| now.saturating_sub(began) >= nanoseconds(PERIOD);
        if self.began.is_none_or(over) {
            self.began = Some(now);
            self.made = 0;
        }
        if self.made == MAX_REPORTS {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.made += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl StatusSample {
    pub(super) fn of(tick: u32, actor: u64) -> Self {
        let interval = RunInterval { tick, offer: 0 };
        Self { interval, actor }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DELAY, MAX_REPORTS, PERIOD, Rate, StallDetector, Stalled, StatusSample};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// Checks these samples at a time in milliseconds. Returns the reported stalls, and whether
    /// there was activity.
    fn look(
        detector: &mut StallDetector,
        ms: u64,
        samples: &[StatusSample],
    ) -> (Vec<Stalled>, bool) {
        let mut stalled = Vec::new();
        let samples = samples.iter().map(|&sample| (sample, 0));
        let active = detector.check(ms * MS, samples, |one| stalled.push(one));
        (stalled, active)
    }

    fn detector() -> StallDetector {
        let mut detector = StallDetector::new(Duration::from_millis(100));
        look(
            &mut detector,
            0,
            &[StatusSample::of(0, 0), StatusSample::of(0, 0)],
        );
        detector
    }

    #[test]
    fn long_run_is_reported_once_and_the_next_one_again() {
        let mut detector = detector();
        let (idle, busy) = (StatusSample::of(0, 0), StatusSample::of(7, 3));
        for ms in [25, 50, 75, 100] {
            assert_eq!(look(&mut detector, ms, &[idle, busy]), (vec![], true));
        }
        let stalled = |sample, lasted| {
            vec![Stalled {
                worker: 1,
                sample,
                lasted,
            }]
        };
        let reported = look(&mut detector, 125, &[idle, busy]);
        assert_eq!(reported, (stalled(busy, 100 * MS), true));
        assert_eq!(look(&mut detector, 150, &[idle, busy]), (vec![], true));
        // The same actor in another tick.
        let again = StatusSample::of(8, 3);
        assert_eq!(look(&mut detector, 175, &[idle, again]), (vec![], true));
        let reported = look(&mut detector, 300, &[idle, again]);
        assert_eq!(reported, (stalled(again, 125 * MS), true));
    }

    #[test]
    fn stall_that_could_not_be_sampled_is_found_again() {
        let mut detector = detector();
        let busy = [StatusSample::of(7, 3), StatusSample::of(0, 0)];
        look(&mut detector, 25, &busy);
        for ms in (125..1_000).step_by(25) {
            let found = look(&mut detector, ms, &busy).0;
            assert_eq!(found.len(), 1);
            detector.retry(&found[0]);
        }
        // Afterwards the thread does not respond.
        for tries in 1..=super::MAX_TRIES {
            let found = look(&mut detector, 1_000 + 25 * u64::from(tries), &busy).0;
            assert_eq!(
                detector.retry_after_no_response(&found[0]),
                tries < super::MAX_TRIES
            );
        }
        assert_eq!(look(&mut detector, 1_200, &busy).0, []);
    }

    #[test]
    fn new_ticks_and_sleeping_workers_are_not_stalls() {
        let mut detector = detector();
        for tick in 1..100 {
            let samples = [StatusSample::of(tick, 3), StatusSample::of(5, 0)];
            assert_eq!(look(&mut detector, 25 * u64::from(tick), &samples).0, []);
        }
    }

    #[test]
    fn searching_worker_is_not_a_stall() {
        let mut detector = detector();
        let idle = StatusSample::of(7, super::SEARCHING);
        for ms in (25..1_000).step_by(25) {
            assert_eq!(look(&mut detector, ms, &[idle, idle]), (vec![], true));
        }
    }

    #[test]
    fn no_activity_if_all_workers_slept_between_two_checks() {
        let mut detector = detector();
        let asleep = |tick| [StatusSample::of(tick, 0), StatusSample::of(0, 0)];
        assert!(!look(&mut detector, 25, &asleep(0)).1);
        // The worker ran and went to sleep again in between.
        assert!(look(&mut detector, 50, &asleep(1)).1);
        assert!(!look(&mut detector, 75, &asleep(1)).1);
        assert!(
            look(
                &mut detector,
                100,
                &[StatusSample::of(2, u64::MAX), StatusSample::of(0, 0)]
            )
            .1
        );
    }

    #[test]
    fn pause_of_the_whole_process_is_not_a_stall() {
        let mut detector = detector();
        let busy = [StatusSample::of(7, 3), StatusSample::of(0, 0)];
        let gap = MAX_DELAY.as_millis() as u64;
        look(&mut detector, 25, &busy);
        assert_eq!(look(&mut detector, gap + 100, &busy).0, []);
        // It is a stall from this time on.
        assert_eq!(look(&mut detector, gap + 150, &busy).0, []);
        assert_eq!(look(&mut detector, gap + 200, &busy).0.len(), 1);
        // It is still the stall that was reported.
        assert_eq!(look(&mut detector, 3 * gap, &busy).0, []);
        assert_eq!(look(&mut detector, 3 * gap + 200, &busy).0, []);
    }

    #[test]
    fn waiting_for_a_processor_is_not_a_stall() {
        let mut detector = StallDetector::new(Duration::from_millis(100));
        let busy = StatusSample::of(7, 3);
        let mut found = Vec::new();
        let mut look = |detector: &mut StallDetector, ms, waited| {
            found.clear();
            detector.check(ms * MS, [(busy, waited * MS)].into_iter(), |one| {
                found.push(one)
            });
            found.first().copied()
        };
        assert_eq!(look(&mut detector, 0, 50), None);
        // The kernel records waiting time when it is over.
        assert_eq!(look(&mut detector, 90, 110), None);
        let found = look(&mut detector, 160, 110).expect("100 ms of the 160");
        assert_eq!(detector.settle(found, 161 * MS, 130 * MS), None);
        assert_eq!(look(&mut detector, 170, 130), None);
        let found = look(&mut detector, 185, 130).expect("105 ms of the 185");
        let settled = detector.settle(found, 190 * MS, 130 * MS);
        assert_eq!(settled.map(|stalled| stalled.lasted), Some(110 * MS));
        assert_eq!(look(&mut detector, 250, 130), None);
    }

    #[test]
    fn reports_are_limited_and_the_next_one_counts_the_omitted() {
        let mut rate = Rate::default();
        for _ in 0..MAX_REPORTS {
            assert_eq!(rate.allows(MS), Some(0));
        }
        assert_eq!(rate.allows(2 * MS), None);
        assert_eq!(rate.allows(3 * MS), None);
        let later = MS + PERIOD.as_nanos() as u64;
        assert_eq!(rate.allows(later - 1), None);
        assert_eq!(rate.allows(later), Some(3));
        assert_eq!(rate.allows(later), Some(0));
    }
}
