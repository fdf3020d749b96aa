//! Medians, and the interval of a ratio that was formed pair by pair.
//!
//! Two sides that are measured one right after the other share the state of the machine: its
//! neighbours, its clock, its caches. The ratio of such a pair is far steadier than the ratio of
//! two medians (Bulej et al., "Duet benchmarking", ICPE 2020). The lab therefore forms the ratio
//! per pair, quotes the median of the ratios, and discards no pair.
//!
//! The interval is a percentile bootstrap of that median (Efron, 1979), which assumes no
//! distribution. Its seed is fixed, so the same samples give the same interval.

use serde::{Deserialize, Serialize};

/// Draws of the bootstrap. From 10,000 draws on, its ends move by less than 1 % of the interval's
/// width.
const DRAWS: usize = 10_000;

/// The seed of every bootstrap: an arbitrary constant that must never change between runs.
const SEED: u64 = 0x7468_616c_7765_6721;

/// Share of the bootstrap's medians inside the interval.
const CONFIDENCE: f64 = 0.95;

/// Subject's time / peer's time, over all pairs. Below 1 the subject is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the pairs' ratios.
    pub median: f64,
    /// Lower end of the 95 % interval of that median.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// The 95 % interval of a median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The 95 % interval of the median of `values`.
///
/// `None` where there are none.
///
/// ```
/// use thalweg_bench::statistics::interval;
/// let interval = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
/// assert_eq!((interval.low, interval.high), (1.0, 5.0));
/// ```
#[must_use]
pub fn interval(values: &[f64]) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    let (low, high) = interval_of_median(values);
    Some(Interval { low, high })
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

/// The ratio of `subject` to `peer`, formed pair by pair: `subject[i] / peer[i]`.
///
/// `None` where there is no pair or a value is not a positive number.
///
/// ```
/// use thalweg_bench::statistics::ratio_of_pairs;
/// let ratio = ratio_of_pairs(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
/// assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
/// ```
///
/// # Panics
/// The two sides have different numbers of samples, so they were not taken in pairs.
#[must_use]
pub fn ratio_of_pairs(subject: &[f64], peer: &[f64]) -> Option<Ratio> {
    assert_eq!(subject.len(), peer.len(), "a pair has two sides");
    let usable = |value: &f64| value.is_finite() && *value > 0.0;
    if subject.is_empty() || !subject.iter().chain(peer).all(usable) {
        return None;
    }
    let ratios: Vec<f64> = subject.iter().zip(peer).map(|(s, p)| s / p).collect();
    let (low, high) = interval_of_median(&ratios);
    Some(Ratio {
        median: median(&ratios)?,
        low,
        high,
    })
}

/// Percentile bootstrap of the median of `values`, which must not be empty.
fn interval_of_median(values: &[f64]) -> (f64, f64) {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        for slot in &mut drawn {
            *slot = values[random.usize(..values.len())];
        }
        medians.push(median_in_place(&mut drawn));
    }
    medians.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let below = (DRAWS as f64 * tail).round() as usize;
    (medians[below], medians[DRAWS - 1 - below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_pairs_is_not_the_ratio_of_medians() {
        // Medians: 20 and 10, ratio 2. Pairs: 10, 2, 0.3.
        let ratio = ratio_of_pairs(&[10.0, 20.0, 30.0], &[1.0, 10.0, 100.0]).unwrap();
        assert_eq!(ratio.median, 2.0);
        let ratio = ratio_of_pairs(&[10.0, 20.0, 30.0], &[1.0, 100.0, 10.0]).unwrap();
        assert_eq!(ratio.median, 3.0);
    }

    #[test]
    fn equal_pairs_have_an_interval_without_width() {
        let ratio = ratio_of_pairs(&[3.0; 20], &[2.0; 20]).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (1.5, 1.5, 1.5));
    }

    #[test]
    fn the_interval_of_a_known_sample_is_the_known_one() {
        // The median of 5 draws out of 1..=5 is 1 with probability P(at least 3 of 5 draws are 1) =
        // 0.058, so 2.5 % are at the ends: the interval is the whole range. For 25 values, an exact
        // count of the binomial puts the 2.5 % and 97.5 % points of the median's bootstrap at the
        // 8th and 18th.
        let few: Vec<f64> = (1..=5).map(f64::from).collect();
        assert_eq!(interval_of_median(&few), (1.0, 5.0));
        let many: Vec<f64> = (1..=25).map(f64::from).collect();
        assert_eq!(interval_of_median(&many), (8.0, 18.0));
    }

    #[test]
    fn the_same_samples_give_the_same_interval() {
        let subject: Vec<f64> = (0..20)
            .map(|i| 1.0 + f64::from(i * 7 % 20) / 100.0)
            .collect();
        let peer = vec![1.0; 20];
        assert_eq!(
            ratio_of_pairs(&subject, &peer),
            ratio_of_pairs(&subject, &peer)
        );
    }

    #[test]
    fn the_interval_covers_the_true_median_about_as_often_as_it_says() {
        // 20 pairs of uniform noise around 1, 200 times: the true median is inside in about 95 %.
        let mut random = fastrand::Rng::with_seed(1);
        let covered = (0..200)
            .filter(|_| {
                let sample: Vec<f64> = (0..20).map(|_| 0.5 + random.f64()).collect();
                let (low, high) = interval_of_median(&sample);
                low <= 1.0 && 1.0 <= high
            })
            .count();
        assert!(
            (180..=199).contains(&covered),
            "covered in {covered} of 200"
        );
    }

    #[test]
    fn a_zero_or_an_empty_side_has_no_ratio() {
        assert_eq!(ratio_of_pairs(&[], &[]), None);
        assert_eq!(ratio_of_pairs(&[1.0], &[0.0]), None);
        assert_eq!(ratio_of_pairs(&[f64::NAN], &[1.0]), None);
    }
}
