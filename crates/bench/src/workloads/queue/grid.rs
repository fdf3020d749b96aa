//! Which points of a workload's parameters a run measures: by default those with a target, with
//! `--set full=yes` all, and any others as lists: `--set capacity=64,256`.

use crate::lab::Lab;
use crate::problem::Problem;
use crate::workloads::Knob;

use super::subjects::THALWEG;

/// All points, not only those with a target.
pub const FULL: Knob = Knob {
    name: "full",
    default: "no",
    what: "yes: every point of the workload's parameters",
};

/// The number of messages per run.
pub const MESSAGES: Knob = Knob {
    name: "messages",
    default: "timed",
    what: "messages per run; `timed`: as many as make a sample of 50 to 200 ms",
};

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
