//! One run: its settings, and the state that the workloads share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::interleave::Plan;
use crate::problem::Problem;
use crate::round_trip::RoundTrips;
use crate::workloads::{Knob, Workload};
use crate::{hosts, round_trip, tools};

/// Fewest samples of a side; also the default of workloads that do not set their own number.
pub const FEWEST_SAMPLES: usize = 5;

/// The settings of a run, and what its workloads record.
#[derive(Debug)]
pub struct Lab {
    quick: bool,
    samples: Option<usize>,
    duration: Option<Duration>,
    with_1mib: bool,
    set: BTreeMap<String, String>,
    progress: ProgressBar,
    /// The round trips that were measured since [`take_round_trips`](Self::take_round_trips).
    round_trips: RefCell<Vec<f64>>,
    /// The peers: name and version.
    pub peers: BTreeMap<String, String>,
    /// The knobs and their values.
    pub knobs: BTreeMap<String, String>,
}

impl Lab {
    /// A new run. `samples` overrides the workloads' own numbers; `quick` makes every sample short.
    #[must_use]
    pub fn new(quick: bool, samples: Option<usize>) -> Self {
        let progress = ProgressBar::no_length();
        let style = "{msg:44!} [{bar:14}] {pos}/{len} {elapsed} (eta {eta})";
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
            duration: None,
            with_1mib: false,
            set: BTreeMap::new(),
            progress,
            round_trips: RefCell::default(),
            peers: BTreeMap::new(),
            knobs,
        }
    }

    /// Sets the duration of workloads that run for a fixed time.
    #[must_use]
    pub fn lasting(mut self, duration: Option<Duration>) -> Self {
        if let Some(duration) = duration {
            let text = humantime::format_duration(duration).to_string();
            self.knobs.insert("duration".to_owned(), text);
        }
        self.duration = duration;
        self
    }

    /// Sets whether payloads of 1 MiB are measured, too.
    #[must_use]
    pub fn with_1mib(mut self, wanted: bool) -> Self {
        if wanted {
            self.knobs
                .insert("include_1mib".to_owned(), "true".to_owned());
        }
        self.with_1mib = wanted;
        self
    }

    /// Sets knobs.
    #[must_use]
    pub fn setting(mut self, set: BTreeMap<String, String>) -> Self {
        self.set = set;
        self
    }

    /// The duration of a workload that runs for a fixed time: the requested one, else `own`.
    #[must_use]
    pub fn duration(&self, own: Duration) -> Duration {
        self.duration.unwrap_or(own)
    }

    /// Whether payloads of 1 MiB are measured, too.
    #[must_use]
    pub fn include_1mib(&self) -> bool {
        self.with_1mib
    }

    /// The value of `knob`: the value set for this run; else, if its name begins with `THALWEG_`,
    /// the environment variable; else the default.
    #[must_use]
    pub fn knob(&self, knob: &Knob) -> String {
        standing(knob, self.set.get(knob.name), |name| env::var(name).ok())
    }

    /// The value of a knob that is a whole number.
    ///
    /// # Errors
    /// The value is not a whole number.
    pub fn number(&self, knob: &Knob) -> Result<u64, Problem> {
        let text = self.knob(knob);
        text.parse()
            .map_err(|_| Problem::Usage(format!("{} is a whole number, not `{text}`", knob.name)))
    }

    /// Records the knobs of `workload` as `workload.knob`, because two workloads may use the same
    /// name for different knobs.
    pub fn note_knobs(&mut self, workload: &Workload) {
        for knob in workload.knobs {
            let name = format!("{}.{}", workload.name, knob.name);
            self.knobs.insert(name, self.knob(knob));
        }
    }

    /// Whether this is a quick run, whose figures need not be accurate.
    #[must_use]
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// The numbers of samples. `own` is the workload's own number, if it has one.
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

    /// The reason why this run gives no verdicts, if there is one.
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

    /// Shows a new progress bar of `steps` steps; on a terminal only.
    pub fn begin(&self, what: &str, steps: usize) {
        // The bar draws only when a step is reported, never from its own thread, because such a
        // thread would wake during a measurement.
        self.progress.set_length(steps as u64);
        self.progress.reset();
        self.progress.set_message(what.to_owned());
    }

    /// Advances the bar by one step.
    pub fn step(&self) {
        self.progress.inc(1);
    }

    /// Removes the bar before other output is printed.
    pub fn end(&self) {
        self.progress.finish_and_clear();
    }

    /// Measures how far apart two processors are now ([`round_trip`]).
    pub fn note_round_trip(&self) {
        self.round_trips.borrow_mut().extend(round_trip::measure());
    }

    /// The round trips since the last call, if there were any.
    #[must_use]
    pub fn take_round_trips(&self) -> Option<RoundTrips> {
        RoundTrips::of(&self.round_trips.take())
    }

    /// The measured commit.
    #[must_use]
    pub fn commit(&self) -> String {
        tools::commit(&hosts::root())
    }
}

fn standing(
    knob: &Knob,
    set: Option<&String>,
    environment: impl Fn(&str) -> Option<String>,
) -> String {
    let of_environment = || {
        let known = knob.name.starts_with("THALWEG_");
        known.then(|| environment(knob.name)).flatten()
    };
    set.cloned()
        .or_else(of_environment)
        .unwrap_or_else(|| knob.default.to_owned())
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
    fn a_knob_is_what_was_set_or_its_default_and_the_result_says_which() {
        const KNOBS: &[Knob] = &[
            Knob {
                name: "producers",
                default: "4",
                what: "threads that send",
            },
            Knob {
                name: "items",
                default: "many",
                what: "a send of each",
            },
        ];
        let set = BTreeMap::from([("producers".to_owned(), "8".to_owned())]);
        let mut lab = Lab::new(true, None).setting(set);
        assert_eq!(lab.number(&KNOBS[0]).unwrap(), 8);
        assert_eq!(lab.knob(&KNOBS[1]), "many");
        let problem = lab.number(&KNOBS[1]).unwrap_err();
        assert_eq!(problem.to_string(), "items is a whole number, not `many`");
        lab.note_knobs(&Workload {
            name: "w",
            knobs: KNOBS,
            ..Workload::USUAL
        });
        assert_eq!(lab.knobs["w.producers"], "8");
        assert_eq!(lab.knobs["w.items"], "many");
    }

    #[test]
    fn a_knob_that_is_named_like_an_environment_variable_is_read_from_there() {
        let knob = |name| Knob {
            name,
            default: "default",
            what: "",
        };
        let environment = |_: &str| Some("environment".to_owned());
        let set = "set".to_owned();
        let (ours, other) = (knob("THALWEG_ITEMS"), knob("PATH"));
        assert_eq!(standing(&ours, Some(&set), environment), "set");
        assert_eq!(standing(&ours, None, environment), "environment");
        assert_eq!(standing(&ours, None, |_| None), "default");
        assert_eq!(standing(&other, None, environment), "default");
    }

    #[test]
    fn a_duration_that_was_asked_for_wins_and_is_written_down() {
        let own = Duration::from_secs(3);
        assert_eq!(Lab::new(false, None).duration(own), own);
        let lab = Lab::new(false, None).lasting(Some(Duration::from_secs(3600)));
        assert_eq!(lab.duration(own).as_secs(), 3600);
        assert_eq!(lab.knobs["duration"], "1h");
    }

    #[test]
    fn a_quick_run_judges_nothing() {
        assert!(Lab::new(true, None).refusal().is_some());
    }
}
