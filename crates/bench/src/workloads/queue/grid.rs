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

    /// An axis whose default values are `default`.
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

    /// The same as a whole number.
    ///
    /// # Errors
    /// It is none.
    pub fn number(&self, name: &str) -> Result<u64, Problem> {
        let text = self.get(name);
        text.parse()
            .map_err(|_| Problem::Usage(format!("{name} is a list of numbers, not `{text}`")))
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

    fn lab(set: &[(&str, &str)]) -> Lab {
        let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Lab::new(true, None).setting(set.collect::<BTreeMap<_, _>>())
    }

    #[test]
    fn points_are_all_combinations_and_the_last_axis_varies_fastest() {
        let axes = [
            Axis::partly("sizes", "8", "8,16", ""),
            Axis::partly("batch", "1", "1,64", ""),
        ];
        let texts = |set: &[(&str, &str)]| -> Vec<String> {
            let lab = lab(set);
            let points = Grid::of(&lab).unwrap().points(&lab, &axes);
            let text = |point: &Point| format!("{}-{}", point.get("sizes"), point.get("batch"));
            points.iter().map(text).collect()
        };
        assert_eq!(texts(&[]), ["8-1"]);
        let full = ("full", "yes");
        assert_eq!(texts(&[full]), ["8-1", "8-64", "16-1", "16-64"]);
        let list = texts(&[full, ("sizes", "64, 128"), ("batch", "1")]);
        assert_eq!(list, ["64-1", "64-64", "128-1", "128-64"]);
        let full = lab(&[full]);
        assert!(!Grid::of(&full).unwrap().is_default(&full, &axes[1]));
    }

    #[test]
    fn value_that_is_no_number_is_refused() {
        let sizes = [Axis::whole("sizes", "8", "")];
        let odd = lab(&[("sizes", "8,x")]);
        let points = Grid::of(&odd).unwrap().points(&odd, &sizes);
        assert_eq!(points[0].number("sizes").unwrap(), 8);
        assert!(points[1].number("sizes").is_err());
        assert!(Grid::of(&lab(&[("full", "1")])).is_err());
    }
}
