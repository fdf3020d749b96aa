//! The one figure of a row that is compared.

use crate::report::Row;
use crate::statistics::Interval;

/// A figure with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name: `ratio to rtrb`, `instructions`, `p50_ns`, or the unit of the median.
    pub name: String,
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Whether more is better.
    pub more_is_better: bool,
}

/// The metric that takes precedence over all others, because only the program changes it.
const INSTRUCTIONS: &str = "instructions";

impl Figure {
    /// The figure that `row` is judged by: see [`crate::regress`].
    #[must_use]
    pub fn of(row: &Row) -> Self {
        if let (Some(ratio), Some(peer)) = (row.ratio, &row.peer) {
            return Self {
                name: format!("ratio to {peer}"),
                value: ratio.median,
                low: ratio.low,
                high: ratio.high,
                more_is_better: false,
            };
        }
        let instructions = row.metrics.contains_key(INSTRUCTIONS);
        let named = instructions
            .then_some((INSTRUCTIONS, false))
            .or_else(|| named_by(row));
        if let Some((name, more_is_better)) = named
            && let Some(Interval { low, high }) = row.figures().metric(name)
        {
            return Self {
                name: name.to_owned(),
                value: row.metrics[name],
                low,
                high,
                more_is_better,
            };
        }
        let median = Interval::point(row.subject_median);
        let Interval { low, high } = row.subject_interval.unwrap_or(median);
        Self {
            name: row.unit.clone(),
            value: row.subject_median,
            low,
            high,
            more_is_better: row.unit.ends_with("/s"),
        }
    }

    /// The percentage by which this is worse than `before`. From zero, every change is infinite.
    #[must_use]
    pub fn worse_by(&self, before: &Self) -> f64 {
        let change = if self.value == before.value {
            0.0
        } else {
            100.0 * (self.value - before.value) / before.value.abs()
        };
        if self.more_is_better { -change } else { change }
    }

    /// The smallest change for the worse, in percent, that a comparison with `before` can detect:
    /// the change at which the two intervals no longer overlap, if this figure keeps the relative
    /// width of its interval. With the figures `b` and `n`, of which less is better, that is
    /// `b.high / b.value * n.value / n.low - 1`; if more is better, `1 - b.low / b.value * n.value /
    /// n.high`.
    #[must_use]
    pub fn detectable(&self, before: &Self) -> f64 {
        let relative = |end: f64, figure: &Self| {
            if end == figure.value {
                1.0
            } else {
                end / figure.value
            }
        };
        100.0
            * if self.more_is_better {
                1.0 - relative(before.low, before) / relative(self.high, self)
            } else {
                relative(before.high, before) / relative(self.low, self) - 1.0
            }
    }

    /// Whether the two intervals overlap.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The first metric that the row's target names, and whether more is better.
fn named_by(row: &Row) -> Option<(&str, bool)> {
    let target = row.target.as_deref()?;
    target.split(" and ").find_map(|limit| {
        let (name, more) = match (limit.split_once(" <= "), limit.split_once(" >= ")) {
            (Some((name, _)), _) => (name, false),
            (_, Some((name, _))) => (name, true),
            _ => return None,
        };
        row.metrics
            .get_key_value(name)
            .map(|(name, _)| (name.as_str(), more))
    })
}
