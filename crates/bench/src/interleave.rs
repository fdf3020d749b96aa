//! The runner: sides take turns, so that fluctuations of the machine affect all of them alike.
//!
//! 1. Each side completes its set-up before the first round; the set-up is not timed.
//! 2. Every side runs its warm-up in turn; warm-up samples are discarded.
//! 3. A round takes one sample of each side, one right after the other. Even rounds go from first
//!    to last, odd rounds from last to first: A B, B A, A B, .. so that no side always finds the
//!    other side's data in the caches.
//! 4. No later sample is discarded: an outlier is a fact about the pair.
//!
//! A side times itself, because only the side knows where its set-up ends. It uses the wall clock
//! (`CLOCK_MONOTONIC`, which [`std::time::Instant`] reads on Linux), never a thread's processor
//! time, which a blocked caller does not use.

use crate::problem::Problem;

/// One of the compared sides: each call takes one sample.
pub struct Side<'a, S> {
    sample: Box<dyn FnMut() -> Result<S, Problem> + 'a>,
}

impl<S> std::fmt::Debug for Side<'_, S> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Side")
    }
}

impl<'a, S> Side<'a, S> {
    /// A side that calls `sample` to take its next sample.
    pub fn new(sample: impl FnMut() -> Result<S, Problem> + 'a) -> Self {
        Self {
            sample: Box::new(sample),
        }
    }

    /// Takes its next sample.
    ///
    /// # Errors
    /// The error that the side reports.
    pub fn take(&mut self) -> Result<S, Problem> {
        (self.sample)()
    }
}

/// The numbers of samples.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Samples of each side that are discarded before the first round.
    pub warm_up: usize,
    /// Samples of each side that count.
    pub rounds: usize,
}

/// Takes the samples and returns one list per side, in the order of `sides`. Samples at the same
/// index of these lists belong to the same round.
///
/// `step` is called after each sample, warm-up included, outside of any timed section.
///
/// # Errors
/// The first error that a side reports; earlier measurements are lost.
pub fn interleave<S>(
    sides: &mut [Side<'_, S>],
    plan: Plan,
    mut step: impl FnMut(),
) -> Result<Vec<Vec<S>>, Problem> {
    for _ in 0..plan.warm_up {
        for side in &mut *sides {
            side.take()?;
            step();
        }
    }
    let mut taken: Vec<Vec<S>> = sides
        .iter()
        .map(|_| Vec::with_capacity(plan.rounds))
        .collect();
    for round in 0..plan.rounds {
        for place in 0..sides.len() {
            let index = if round % 2 == 0 {
                place
            } else {
                sides.len() - 1 - place
            };
            taken[index].push(sides[index].take()?);
            step();
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn order_of(names: &[char], plan: Plan) -> (String, usize, Vec<Vec<usize>>) {
        let calls = RefCell::new(String::new());
        let mut sides: Vec<Side<'_, usize>> = names
            .iter()
            .map(|name| {
                let calls = &calls;
                Side::new(move || {
                    calls.borrow_mut().push(*name);
                    Ok(calls.borrow().len())
                })
            })
            .collect();
        let mut steps = 0;
        let taken = interleave(&mut sides, plan, || steps += 1).unwrap();
        drop(sides);
        (calls.into_inner(), steps, taken)
    }

    #[test]
    fn two_sides_take_turns_and_swap_who_goes_first() {
        let (calls, steps, taken) = order_of(
            &['A', 'B'],
            Plan {
                warm_up: 1,
                rounds: 4,
            },
        );
        assert_eq!(calls, "ABABBAABBA");
        assert_eq!(steps, 10);
        // Samples are numbered in the order in which they were taken; each is stored under its
        // round.
        assert_eq!(taken, [[3, 6, 7, 10], [4, 5, 8, 9]]);
    }

    #[test]
    fn four_sides_go_forth_and_back() {
        let (calls, _, _) = order_of(
            &['A', 'B', 'C', 'D'],
            Plan {
                warm_up: 0,
                rounds: 2,
            },
        );
        assert_eq!(calls, "ABCDDCBA");
    }

    #[test]
    fn a_side_that_fails_ends_the_run() {
        let mut sides = [
            Side::new(|| Ok(())),
            Side::new(|| Err(Problem::Check("counts differ".to_owned()))),
        ];
        let failed = interleave(
            &mut sides,
            Plan {
                warm_up: 0,
                rounds: 5,
            },
            || (),
        );
        assert_eq!(
            failed.unwrap_err().to_string(),
            "check failed: counts differ"
        );
    }
}
