//! Targets, and the verdict on a figure that has one.
//!
//! 1. A target is *met* only if the whole interval of the figure meets it, *missed* if the whole
//!    interval misses it, and otherwise *undecided*.
//! 2. A figure with an interval is judged from [`FEWEST_PROCESSES`] processes up. Below that the
//!    verdict is `not judged: 1 process`.
//! 3. A count is exact: its interval is a point. So is the worst sample that was seen, because no
//!    resampling can produce a worse one.
//! 4. Of several limits that must all be met, one that is missed decides.
//! 5. Verdicts are computed from the text of the target, as it is in the result file. The verdict
//!    of a file can therefore be computed again when the file is read. A file from before
//!    intervals of metrics gives a metric the relative width of its row's median, unless it is an
//!    extreme, such as `longest_gap_ms`.

use std::collections::BTreeMap;

use crate::statistics::{FEWEST_PROCESSES, Interval, Ratio, median};

/// The figures of a row that a target is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The ratio, if there is a peer.
    pub ratio: Option<Ratio>,
    /// The row's metrics.
    pub metrics: &'a BTreeMap<String, f64>,
    /// The intervals of the metrics that have one.
    pub intervals: &'a BTreeMap<String, Interval>,
    /// The subject's samples.
    pub samples: &'a [f64],
    /// The interval of the subject's median, as a multiple of the median.
    pub spread: Interval,
    /// The number of processes, if it is known.
    pub processes: Option<usize>,
}

impl Figures<'_> {
    /// The interval of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Interval> {
        let value = *self.metrics.get(name)?;
        Some(match self.intervals.get(name) {
            Some(interval) => *interval,
            None if self.processes.is_none() && !is_extreme(name) => {
                self.spread.map(|end| value * end)
            }
            None => Interval::point(value),
        })
    }
}

/// Whether a metric is an extreme of the samples, which is exact: rule 3.
fn is_extreme(name: &str) -> bool {
    ["longest_", "worst_", "max_", "smallest_", "grown_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// A limit that a result must keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The ratio is at most this.
    Ratio(f64),
    /// This metric is at most this.
    Metric(&'static str, f64),
    /// This metric is at least this.
    AtLeast(&'static str, f64),
    /// This metric is at most this many times the peer's.
    AtMostPeers(&'static str, f64),
    /// The subject's worst sample is at most this many times its median.
    Worst(f64),
    /// All of these.
    All(Vec<Target>),
}

impl Target {
    /// The form used in a result file: `ratio <= 1.05`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Ratio(limit) => format!("ratio <= {limit}"),
            Self::Metric(name, limit) => format!("{name} <= {limit}"),
            Self::AtLeast(name, limit) => format!("{name} >= {limit}"),
            Self::AtMostPeers(name, limit) => format!("{name} / peer_{name} <= {limit}"),
            Self::Worst(limit) => format!("worst / median <= {limit}"),
            Self::All(all) => all.iter().map(Self::text).collect::<Vec<_>>().join(" and "),
        }
    }

    /// The verdict of a result file. `refusal` is the reason why this run gives no verdicts, if
    /// there is one.
    #[must_use]
    pub fn verdict(&self, figures: Figures<'_>, refusal: Option<&str>) -> String {
        match refusal {
            Some(why) => format!("{NOT_JUDGED}{why}"),
            None => judge(&self.text(), figures).map_or_else(
                || unreachable!("a target's own text is a target"),
                |judgement| judgement.verdict(),
            ),
        }
    }
}

/// The beginning of the verdict on a target that was not judged; the reason follows.
pub const NOT_JUDGED: &str = "not judged: ";

/// The outcome of a comparison. The greatest of several limits decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// The whole interval meets the target.
    Met,
    /// The interval contains the limit.
    Undecided,
    /// The figure has an interval, but from this many processes only.
    FewProcesses(usize),
    /// The figure is missing.
    NotMeasured,
    /// The whole interval misses the target.
    Missed,
}

impl Judgement {
    /// The spelling in a result file: `met`, `missed`, `undecided`, `not judged: why`.
    #[must_use]
    pub fn verdict(self) -> String {
        match self {
            Self::Met => "met".to_owned(),
            Self::Undecided => "undecided".to_owned(),
            Self::FewProcesses(1) => format!("{NOT_JUDGED}1 process"),
            Self::FewProcesses(count) => format!("{NOT_JUDGED}{count} processes"),
            Self::NotMeasured => format!("{NOT_JUDGED}not measured"),
            Self::Missed => "missed".to_owned(),
        }
    }
}

/// Judges `figures` by the text of a target; `None` if the text is not that of a target.
#[must_use]
pub fn judge(target: &str, figures: Figures<'_>) -> Option<Judgement> {
    let limits = target.split(" and ").map(|limit| judge_one(limit, figures));
    limits.reduce(|one, other| Some(one?.max(other?)))?
}

fn judge_one(text: &str, figures: Figures<'_>) -> Option<Judgement> {
    let (at_most, parts) = match text.split_once(" <= ") {
        Some(parts) => (true, parts),
        None => (false, text.split_once(" >= ")?),
    };
    let (name, limit) = (parts.0, parts.1.parse::<f64>().ok()?);
    let found = match name.split_once(" / ") {
        Some(("worst", "median")) => worst_over_median(figures.samples)
            .or_else(|| figures.metrics.get("worst_over_median").copied())
            .map(Interval::point),
        Some((name, peer)) if peer.strip_prefix("peer_") == Some(name) => {
            figures.metric(name).zip(figures.metric(peer)).map(over)
        }
        Some(_) => return None,
        // The second spelling is that of files from before the whole interval counted.
        None if name == "ratio" || name == "ratio's high end" => {
            figures.ratio.map(|ratio| Interval {
                low: ratio.low,
                high: ratio.high,
            })
        }
        None => figures.metric(name),
    };
    let Some(Interval { low, high }) = found else {
        return Some(Judgement::NotMeasured);
    };
    // A ratio is never exact; a metric without width is a count.
    let exact = low == high && !name.starts_with("ratio");
    if let Some(processes) = figures
        .processes
        .filter(|n| *n < FEWEST_PROCESSES && !exact)
    {
        return Some(Judgement::FewProcesses(processes));
    }
    let (all_meet, all_miss) = if at_most {
        (high <= limit, low > limit)
    } else {
        (low >= limit, high < limit)
    };
    Some(match (all_meet, all_miss) {
        (true, _) => Judgement::Met,
        (_, true) => Judgement::Missed,
        _ => Judgement::Undecided,
    })
}

/// The widest quotient of two intervals: the two figures are not from the same draws.
fn over((one, other): (Interval, Interval)) -> Interval {
    Interval {
        low: one.low / other.high,
        high: one.high / other.low,
    }
}

/// The worst sample as a multiple of the median.
#[must_use]
pub fn worst_over_median(samples: &[f64]) -> Option<f64> {
    let worst = samples.iter().copied().reduce(f64::max)?;
    Some(worst / median(samples)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row's figures: a ratio of 1.0 to 1.1, `p50_ns` of 2,900 to 3,100, the count `bytes` of
    /// 960, the peer's `p50_ns` of 2,000 to 2,100, and samples from 1 to 1.5.
    fn verdict(target: &str, processes: Option<usize>) -> String {
        let named = |name: &str, value| (name.to_owned(), value);
        let (ours, theirs) = (named("p50_ns", 3000.0), named("peer_p50_ns", 2050.0));
        let metrics = [ours, theirs, named("bytes", 960.0)].into();
        let between = |low, high| Interval { low, high };
        let intervals = [
            ("p50_ns".to_owned(), between(2900.0, 3100.0)),
            ("peer_p50_ns".to_owned(), between(2000.0, 2100.0)),
        ];
        let figures = Figures {
            ratio: Some(Ratio {
                median: 1.05,
                low: 1.0,
                high: 1.1,
            }),
            metrics: &metrics,
            intervals: &intervals.into(),
            samples: &[1.0, 1.0, 1.5],
            spread: Interval::point(1.0),
            processes,
        };
        judge(target, figures).map_or("none".to_owned(), Judgement::verdict)
    }

    #[test]
    fn extreme_of_an_older_file_is_exact_and_other_metrics_are_not() {
        let metrics = [("longest_gap_ms", 8.4), ("p50_ns", 8.4)];
        let figures = Figures {
            ratio: None,
            metrics: &metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            intervals: &BTreeMap::new(),
            samples: &[1.0],
            spread: Interval {
                low: 0.5,
                high: 1.5,
            },
            processes: None,
        };
        assert_eq!(
            judge("longest_gap_ms <= 5", figures),
            Some(Judgement::Missed)
        );
        assert_eq!(judge("p50_ns <= 5", figures), Some(Judgement::Undecided));
    }

    #[test]
    fn whole_interval_decides_the_verdict() {
        for (target, expected) in [
            ("ratio <= 1.1", "met"),
            ("ratio <= 1.09", "undecided"),
            ("ratio <= 1", "undecided"),
            ("ratio <= 0.99", "missed"),
            ("ratio's high end <= 1.09", "undecided"),
            ("p50_ns <= 3100", "met"),
            ("p50_ns <= 3099", "undecided"),
            ("p50_ns <= 2899", "missed"),
            ("p50_ns >= 2900", "met"),
            ("p50_ns >= 3000", "undecided"),
            ("p50_ns >= 3101", "missed"),
            ("bytes <= 960", "met"),
            ("bytes <= 959", "missed"),
            ("worst / median <= 1.5", "met"),
            ("worst / median <= 1.49", "missed"),
            ("p50_ns / peer_p50_ns <= 1.55", "met"),
            ("p50_ns / peer_p50_ns <= 1.5", "undecided"),
            ("p50_ns / peer_p50_ns <= 1.3", "missed"),
            ("p50_ns <= 9000 and ratio <= 1.2", "met"),
            ("p50_ns <= 9000 and ratio <= 1.05", "undecided"),
            ("p50_ns <= 3000 and ratio <= 0.5", "missed"),
            ("p99_ns <= 1", "not judged: not measured"),
            ("p99_ns <= 1 and ratio <= 1.2", "not judged: not measured"),
            ("p99_ns <= 1 and ratio <= 0.5", "missed"),
            ("ratio < 1", "none"),
            ("ratio <= fast", "none"),
            ("ratio <= 2 and fast", "none"),
            ("a / b <= 1", "none"),
        ] {
            assert_eq!(verdict(target, Some(3)), expected, "{target}");
        }
    }

    #[test]
    fn fewer_than_three_processes_are_not_judged() {
        for (target, processes, expected) in [
            ("ratio <= 9", 1, "not judged: 1 process"),
            ("ratio <= 0.1", 2, "not judged: 2 processes"),
            ("p50_ns <= 9000", 2, "not judged: 2 processes"),
            ("ratio <= 9", 3, "met"),
            // A count and the worst sample have no interval.
            ("bytes <= 960", 1, "met"),
            ("bytes <= 959 and ratio <= 9", 1, "missed"),
            ("worst / median <= 1.49", 1, "missed"),
        ] {
            assert_eq!(verdict(target, Some(processes)), expected, "{target}");
        }
        assert_eq!(verdict("ratio <= 0.1", None), "missed");
    }

    #[test]
    fn metric_of_an_old_file_has_the_width_of_its_row() {
        let figures = |processes| {
            Figures {
                ratio: None,
                metrics: &BTreeMap::from([("ops_per_s".to_owned(), 100.0)]),
                intervals: &BTreeMap::new(),
                samples: &[],
                spread: Interval {
                    low: 0.9,
                    high: 1.2,
                },
                processes,
            }
            .metric("ops_per_s")
        };
        let wide = Interval {
            low: 90.0,
            high: 120.0,
        };
        assert_eq!(figures(None), Some(wide));
        assert_eq!(figures(Some(3)), Some(Interval::point(100.0)));
    }

    #[test]
    fn target_is_spelled_as_people_write_it_and_judged_by_that_text() {
        for (target, text) in [
            (Target::Ratio(1.05), "ratio <= 1.05"),
            (Target::AtLeast("ops_per_s", 3e7), "ops_per_s >= 30000000"),
            (
                Target::AtMostPeers("p50_ns", 1.0),
                "p50_ns / peer_p50_ns <= 1",
            ),
            (Target::Worst(1.1), "worst / median <= 1.1"),
            (
                Target::All(vec![Target::Metric("p50_ns", 1e4), Target::Ratio(1.5)]),
                "p50_ns <= 10000 and ratio <= 1.5",
            ),
        ] {
            assert_eq!(target.text(), text);
            let figures = Figures {
                ratio: None,
                metrics: &BTreeMap::new(),
                intervals: &BTreeMap::new(),
                samples: &[],
                spread: Interval::point(1.0),
                processes: Some(3),
            };
            assert_eq!(target.verdict(figures, None), "not judged: not measured");
            let refused = target.verdict(figures, Some("debug build"));
            assert_eq!(refused, "not judged: debug build");
        }
    }
}
