//! `thalweg call`: calls functions of a library, with JSON.
//!
//! The calls of one command are made one after the other by one client, so a resource that a call
//! returns can be used by the later ones. A stream is printed while it arrives. The parameters that
//! are streams are sent by threads of their own, because the service may return before it has read
//! them.

mod failure;
mod input;
mod interrupt;
mod session;
mod upstream;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::library::Library;
use crate::output::{BROKEN_PIPE, Output};

pub use failure::Error;
use session::{Ended, Session};

/// The arguments of `thalweg call`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The library of a service
    library: PathBuf,

    /// The calls: the name of a function, and its parameters as a JSON object, for each. `-` reads
    /// the object from standard input. A function without parameters needs no object
    #[arg(required = true, value_name = "FUNCTION [JSON]")]
    calls: Vec<String>,

    /// The maximum duration of all calls and their streams, such as `250ms`, `5s` or `2min`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    deadline: Option<Duration>,
}

/// Reads a duration.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [
        ("us", 1),
        ("ms", 1_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
    ];
    let read = |(unit, us): (&str, u64)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        (number > 0).then(|| Duration::from_micros(u64::from(number) * us))
    };
    units
        .into_iter()
        .find_map(read)
        .ok_or_else(|| "a whole number and `us`, `ms`, `s` or `min` is expected".to_owned())
}

/// Makes the calls. Exit status 1: one of them returned its typed error, which is on standard error.
///
/// # Errors
/// The library cannot be opened, an argument is wrong, or a call ended otherwise.
pub fn run(arguments: &Arguments) -> Result<Output, Error> {
    let library = Library::open(&arguments.library)?;
    let calls = calls(&arguments.calls)?;
    let mut stdin = input::Stdin::default();
    let mut session = Session::open(&library, arguments.deadline)?;
    for (function, json) in calls {
        let number = session.method(function)?;
        let json = match json {
            None => Value::Object(Map::new()),
            Some("-") => input::parse(&stdin.all()?, "standard input")?,
            Some(text) => input::parse(text.as_bytes(), "the JSON")?,
        };
        match session.call(number, &json, &mut stdin) {
            Ok(Ended::Returned) => {}
            Ok(Ended::Failed(error)) => {
                return Ok(Output {
                    stderr: error + "\n",
                    status: 1,
                    ..Output::default()
                });
            }
            Err(Error::Stdout(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                return Ok(Output {
                    status: BROKEN_PIPE,
                    ..Output::default()
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Output::default())
}

/// The calls on the command line: a function, and its JSON.
fn calls(words: &[String]) -> Result<Vec<(&str, Option<&str>)>, Error> {
    let is_json = |word: &str| word == "-" || word.trim_start().starts_with('{');
    let mut calls: Vec<(&str, Option<&str>)> = Vec::new();
    for word in words {
        match calls.last_mut() {
            Some((_, json @ None)) if is_json(word) => *json = Some(word),
            _ if is_json(word) => {
                return Err(Error::Usage(format!("`{word}` does not follow a function")));
            }
            _ => calls.push((word, None)),
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::{calls, duration};
    use std::time::Duration;

    #[test]
    fn function_is_followed_by_its_json_if_there_is_one() {
        let words = ["counter", "{\"start\": 1}", "value", "add", "-"].map(str::to_owned);
        let expected = [
            ("counter", Some("{\"start\": 1}")),
            ("value", None),
            ("add", Some("-")),
        ];
        assert_eq!(calls(&words).unwrap(), expected);
        for words in [&["{}"][..], &["value", "{}", "{}"]] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            let error = calls(&words).unwrap_err();
            assert_eq!(error.to_string(), "`{}` does not follow a function");
        }
    }

    #[test]
    fn duration_has_a_unit() {
        for (text, ms) in [("250ms", 250), ("5s", 5_000), ("2min", 120_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)));
        }
        for text in ["", "5", "0s", "-1s", "1.5s", "s", "5 s", "99999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
