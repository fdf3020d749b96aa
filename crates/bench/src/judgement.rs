//! Targets, and the verdict on a figure that has one.

use std::collections::BTreeMap;

use crate::statistics::{Ratio, median};

/// The figures that a target is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The ratio, if there is a peer.
    pub ratio: Option<&'a Ratio>,
    /// The row's metrics.
    pub metrics: &'a BTreeMap<String, f64>,
    /// The subject's samples.
    pub samples: &'a [f64],
}

/// A limit that a result must keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The ratio's median is at most this.
    Ratio(f64),
    /// The high end of the ratio's interval is at most this.
    High(f64),
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
            Self::High(limit) => format!("ratio's high end <= {limit}"),
            Self::Metric(name, limit) => format!("{name} <= {limit}"),
            Self::AtLeast(name, limit) => format!("{name} >= {limit}"),
            Self::AtMostPeers(name, limit) => format!("{name} / peer_{name} <= {limit}"),
            Self::Worst(limit) => format!("worst / median <= {limit}"),
            Self::All(all) => all.iter().map(Self::text).collect::<Vec<_>>().join(" and "),
        }
    }

    /// Whether the target is kept; `None` if the figure is missing.
    #[must_use]
    pub fn kept(&self, figures: Figures<'_>) -> Option<bool> {
        let metric = |name: &str| figures.metrics.get(name).copied();
        match self {
            Self::Ratio(limit) => figures.ratio.map(|ratio| ratio.median <= *limit),
            Self::High(limit) => figures.ratio.map(|ratio| ratio.high <= *limit),
            Self::Metric(name, limit) => metric(name).map(|value| value <= *limit),
            Self::AtLeast(name, limit) => metric(name).map(|value| value >= *limit),
            Self::AtMostPeers(name, limit) => {
                Some(metric(name)? <= limit * metric(&format!("peer_{name}"))?)
            }
            Self::Worst(limit) => {
                let worst = figures.samples.iter().copied().reduce(f64::max)?;
                Some(worst <= limit * median(figures.samples)?)
            }
            Self::All(all) => all
                .iter()
                .try_fold(true, |so_far, one| Some(one.kept(figures)? && so_far)),
        }
    }

    /// `passed`, `failed`, or `not judged: why`. `refusal` is the reason why this run gives no
    /// verdicts, if there is one.
    #[must_use]
    pub fn verdict(&self, figures: Figures<'_>, refusal: Option<&str>) -> String {
        match (refusal, self.kept(figures)) {
            (Some(why), _) => format!("not judged: {why}"),
            (None, Some(true)) => "passed".to_owned(),
            (None, Some(false)) => "failed".to_owned(),
            (None, None) => "not judged: not measured".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(median: f64) -> Ratio {
        Ratio {
            median,
            low: median,
            high: median,
        }
    }

    /// The verdict on a row with this ratio, this `p50_ns`, and these samples.
    fn verdict(target: &Target, median: Option<f64>, p50: Option<f64>, samples: &[f64]) -> String {
        let ratio = median.map(ratio);
        let metrics = p50.map(|p50| ("p50_ns".to_owned(), p50));
        let figures = Figures {
            ratio: ratio.as_ref(),
            metrics: &metrics.into_iter().collect(),
            samples,
        };
        target.verdict(figures, None)
    }

    #[test]
    fn a_limit_is_kept_up_to_and_including_it() {
        let judge = |target: &Target| verdict(target, Some(1.05), Some(3000.0), &[1.0, 1.0, 1.5]);
        assert_eq!(judge(&Target::Metric("p50_ns", 3000.0)), "passed");
        assert_eq!(judge(&Target::Metric("p50_ns", 2999.0)), "failed");
        assert_eq!(judge(&Target::AtLeast("p50_ns", 3000.0)), "passed");
        assert_eq!(judge(&Target::AtLeast("p50_ns", 3001.0)), "failed");
        assert_eq!(judge(&Target::Ratio(1.05)), "passed");
        assert_eq!(judge(&Target::Ratio(1.049)), "failed");
        assert_eq!(judge(&Target::Worst(1.5)), "passed");
        assert_eq!(judge(&Target::Worst(1.49)), "failed");
    }

    #[test]
    fn the_high_end_counts_where_only_noise_keeps_the_median() {
        let wide = Ratio {
            median: 1.0,
            low: 0.9,
            high: 1.1,
        };
        let figures = Figures {
            ratio: Some(&wide),
            metrics: &BTreeMap::new(),
            samples: &[1.0],
        };
        assert_eq!(Target::Ratio(1.05).kept(figures), Some(true));
        assert_eq!(Target::High(1.05).kept(figures), Some(false));
        assert_eq!(Target::High(1.1).kept(figures), Some(true));
        assert_eq!(Target::High(1.05).text(), "ratio's high end <= 1.05");
    }

    #[test]
    fn a_metric_is_held_against_the_peers() {
        let metrics = [("p50_ns", 30.0), ("peer_p50_ns", 20.0), ("p99_ns", 1.0)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
        let figures = Figures {
            ratio: None,
            metrics: &metrics.into_iter().collect(),
            samples: &[],
        };
        let kept = |name, limit| Target::AtMostPeers(name, limit).kept(figures);
        assert_eq!(kept("p50_ns", 1.5), Some(true));
        assert_eq!(kept("p50_ns", 1.4), Some(false));
        assert_eq!(kept("p99_ns", 1.0), None);
        let target = Target::AtMostPeers("p50_ns", 1.0);
        assert_eq!(target.text(), "p50_ns / peer_p50_ns <= 1");
    }

    #[test]
    fn of_several_limits_one_that_is_missed_fails_all() {
        let target = Target::All(vec![Target::Metric("p50_ns", 10_000.0), Target::Ratio(1.5)]);
        assert_eq!(target.text(), "p50_ns <= 10000 and ratio <= 1.5");
        let judge = |median| verdict(&target, median, Some(9000.0), &[1.0]);
        assert_eq!(judge(Some(1.4)), "passed");
        assert_eq!(judge(Some(1.6)), "failed");
        assert_eq!(judge(None), "not judged: not measured");
    }

    #[test]
    fn a_target_is_spelled_as_people_write_it() {
        assert_eq!(
            Target::AtLeast("ops_per_s", 3e7).text(),
            "ops_per_s >= 30000000"
        );
        assert_eq!(Target::Worst(1.1).text(), "worst / median <= 1.1");
    }

    #[test]
    fn what_was_not_measured_never_passes() {
        for target in [
            Target::Ratio(9.0),
            Target::Metric("p50_ns", 9.0),
            Target::AtLeast("p50_ns", 0.0),
            Target::High(9.0),
            Target::AtMostPeers("p50_ns", 9.0),
            Target::Worst(9.0),
        ] {
            assert_eq!(
                verdict(&target, None, None, &[]),
                "not judged: not measured",
                "{}",
                target.text()
            );
        }
        let ratio = ratio(1.0);
        let figures = Figures {
            ratio: Some(&ratio),
            metrics: &BTreeMap::new(),
            samples: &[1.0],
        };
        assert_eq!(
            Target::Ratio(9.0).verdict(figures, Some("debug build")),
            "not judged: debug build"
        );
    }
}
