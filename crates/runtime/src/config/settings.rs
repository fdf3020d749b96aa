//! The table of settings: their variables, their ranges, and their order of precedence.

use std::env;
use std::ffi::OsString;
use std::time::Duration;

use super::{Config, MAX_WORKERS, StartError, Value};
use crate::{stall, tsc};

/// The specification of a setting.
pub(super) struct SettingSpec {
    pub(super) name: &'static str,
    /// The environment variables: the name, and a function that parses the text. The function's
    /// error describes what the text must be.
    variables: &'static [(&'static str, Read)],
    pub(super) range: &'static str,
    pub(super) value: fn(&Config) -> Value,
    is_in_range: fn(&Config) -> bool,
}

type Read = fn(&mut Config, &str) -> Result<(), &'static str>;

const A_NUMBER: &str = "a number";

pub(super) static SETTINGS: [SettingSpec; 12] = [
    SettingSpec {
        name: "workers",
        variables: &[("THALWEG_WORKERS", |config, text| {
            config.workers = text.parse().map_err(|_| A_NUMBER)?;
            Ok(())
        })],
        range: "1 to 64",
        value: |config| Value::Count(config.workers as u64),
        is_in_range: |config| (1..=MAX_WORKERS).contains(&config.workers),
    },
    SettingSpec {
        name: "stack_size",
        variables: &[("THALWEG_STACK_SIZE", |config, text| {
            config.stack_size = text.parse().map_err(|_| "a number of bytes")?;
            Ok(())
        })],
        range: "64 KiB to 1 GiB, in bytes",
        value: |config| Value::Bytes(config.stack_size as u64),
        is_in_range: |config| (64 << 10..=1 << 30).contains(&config.stack_size),
    },
    SettingSpec {
        name: "max_stacks",
        variables: &[("THALWEG_MAX_STACKS", |config, text| {
            config.max_stacks = text.parse().map_err(|_| A_NUMBER)?;
            Ok(())
        })],
        range: "one per worker to 1,048,576",
        value: |config| Value::Count(config.max_stacks as u64),
        is_in_range: |config| (config.workers..=1 << 20).contains(&config.max_stacks),
    },
    SettingSpec {
        name: "timeslice",
        variables: &[
            ("THALWEG_TIMESLICE", |config, text| {
                config.timeslice = duration(text)?;
                Ok(())
            }),
            ("THALWEG_TIMESLICE_CYCLES", |config, text| {
                let cycles = text.parse().map_err(|_| "a number of cycles")?;
                config.timeslice = tsc::duration_of(cycles);
                Ok(())
            }),
        ],
        range: "1 us to 1 s",
        value: |config| Value::Time(config.timeslice),
        is_in_range: |config| {
            (Duration::from_micros(1)..=Duration::from_secs(1)).contains(&config.timeslice)
        },
    },
    SettingSpec {
        name: "alloc_interval",
        variables: &[("THALWEG_ALLOC_INTERVAL", |config, text| {
            config.alloc_interval = text.parse().map_err(|_| A_NUMBER)?;
            Ok(())
        })],
        range: "1 to 1,000,000",
        value: |config| Value::Count(config.alloc_interval.into()),
        is_in_range: |config| (1..=1_000_000).contains(&config.alloc_interval),
    },
    SettingSpec {
        name: "affinity",
        variables: &[("THALWEG_AFFINITY", |config, text| {
            config.affinity = switch(text)?;
            Ok(())
        })],
        range: if cfg!(target_os = "linux") {
            "on or off"
        } else {
            "off: this system cannot pin threads"
        },
        value: |config| Value::Switch(config.affinity),
        is_in_range: |config| cfg!(target_os = "linux") || !config.affinity,
    },
    SettingSpec {
        name: "blocking_threads",
        variables: &[("THALWEG_BLOCKING_THREADS", |config, text| {
            config.blocking_threads = text.parse().map_err(|_| A_NUMBER)?;
            Ok(())
        })],
        range: "1 to 32,768",
        value: |config| Value::Count(config.blocking_threads as u64),
        is_in_range: |config| (1..=1 << 15).contains(&config.blocking_threads),
    },
    SettingSpec {
        name: "stall",
        variables: &[("THALWEG_STALL", |config, text| {
            config.stall = match text {
                "off" => None,
                text => Some(duration(text).map_err(|_| "off, or a duration such as 100ms")?),
            };
            Ok(())
        })],
        range: if stall::IS_SUPPORTED {
            "1 ms to 1 h, or off"
        } else {
            "off: stall reports are not supported on this system"
        },
        value: |config| match config.stall {
            Some(stall) => Value::Time(stall),
            None => Value::Switch(false),
        },
        is_in_range: |config| {
            config.stall.is_none_or(|stall| {
                let range = Duration::from_millis(1)..=Duration::from_secs(3_600);
                stall::IS_SUPPORTED && range.contains(&stall)
            })
        },
    },
    SettingSpec {
        name: "inspect",
        variables: &[("THALWEG_INSPECT", |config, text| {
            config.inspect = switch(text)?;
            Ok(())
        })],
        range: "on or off",
        value: |config| Value::Switch(config.inspect),
        is_in_range: |_| true,
    },
    SettingSpec {
        name: "shutdown_timeout",
        variables: &[("THALWEG_SHUTDOWN_TIMEOUT", |config, text| {
            config.shutdown_timeout = duration(text)?;
            Ok(())
        })],
        range: "0 s to 1 h",
        value: |config| Value::Time(config.shutdown_timeout),
        is_in_range: |config| config.shutdown_timeout <= Duration::from_secs(3_600),
    },
    SettingSpec {
        name: "report_overflow",
        variables: &[],
        range: "on or off",
        value: |config| Value::Switch(config.report_overflow),
        is_in_range: |_| true,
    },
    SettingSpec {
        name: "note_panics",
        variables: &[],
        range: "on or off",
        value: |config| Value::Switch(config.note_panics),
        is_in_range: |_| true,
    },
];

impl SettingSpec {
    /// Returns the first variable, for documentation.
    pub(super) fn variable(&self) -> Option<&'static str> {
        self.variables.first().map(|(name, _)| *name)
    }
}

/// Reads the environment of the process.
pub(super) fn environment(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// The variable from which each setting came, in the order of [`SETTINGS`].
pub(super) type Variables = [Option<&'static str>; SETTINGS.len()];

/// Applies `environment` to `config`, and checks the ranges.
pub(super) fn resolve(
    mut config: Config,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(Config, Variables), StartError> {
    let mut from: Variables = [None; SETTINGS.len()];
    for (known, from) in SETTINGS.iter().zip(&mut from) {
        for &(variable, read) in known.variables {
            let Some(text) = environment(variable) else {
                continue;
            };
            let must = |what| StartError::Setting(variable, format!("{text:?}"), what);
            if from.is_some() {
                return Err(must("unset: another variable of the same setting is set"));
            }
            match text.to_str() {
                None => return Err(must("text in UTF-8")),
                Some("") => return Err(must("unset, or have a value")),
                Some(text) => read(&mut config, text).map_err(must)?,
            }
            *from = Some(variable);
        }
    }
    for (known, from) in SETTINGS.iter().zip(&from) {
        if !(known.is_in_range)(&config) {
            let name = from.unwrap_or(known.name);
            let value = (known.value)(&config).to_string();
            return Err(StartError::Setting(name, value, known.range));
        }
    }
    Ok((config, from))
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off"),
    }
}

/// Parses a duration such as `100us` or `1ms`.
fn duration(text: &str) -> Result<Duration, &'static str> {
    const MUST: &str = "a whole number and its unit: ns, us, ms or s, such as 100us";
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let ns: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(MUST),
    };
    let number: u64 = number.parse().map_err(|_| MUST)?;
    Ok(Duration::from_nanos(number.saturating_mul(ns)))
}

#[cfg(test)]
mod tests {
    use super::{Config, StartError, duration, resolve};
    use std::collections::HashMap;
    use std::ffi::OsString;
    use std::time::Duration;

    fn with(config: Config, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        let environment = |name: &str| variables.get(name).map(OsString::from);
        match resolve(config, &environment) {
            Ok((config, _)) => Ok(config),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn setting_out_of_range_is_an_error_with_name_value_and_range() {
        let config = Config::default;
        for (bad, says) in [
            (config().workers(0), "workers is 0, it must be 1 to 64"),
            (config().workers(65), "workers is 65, it must be 1 to 64"),
            (
                config().stack_size(1),
                "stack_size is 1 bytes, it must be 64 KiB to 1 GiB, in bytes",
            ),
            (
                config().workers(2).max_stacks(1),
                "max_stacks is 1, it must be one per worker to 1,048,576",
            ),
            (
                config().timeslice(Duration::ZERO),
                "timeslice is 0ns, it must be 1 us to 1 s",
            ),
            (
                config().alloc_interval(0),
                "alloc_interval is 0, it must be 1 to 1,000,000",
            ),
        ] {
            assert_eq!(with(bad, &[]), Err(says.to_owned()));
        }
        assert_eq!(
            with(config().affinity(true), &[]).is_ok(),
            cfg!(target_os = "linux")
        );
    }

    #[test]
    fn environment_takes_precedence_over_the_program() {
        let config = Config::with_workers(3).timeslice(Duration::from_micros(7));
        let said = with(
            config,
            &[
                ("THALWEG_WORKERS", "2"),
                ("THALWEG_STACK_SIZE", "131072"),
                ("THALWEG_MAX_STACKS", "17"),
                ("THALWEG_TIMESLICE", "1ms"),
                ("THALWEG_ALLOC_INTERVAL", "64"),
                ("THALWEG_AFFINITY", "off"),
                ("THALWEG_INSPECT", "on"),
                ("THALWEG_SHUTDOWN_TIMEOUT", "3s"),
            ],
        );
        let expected = Config {
            workers: 2,
            stack_size: 131_072,
            max_stacks: 17,
            timeslice: Duration::from_millis(1),
            alloc_interval: 64,
            affinity: false,
            inspect: true,
            shutdown_timeout: Duration::from_secs(3),
            ..Config::default()
        };
        assert_eq!(said, Ok(expected));
    }

    #[test]
    fn timeslice_in_cycles_is_converted_to_a_duration() {
        let cycles = (crate::tsc::tsc_hz() / 1_000).to_string();
        let config = with(Config::default(), &[("THALWEG_TIMESLICE_CYCLES", &cycles)]).unwrap();
        assert!((999..=1_000).contains(&config.timeslice.as_micros()));
    }

    #[test]
    fn invalid_variable_is_named_in_the_error() {
        for (variable, text, says) in [
            ("THALWEG_WORKERS", "", "unset, or have a value"),
            ("THALWEG_WORKERS", "two", "a number"),
            ("THALWEG_WORKERS", "0", "1 to 64"),
            ("THALWEG_STACK_SIZE", "64K", "a number of bytes"),
            ("THALWEG_TIMESLICE", "100", "a whole number and its unit"),
            ("THALWEG_TIMESLICE", "1.5ms", "a whole number and its unit"),
            ("THALWEG_TIMESLICE", "us", "a whole number and its unit"),
            ("THALWEG_TIMESLICE", "1h", "a whole number and its unit"),
            ("THALWEG_TIMESLICE", "2s", "1 us to 1 s"),
            (
                "THALWEG_TIMESLICE",
                "99999999999999999999s",
                "a whole number",
            ),
            ("THALWEG_TIMESLICE_CYCLES", "1", "1 us to 1 s"),
            ("THALWEG_TIMESLICE_CYCLES", "1ms", "a number of cycles"),
            ("THALWEG_AFFINITY", "yes", "on or off"),
            ("THALWEG_INSPECT", "1", "on or off"),
            ("THALWEG_SHUTDOWN_TIMEOUT", "3601s", "0 s to 1 h"),
        ] {
            let error = with(Config::default(), &[(variable, text)]).unwrap_err();
            assert!(error.starts_with(variable), "{error}");
            assert!(error.contains(says), "{error}");
        }
        let both = [
            ("THALWEG_TIMESLICE", "1ms"),
            ("THALWEG_TIMESLICE_CYCLES", "300000"),
        ];
        let error = with(Config::default(), &both).unwrap_err();
        assert!(error.contains("unset: another variable"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn non_utf8_variable_is_named_in_the_error() {
        use std::os::unix::ffi::OsStringExt;
        let environment =
            |name: &str| (name == "THALWEG_WORKERS").then(|| OsString::from_vec(vec![0xff]));
        let error = resolve(Config::default(), &environment).unwrap_err();
        assert!(matches!(
            error,
            StartError::Setting("THALWEG_WORKERS", _, "text in UTF-8")
        ));
    }

    #[test]
    fn duration_requires_a_unit() {
        assert_eq!(duration("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(duration("100µs"), Ok(Duration::from_micros(100)));
        assert_eq!(duration("5000ns"), Ok(Duration::from_micros(5)));
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
    }
}
