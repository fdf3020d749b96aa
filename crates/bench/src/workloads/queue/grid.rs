//! Which points of a workload's parameters a run measures: by default those with a target, with
//! `--set full=yes` all, and any others as lists: `--set capacity=64,256`.

use crate::lab::Lab;
use crate::problem::Problem;
use crate::workloads::Knob;

use super::subjects::THALWEG;

/// A parameter of a workload: the knob that lists its values, and all values.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its name is the parameter's.
    pub knob: Knob,
    /// The values of `full=yes`.
    pub all: &'static str,
}

impl Axis {
    /// An axis whose values are all measured by default.
    #[must_use]
    pub const fn whole(name: &'static str, values: &'static str, what: &'static str) -> Self {
        Self::partly(name, values, values, what)
    }

    /// An axis of which `default` is measured by default.
    #[must_use]
    pub const fn partly(
        name: &'static str,
        default: &'static str,
        all: &'static str,
        what: &'static str,
    ) -> Self {
        let knob = Knob {
            name,
            default,
            what,
        };
        Self { knob, all }
    }
}

/// One value for each axis, and the fixed parameters, in the order of a row.
#[derive(Clone, Debug, Default)]
pub struct Point(Vec<(&'static str, String)>);

impl Point {
    /// The value of a parameter; empty if the point lacks it.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| *own == name);
        found.map_or("", |(_, value)| value)
    }

    /// The same as a number; 0 if it is none.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.get(name).parse().unwrap_or(0)
    }

    /// The same point with a further parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.0.push((name, value.to_owned()));
        self
    }

    /// All parameters.
    #[must_use]
    pub fn params(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(k, v)| (*k, v.as_str())).collect()
    }
}

/// All points, not only those with a target.
pub const FULL: Knob = Knob {
    name: "full",
    default: "no",
    what: "yes: every point of the workload's parameters",
};

/// The number of messages per run.
pub const MESSAGES: Axis = Axis::whole(
    "messages",
    "timed",
    "messages per run; `timed`: as many as make a sample of 50 to 200 ms",
);

/// The requested points.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Whether all points are requested.
    pub full: bool,
}

impl Grid {
    /// Reads [`FULL`].
    ///
    /// # Errors
    /// The value is neither `yes` nor `no`.
    pub fn of(lab: &Lab) -> Result<Self, Problem> {
        match lab.knob(&FULL).as_str() {
            "yes" => Ok(Self { full: true }),
            "no" => Ok(Self { full: false }),
            other => Err(Problem::Usage(format!("full is yes or no, not `{other}`"))),
        }
    }

    /// The values of `knob`: the value set for this run; else `all` if all points are requested;
    /// else its default.
    #[must_use]
    pub fn words(&self, lab: &Lab, knob: &Knob, all: &str) -> Vec<String> {
        let mut text = lab.knob(knob);
        if self.full && text == knob.default {
            text = all.to_owned();
        }
        text.split(',')
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty())
            .collect()
    }

    /// Every combination of the axes' values; the last axis varies fastest.
    #[must_use]
    pub fn points(&self, lab: &Lab, axes: &[Axis]) -> Vec<Point> {
        axes.iter().fold(vec![Point::default()], |points, axis| {
            let words = self.words(lab, &axis.knob, axis.all);
            let with_all = |point: &Point| {
                let point = point.clone();
                let with = words
                    .iter()
                    .map(move |word| point.clone().with(axis.knob.name, word));
                with.collect::<Vec<_>>()
            };
            points.iter().flat_map(with_all).collect()
        })
    }

    /// Whether the values of this axis are the default ones, so that a workload may leave out
    /// combinations.
    #[must_use]
    pub fn is_default(&self, lab: &Lab, axis: &Axis) -> bool {
        !self.full && lab.knob(&axis.knob) == axis.knob.default
    }

    /// The same for whole numbers.
    ///
    /// # Errors
    /// A value is not a whole number.
    pub fn numbers(&self, lab: &Lab, knob: &Knob, all: &str) -> Result<Vec<u64>, Problem> {
        let number = |word: String| {
            word.parse().map_err(|_| {
                Problem::Usage(format!("{} is a list of numbers, not `{word}`", knob.name))
            })
        };
        self.words(lab, knob, all).into_iter().map(number).collect()
    }
}

/// The subjects of a cell: Thalweg, then these.
#[must_use]
pub fn with_ours<'a>(peers: &[&'a str]) -> Vec<&'a str> {
    std::iter::once(THALWEG)
        .chain(peers.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const SIZES: Knob = Knob {
        name: "sizes",
        default: "8",
        what: "",
    };

    fn lab(set: &[(&str, &str)]) -> Lab {
        let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Lab::new(true, None).setting(set.collect::<BTreeMap<_, _>>())
    }

    fn sizes(lab: &Lab) -> Vec<u64> {
        let grid = Grid::of(lab).unwrap();
        grid.numbers(lab, &SIZES, "8,16,32").unwrap()
    }

    #[test]
    fn points_are_all_combinations_and_the_last_axis_varies_fastest() {
        let axes = [
            Axis::whole("sizes", "8,16", ""),
            Axis::partly("batch", "1", "1,64", ""),
        ];
        let texts = |lab: &Lab| -> Vec<String> {
            let points = Grid::of(lab).unwrap().points(lab, &axes);
            let text = |point: &Point| format!("{}-{}", point.get("sizes"), point.number("batch"));
            points.iter().map(text).collect()
        };
        assert_eq!(texts(&lab(&[])), ["8-1", "16-1"]);
        let full = lab(&[("full", "yes")]);
        assert_eq!(texts(&full), ["8-1", "8-64", "16-1", "16-64"]);
        assert!(!Grid::of(&full).unwrap().is_default(&full, &axes[1]));
    }

    #[test]
    fn bars_by_default_all_on_request_and_a_list_wins_over_both() {
        assert_eq!(sizes(&lab(&[])), [8]);
        assert_eq!(sizes(&lab(&[("full", "yes")])), [8, 16, 32]);
        assert_eq!(
            sizes(&lab(&[("full", "yes"), ("sizes", "64, 128")])),
            [64, 128]
        );
        assert!(Grid::of(&lab(&[("full", "1")])).is_err());
        let odd = lab(&[("sizes", "8,x")]);
        assert!(Grid::of(&odd).unwrap().numbers(&odd, &SIZES, "").is_err());
    }
}
