//! The settings of the workloads, from the environment or `--set`, and their valid values.

use std::time::Duration;

use crate::lab::Lab;
use crate::problem::Problem;
use crate::workloads::Knob;

/// Requests per producer.
const PER_THREAD: Knob = Knob {
    name: "THALWEG_SUBMIT_PER_THREAD",
    default: "20000",
    what: "requests of each producer, 1 to 10000000",
};

const ITERS: Knob = Knob {
    name: "THALWEG_SUBMIT_ITERS",
    default: "5",
    what: "samples of each cell in each of three processes, 2 to 1000",
};

const THREADS: Knob = Knob {
    name: "THALWEG_SUBMIT_THREADS",
    default: "1,2,4,8",
    what: "threads that submit: at least two numbers that begin with 1 and ascend, 256 at most",
};

const SETTLE: Knob = Knob {
    name: "THALWEG_SUBMIT_SETTLE",
    default: "30 s",
    what: "how long callbacks may take after the last submission: a time with its unit, 1 ms to 1 h",
};

const SCALING_GATE: Knob = Knob {
    name: "THALWEG_SCALING_GATE",
    default: "1",
    what: "1: judge the scaling gate, 0: leave it",
};

/// The knobs of a workload without a gate.
pub const KNOBS: &[Knob] = &[PER_THREAD, ITERS, THREADS, SETTLE];

/// The knobs of the workload with the gate.
pub const GATED: &[Knob] = &[
    PER_THREAD,
    ITERS,
    Knob {
        default: "1,2,4,8,32,100",
        ..THREADS
    },
    SETTLE,
    SCALING_GATE,
];

/// Largest number of requests per producer in a quick run.
const QUICK: u64 = 1_000;

/// The values of the knobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Requests per producer.
    pub each: u64,
    /// Samples of each cell in each process.
    pub iterations: usize,
    /// Numbers of threads, ascending from 1.
    pub producers: Vec<usize>,
    /// How long callbacks may take after the last submission.
    pub settle: Duration,
    /// Whether the scaling gate is judged.
    pub gate: bool,
}

impl Settings {
    /// The values in `lab` of `knobs`, which are [`KNOBS`] or [`GATED`].
    ///
    /// # Errors
    /// A value is invalid; the message lists the valid ones.
    pub fn of(lab: &Lab, knobs: &[Knob]) -> Result<Self, Problem> {
        let mut settings = Self::read(knobs, |knob| lab.knob(knob))?;
        if lab.quick() {
            settings.each = settings.each.min(QUICK);
        }
        Ok(settings)
    }

    fn read(knobs: &[Knob], text: impl Fn(&Knob) -> String) -> Result<Self, Problem> {
        let mut settings = Self {
            each: 0,
            iterations: 0,
            producers: Vec::new(),
            settle: Duration::ZERO,
            gate: false,
        };
        for knob in knobs {
            let text = text(knob);
            let known = settings.set(knob.name, text.trim());
            known.ok_or_else(|| {
                Problem::Usage(format!("{}={text} is invalid: {}", knob.name, knob.what))
            })?;
        }
        Ok(settings)
    }

    /// Sets one knob; `None` if the value is invalid.
    fn set(&mut self, knob: &str, text: &str) -> Option<()> {
        match knob {
            "THALWEG_SUBMIT_PER_THREAD" => {
                self.each = text.parse().ok()?;
                (1..=10_000_000).contains(&self.each)
            }
            "THALWEG_SUBMIT_ITERS" => {
                self.iterations = text.parse().ok()?;
                (2..=1_000).contains(&self.iterations)
            }
            "THALWEG_SUBMIT_THREADS" => {
                let numbers = text.split(',').map(|one| one.trim().parse().ok());
                self.producers = numbers.collect::<Option<_>>()?;
                let all = &self.producers;
                let ascending = all.windows(2).all(|two| two[0] < two[1]);
                all.len() >= 2 && all[0] == 1 && ascending && self.top() <= 256
            }
            "THALWEG_SUBMIT_SETTLE" => {
                self.settle = humantime::parse_duration(text).ok()?;
                (Duration::from_millis(1)..=Duration::from_secs(3_600)).contains(&self.settle)
            }
            _ => {
                self.gate = text == "1";
                ["0", "1"].contains(&text)
            }
        }
        .then_some(())
    }

    /// The largest number of threads.
    #[must_use]
    pub fn top(&self) -> usize {
        *self.producers.last().expect("there are two at least")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, Problem> {
        Settings::read(GATED, |knob| {
            let set = if knob.name == name {
                value
            } else {
                knob.default
            };
            set.to_owned()
        })
    }

    #[test]
    fn the_defaults_are_those_of_the_workload() {
        let settings = with("", "").unwrap();
        assert_eq!(
            settings,
            Settings {
                each: 20_000,
                iterations: 5,
                producers: vec![1, 2, 4, 8, 32, 100],
                settle: Duration::from_secs(30),
                gate: true,
            }
        );
        assert_eq!(settings.top(), 100);
    }

    #[test]
    fn the_numbers_of_producers_that_are_asked_for_are_taken() {
        let settings = with("THALWEG_SUBMIT_THREADS", "1, 8,16,32,64,100").unwrap();
        assert_eq!(settings.producers, [1, 8, 16, 32, 64, 100]);
        assert!(!with("THALWEG_SCALING_GATE", "0").unwrap().gate);
        let settle = with("THALWEG_SUBMIT_SETTLE", "500ms").unwrap().settle;
        assert_eq!(settle, Duration::from_millis(500));
    }

    #[test]
    fn a_value_that_is_not_allowed_is_answered_with_what_is() {
        for (name, value, allowed) in [
            ("THALWEG_SUBMIT_PER_THREAD", "0", "1 to 10000000"),
            ("THALWEG_SUBMIT_PER_THREAD", "many", "1 to 10000000"),
            ("THALWEG_SUBMIT_ITERS", "1", "2 to 1000"),
            ("THALWEG_SUBMIT_THREADS", "8", "at least two numbers"),
            ("THALWEG_SUBMIT_THREADS", "2,4", "begin with 1"),
            ("THALWEG_SUBMIT_THREADS", "1,4,4", "ascend"),
            ("THALWEG_SUBMIT_THREADS", "1,257", "256 at most"),
            ("THALWEG_SUBMIT_THREADS", "1,,2", "at least two numbers"),
            ("THALWEG_SUBMIT_SETTLE", "30", "a time with its unit"),
            ("THALWEG_SUBMIT_SETTLE", "0s", "1 ms to 1 h"),
            ("THALWEG_SCALING_GATE", "yes", "1: judge"),
        ] {
            let problem = with(name, value).unwrap_err();
            assert_eq!(problem.exit_status(), 2);
            let text = problem.to_string();
            assert!(
                text.starts_with(&format!("{name}={value} ")) && text.contains(allowed),
                "{text}"
            );
        }
    }
}
