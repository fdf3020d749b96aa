//! What a runtime can be told, and why it may refuse to start.

use std::time::Duration;

/// Settings of a runtime. `THALWEG_WORKERS` and `THALWEG_STACK_SIZE` in the environment go before what is set here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Threads that run actors, 1 to 64. Default: the processors that the process may use.
    pub workers: usize,
    /// Bytes of address space for one stack, 64 KiB at least; memory is used as it is touched. Default: 1 MiB, which a
    /// regular expression's parser needs at its nesting limit in a debug build.
    pub stack_size: usize,
    /// Actors that may hold a stack at a time, each worker its share of them; one more ends with
    /// [`JoinError::NoStack`](crate::JoinError::NoStack). Default: 1,048,576. Before Linux 6.13 each is two mappings, and there is an end
    /// at half of `vm.max_map_count`, which is 16,382 stacks where nobody changed it.
    pub max_stacks: usize,
    /// Whether an actor that overflows its stack is named on standard error before the process ends. It takes the handlers of SIGSEGV and
    /// SIGBUS, and hands on what is not its own. Default: `true`; [`Runtime::global`](crate::Runtime::global), which may live in
    /// another language's process, has it off.
    pub report_overflow: bool,
    /// Whether the process's panic hook notes down for an actor's [`Panic`](crate::Panic) where it was; the hook from before is asked all the
    /// same. Default: `true`; [`Runtime::global`](crate::Runtime::global) has it off.
    pub note_panics: bool,
    /// How long an actor that calls [`crate::wait::check`] may run while others wait. Default: 100 us.
    pub timeslice: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: thalweg_queue::spin::processors().min(MOST_WORKERS),
            stack_size: 1 << 20,
            max_stacks: 1 << 20,
            report_overflow: true,
            note_panics: true,
            timeslice: Duration::from_micros(100),
        }
    }
}

/// One bit each in the word of idle workers.
pub(crate) const MOST_WORKERS: usize = 64;

/// Why a runtime did not start.
#[derive(Debug)]
pub enum StartError {
    /// A setting is out of its range: which, the value, and the range.
    Setting(&'static str, String, &'static str),
    /// The system gave no thread.
    Thread(std::io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Setting(name, value, range) => write!(f, "{name} is {value}, it must be {range}"),
            Self::Thread(error) => write!(f, "no thread for a worker: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl Config {
    /// The default with so many workers.
    #[must_use]
    pub fn exact(workers: usize) -> Self {
        Self {
            workers,
            ..Self::default()
        }
    }

    pub(crate) fn checked(mut self) -> Result<Self, StartError> {
        from_env("THALWEG_WORKERS", &mut self.workers)?;
        from_env("THALWEG_STACK_SIZE", &mut self.stack_size)?;
        let checks = [
            ("workers", self.workers, 1, MOST_WORKERS, "1 to 64"),
            (
                "stack_size",
                self.stack_size,
                64 << 10,
                1 << 30,
                "64 KiB to 1 GiB",
            ),
            (
                "max_stacks",
                self.max_stacks,
                self.workers,
                1 << 20,
                "one a worker to 1,048,576",
            ),
        ];
        for (name, value, least, most, range) in checks {
            if !(least..=most).contains(&value) {
                return Err(StartError::Setting(name, value.to_string(), range));
            }
        }
        Ok(self)
    }
}

fn from_env(name: &'static str, value: &mut usize) -> Result<(), StartError> {
    if let Ok(text) = std::env::var(name) {
        *value = text
            .parse()
            .map_err(|_| StartError::Setting(name, format!("{text:?}"), "a number"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Config, StartError};

    #[test]
    fn settings_out_of_range_are_named() {
        for bad in [
            Config {
                workers: 0,
                ..Config::default()
            },
            Config {
                workers: 65,
                ..Config::default()
            },
            Config {
                stack_size: 1,
                ..Config::default()
            },
            Config {
                max_stacks: 0,
                ..Config::default()
            },
        ] {
            assert!(matches!(bad.checked(), Err(StartError::Setting(..))));
        }
    }
}
