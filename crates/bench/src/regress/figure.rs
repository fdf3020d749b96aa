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
        if let Some(count) = row.metrics.get(INSTRUCTIONS) {
            return Self {
                name: INSTRUCTIONS.to_owned(),
                value: *count,
                low: *count,
                high: *count,
                more_is_better: false,
            };
        }
        let Interval { low, high } = row.subject_interval.unwrap_or(Interval {
            low: row.subject_median,
            high: row.subject_median,
        });
        if let Some((name, more_is_better)) = named_by(row) {
            let value = row.metrics[name];
            // Relative widths of the median; a median of zero has none.
            let scale = |end: f64| {
                if row.subject_median == 0.0 {
                    value
                } else {
                    value * end / row.subject_median
                }
            };
            // For a metric that falls when the median rises, the width is mirrored: close enough,
            // and never narrower than for counts.
            // is for counts.
            let (one, other) = (scale(low), scale(high));
            return Self {
                name: name.to_owned(),
                value,
                low: one.min(other),
                high: one.max(other),
                more_is_better,
            };
        }
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
