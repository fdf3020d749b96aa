//! Rounds during which the machine's speed stays the same.
//!
//! A calibration is a loop of fixed work on every processor. It runs before and after each round. If
//! the two differ by more than [`LIMIT`], the round is discarded and repeated, because its first
//! and its last side ran on machines of different speed. The number of discarded rounds is capped,
//! so that a run on an unsteady machine ends; the rounds that are then kept in spite of their drift
//! are counted, and the row is not judged.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use crate::interleave::{Plan, Side, interleave};
use crate::placement::allowed;
use crate::problem::Problem;

/// The largest drift between two calibrations, as a share of the faster one. The target of this
/// workload is 5 %, so a drift has to be smaller. Two calibrations on an idle machine differ by less
/// than 1 %.
pub const LIMIT: f64 = 0.03;

/// Discarded rounds of a run per round that is kept.
pub const MOST_DISCARDED: usize = 2;

/// Steps of the loop: about a millisecond.
const STEPS: u64 = 500_000;
/// The fastest of these loops counts, so that an interrupt during one does not matter.
const LOOPS: usize = 5;

/// The kept rounds, one list per side, and the number of the others.
#[derive(Debug)]
pub struct Rounds<S> {
    /// As [`interleave`] returns it.
    pub taken: Vec<Vec<S>>,
    /// Rounds that were repeated.
    pub discarded: usize,
    /// Rounds among `taken` with a larger drift than [`LIMIT`].
    pub unsteady: usize,
}

/// Takes the rounds of `plan`. `calibrate` returns the time of a calibration in any unit.
///
/// # Errors
/// The first error that a side reports.
pub fn rounds<S>(
    sides: &mut [Side<'_, S>],
    plan: Plan,
    mut calibrate: impl FnMut() -> f64,
    mut step: impl FnMut(),
) -> Result<Rounds<S>, Problem> {
    interleave(sides, Plan { rounds: 0, ..plan }, &mut step)?;
    let mut rounds = Rounds {
        taken: sides.iter().map(|_| Vec::new()).collect(),
        discarded: 0,
        unsteady: 0,
    };
    let mut before = calibrate();
    for number in 0.. {
        if rounds.taken.iter().all(|side| side.len() == plan.rounds) {
            break;
        }
        let mut round: Vec<(usize, S)> = Vec::with_capacity(sides.len());
        for place in 0..sides.len() {
            // Forth and back in turns, as in every other workload.
            let side = match number % 2 {
                0 => place,
                _ => sides.len() - 1 - place,
            };
            round.push((side, sides[side].take()?));
        }
        let after = calibrate();
        let drifted = drift(before, after) > LIMIT;
        before = after;
        if drifted && rounds.discarded < MOST_DISCARDED * plan.rounds {
            rounds.discarded += 1;
            continue;
        }
        rounds.unsteady += usize::from(drifted);
        for (side, sample) in round {
            rounds.taken[side].push(sample);
            step();
        }
    }
    Ok(rounds)
}

/// How much slower the slower of two calibrations is.
fn drift(before: f64, after: f64) -> f64 {
    before.max(after) / before.min(after) - 1.0
}

/// The time of a fixed loop on the slowest of the processors, in seconds.
#[must_use]
pub fn calibrate() -> f64 {
    thread::scope(|scope| {
        let on_each: Vec<_> = allowed().iter().map(|_| scope.spawn(fastest)).collect();
        let times = on_each.into_iter().filter_map(|thread| thread.join().ok());
        times.max().unwrap_or_default().as_secs_f64()
    })
}

fn fastest() -> Duration {
    let once = || {
        let began = Instant::now();
        // Each step needs the result of the last, so the loop takes a fixed number of cycles.
        let end = (0..black_box(STEPS)).fold(1u64, |x, step| x.wrapping_mul(0x9e37_79b9) ^ step);
        black_box(end);
        began.elapsed()
    };
    (0..LOOPS).map(|_| once()).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The kept samples of two sides that count their calls, with these calibrations.
    fn taken(calibrations: &[f64], wanted: usize) -> (Rounds<usize>, String) {
        let calls = RefCell::new(String::new());
        let side = |name: char| {
            let calls = &calls;
            Side::new(move || {
                calls.borrow_mut().push(name);
                Ok(calls.borrow().len())
            })
        };
        let plan = Plan {
            warm_up: 1,
            rounds: wanted,
        };
        let mut calibrations = calibrations.iter().copied();
        let mut next = || calibrations.next().unwrap_or(1.0);
        let rounds = rounds(&mut [side('A'), side('B')], plan, &mut next, || ()).unwrap();
        (rounds, calls.into_inner())
    }

    #[test]
    fn steady_rounds_are_all_kept_and_go_forth_and_back() {
        let (rounds, calls) = taken(&[1.0, 1.02, 1.0], 3);
        assert_eq!(calls, "ABABBAAB");
        assert_eq!(rounds.taken, [[3, 6, 7], [4, 5, 8]]);
        assert_eq!((rounds.discarded, rounds.unsteady), (0, 0));
    }

    #[test]
    fn round_between_two_speeds_is_repeated_and_counted() {
        // The second round is between 1.0 and 1.5, the fourth between 1.5 and 1.0.
        let (rounds, calls) = taken(&[1.0, 1.0, 1.5, 1.5, 1.0, 1.0], 3);
        assert_eq!(calls.len(), 2 + 2 * 5);
        assert_eq!(rounds.taken, [[3, 7, 11], [4, 8, 12]]);
        assert_eq!((rounds.discarded, rounds.unsteady), (2, 0));
    }

    #[test]
    fn cap_keeps_the_rounds_of_a_machine_that_never_settles_and_counts_them() {
        let drifting: Vec<f64> = (0..40).map(|n| 1.1f64.powi(n)).collect();
        let (rounds, _) = taken(&drifting, 3);
        assert_eq!(rounds.taken[0].len(), 3);
        let most = 3 * MOST_DISCARDED;
        assert_eq!((rounds.discarded, rounds.unsteady), (most, 3));
    }

    #[test]
    fn drift_is_the_same_in_both_directions() {
        assert!((drift(1.0, 1.03) - drift(1.03, 1.0)).abs() < 1e-12);
        assert!(drift(2.0, 2.07) > LIMIT && drift(2.0, 2.05) < LIMIT);
        assert!(calibrate() > 0.0);
    }
}
