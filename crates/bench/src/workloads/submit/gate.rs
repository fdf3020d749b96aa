//! The scaling gate: an ingress must submit more requests per second with more producers, or it
//! behaves like a lock.

use crate::judgement::{Figures, Target};

/// The required submissions per second of the most producers, as a multiple of one producer's.
pub const REQUIRED: f64 = 1.5;

/// With fewer processors, producers and consumer share too few for a meaningful verdict.
const PROCESSORS: usize = 4;

/// The target of the gate.
pub const TARGET: Target = Target::AtLeast("scaling_vs_1", REQUIRED);

/// The verdict on an ingress whose metrics contain `scaling_vs_1`. `refusal` is the reason why
/// this run gives no verdicts, if there is one.
#[must_use]
pub fn verdict(figures: Figures<'_>, processors: usize, on: bool, refusal: Option<&str>) -> String {
    let few = format!("{processors} processors");
    let why = if processors < PROCESSORS {
        Some(few.as_str())
    } else if on {
        refusal
    } else {
        Some("THALWEG_SCALING_GATE=0")
    };
    TARGET.verdict(figures, why)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::processes::PROCESSES;
    use crate::statistics::Interval;
    use crate::workloads::submit::sample::Load;
    use crate::workloads::submit::subjects;

    fn figures(metrics: &BTreeMap<String, f64>) -> Figures<'_> {
        static NONE: BTreeMap<String, Interval> = BTreeMap::new();
        Figures {
            ratio: None,
            metrics,
            intervals: &NONE,
            samples: &[],
            spread: Interval::point(1.0),
            processes: Some(PROCESSES),
        }
    }

    fn judge(scaling: f64, processors: usize) -> String {
        let metrics = BTreeMap::from([("scaling_vs_1".to_owned(), scaling)]);
        verdict(figures(&metrics), processors, true, None)
    }

    #[test]
    fn below_four_processors_nothing_is_judged_and_nothing_passes() {
        assert_eq!(judge(9.0, 2), "not judged: 2 processors");
        assert_eq!(judge(0.1, 2), "not judged: 2 processors");
        assert_eq!(judge(9.0, 3), "not judged: 3 processors");
        assert_eq!(judge(9.0, 1), "not judged: 1 processors");
    }

    #[test]
    fn from_four_processors_up_the_bar_holds() {
        assert_eq!(judge(1.5, 4), "met");
        assert_eq!(judge(1.49, 4), "missed");
        assert_eq!(judge(8.2, 10), "met");
    }

    #[test]
    fn figures_published_for_a_lock_bound_ingress_fail() {
        assert_eq!(judge(0.98, 16), "missed");
        assert_eq!(judge(1.16, 16), "missed");
    }

    #[test]
    fn switched_off_it_says_so_and_a_run_that_judges_nothing_judges_not_this_either() {
        let metrics = BTreeMap::from([("scaling_vs_1".to_owned(), 9.0)]);
        assert_eq!(
            verdict(figures(&metrics), 8, false, None),
            "not judged: THALWEG_SCALING_GATE=0"
        );
        assert_eq!(
            verdict(figures(&metrics), 8, true, Some("quick run")),
            "not judged: quick run"
        );
        assert_eq!(
            verdict(figures(&BTreeMap::new()), 8, true, None),
            "not judged: not measured"
        );
    }

    #[test]
    fn a_global_lock_measured_here_fails_it() {
        // The processor count is made up, the figures are not. With the lock held until the
        // consumer has accepted, 8 producers are as fast as one. A submission is a handshake of two
        // thread switches, so few submissions are enough. The best sample of each side is the one
        // that other work on the machine disturbed least.
        let subject = subjects::find("global_lock", "edge").expect("it is a subject");
        let best = |producers| {
            let load = Load {
                producers,
                each: 600 / producers as u64,
                settle: Duration::from_secs(30),
            };
            (0..9)
                .map(|_| (subject.take)(&load).expect("it loses nothing").ns)
                .fold(f64::INFINITY, f64::min)
        };
        let scaling = best(1) / best(8);
        assert_eq!(judge(scaling, 8), "missed", "it scales {scaling}");
    }
}
