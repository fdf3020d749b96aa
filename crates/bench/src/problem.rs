//! The reasons why a run ends without figures.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a run ends without figures.
#[derive(Debug)]
pub enum Problem {
    /// The command line names something that does not exist. Exit status 2.
    Usage(String),
    /// A requirement of the workload is missing; the text names it and how to get it.
    NotReady(String),
    /// A file is not a result file, or violates the schema: the file and the reason.
    NotAResult(PathBuf, String),
    /// A workload's own check failed, so its figures would be meaningless.
    Check(String),
    /// A host program died or violated the protocol.
    Host(String),
    /// The operating system reported an error: the attempted operation, and the error.
    Io(String, io::Error),
}

impl Problem {
    /// The exit status of the process: 2 for an invalid command line, else 1.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }

    /// For `map_err`: `what` is the attempted operation.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io(what, error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::NotReady(text) => to.write_str(text),
            Self::NotAResult(file, why) => {
                write!(to, "{} is not a result file: {why}", file.display())
            }
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
