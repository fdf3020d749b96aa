//! A histogram with cumulative buckets, as in Prometheus: each bucket includes the counts of the
//! previous ones.

use std::time::Duration;

/// The number of buckets. The upper bounds are 1 us, 4 us, and so on up to 1.05 s, and infinity.
pub(crate) const BUCKETS: usize = 12;
const FIRST: u64 = 1_000;

/// Returns the bucket of a duration in nanoseconds.
pub(super) fn bucket(ns: u64) -> usize {
    let firsts = ns.div_ceil(FIRST);
    if firsts <= 1 {
        return 0;
    }
    // Each bound is four times the previous one. A duration that equals a bound belongs to its
    // bucket.
    ((firsts - 1).ilog2() as usize / 2 + 1).min(BUCKETS - 1)
}

/// A histogram of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Histogram {
    /// The upper bound of each bucket (`None`: infinity), and the number of durations up to that
    /// bound.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// The sum of all durations.
    pub sum: Duration,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        let bounds =
            (0..BUCKETS as u32 - 1).map(|nth| Some(Duration::from_nanos(FIRST << (2 * nth))));
        Self {
            buckets: bounds.chain([None]).map(|bound| (bound, 0)).collect(),
            sum: Duration::ZERO,
        }
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// Adds the counts of the individual buckets.
    pub(super) fn add(&mut self, counts: impl Iterator<Item = u64>, ns: u64) {
        let mut sum = 0;
        for ((_, total), count) in self.buckets.iter_mut().zip(counts) {
            sum += count;
            *total += sum;
        }
        self.sum += Duration::from_nanos(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, bucket};
    use std::time::Duration;

    #[test]
    fn duration_equal_to_a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::new();
        for (nth, (bound, _)) in histogram.buckets.iter().enumerate() {
            let Some(bound) = bound else {
                assert_eq!(nth, BUCKETS - 1);
                continue;
            };
            let ns = bound.as_nanos() as u64;
            assert_eq!(bucket(ns), nth, "{bound:?}");
            assert_eq!(bucket(ns + 1), nth + 1, "just above {bound:?}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut histogram = Histogram::new();
        histogram.add([1, 2, 0, 4].into_iter().chain([0; BUCKETS - 4]), 10);
        histogram.add([0; BUCKETS - 1].into_iter().chain([5]), 20);
        let counts: Vec<_> = histogram.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 12]);
        assert_eq!(histogram.count(), 12);
        assert_eq!(histogram.sum, Duration::from_nanos(30));
    }
}
