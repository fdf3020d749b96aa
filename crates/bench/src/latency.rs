//! Latencies of single operations: percentiles come from a histogram, never from means.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

/// Fewer operations than this make a tail percentile an anecdote. The result contains the number of
/// operations.
pub const ENOUGH: u64 = 100_000;

/// The largest latency that is recorded exactly: a minute, in ns.
const LONGEST: u64 = 60_000_000_000;

/// Every latency of one side, in ns, with an error of at most 0.1 %.
#[derive(Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the bounds are constants that the histogram accepts.
    #[must_use]
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).expect("constant bounds that are in order"))
    }

    /// Records one operation that took `ns`; anything longer than a minute counts as a minute.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// The recorded latencies, as pairs of a latency in ns and the number of operations that took
    /// this long. [`Latencies::add`] accepts them, also in another process.
    #[must_use]
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.0
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_at_value()))
            .collect()
    }

    /// Adds the pairs that [`Latencies::counts`] returned.
    pub fn add(&mut self, counts: &[(u64, u64)]) {
        for (ns, count) in counts {
            self.0.saturating_record_n(*ns, *count);
        }
    }

    /// The number of operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in ns that `percentile` percent of the operations did not exceed.
    #[must_use]
    pub fn percentile(&self, percentile: f64) -> u64 {
        self.0.value_at_percentile(percentile)
    }

    /// Adds `p50_ns` .. `max_ns` and `latencies` (the number of operations) to a result's metrics,
    /// with `prefix` before each name. With fewer than [`ENOUGH`] operations p99.9 is left out.
    pub fn write(&self, prefix: &str, metrics: &mut BTreeMap<String, f64>) {
        let mut put = |name: &str, value: u64| {
            metrics.insert(format!("{prefix}{name}"), value as f64);
        };
        put("latencies", self.count());
        put("p50_ns", self.percentile(50.0));
        put("p95_ns", self.percentile(95.0));
        put("p99_ns", self.percentile(99.0));
        if self.count() >= ENOUGH {
            put("p99_9_ns", self.percentile(99.9));
        }
        put("max_ns", self.0.max());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_distribution() {
        let mut latencies = Latencies::new();
        for ns in 1..=100_000 {
            latencies.record(ns);
        }
        let near = |value: u64, wanted: u64| value.abs_diff(wanted) * 1000 <= wanted;
        assert!(near(latencies.percentile(50.0), 50_000));
        assert!(near(latencies.percentile(99.0), 99_000));
        let mut metrics = BTreeMap::new();
        latencies.write("peer_", &mut metrics);
        assert_eq!(metrics["peer_latencies"], 100_000.0);
        assert!(metrics.contains_key("peer_p99_9_ns"));
    }

    #[test]
    fn latencies_that_went_through_another_process_are_the_same() {
        let mut here = Latencies::new();
        for ns in [1, 7, 7, 1_234_567, u64::MAX] {
            here.record(ns);
        }
        let mut there = Latencies::new();
        there.add(&here.counts());
        assert_eq!(there.counts(), here.counts());
        assert_eq!(there.count(), 5);
        assert_eq!(there.percentile(50.0), here.percentile(50.0));
    }

    #[test]
    fn with_few_latencies_the_far_tail_is_not_claimed() {
        let mut latencies = Latencies::new();
        latencies.record(7);
        latencies.record(u64::MAX);
        let mut metrics = BTreeMap::new();
        latencies.write("", &mut metrics);
        assert!(!metrics.contains_key("p99_9_ns"));
        assert_eq!(metrics["latencies"], 2.0);
    }
}
