//! The scaling gate: more threads must submit more calls per second, or submission behaves like a
//! lock.

use crate::judgement::Target;

/// The calls per second of the most threads, as a multiple of one thread's.
pub const REQUIRED: Target = Target::AtLeast("scaling_vs_1", 1.5);

/// With fewer processors, the threads and the consumer share too few for a meaningful verdict.
const PROCESSORS: usize = 4;

/// The reason why the gate is not judged, if there is one. `of_lab` is the reason why this run gives
/// no verdicts.
#[must_use]
pub fn refusal(processors: usize, on: bool, of_lab: Option<&str>) -> Option<String> {
    if processors < PROCESSORS {
        Some(format!("{processors} processors"))
    } else if on {
        of_lab.map(str::to_owned)
    } else {
        Some("THALWEG_SCALING_GATE=0".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cell::Sample;
    use crate::statistics::tests::in_three;
    use crate::workloads::submit::grid::{Grid, Load, Subject, find};
    use crate::workloads::submit::port_submit::{SUBJECTS, WORKLOAD};

    /// The verdict on these times per call, of one thread and of eight.
    fn judge(subject: &'static Subject, times: [Vec<f64>; 2], processors: usize) -> String {
        let samples = times.map(|times| {
            let sample = |ns: &f64| Sample {
                ns: *ns,
                ..Sample::default()
            };
            in_three(&times).map(sample)
        });
        let grid = Grid::of_two(&WORKLOAD, subject, samples);
        let refusal = refusal(processors, true, None);
        let row = grid.row(subject, 8, None, &[], "");
        let row = row.held_to(&REQUIRED, refusal.as_deref());
        row.verdict.expect("it has a target")
    }

    fn scaling(by: f64, processors: usize) -> String {
        judge(&SUBJECTS[0], [vec![by; 6], vec![1.0; 6]], processors)
    }

    #[test]
    fn gate_below_four_processors_is_not_judged() {
        for (by, processors) in [(9.0, 2), (0.1, 2), (9.0, 3)] {
            let said = scaling(by, processors);
            assert_eq!(said, format!("not judged: {processors} processors"));
        }
    }

    #[test]
    fn gate_from_four_processors_up_requires_one_and_a_half_times_the_rate() {
        assert_eq!(scaling(1.51, 4), "met");
        assert_eq!(scaling(1.49, 4), "missed");
        assert_eq!(scaling(8.2, 10), "met");
        // The published figures of an ingress that is bound by a lock.
        assert_eq!(scaling(0.98, 16), "missed");
        assert_eq!(scaling(1.16, 16), "missed");
    }

    #[test]
    fn gate_that_is_switched_off_or_in_a_quick_run_is_not_judged() {
        let off = refusal(8, false, None);
        assert_eq!(off.as_deref(), Some("THALWEG_SCALING_GATE=0"));
        let quick = refusal(8, true, Some("quick run"));
        assert_eq!(quick.as_deref(), Some("quick run"));
        assert_eq!(refusal(8, true, None), None);
    }

    #[test]
    fn gate_on_a_global_lock_measured_here_is_not_met() {
        // The processor count is made up, the figures are not. With the lock held until the
        // consumer has accepted, 8 threads are as fast as one. A submission is a handshake of two
        // thread switches, so few submissions are enough. On a busy machine, it is undecided.
        let subject = find(&SUBJECTS, "global_lock", "1").expect("it is a subject");
        let take = |producers| {
            let load = Load {
                producers,
                each: 800 / producers as u64,
                settle: Duration::from_secs(30),
            };
            (subject.take)(&load).expect("it loses nothing").ns
        };
        let pairs: Vec<(f64, f64)> = (0..15).map(|_| (take(1), take(8))).collect();
        let (one, many): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let said = format!("{one:?} {many:?}");
        assert_ne!(judge(subject, [one, many], 8), "met", "{said}");
    }
}
