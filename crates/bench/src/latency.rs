//! Latencies of single operations: percentiles come from a histogram, never from means.

use hdrhistogram::Histogram;

use crate::report::Metrics;
use crate::statistics::{Samples, bootstrap};

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

impl From<&[u64]> for Latencies {
    fn from(all: &[u64]) -> Self {
        let mut latencies = Self::new();
        all.iter().for_each(|ns| latencies.record(*ns));
        latencies
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
}

/// The percentiles in a result, by name.
const PERCENTILES: [(&str, f64); 4] = [
    ("p50_ns", 50.0),
    ("p95_ns", 95.0),
    ("p99_ns", 99.0),
    ("p99_9_ns", 99.9),
];

/// Adds `p50_ns` .. `max_ns` and `latencies` (the number of operations) to `metrics`. The operations
/// of all samples count together. The interval of a percentile is that of the samples' bootstrap,
/// in which each draw puts the operations of the drawn samples together. With fewer than [`ENOUGH`]
/// operations p99.9 is left out. The maximum is the longest latency that was seen, without an
/// interval. Without any operation nothing is added.
///
/// A sample is the list that [`Latencies::counts`] returns.
pub fn percentiles<C: AsRef<[(u64, u64)]>>(samples: &Samples<C>, metrics: &mut Metrics) {
    let mut all: Vec<u64> = samples
        .iter()
        .flat_map(|counts| counts.as_ref().iter().map(|(ns, _)| *ns))
        .collect();
    all.sort_unstable();
    all.dedup();
    let Some(longest) = all.last().copied() else {
        return;
    };
    // Operations of each sample that took at most each of `all`.
    let cumulated: Vec<Vec<u64>> = samples
        .iter()
        .map(|counts| {
            let mut counts = counts.as_ref().iter().peekable();
            let mut sum = 0;
            let upto = |ns: &u64| {
                while let Some((_, count)) = counts.next_if(|(its, _)| its <= ns) {
                    sum += count;
                }
                sum
            };
            all.iter().map(upto).collect()
        })
        .collect();
    let percentile = |places: &[usize], percent: f64| {
        let count =
            |index: usize| -> u64 { places.iter().map(|place| cumulated[*place][index]).sum() };
        let enough = ((count(all.len() - 1) as f64 * percent / 100.0).ceil() as u64).max(1);
        let (mut low, mut high) = (0, all.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if count(middle) < enough {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        all[low] as f64
    };
    let every: Vec<usize> = (0..samples.len()).collect();
    let operations: u64 = cumulated.iter().filter_map(|counts| counts.last()).sum();
    let intervals = bootstrap(samples.process(), |places| {
        PERCENTILES.map(|(_, percent)| percentile(places, percent))
    })
    .expect("there is a sample");
    for ((name, percent), interval) in PERCENTILES.into_iter().zip(intervals) {
        if name != "p99_9_ns" || operations >= ENOUGH {
            metrics.estimate(name, percentile(&every, percent), interval);
        }
    }
    metrics.count("max_ns", longest as f64);
    metrics.count("latencies", operations as f64);
}

/// The median of each sample, and the percentiles of all samples together.
#[must_use]
pub fn figures(samples: &Samples<Latencies>) -> (Samples, Metrics) {
    let mut metrics = Metrics::default();
    percentiles(&samples.map(Latencies::counts), &mut metrics);
    (samples.map(|its| its.percentile(50.0) as f64), metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_samples_are_those_of_all_their_operations() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut all = Latencies::new();
        let mut samples = Samples::default();
        for process in 0..3 {
            let mut its = Latencies::new();
            for _ in 0..40_000 {
                its.record(1_000 + u64::from(process) * 500 + random.u64(..1_000));
            }
            all.add(&its.counts());
            samples.extend(process, [its.counts()]);
        }
        let mut metrics = Metrics::default();
        percentiles(&samples, &mut metrics);
        for (name, percent) in PERCENTILES {
            let (value, interval) = metrics.get(name).unwrap();
            assert_eq!(value, all.percentile(percent) as f64, "{name}");
            assert!(interval.low <= value && value <= interval.high, "{name}");
        }
        // The median of each process is 500 ns from the next.
        let (_, interval) = metrics.get("p50_ns").unwrap();
        assert!(interval.low < 1_510.0 && interval.high > 2_490.0);
        assert_eq!(metrics.get("latencies").unwrap().0, 120_000.0);
    }

    #[test]
    fn without_operations_there_is_no_percentile() {
        let mut metrics = Metrics::default();
        percentiles(&Samples::from(vec![Vec::new(); 5]), &mut metrics);
        assert_eq!(metrics, Metrics::default());
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
    fn few_latencies_have_no_far_tail() {
        let few = Latencies::from(&[7, u64::MAX] as &[_]);
        let (medians, metrics) = figures(&vec![few].into());
        assert_eq!(*medians, [7.0]);
        assert_eq!(metrics.get("p99_9_ns"), None);
        assert_eq!(metrics.get("latencies").unwrap().0, 2.0);
    }
}
