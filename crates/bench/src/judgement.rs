//! Targets, and what is said about a figure that has one.

use std::collections::BTreeMap;

use crate::statistics::Ratio;

/// An upper limit that a result must keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The ratio's median is at most this.
    Ratio(f64),
    /// This metric is at most this.
    Metric(&'static str, f64),
    /// All of these.
    All(Vec<Target>),
}

impl Target {
    /// As a result file spells it: `ratio <= 1.05`.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Ratio(limit) => format!("ratio <= {limit}"),
            Self::Metric(name, limit) => format!("{name} <= {limit}"),
            Self::All(all) => all.iter().map(Self::text).collect::<Vec<_>>().join(" and "),
        }
    }

    /// Whether it is kept; `None` where the figure is not there.
    #[must_use]
    pub fn kept(&self, ratio: Option<&Ratio>, metrics: &BTreeMap<String, f64>) -> Option<bool> {
        match self {
            Self::Ratio(limit) => ratio.map(|ratio| ratio.median <= *limit),
            Self::Metric(name, limit) => metrics.get(*name).map(|value| value <= limit),
            Self::All(all) => all.iter().try_fold(true, |so_far, one| {
                Some(one.kept(ratio, metrics)? && so_far)
            }),
        }
    }

    /// `passed`, `failed`, or `not judged: why`. `refusal` is why this run judges nothing, if so.
    #[must_use]
    pub fn verdict(
        &self,
        ratio: Option<&Ratio>,
        metrics: &BTreeMap<String, f64>,
        refusal: Option<&str>,
    ) -> String {
        match (refusal, self.kept(ratio, metrics)) {
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

    #[test]
    fn a_limit_is_kept_up_to_and_including_it() {
        let metrics = BTreeMap::from([("p50_ns".to_owned(), 3000.0)]);
        let target = Target::Metric("p50_ns", 3000.0);
        assert_eq!(target.verdict(None, &metrics, None), "passed");
        assert_eq!(
            Target::Metric("p50_ns", 2999.0).verdict(None, &metrics, None),
            "failed"
        );
        assert_eq!(
            Target::Ratio(1.05).verdict(Some(&ratio(1.05)), &metrics, None),
            "passed"
        );
        assert_eq!(
            Target::Ratio(1.05).verdict(Some(&ratio(1.051)), &metrics, None),
            "failed"
        );
    }

    #[test]
    fn of_several_limits_one_that_is_missed_fails_all() {
        let metrics = BTreeMap::from([("p50_ns".to_owned(), 9000.0)]);
        let target = Target::All(vec![Target::Metric("p50_ns", 10_000.0), Target::Ratio(1.5)]);
        assert_eq!(target.text(), "p50_ns <= 10000 and ratio <= 1.5");
        assert_eq!(target.kept(Some(&ratio(1.4)), &metrics), Some(true));
        assert_eq!(target.kept(Some(&ratio(1.6)), &metrics), Some(false));
        assert_eq!(target.kept(None, &metrics), None);
    }

    #[test]
    fn what_was_not_measured_never_passes() {
        let target = Target::Ratio(9.0);
        assert_eq!(
            target.verdict(None, &BTreeMap::new(), None),
            "not judged: not measured"
        );
        let verdict = target.verdict(Some(&ratio(1.0)), &BTreeMap::new(), Some("debug build"));
        assert_eq!(verdict, "not judged: debug build");
    }
}
