//! The axis of a chart of ratios: logarithmic, so that twice as fast and half as fast have the same
//! distance from 1.

/// Both ends, and the marks in between.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    low: f64,
    high: f64,
    /// The values that have a mark.
    pub marks: Vec<f64>,
}

/// The largest number of marks whose numbers fit on a phone.
const MOST_MARKS: usize = 6;

/// The free margin at either end, as a share of the whole.
const MARGIN: f64 = 0.04;

/// The shortest axis: even if all ratios are alike, they need space to be visible next to 1.
const NARROWEST: f64 = 1.2;

impl Axis {
    /// An axis that contains all of `values`, and 1. Values that are not positive numbers are
    /// ignored.
    #[must_use]
    pub fn holding(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = (1.0_f64, 1.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if high / low < NARROWEST {
            let stretch = (NARROWEST / (high / low)).sqrt();
            low /= stretch;
            high *= stretch;
        }
        let margin = (high / low).powf(MARGIN);
        let (low, high) = (low / margin, high * margin);
        Self {
            low,
            high,
            marks: marks(low, high),
        }
    }

    /// The position of `value`, in percent from the left. Values beyond an end are clamped to it.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        100.0 * share.clamp(0.0, 1.0)
    }
}

/// Round numbers between the ends, including 1, as many as fit.
fn marks(low: f64, high: f64) -> Vec<f64> {
    if high / low > 6.0 {
        // Decades, with as many steps between them as fit.
        for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let found = decades(low, high, steps);
            if found.len() <= MOST_MARKS {
                return found;
            }
        }
        let all = decades(low, high, &[1.0]);
        let every = all.len().div_ceil(MOST_MARKS);
        let one = all.iter().position(|mark| (*mark - 1.0).abs() < 1e-9);
        let offset = one.unwrap_or(0) % every;
        return all.into_iter().skip(offset).step_by(every).collect();
    }
    for step in [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0] {
        let (first, last) = (((low - 1.0) / step).ceil(), ((high - 1.0) / step).floor());
        if last - first < MOST_MARKS as f64 {
            let count = (last - first) as usize;
            return (0..=count)
                .map(|place| 1.0 + (first + place as f64) * step)
                .filter(|mark| *mark > 0.0)
                .collect();
        }
    }
    vec![1.0]
}

fn decades(low: f64, high: f64, steps: &[f64]) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first..=last)
        .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
        .filter(|mark| *mark >= low && *mark <= high)
        .collect()
}

/// The text of a mark, with only the digits it needs.
#[must_use]
pub fn label(mark: f64) -> String {
    let text = format!("{mark:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "1" {
        "1.0".to_owned()
    } else {
        short.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64]) -> Vec<String> {
        let axis = Axis::holding(values.iter().copied());
        axis.marks.iter().map(|mark| label(*mark)).collect()
    }

    #[test]
    fn twice_and_half_are_equally_far_from_one() {
        let axis = Axis::holding([0.5, 2.0].into_iter());
        assert!((axis.place(1.0) - 50.0).abs() < 1e-9);
        let (half, twice) = (axis.place(0.5), axis.place(2.0));
        assert!((half + twice - 100.0).abs() < 1e-9);
        assert!(half > 1.0 && twice < 99.0, "the ends have a margin");
    }

    #[test]
    fn one_is_always_there_and_marked() {
        for values in [
            vec![],
            vec![0.98, 1.01],
            vec![0.2, 0.3],
            vec![3.0, 7.0],
            vec![0.001, 90.0],
            vec![1e-7, 1e4],
            vec![0.4, 2.2],
        ] {
            let labels = labels(&values);
            assert!(labels.contains(&"1.0".to_owned()), "{values:?}: {labels:?}");
            assert!((2..=6).contains(&labels.len()), "{values:?}: {labels:?}");
        }
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(labels(&[0.95, 1.04]), ["0.95", "1.0", "1.05"]);
        assert_eq!(labels(&[0.15, 8.0]), ["0.2", "0.5", "1.0", "2", "5"]);
        assert_eq!(labels(&[0.6, 1.5]), ["0.6", "0.8", "1.0", "1.2", "1.4"]);
    }

    #[test]
    fn what_is_no_ratio_does_not_move_the_ends() {
        let odd = [0.5, f64::NAN, 0.0, -1.0, f64::INFINITY, 2.0];
        assert_eq!(
            Axis::holding(odd.into_iter()),
            Axis::holding([0.5, 2.0].into_iter())
        );
        let axis = Axis::holding([0.5, 2.0].into_iter());
        assert_eq!((axis.place(1e-9), axis.place(1e9)), (0.0, 100.0));
    }
}
