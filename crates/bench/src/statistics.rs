//! Medians, ratios that are formed pair by pair, and their intervals over several processes.
//!
//! 1. Two sides that are measured one right after the other share the state of the machine: its
//!    neighbours, its clock, its caches. The ratio of such a pair is far steadier than the ratio of
//!    two medians (Bulej et al., "Duet benchmarking", ICPE 2020). The lab therefore forms the ratio
//!    per pair, quotes the median of the ratios, and discards no pair.
//! 2. Samples of one process are not independent of each other: the process keeps the memory layout
//!    that it got at its start. The interval is therefore a hierarchical percentile bootstrap. Each
//!    draw takes as many processes as there are, with replacement, and from each as many of its
//!    samples as it has, with replacement (Kalibera and Jones, "Rigorous benchmarking in reasonable
//!    time", ISMM 2013; Davison and Hinkley, "Bootstrap methods and their application", 1997,
//!    section 3.8). If the processes differ, the interval is as wide as that difference, however
//!    many samples each process took.
//! 3. With one process the second step alone remains, which is Efron's bootstrap of 1979. Such an
//!    interval does not contain the difference between processes. A figure with an interval from
//!    fewer than [`FEWEST_PROCESSES`] processes is therefore not judged.
//! 4. The seed is fixed, so the same samples give the same interval.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Draws of the bootstrap. From 10,000 draws on, its ends move by less than 1 % of the interval's
/// width.
const DRAWS: usize = 10_000;

/// The seed of every bootstrap: an arbitrary constant that must never change between runs.
const SEED: u64 = 0x7468_616c_7765_6721;

/// Share of the bootstrap's draws inside the interval.
const CONFIDENCE: f64 = 0.95;

/// The number of processes from which an interval is judged. With fewer, no draw can leave one
/// process out and still contain two different ones.
pub const FEWEST_PROCESSES: usize = 3;

/// Subject's time / peer's time, over all pairs. Below 1 the subject is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Median of the pairs' ratios.
    pub median: f64,
    /// Lower end of the 95 % interval of that median.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// The 95 % interval of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of a figure that is exact.
    #[must_use]
    pub fn point(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// The interval after `map`, which may turn its ends around.
    #[must_use]
    pub fn map(self, map: impl Fn(f64) -> f64) -> Self {
        let (one, other) = (map(self.low), map(self.high));
        Self {
            low: one.min(other),
            high: one.max(other),
        }
    }
}

/// The samples of one side in the order of the rounds, each with the process that took it.
///
/// It dereferences to the list of samples. A plain list converts into the samples of one process.
///
/// ```
/// use thalweg_bench::statistics::Samples;
/// let samples = Samples::new(vec![1.0, 2.0, 3.0], vec![0, 0, 1]);
/// assert_eq!((samples[2], samples.processes()), (3.0, 2));
/// assert_eq!(Samples::from(vec![1.0, 2.0]).processes(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Samples<S = f64> {
    values: Vec<S>,
    process: Vec<u32>,
}

impl<S> Samples<S> {
    /// The samples `values`; `process[i]` is the number of the process that took `values[i]`.
    ///
    /// # Panics
    /// The lists have different lengths.
    #[must_use]
    pub fn new(values: Vec<S>, process: Vec<u32>) -> Self {
        assert_eq!(values.len(), process.len(), "each sample has one process");
        Self { values, process }
    }

    /// Adds the samples of one more process.
    pub fn extend(&mut self, process: u32, values: impl IntoIterator<Item = S>) {
        self.values.extend(values);
        self.process.resize(self.values.len(), process);
    }

    /// The process of each sample.
    #[must_use]
    pub fn process(&self) -> &[u32] {
        &self.process
    }

    /// The number of processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        distinct(&self.process)
    }

    /// One figure for each sample, with the same processes.
    #[must_use]
    pub fn map<'a, T>(&'a self, map: impl FnMut(&'a S) -> T) -> Samples<T> {
        Samples {
            values: self.values.iter().map(map).collect(),
            process: self.process.clone(),
        }
    }

    /// The samples without their processes.
    #[must_use]
    pub fn into_values(self) -> Vec<S> {
        self.values
    }
}

impl<S> Default for Samples<S> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<S> From<Vec<S>> for Samples<S> {
    fn from(values: Vec<S>) -> Self {
        let process = vec![0; values.len()];
        Self { values, process }
    }
}

impl<S> Deref for Samples<S> {
    type Target = [S];

    fn deref(&self) -> &[S] {
        &self.values
    }
}

/// The number of different processes in a list of process numbers.
#[must_use]
pub fn distinct(process: &[u32]) -> usize {
    let mut numbers = process.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

/// The median: the middle value, or the mean of the two in the middle.
///
/// ```
/// use thalweg_bench::statistics::median;
/// assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
/// assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
/// assert_eq!(median(&[]), None);
/// ```
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    Some(median_in_place(&mut sorted))
}

/// Like [`median`], for a list that is not empty and may be reordered.
fn median_in_place(values: &mut [f64]) -> f64 {
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    if even {
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        f64::midpoint(lower, *upper)
    } else {
        *upper
    }
}

/// The 95 % interval of the median of `samples`. `None` if there are none.
///
/// ```
/// use thalweg_bench::statistics::interval;
/// let interval = interval(&vec![1.0, 2.0, 3.0, 4.0, 5.0].into()).unwrap();
/// assert_eq!((interval.low, interval.high), (1.0, 5.0));
/// ```
#[must_use]
pub fn interval(samples: &Samples) -> Option<Interval> {
    let mut drawn = Vec::with_capacity(samples.len());
    bootstrap(samples.process(), |places| {
        drawn.clear();
        drawn.extend(places.iter().map(|place| samples[*place]));
        [median_in_place(&mut drawn)]
    })
    .map(|[interval]| interval)
}

/// The ratio of `subject` to `peer`, formed pair by pair: `subject[i] / peer[i]`.
///
/// `None` if there is no pair or a value is not a positive number.
///
/// ```
/// use thalweg_bench::statistics::ratio_of_pairs;
/// let ratio = ratio_of_pairs(&vec![2.0, 4.0, 6.0].into(), &vec![1.0, 2.0, 3.0].into()).unwrap();
/// assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
/// ```
///
/// # Panics
/// The two sides were not taken in pairs, each in one process.
#[must_use]
pub fn ratio_of_pairs(subject: &Samples, peer: &Samples) -> Option<Ratio> {
    assert_eq!(
        subject.process(),
        peer.process(),
        "a pair has two sides and one process"
    );
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    if !subject.iter().chain(&**peer).all(usable) {
        return None;
    }
    let mut pairs = subject.iter().zip(&**peer).map(|(s, p)| s / p);
    let ratios = subject.map(|_| pairs.next().expect("both sides have the same length"));
    let Interval { low, high } = interval(&ratios)?;
    Some(Ratio {
        median: median(&ratios)?,
        low,
        high,
    })
}

/// The 95 % intervals of the `N` figures that `figures` computes from the drawn samples: see the
/// module. It receives the indices of the samples of one draw. `None` if there are no samples.
pub fn bootstrap<const N: usize>(
    process: &[u32],
    mut figures: impl FnMut(&[usize]) -> [f64; N],
) -> Option<[Interval; N]> {
    if process.is_empty() {
        return None;
    }
    let mut numbers = process.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let of_number = |number: &u32| -> Vec<usize> {
        (0..process.len())
            .filter(|place| process[*place] == *number)
            .collect()
    };
    let groups: Vec<Vec<usize>> = numbers.iter().map(of_number).collect();

    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = Vec::with_capacity(process.len());
    let mut found: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(DRAWS));
    for _ in 0..DRAWS {
        drawn.clear();
        for _ in 0..groups.len() {
            let group = &groups[random.usize(..groups.len())];
            drawn.extend((0..group.len()).map(|_| group[random.usize(..group.len())]));
        }
        for (all, figure) in found.iter_mut().zip(figures(&drawn)) {
            all.push(figure);
        }
    }
    let below = (DRAWS as f64 * (1.0 - CONFIDENCE) / 2.0).round() as usize;
    Some(found.map(|mut all| {
        all.sort_unstable_by(f64::total_cmp);
        Interval {
            low: all[below],
            high: all[DRAWS - 1 - below],
        }
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `values` in three processes, one part after the other.
    pub(crate) fn in_three(values: &[f64]) -> Samples {
        let process = (0..values.len()).map(|place| (place * 3 / values.len()) as u32);
        Samples::new(values.to_vec(), process.collect())
    }

    fn ends(samples: &Samples) -> (f64, f64) {
        let Interval { low, high } = interval(samples).unwrap();
        (low, high)
    }

    #[test]
    fn ratio_of_pairs_is_not_the_ratio_of_medians() {
        // Medians: 20 and 10, ratio 2. Pairs: 10, 2, 0.3.
        for (peer, median) in [([1.0, 10.0, 100.0], 2.0), ([1.0, 100.0, 10.0], 3.0)] {
            let subject = vec![10.0, 20.0, 30.0].into();
            let ratio = ratio_of_pairs(&subject, &peer.to_vec().into()).unwrap();
            assert_eq!(ratio.median, median);
        }
    }

    #[test]
    fn equal_samples_have_an_interval_without_width() {
        let (subject, peer) = (in_three(&[3.0; 20]), in_three(&[2.0; 20]));
        let ratio = ratio_of_pairs(&subject, &peer).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn interval_of_one_process_is_the_known_one() {
        // The median of 5 draws out of 1..=5 is 1 with probability P(at least 3 of 5 draws are 1) =
        // 0.058, so 2.5 % are at the ends: the interval is the whole range. For 25 values, an exact
        // count of the binomial puts the 2.5 % and 97.5 % points of the median's bootstrap at the
        // 8th and 18th.
        let upto = |last: i32| Samples::from((1..=last).map(f64::from).collect::<Vec<_>>());
        assert_eq!(ends(&upto(5)), (1.0, 5.0));
        assert_eq!(ends(&upto(25)), (8.0, 18.0));
    }

    #[test]
    fn same_samples_give_the_same_interval() {
        let values: Vec<f64> = (0..21).map(|i| f64::from(i * 7 % 20)).collect();
        assert_eq!(interval(&in_three(&values)), interval(&in_three(&values)));
    }

    /// `count` samples with noise of +-1 % around the mean of each process.
    fn noisy(means: &[f64], count: usize, random: &mut fastrand::Rng) -> Samples {
        let mut samples = Samples::default();
        for (process, mean) in (0..).zip(means) {
            let values = (0..count).map(|_| mean * (0.99 + 0.02 * random.f64()));
            samples.extend(process, values.collect::<Vec<_>>());
        }
        samples
    }

    #[test]
    fn difference_between_processes_widens_the_interval() {
        // Processes at 1.0, 1.1 and 1.2. A draw takes one of them three times with probability
        // 1 / 27 each, which is more than 2.5 %, so the interval reaches from the first to the last.
        let samples = noisy(&[1.0, 1.1, 1.2], 30, &mut fastrand::Rng::with_seed(1));
        let (low, high) = ends(&samples);
        assert!(low < 1.02 && high > 1.18, "{low} to {high}");
        // The same samples as if from one process: the interval hides the difference, the more so
        // the more samples there are.
        let pooled = Samples::from(samples.into_values());
        let (pooled_low, pooled_high) = ends(&pooled);
        assert!(
            pooled_high - pooled_low < 0.6 * (high - low),
            "{pooled_low} to {pooled_high}"
        );
    }

    #[test]
    fn processes_without_a_difference_keep_the_interval_narrow() {
        let samples = noisy(&[1.1; 3], 30, &mut fastrand::Rng::with_seed(1));
        let (low, high) = ends(&samples);
        let (pooled_low, pooled_high) = ends(&Samples::from(samples.into_values()));
        assert!(high - low < 2.0 * (pooled_high - pooled_low));
        assert!(1.09 < low && high < 1.11);
    }

    #[test]
    fn true_median_is_inside_more_often_than_with_pooled_samples() {
        // 25 experiments of 3 processes, each up to 5 % beside the true 1.0 with a noise of 1 %.
        let mut random = fastrand::Rng::with_seed(1);
        let mut covered = [0, 0];
        for _ in 0..25 {
            let means: Vec<f64> = (0..3).map(|_| 0.95 + 0.1 * random.f64()).collect();
            let samples = noisy(&means, 20, &mut random);
            let pooled = Samples::from(samples.clone().into_values());
            for (count, samples) in covered.iter_mut().zip([samples, pooled]) {
                let (low, high) = ends(&samples);
                *count += usize::from(low <= 1.0 && 1.0 <= high);
            }
        }
        let [hierarchical, pooled] = covered;
        // Three processes are few: the interval is their range, which contains the true value with
        // a probability of 3/4 and, with the noise, a little more often.
        assert!(hierarchical >= 13, "{hierarchical} of 25");
        assert!(pooled + 4 <= hierarchical, "{pooled}, {hierarchical}");
    }

    #[test]
    fn interval_of_independent_samples_covers_the_true_median() {
        // 20 samples of uniform noise around 1, 200 times: the true median is inside in about 95 %.
        let mut random = fastrand::Rng::with_seed(1);
        let covered = (0..200)
            .filter(|_| {
                let sample: Vec<f64> = (0..20).map(|_| 0.5 + random.f64()).collect();
                let (low, high) = ends(&sample.into());
                low <= 1.0 && 1.0 <= high
            })
            .count();
        assert!((180..=199).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn zero_or_an_empty_side_has_no_ratio() {
        for (subject, peer) in [
            (vec![], vec![]),
            (vec![1.0], vec![0.0]),
            (vec![f64::NAN], vec![1.0]),
        ] {
            assert_eq!(ratio_of_pairs(&subject.into(), &peer.into()), None);
        }
    }

    #[test]
    #[should_panic(expected = "a pair has two sides and one process")]
    fn pair_of_two_processes_is_refused() {
        let _ = ratio_of_pairs(
            &vec![1.0, 1.0].into(),
            &Samples::new(vec![1.0, 1.0], vec![0, 1]),
        );
    }
}
