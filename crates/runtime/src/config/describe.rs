//! What holds, where it came from, and what the machine offers.

use std::fmt;
use std::time::Duration;

use super::settings::{self, SETTINGS};
use super::{Config, StartError};
use crate::{affinity, preempt, stack};

/// What [`Config::describe`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Each setting.
    pub settings: Vec<Setting>,
    /// What the machine offers to this process.
    pub machine: Machine,
}

/// One setting of a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The field.
    pub name: &'static str,
    /// What holds.
    pub value: Value,
    /// Where it came from.
    pub source: Source,
    /// The variable of the environment that is heard, if there is one; the one that was, if one was.
    pub variable: Option<&'static str>,
    /// What it may be.
    pub range: &'static str,
}

/// The value of a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A number of something.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A duration.
    Time(Duration),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Bytes(bytes) => write!(f, "{bytes} bytes"),
            Self::Time(time) => write!(f, "{time:?}"),
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
        }
    }
}

/// Where a [`Setting`] came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A variable of the environment.
    Environment,
    /// The program, or the profile that it chose.
    Config,
    /// Nobody said anything, or the program said the same.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment => "environment",
            Self::Config => "config",
            Self::Default => "default",
        })
    }
}

/// What the machine offers to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// Processors in the affinity mask of the calling thread; `None` where the system has none.
    pub processors_in_mask: Option<usize>,
    /// Processors by the mask and the control group's quota together: the default number of workers, up to 64.
    pub processors: usize,
    /// Counts of [`preempt::rdtsc`] in a second.
    pub tsc_hz: u64,
    /// Whether the kernel has guards that need no mapping of their own (Linux 6.13): then stacks are bounded by `max_stacks` and memory alone.
    pub light_guards: bool,
    /// Stacks that the process may have by the number of its mappings, where guards are not light.
    pub most_guarded_stacks: Option<usize>,
}

impl Config {
    /// What a runtime that is started with this would have, with what the environment says, and where each setting came from. Its first call
    /// measures [`preempt::tsc_hz`].
    ///
    /// ```
    /// use thalweg_runtime::{Config, Source};
    ///
    /// let described = Config::default().alloc_interval(64).describe()?;
    /// let interval = described.settings.iter().find(|setting| setting.name == "alloc_interval");
    /// assert!(interval.is_some_and(|interval| interval.value.to_string() == "64" && interval.source == Source::Config));
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    ///
    /// # Errors
    /// As [`init`](crate::runtime::init): a setting, or a variable of the environment, is no good.
    pub fn describe(&self) -> Result<Description, StartError> {
        let default = Self::default();
        let (config, from) = settings::resolve(self.clone(), &settings::environment)?;
        let settings = SETTINGS.iter().zip(from).map(|(known, from)| {
            let value = (known.value)(&config);
            let source = if from.is_some() {
                Source::Environment
            } else if value == (known.value)(&default) {
                Source::Default
            } else {
                Source::Config
            };
            Setting {
                name: known.name,
                value,
                source,
                variable: from.or(known.variable()),
                range: known.range,
            }
        });
        Ok(Description {
            settings: settings.collect(),
            machine: Machine::here(),
        })
    }
}

impl Machine {
    fn here() -> Self {
        let in_mask = affinity::allowed().len();
        let most = stack::most_guarded();
        Self {
            processors_in_mask: (in_mask > 0).then_some(in_mask),
            processors: thalweg_queue::spin::processors(),
            tsc_hz: preempt::tsc_hz(),
            light_guards: most.is_none(),
            most_guarded_stacks: most,
        }
    }
}
