//! The operations under test, through the C table and through Rust.
//!
//! An operation is one function, which is called many times. The shortage applies to its part
//! inside [`fault::during`](crate::fault::during); the rest prepares and cleans up.

mod actors;
mod client;
mod table;

use std::fmt;

pub use actors::exits_with;

/// How an operation failed.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The name of the outcome, or of the Rust error.
    pub code: String,
    /// Whether the same operation may succeed later, if the error reports it.
    pub retryable: bool,
    /// A message for people.
    pub text: String,
}

/// A result that no shortage excuses: wrong data, or a missing end.
const VIOLATION: &str = "violation";

impl Problem {
    fn new(code: &str, error: impl fmt::Display) -> Self {
        Self {
            code: code.to_owned(),
            retryable: false,
            text: error.to_string(),
        }
    }

    fn violation(text: impl fmt::Display) -> Self {
        Self::new(VIOLATION, text)
    }

    /// Whether no shortage excuses it.
    pub fn is_violation(&self) -> bool {
        self.code == VIOLATION
    }
}

impl From<thalweg::Failure> for Problem {
    fn from(failure: thalweg::Failure) -> Self {
        Self {
            code: failure.code.name().to_owned(),
            retryable: failure.retryable(),
            text: failure.message,
        }
    }
}

/// One run of an operation.
pub type Step = Box<dyn FnMut() -> Result<(), Problem>>;

/// An operation under test.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its name on a command line.
    pub name: &'static str,
    /// Prepares the operation before any shortage.
    pub setup: fn() -> Step,
    /// It runs on an existing runtime, so that stacks can run out there.
    pub has_runtime: bool,
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operation").field(&self.name).finish()
    }
}

const fn on_runtime(name: &'static str, setup: fn() -> Step) -> Operation {
    Operation {
        name,
        setup,
        has_runtime: true,
    }
}

const fn alone(name: &'static str, setup: fn() -> Step) -> Operation {
    Operation {
        name,
        setup,
        has_runtime: false,
    }
}

/// All operations.
pub const ALL: &[Operation] = &[
    alone("table.open", table::open),
    on_runtime("table.call", table::call),
    on_runtime("table.large", table::large),
    on_runtime("table.later", table::later),
    on_runtime("table.batch", table::batch),
    on_runtime("table.stream", table::stream),
    on_runtime("table.subscribe", table::subscribe),
    on_runtime("table.upstream", table::upstream),
    on_runtime("table.deadline", table::deadline),
    on_runtime("table.fd", table::fd),
    on_runtime("table.close", table::close),
    alone("table.transcode", table::transcode),
    alone("client.open", client::open),
    on_runtime("client.call", client::call),
    on_runtime("client.stream", client::stream),
    alone("runtime.start", actors::start),
    alone("runtime.run", actors::run),
    alone("runtime.sleep-async", actors::sleep_async),
    on_runtime("runtime.spawn", actors::spawn),
    on_runtime("runtime.actor", actors::actor),
    on_runtime("runtime.supervise", actors::supervise),
    on_runtime("runtime.timers", actors::timers),
    on_runtime("runtime.blocking", actors::blocking),
    on_runtime("runtime.readiness", actors::readiness),
    alone("runtime.shutdown", actors::shutdown),
    alone("channel.large", actors::channels),
];
