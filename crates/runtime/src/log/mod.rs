//! Log records: what the runtime and the services on it report about themselves.
//!
//! A program sets one sink, which receives the records up to a [`Level`]:
//!
//! ```
//! use std::sync::mpsc;
//! use thalweg_runtime::log::{self, Level};
//! use thalweg_runtime::{run, spawn};
//!
//! let (records, received) = mpsc::channel();
//! log::set_sink(Level::Warning, move |record| {
//!     let _ = records.send(format!("{:?} {}: {}", record.level, record.target, record.message));
//! });
//! run(|| drop(spawn(|| panic!("no more paper")).join()));
//! assert!(log::take_sink());
//! let mut crashes = received.iter().filter(|record| record.starts_with("Error actor: actor "));
//! assert!(crashes.any(|record| record.contains("no more paper")));
//! ```
//!
//! | target | level | reports |
//! | --- | --- | --- |
//! | `runtime` | error | actors that did not end when their runtime stopped |
//! | | warning | the system refused a thread |
//! | | info | a runtime starts |
//! | `actor` | error | an actor crashed: a panic, an error, a kill, a missing stack |
//! | | warning | an actor blocks its worker in a destructor; a full mailbox drops messages |
//! | `stall` | warning | a [stall report](crate::stall), unless a hook receives it |
//! | `supervisor` | error | a supervisor ends because it restarted its children too often |
//! | | info | a supervisor restarts a child |
//! | `service` | error | a panic of a service; a service that cannot be created |
//! | | warning | a call without an answer; calls refused because the service is overloaded |
//! | `port` | warning | calls refused because the port has no slot |
//! | `stream` | warning | a stream that its service did not finish; a full stream drops records |
//!
//! Without a sink no record is built. The errors of `runtime`, the warnings of `stall`, and an
//! actor that blocks its worker then go to standard error. A panic is also passed to the process's
//! panic hook, which prints it.
//!
//! A record that may repeat quickly is written at most once per second. The next one ends with the
//! number of those that were left out.

// 1. A sink belongs to one process. A forked child begins without one, and never calls or drops
//    its parent's, because the threads that used it do not exist there.
// 2. A call of a sink is counted under the lock under which the sink is replaced. It drops its
//    reference to the sink before it is no longer counted. A thread that removes a sink therefore
//    waits for the calls, and then has the last reference.
// 3. A thread in a call of a sink, or in the text of a record, writes no further records. It does
//    not wait for the calls of a sink that it removes, because one of them is its own.
// 4. No record is written while a lock of this crate or of the port is held.

mod limit;
mod sink;

use std::fmt;
use std::io::Write;
use std::time::SystemTime;

pub use self::limit::Limit;
pub(crate) use self::sink::set_deep_stack;
pub use self::sink::{set_sink, take_sink};

/// The importance of a record. A sink receives the records of its level and of all that are more
/// important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// A part of the program failed.
    Error = 1,
    /// A limit was reached, or work was lost or delayed.
    Warning = 2,
    /// A part of the runtime changed its state.
    Info = 3,
}

/// A log record.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Its importance.
    pub level: Level,
    /// The part of Thalweg that reports; see the [module](self).
    pub target: &'static str,
    /// The text, which may have several lines.
    pub message: &'a str,
    /// The time at which it was written.
    pub at: SystemTime,
}

/// Whether a record of this level would be passed to a sink. It costs one load if there is none.
#[inline]
pub fn is_enabled(level: Level) -> bool {
    sink::max_level().is_some_and(|max| level as u8 <= max)
}

/// Passes a record to the sink, if one receives its level. The text is built only then. The caller
/// holds no lock that a sink might need.
///
/// ```
/// use thalweg_runtime::log::{self, Level};
///
/// log::write(Level::Info, "cache", format_args!("{} entries are loaded", 3));
/// ```
#[inline]
pub fn write(level: Level, target: &'static str, message: fmt::Arguments<'_>) {
    if is_enabled(level) {
        sink::deliver(level, target, message);
    }
}

/// Like [`write`], but without a sink the record goes to standard error.
#[cold]
pub(crate) fn report(level: Level, target: &'static str, message: fmt::Arguments<'_>) {
    if sink::max_level().is_some() {
        write(level, target, message);
    } else {
        // A failed write is not an error of the caller.
        let _ = writeln!(std::io::stderr(), "thalweg: {message}");
    }
}
