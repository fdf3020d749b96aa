//! Why a call has no result.

use std::fmt;
use std::io;

use thalweg::Code;
use thalweg_capi::abi::{TW_OK, TwError};

use crate::description::Unreadable;
use crate::library;
use crate::value::Refused;

/// An error of `thalweg call`.
#[derive(Debug)]
pub enum Error {
    /// The library cannot be opened.
    Library(library::Error),
    /// The command line has an error.
    Usage(String),
    /// The JSON has an error, or cannot be read.
    Input(String),
    /// A part of the JSON is not a value of its type.
    Value(Refused),
    /// The table describes a type in an unknown form.
    Type(Unreadable),
    /// The function cannot be called by this command.
    Unsupported(String),
    /// The call ended without a result, or a function of the table failed.
    Outcome(Outcome),
    /// The result is not a value of its type.
    Malformed(&'static str),
    /// Standard output cannot be written.
    Stdout(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Library(error) => error.fmt(f),
            Error::Usage(text) | Error::Input(text) | Error::Unsupported(text) => f.write_str(text),
            Error::Value(refused) => refused.fmt(f),
            Error::Type(error) => error.fmt(f),
            Error::Outcome(outcome) => outcome.fmt(f),
            Error::Malformed(what) => write!(f, "the library returned {what} with another layout"),
            Error::Stdout(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<library::Error> for Error {
    fn from(error: library::Error) -> Self {
        Error::Library(error)
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Error::Value(refused)
    }
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Error::Type(error)
    }
}

impl From<Outcome> for Error {
    fn from(outcome: Outcome) -> Self {
        Error::Outcome(outcome)
    }
}

/// A `tw_code` other than `TW_OK`, with its message.
#[derive(Debug)]
pub struct Outcome {
    pub code: u32,
    pub message: String,
    pub is_retryable: bool,
}

impl fmt::Display for Outcome {
    /// `timed_out: the deadline passed`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Code::from_number(self.code).map_or("unknown", Code::name);
        write!(f, "{name}: {}", self.message)?;
        match self.is_retryable {
            true => f.write_str(" (the same call may succeed later)"),
            false => Ok(()),
        }
    }
}

impl Outcome {
    /// The outcome of a call that Ctrl-C ended.
    pub fn interrupted() -> Self {
        Self {
            code: Code::Cancelled as u32,
            message: "interrupted by a signal".to_owned(),
            is_retryable: false,
        }
    }
}

/// A `tw_error` for a function to fill in.
pub const NO_ERROR: TwError = TwError {
    code: TW_OK,
    retryable: 0,
    message: [0; 248],
};

/// The result of a function of the table.
pub fn check(code: u32, error: &TwError) -> Result<(), Outcome> {
    match code {
        TW_OK => Ok(()),
        code => Err(outcome(code, error)),
    }
}

/// The outcome in a `tw_error`.
pub fn outcome(code: u32, error: &TwError) -> Outcome {
    let bytes = error.message.iter().map(|byte| byte.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    Outcome {
        code,
        message: String::from_utf8_lossy(&bytes).into_owned(),
        is_retryable: error.retryable != 0,
    }
}
