//! One run: what was asked for, and what the workloads share.

use std::collections::BTreeMap;

use indicatif::{ProgressBar, ProgressStyle};

use crate::interleave::Plan;
use crate::{hosts, tools};

/// Fewest samples of a side, and the number where a workload has none of its own.
pub const FEWEST_SAMPLES: usize = 5;

/// What a run was asked for, and what its workloads find out on the way.
#[derive(Debug)]
pub struct Lab {
    quick: bool,
    samples: Option<usize>,
    progress: ProgressBar,
    /// What was measured against: name and version.
    pub peers: BTreeMap<String, String>,
    /// What can be set and how it stood.
    pub knobs: BTreeMap<String, String>,
}

impl Lab {
    /// A run; `samples` overrules the workloads' own numbers, `quick` makes every sample short.
    #[must_use]
    pub fn new(quick: bool, samples: Option<usize>) -> Self {
        let progress = ProgressBar::no_length();
        let style = "{msg:32} [{bar:30}] {pos}/{len} {elapsed} (eta {eta})";
        progress.set_style(
            ProgressStyle::with_template(style)
                .expect("a template that was tried")
                .progress_chars("=> "),
        );
        let knobs = BTreeMap::from([
            ("quick".to_owned(), quick.to_string()),
            ("profile".to_owned(), tools::profile().to_owned()),
            (
                "samples".to_owned(),
                samples.map_or_else(|| "each workload's own".to_owned(), |n| n.to_string()),
            ),
        ]);
        Self {
            quick,
            samples,
            progress,
            peers: BTreeMap::new(),
            knobs,
        }
    }

    /// Whether figures only have to be there, not to be good.
    #[must_use]
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// How often: `own` is the workload's own number of samples, if it has one.
    #[must_use]
    pub fn plan(&self, own: Option<usize>) -> Plan {
        let usual = if self.quick {
            FEWEST_SAMPLES
        } else {
            own.unwrap_or(FEWEST_SAMPLES)
        };
        Plan {
            warm_up: 1,
            rounds: self.samples.unwrap_or(usual).max(FEWEST_SAMPLES),
        }
    }

    /// Why this run judges nothing, if so.
    #[must_use]
    pub fn refusal(&self) -> Option<&'static str> {
        if tools::profile() == "debug" {
            Some("debug build")
        } else if self.quick {
            Some("quick run")
        } else {
            None
        }
    }

    /// Shows a new bar of `steps` steps; on a terminal only.
    pub fn begin(&self, what: &str, steps: usize) {
        // It draws when it is told of a step, never from a thread of its own: that would wake while something is
        // measured.
        self.progress.set_message(what.to_owned());
        self.progress.set_length(steps as u64);
        self.progress.reset();
    }

    /// One step of it is done.
    pub fn step(&self) {
        self.progress.inc(1);
    }

    /// Takes the bar away, so that what is printed next stands alone.
    pub fn end(&self) {
        self.progress.finish_and_clear();
    }

    /// The commit that is measured.
    #[must_use]
    pub fn commit(&self) -> String {
        tools::commit(&hosts::root())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workloads_own_number_wins_over_the_general_one_and_the_command_line_over_both() {
        assert_eq!(Lab::new(false, None).plan(None).rounds, 5);
        assert_eq!(Lab::new(false, None).plan(Some(20)).rounds, 20);
        assert_eq!(Lab::new(false, Some(7)).plan(Some(20)).rounds, 7);
        assert_eq!(Lab::new(true, None).plan(Some(20)).rounds, 5);
    }

    #[test]
    fn fewer_than_five_samples_are_never_taken() {
        assert_eq!(Lab::new(false, Some(1)).plan(None).rounds, 5);
    }

    #[test]
    fn a_quick_run_judges_nothing() {
        assert!(Lab::new(true, None).refusal().is_some());
    }
}
