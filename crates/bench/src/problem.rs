//! Why a run ended without its figures.

use std::fmt;
use std::io;

/// Why a run ended without its figures.
#[derive(Debug)]
pub enum Problem {
    /// The command line asks for something that is not there. Exit status 2.
    Usage(String),
    /// Something that the workload needs is missing; the text says what, and what to do.
    NotReady(String),
    /// A workload's own check failed: its figures would mean nothing.
    Check(String),
    /// A host's program died or did not answer as agreed.
    Host(String),
    /// The system said no: what was tried, and its answer.
    Io(String, io::Error),
}

impl Problem {
    /// The process's exit status: 2 for a command line that makes no sense, else 1.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }

    /// For `map_err`: what was tried when the system said no.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io(what, error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::NotReady(text) => to.write_str(text),
            Self::Check(text) => write!(to, "check failed: {text}"),
            Self::Host(text) => write!(to, "host program: {text}"),
            Self::Io(what, error) => write!(to, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}
