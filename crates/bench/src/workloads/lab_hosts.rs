//! The programs that call the lab's own service: one for each language and calling style.
//!
//! All of them accept the same lines:
//!
//! | line | answer |
//! | --- | --- |
//! | `nop COUNT UNCOUNTED PAUSE_US`, also `nop-async` and `tally`, which is brief | `{"latencies": [ns, ..]}` of COUNT calls, after UNCOUNTED more |
//! | `bare COUNT UNCOUNTED PAUSE_US` | the same for two bare hand-offs between two threads |
//! | `views COUNT`, also `objects`; Nim has only `objects` | `{"ns", "records", "checksum"}`: COUNT matches of a new stream, read in place or as objects |
//! | `complete COUNT`, `drain COUNT` | the same for COUNT calls, from the first submission on, or only for reaping ready completions; C, and the first in Rust |
//! | `in-flight COUNT WINDOW AT_ONCE` | as `complete`, with at most WINDOW calls in flight, and AT_ONCE in a submission; C |
//! | `paced COUNT PER_S` | `{"latencies": [ns, ..]}` of COUNT calls, PER_S per second, each from its due time until its completion was reaped |
//! | `raw COUNT` | the same for records in an array; C |
//! | `array COUNT` | the same for a loop over an array |
//! | `kept COUNT` | the same for an array that stays in the cache |
//! | `nop-64 COUNT UNCOUNTED PAUSE_US` | as `nop`, for 64 calls that are awaited together; Node |
//! | `flood MS` | how late a timer is in an idle loop and under a flood, and how much memory grew; Node |
//! | `events-HOW COUNT` | as `stream-HOW`, for events of 488 bytes; C, C++ and Node |
//! | `tick-views COUNT`, `tick-array COUNT` | as `views` and `array`, for ticks; in Python and Node also `tick-objects`, `tick-columns`; in Python `tick-arrays` |
//! | `stream-HOW COUNT` | `{"ns", "records", "checksum"}` of COUNT ticks, measured from the call on: `one`, `objects`, `views`, `awaited`, `callback`, `columns` |
//! | `ticks COUNT`, `events COUNT` | the same through a queue of the standard library; C++ |
//! | `e2e-HOW SIZE COUNT THREADS` | `{"ns", "records", "checksum"}`: COUNT requests of SIZE bytes (0: scalars), and the number of true replies; `sync`, `async`, `events`, each also with the prefix `unix-` |
//! | `pause BEATS LIVE_MIB COLLECTOR` | `{"latencies", "full_collections"}`: ns between two beats; Python |

use std::fs;
use std::process::Command;

use serde::Deserialize;

use crate::child::HostProgram;
use crate::guests::{self, Guest};
use crate::latency::Latencies;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::{hosts, rust_host};

/// One program and its calling style.
#[derive(Debug)]
pub struct LabHost {
    /// `c`, `cpp`, `python`, `node`, `nim`, `rust`.
    pub language: &'static str,
    /// `blocking`, `coroutines`, `sync`, `asyncio`, `promise`, `asyncdispatch`.
    pub mode: &'static str,
    /// Builds the program if necessary, and returns the command that starts it.
    pub command: fn() -> Result<Command, Problem>,
}

impl LabHost {
    /// Starts the program.
    ///
    /// # Errors
    /// The program cannot be built or started.
    pub fn start(&self) -> Result<HostProgram, Problem> {
        HostProgram::start(self.language, (self.command)()?, Placement::Free)
    }

    /// If Node or Nim is missing: a row of `workload` with the reason.
    #[must_use]
    pub fn missing(&self, workload: &Workload) -> Option<Row> {
        let is_optional = [NODE.language, NIM.language].contains(&self.language);
        let missing = is_optional.then(|| (self.command)().err())?;
        let params = [("language", self.language), ("mode", self.mode)];
        let of = (workload.name, workload.group);
        missing.map(|why| Row::not_measured(of, &params, "ns", &why.to_string()))
    }
}

/// The answer to most lines.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Read {
    /// The host's own time for all records.
    ns: u64,
    records: u64,
    checksum: u64,
}

impl Read {
    /// Nanoseconds per record, if there were this many with this sum. `line` is what the program
    /// was asked.
    ///
    /// # Errors
    /// The program counted other records.
    pub fn each(&self, line: &str, records: u64, checksum: u64) -> Result<f64, Problem> {
        if (self.records, self.checksum) == (records, checksum) {
            return Ok(self.ns as f64 / records as f64);
        }
        Err(Problem::Check(format!(
            "{line}: {} records with sum {}, which should be {records} with {checksum}",
            self.records, self.checksum
        )))
    }
}

/// The answer to a line with latencies.
#[derive(Debug, Deserialize)]
pub struct Block {
    /// Latencies of the counted operations, in order, in ns; 0 if one did not complete.
    latencies: Vec<u64>,
}

impl Block {
    /// Checks that each of `calls` operations completed, and returns their latencies.
    ///
    /// # Errors
    /// One did not.
    pub fn counted(self, calls: usize) -> Result<Latencies, Problem> {
        let completed = self.latencies.iter().filter(|ns| **ns > 0).count();
        if (completed, self.latencies.len()) != (calls, calls) {
            let text = format!("{completed} of {calls} calls came back");
            return Err(Problem::Check(text));
        }
        Ok(Latencies::from(self.latencies.as_slice()))
    }
}

/// C, using the generated header.
pub const C: LabHost = LabHost {
    language: "c",
    mode: "blocking",
    command: c,
};
/// Python, using the blocking client.
pub const PYTHON: LabHost = LabHost {
    language: "python",
    mode: "sync",
    command: python_sync,
};
/// Python, using the client on asyncio's loop.
pub const ASYNCIO: LabHost = LabHost {
    language: "python",
    mode: "asyncio",
    command: python_asyncio,
};
/// Node, using the generated package.
pub const NODE: LabHost = LabHost {
    language: "node",
    mode: "promise",
    command: node,
};
/// Rust, using the generated client.
pub const RUST: LabHost = LabHost {
    language: "rust",
    mode: "blocking",
    command: rust_host::command,
};

/// C++, using blocking calls.
pub const CPP: LabHost = LabHost {
    language: "cpp",
    mode: "blocking",
    command: cpp_blocking,
};
/// C++, using coroutines on a loop over `poll`.
pub const CPP_COROUTINES: LabHost = LabHost {
    language: "cpp",
    mode: "coroutines",
    command: cpp_coroutines,
};

/// Nim, using blocking calls.
pub const NIM: LabHost = LabHost {
    language: "nim",
    mode: "blocking",
    command: nim_blocking,
};
/// Nim, using futures of asyncdispatch.
pub const NIM_FUTURES: LabHost = LabHost {
    language: "nim",
    mode: "asyncdispatch",
    command: nim_asyncdispatch,
};

/// All programs.
pub const ALL: [LabHost; 9] = [
    C,
    CPP,
    CPP_COROUTINES,
    PYTHON,
    ASYNCIO,
    NODE,
    RUST,
    NIM,
    NIM_FUTURES,
];

fn c() -> Result<Command, Problem> {
    let mut command = Command::new(hosts::c_program("lab_host")?);
    command.arg(hosts::library("thalweg-lab")?);
    Ok(command)
}

/// C, calling the service in another language. The line `bare` is that of [`C`].
///
/// # Errors
/// A compiler is missing or reports an error, or a library was not built.
pub fn c_of_guest(guest: Guest) -> Result<Command, Problem> {
    let mut command = Command::new(hosts::c_program("lab_host")?);
    command.arg(guest.address()?);
    command.arg(hosts::library("thalweg-lab")?);
    command.env("THALWEG_LIBRARY", guests::core()?);
    Ok(command)
}

fn cpp_blocking() -> Result<Command, Problem> {
    cpp("blocking")
}

fn cpp_coroutines() -> Result<Command, Problem> {
    cpp("coroutines")
}

fn cpp(mode: &str) -> Result<Command, Problem> {
    let mut command = Command::new(hosts::cpp_program("lab_host")?);
    command.arg(mode).arg(hosts::library("thalweg-lab")?);
    Ok(command)
}

fn python_sync() -> Result<Command, Problem> {
    python("sync")
}

fn python_asyncio() -> Result<Command, Problem> {
    python("asyncio")
}

fn python(mode: &str) -> Result<Command, Problem> {
    let unix_peer = hosts::c_library("unix_peer")?;
    let mut command = hosts::python_program("lab_host.py");
    command
        .arg(mode)
        .arg(hosts::library("thalweg-lab")?)
        .arg(unix_peer);
    Ok(command)
}

fn node() -> Result<Command, Problem> {
    hosts::node_program("lab_host.js", Some(hosts::library("thalweg-lab")?))
}

fn nim_blocking() -> Result<Command, Problem> {
    nim("blocking")
}

fn nim_asyncdispatch() -> Result<Command, Problem> {
    nim("asyncdispatch")
}

fn nim(mode: &str) -> Result<Command, Problem> {
    let mut command = Command::new(hosts::nim_program("lab_host")?);
    command.arg(mode).arg(hosts::library("thalweg-lab")?);
    Ok(command)
}

/// The Node program that calls a threadsafe function for each record.
///
/// # Errors
/// Node is missing, or the peer cannot be compiled.
pub fn peer_by_hand() -> Result<Command, Problem> {
    hosts::node_program("peer_host.js", None)
}

/// The same, also with the peer that uses napi-rs.
///
/// # Errors
/// Also: the peer was not built (`make bench-peers`).
pub fn peer_napi() -> Result<Command, Problem> {
    let peer = hosts::node_peer()?;
    let mut command = peer_by_hand()?;
    command.arg(peer);
    Ok(command)
}

/// The Python program that calls the peers of `crates/bench/peers/python`, built with PyO3 (`pyo3`)
/// or UniFFI (`uniffi`).
fn peer(module: &str) -> Result<Command, Problem> {
    let folder = hosts::python_peers(module)?;
    let mut command = hosts::python_program("peer_host.py");
    command.arg(module).arg(folder);
    Ok(command)
}

/// The peer that uses PyO3 and pyo3-async-runtimes.
///
/// # Errors
/// The peer was not built: `make bench-peers`.
pub fn peer_pyo3() -> Result<Command, Problem> {
    peer("pyo3")
}

/// The peer that uses UniFFI.
///
/// # Errors
/// The peer was not built: `make bench-peers`.
pub fn peer_uniffi() -> Result<Command, Problem> {
    peer("uniffi")
}

/// The version of `package` that the peers of `language` use.
///
/// # Errors
/// Their lock file does not contain the package.
pub fn peer_version(language: &str, package: &str) -> Result<String, Problem> {
    let lock = hosts::root().join(format!("crates/bench/peers/{language}/Cargo.lock"));
    let said = fs::read_to_string(&lock).map_err(Problem::io(lock.display().to_string()))?;
    let name = format!("name = \"{package}\"");
    let after = said.lines().skip_while(|line| *line != name).nth(1);
    after
        .and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .ok_or_else(|| Problem::NotReady(format!("{package} is not in {}", lock.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_lacks_an_operation_is_a_failed_check() {
        let block = |latencies: &[u64]| Block {
            latencies: latencies.to_vec(),
        };
        assert_eq!(block(&[7, 8]).counted(2).unwrap().count(), 2);
        for (latencies, calls) in [(vec![7], 2), (vec![7, 0], 2), (vec![7, 8, 9], 2)] {
            let problem = block(&latencies).counted(calls).unwrap_err();
            assert!(matches!(problem, Problem::Check(_)), "{latencies:?}");
        }
        let read = Read {
            ns: 30,
            records: 3,
            checksum: 6,
        };
        assert_eq!(read.each("views 3", 3, 6).unwrap(), 10.0);
        assert!(read.each("views 3", 2, 6).is_err() && read.each("views 3", 3, 7).is_err());
    }

    #[test]
    fn the_peers_are_pinned() {
        let python =
            ["pyo3", "pyo3-async-runtimes", "uniffi", "tokio"].map(|name| ("python", name));
        for (language, package) in python
            .into_iter()
            .chain([("node", "napi"), ("node", "tokio")])
        {
            let version = peer_version(language, package).unwrap();
            assert!(version.split('.').count() == 3, "{package} {version}");
        }
        assert!(peer_version("python", "no-such-package").is_err());
    }
}
