//! A description of the effective settings, their sources, and the machine.

use std::fmt;
use std::time::Duration;

use super::settings::{self, SETTINGS};
use super::{Config, StartError};
use crate::{affinity, stack, tsc};

/// The result of [`Config::describe`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// All settings.
    pub settings: Vec<Setting>,
    /// The resources of the machine that are available to this process.
    pub machine: Machine,
}

/// A setting of a [`Config`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The name of the field.
    pub name: &'static str,
    /// The effective value.
    pub value: Value,
    /// The source of the value.
    pub source: Source,
    /// The environment variable of the setting: the one that set it, or else the first one. `None`
    /// if there is none.
    pub variable: Option<&'static str>,
    /// The permitted values.
    pub range: &'static str,
}

/// The value of a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A number.
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

/// The source of a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An environment variable.
    Environment,
    /// The program, or the profile that it selected.
    Config,
    /// The default; it is also reported if the program set the same value.
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

/// The resources of the machine that are available to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Machine {
    /// The number of processors in the affinity mask of the calling thread. `None` if the system
    /// has no affinity masks.
    pub processors_in_mask: Option<usize>,
    /// The number of processors, limited by the affinity mask and the control group's quota. It is
    /// the default number of workers, up to 64.
    pub processors: usize,
    /// The rate of [`preempt::rdtsc`](crate::preempt::rdtsc) in counts per second.
    pub tsc_hz: u64,
    /// Whether the kernel supports guards that need no mappings of their own (Linux 6.13). Only
    /// `max_stacks` and memory then limit the number of stacks.
    pub light_guards: bool,
    /// If guards need mappings of their own, the number of stacks that the process may have.
    pub max_guarded_stacks: Option<usize>,
}

impl Config {
    /// Returns the settings that a runtime with this configuration would have, including the
    /// environment, and the source of each. The first call measures
    /// [`preempt::tsc_hz`](crate::preempt::tsc_hz).
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
    /// As for [`init`](crate::runtime::init): a setting or an environment variable is invalid.
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
        let most = stack::max_guarded();
        Self {
            processors_in_mask: (in_mask > 0).then_some(in_mask),
            processors: thalweg_queue::spin::processors(),
            tsc_hz: tsc::tsc_hz(),
            light_guards: most.is_none(),
            max_guarded_stacks: most,
        }
    }
}
