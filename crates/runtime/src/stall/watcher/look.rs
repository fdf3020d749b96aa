//! Which turns last too long, from looks at the pulses alone: no thread, no clock.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::stall::pulse::{IDLE, ITSELF, NOBODY, Pulse};

/// Looks in one limit: a stall is reported when it is older than the limit by a quarter of it at most.
const LOOKS: u32 = 4;
/// Less between two looks would be a ticker.
const SHORTEST: Duration = Duration::from_millis(1);
/// A look that comes later than this was held up with everybody else: a debugger or SIGSTOP stopped the process, or the machine was suspended.
/// What was seen before it says nothing then.
const GAP: Duration = Duration::from_secs(1);

/// One look at a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) stretch: Stretch,
    actor: u64,
}

/// A turn, or the part of one since the actor last offered to let others run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    turn: u32,
    offer: u32,
}

impl Pulse {
    pub(super) fn stretch(&self) -> Stretch {
        Stretch {
            turn: self.turn(),
            offer: self.offer.load(Ordering::Relaxed),
        }
    }

    pub(super) fn look(&self) -> Beat {
        Beat {
            stretch: self.stretch(),
            actor: self.actor.load(Ordering::Relaxed),
        }
    }
}

impl Beat {
    pub(super) fn is_awake(self) -> bool {
        self.actor != NOBODY
    }

    /// Whether there is somebody whom others may wait for.
    fn is_busy(self) -> bool {
        self.actor != NOBODY && self.actor != IDLE
    }

    /// Whose turn it is; `None`: the worker's own.
    pub(super) fn actor(self) -> Option<u64> {
        (self.is_busy() && self.actor != ITSELF).then_some(self.actor)
    }
}

/// What earlier looks saw.
pub(super) struct Looks {
    limit: u64,
    every: u64,
    seen: Vec<Seen>,
    last: u64,
}

/// Of one worker.
#[derive(Clone, Copy)]
struct Seen {
    beat: Beat,
    /// When it was first seen so, and later by what it waited for a processor since.
    since: u64,
    /// How long its thread had waited for one until then.
    waited: u64,
    reported: bool,
    /// How often its thread did not answer.
    unanswered: u8,
}

/// So often a thread is asked that does not answer: on a machine under load it may have had no processor.
const TRIES: u8 = 3;

/// A turn that has lasted for the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stalled {
    pub(super) worker: usize,
    pub(super) beat: Beat,
    /// Nanoseconds, at least.
    pub(super) lasted: u64,
}

impl Looks {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit: nanoseconds(limit),
            every: nanoseconds((limit / LOOKS).max(SHORTEST)),
            seen: Vec::new(),
            last: 0,
        }
    }

    /// When the next look is due.
    pub(super) fn next(&self) -> u64 {
        self.last.saturating_add(self.every)
    }

    /// One look at each worker: its pulse, and how long its thread has waited for a processor in its life. Whether there was anything to see since the last one: a turn, or a worker that is awake.
    pub(super) fn look(
        &mut self,
        now: u64,
        beats: impl Iterator<Item = (Beat, u64)>,
        mut stalled: impl FnMut(Stalled),
    ) -> bool {
        let late = now > self.next().saturating_add(nanoseconds(GAP));
        self.last = now;
        let mut lively = false;
        for (worker, (beat, waited)) in beats.enumerate() {
            let fresh = Seen {
                beat,
                since: now,
                waited,
                reported: false,
                unanswered: 0,
            };
            let Some(seen) = self.seen.get_mut(worker) else {
                lively |= beat.is_awake();
                self.seen.push(fresh);
                continue;
            };
            lively |= beat.is_awake() || seen.beat != beat;
            // In the turn in which it found an actor the worker may have been slow itself, which is not the actor's doing.
            if seen.beat != beat || !beat.is_busy() || late {
                let reported = late && seen.reported && seen.beat.stretch == beat.stretch;
                *seen = Seen { reported, ..fresh };
                continue;
            }
            let lasted = seen.lasted(now, waited);
            if lasted >= self.limit && !seen.reported {
                seen.reported = true;
                stalled(Stalled {
                    worker,
                    beat,
                    lasted,
                });
            }
        }
        lively
    }

    /// What a stall that was just found comes to, `now` and by what its thread has waited now: a thread that waits for a processor does not say so
    /// before it has one. `None`: it is none yet.
    pub(super) fn settle(&mut self, stalled: Stalled, now: u64, waited: u64) -> Option<Stalled> {
        let seen = &mut self.seen[stalled.worker];
        let lasted = seen.lasted(now, waited);
        seen.reported = lasted >= self.limit;
        seen.reported.then_some(Stalled { lasted, ..stalled })
    }
}

impl Looks {
    /// It was not asked: that is done at one of the next looks.
    pub(super) fn ask_again(&mut self, stalled: &Stalled) {
        self.seen[stalled.worker].reported = false;
    }

    /// Its thread did not answer. `true`: it is asked again at one of the next looks.
    pub(super) fn is_to_ask_again(&mut self, stalled: &Stalled) -> bool {
        let seen = &mut self.seen[stalled.worker];
        seen.unanswered += 1;
        seen.reported = seen.unanswered >= TRIES;
        !seen.reported
    }
}

impl Seen {
    /// Without what it has waited for a processor, which is none of the actor's doing.
    fn lasted(&mut self, now: u64, waited: u64) -> u64 {
        self.since += waited.saturating_sub(self.waited);
        self.waited = waited.max(self.waited);
        now.saturating_sub(self.since)
    }
}

/// So many reports ..
const MOST: u32 = 5;
/// .. in so long, as Seastar has it: who stalls once stalls often, and the first say it all.
const PERIOD: Duration = Duration::from_secs(60);

/// How many reports there are.
#[derive(Default)]
pub(super) struct Rate {
    began: Option<u64>,
    made: u32,
    left_out: u32,
}

impl Rate {
    /// Whether one more may be made: with how many were left out before it.
    pub(super) fn allows(&mut self, now: u64) -> Option<u32> {
        let over = |began: u64| now.saturating_sub(began) >= nanoseconds(PERIOD);
        if self.began.is_none_or(over) {
            self.began = Some(now);
            self.made = 0;
        }
        if self.made == MOST {
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
impl Beat {
    pub(super) fn of(turn: u32, actor: u64) -> Self {
        let stretch = Stretch { turn, offer: 0 };
        Self { stretch, actor }
    }
}

#[cfg(test)]
mod tests {
    use super::{Beat, GAP, Looks, MOST, PERIOD, Rate, Stalled};
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// What a look at these, that many milliseconds after the beginning, reports; and whether there was anything to see.
    fn look(looks: &mut Looks, ms: u64, beats: &[Beat]) -> (Vec<Stalled>, bool) {
        let mut stalled = Vec::new();
        let beats = beats.iter().map(|&beat| (beat, 0));
        let lively = looks.look(ms * MS, beats, |one| stalled.push(one));
        (stalled, lively)
    }

    fn looks() -> Looks {
        let mut looks = Looks::new(Duration::from_millis(100));
        look(&mut looks, 0, &[Beat::of(0, 0), Beat::of(0, 0)]);
        looks
    }

    #[test]
    fn a_turn_that_lasts_is_reported_once_and_the_next_one_again() {
        let mut looks = looks();
        let (idle, busy) = (Beat::of(0, 0), Beat::of(7, 3));
        for ms in [25, 50, 75, 100] {
            assert_eq!(look(&mut looks, ms, &[idle, busy]), (vec![], true));
        }
        let stalled = |beat, lasted| {
            vec![Stalled {
                worker: 1,
                beat,
                lasted,
            }]
        };
        let reported = look(&mut looks, 125, &[idle, busy]);
        assert_eq!(reported, (stalled(busy, 100 * MS), true));
        assert_eq!(look(&mut looks, 150, &[idle, busy]), (vec![], true));
        // The same actor, in another turn.
        let again = Beat::of(8, 3);
        assert_eq!(look(&mut looks, 175, &[idle, again]), (vec![], true));
        let reported = look(&mut looks, 300, &[idle, again]);
        assert_eq!(reported, (stalled(again, 125 * MS), true));
    }

    #[test]
    fn what_could_not_be_asked_is_found_again_however_often() {
        let mut looks = looks();
        let busy = [Beat::of(7, 3), Beat::of(0, 0)];
        look(&mut looks, 25, &busy);
        for ms in (125..1_000).step_by(25) {
            let found = look(&mut looks, ms, &busy).0;
            assert_eq!(found.len(), 1);
            looks.ask_again(&found[0]);
        }
        // And then it does not answer.
        for tries in 1..=super::TRIES {
            let found = look(&mut looks, 1_000 + 25 * u64::from(tries), &busy).0;
            assert_eq!(looks.is_to_ask_again(&found[0]), tries < super::TRIES);
        }
        assert_eq!(look(&mut looks, 1_200, &busy).0, []);
    }

    #[test]
    fn turns_that_change_and_workers_that_sleep_are_not() {
        let mut looks = looks();
        for turn in 1..100 {
            let beats = [Beat::of(turn, 3), Beat::of(5, 0)];
            assert_eq!(look(&mut looks, 25 * u64::from(turn), &beats).0, []);
        }
    }

    #[test]
    fn who_looks_for_work_is_watched_and_keeps_nobody() {
        let mut looks = looks();
        let idle = Beat::of(7, super::IDLE);
        for ms in (25..1_000).step_by(25) {
            assert_eq!(look(&mut looks, ms, &[idle, idle]), (vec![], true));
        }
    }

    #[test]
    fn there_is_nothing_to_see_when_all_have_slept_from_one_look_to_the_next() {
        let mut looks = looks();
        let asleep = |turn| [Beat::of(turn, 0), Beat::of(0, 0)];
        assert!(!look(&mut looks, 25, &asleep(0)).1);
        // It ran and went to sleep again in between.
        assert!(look(&mut looks, 50, &asleep(1)).1);
        assert!(!look(&mut looks, 75, &asleep(1)).1);
        assert!(look(&mut looks, 100, &[Beat::of(2, u64::MAX), Beat::of(0, 0)]).1);
    }

    #[test]
    fn what_stopped_everybody_is_nobodys_stall() {
        let mut looks = looks();
        let busy = [Beat::of(7, 3), Beat::of(0, 0)];
        let gap = GAP.as_millis() as u64;
        look(&mut looks, 25, &busy);
        assert_eq!(look(&mut looks, gap + 100, &busy).0, []);
        // It is one from here on.
        assert_eq!(look(&mut looks, gap + 150, &busy).0, []);
        assert_eq!(look(&mut looks, gap + 200, &busy).0.len(), 1);
        // And stays the one that was reported.
        assert_eq!(look(&mut looks, 3 * gap, &busy).0, []);
        assert_eq!(look(&mut looks, 3 * gap + 200, &busy).0, []);
    }

    #[test]
    fn what_waits_for_a_processor_does_not_stall() {
        let mut looks = Looks::new(Duration::from_millis(100));
        let busy = Beat::of(7, 3);
        let mut found = Vec::new();
        let mut look = |looks: &mut Looks, ms, waited| {
            found.clear();
            looks.look(ms * MS, [(busy, waited * MS)].into_iter(), |one| {
                found.push(one)
            });
            found.first().copied()
        };
        assert_eq!(look(&mut looks, 0, 50), None);
        // The kernel counts what it waited when it is over.
        assert_eq!(look(&mut looks, 90, 110), None);
        let found = look(&mut looks, 160, 110).expect("100 ms of the 160");
        assert_eq!(looks.settle(found, 161 * MS, 130 * MS), None);
        assert_eq!(look(&mut looks, 170, 130), None);
        let found = look(&mut looks, 185, 130).expect("105 ms of the 185");
        let settled = looks.settle(found, 190 * MS, 130 * MS);
        assert_eq!(settled.map(|stalled| stalled.lasted), Some(110 * MS));
        assert_eq!(look(&mut looks, 250, 130), None);
    }

    #[test]
    fn reports_are_so_many_in_a_while_and_the_next_says_how_many_are_missing() {
        let mut rate = Rate::default();
        for _ in 0..MOST {
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
