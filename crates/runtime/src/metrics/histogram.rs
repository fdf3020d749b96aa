//! How many of something were how large. As Prometheus has it each bucket counts all that is in those before it, too.

use std::time::Duration;

/// Buckets: 1 us, four times that, and so on up to 1.05 s; and what is longer.
pub(crate) const BUCKETS: usize = 12;
const FIRST: u64 = 1_000;

/// The bucket of so many nanoseconds.
pub(super) fn bucket(ns: u64) -> usize {
    let firsts = ns.div_ceil(FIRST);
    if firsts <= 1 {
        return 0;
    }
    // Each is four times the one before, and what is as long as its end is in it.
    ((firsts - 1).ilog2() as usize / 2 + 1).min(BUCKETS - 1)
}

/// Durations by their length.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Histogram {
    /// How many were at most so long; `None`: all.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// All of them together.
    pub sum: Duration,
}

impl Histogram {
    pub(super) fn new() -> Self {
        let bounds =
            (0..BUCKETS as u32 - 1).map(|nth| Some(Duration::from_nanos(FIRST << (2 * nth))));
        Self {
            buckets: bounds.chain([None]).map(|bound| (bound, 0)).collect(),
            sum: Duration::ZERO,
        }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// With what each bucket has by itself.
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
    fn what_is_as_long_as_a_bucket_is_in_it() {
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
    fn a_bucket_counts_what_is_in_those_before() {
        let mut histogram = Histogram::new();
        histogram.add([1, 2, 0, 4].into_iter().chain([0; BUCKETS - 4]), 10);
        histogram.add([0; BUCKETS - 1].into_iter().chain([5]), 20);
        let counts: Vec<_> = histogram.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 12]);
        assert_eq!(histogram.count(), 12);
        assert_eq!(histogram.sum, Duration::from_nanos(30));
    }
}
