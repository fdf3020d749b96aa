//! `view_read`: the host's cost of reading a match that has already arrived.
//!
//! A generator service fills a stream. The host waits, untimed, until the stream is full. It then
//! times acquiring a batch, touching each match (line, column, the path's length, and the first and
//! last byte of the text), and releasing the batch, until it has read the capacity of the stream.
//! The generator's work in the meantime is not the host's time, but its effect on the caches is.
//!
//! The peer is the same loop over an array, in the same process:
//! - `array`: as many matches as were streamed, each read once, from memory;
//! - `kept`: the capacity of a stream, read repeatedly, so that it never leaves the cache. No
//!   stream between two processors can do this; it shows the cost of the loop itself.
//!
//! The rows of `record=tick` measure the same for records of 64 bytes that consist of numbers, of
//! which three are touched. There Python also reads by columns: three fields of a batch as arrays
//! in the library's memory, each summed in one operation, against the same columns of its own
//! array. Node does the same by typed arrays. Its `views` are objects that the loop creates one at a
//! time.

use serde::Deserialize;
use thalweg_lab::{Contents, ticks};

use crate::child::HostProgram;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost, Read};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "view_read",
    group: "boundary",
    what: "The host's own time for a record of a stream, read in place, as objects or by columns, against an array.",
    source: "the batch view: one crossing per batch instead of one per record",
    peers: &["array", "kept"],
    seconds: 60,
    run,
    ..Workload::USUAL
};

/// Samples of each side.
const SAMPLES: usize = 20;

/// Records per batch, in every host: as many as a loop can process at once and stay fair.
pub const BATCH: u32 = 256;

/// The capacity of a stream, as in `wit/lab.thalweg.toml`.
pub const CAPACITY: u64 = 8192;

/// The number of matches whose every byte is checked before the measurement.
const VERIFIED: u64 = 20_000;

/// The record type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Match,
    Tick,
}

impl Record {
    /// The line that makes a host read it in the way `name`.
    fn line(self, name: &str, count: u64) -> String {
        match self {
            Self::Match => format!("{name} {count}"),
            Self::Tick => format!("tick-{name} {count}"),
        }
    }

    /// The expected sum of a sample of `count` records.
    fn checksum(self, name: &str, count: u64) -> u64 {
        let contents = Contents::new();
        match (self, name) {
            (Self::Match, "kept") => {
                let (times, rest) = (count / CAPACITY, count % CAPACITY);
                times * contents.checksum(CAPACITY) + contents.checksum(rest)
            }
            (Self::Match, _) => contents.checksum(count),
            (Self::Tick, _) => ticks::checksum(count),
        }
    }

    /// The parameter with the number of records.
    fn plural(self) -> &'static str {
        match self {
            Self::Match => "matches",
            Self::Tick => "ticks",
        }
    }

    /// The name in rows and metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Tick => "tick",
        }
    }
}

/// The measurements of one language.
struct Reading {
    host: LabHost,
    record: Record,
    /// Records per sample: a few ms to a few 100 ms of the host's time.
    count: u64,
    /// The ways to read through Thalweg: `views`, `objects`, `columns`, `arrays`.
    subjects: &'static [&'static str],
    peers: &'static [&'static str],
}

const READINGS: [Reading; 10] = [
    Reading {
        host: lab_hosts::C,
        record: Record::Match,
        count: 1_000_000,
        subjects: &["views"],
        peers: &["array", "kept"],
    },
    Reading {
        host: lab_hosts::CPP,
        record: Record::Match,
        count: 1_000_000,
        subjects: &["views"],
        peers: &["array", "kept"],
    },
    Reading {
        host: lab_hosts::RUST,
        record: Record::Match,
        count: 1_000_000,
        subjects: &["views", "objects"],
        peers: &["array", "kept"],
    },
    Reading {
        host: lab_hosts::PYTHON,
        record: Record::Match,
        count: 100_000,
        subjects: &["views", "objects"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::C,
        record: Record::Tick,
        count: 4_000_000,
        subjects: &["views"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::CPP,
        record: Record::Tick,
        count: 4_000_000,
        subjects: &["views"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::RUST,
        record: Record::Tick,
        count: 4_000_000,
        subjects: &["views"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::PYTHON,
        record: Record::Tick,
        count: 200_000,
        subjects: &["columns", "arrays", "views", "objects"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::NODE,
        record: Record::Match,
        count: 100_000,
        subjects: &["views", "objects"],
        peers: &["array"],
    },
    Reading {
        host: lab_hosts::NODE,
        record: Record::Tick,
        count: 500_000,
        subjects: &["columns", "views", "objects"],
        peers: &["array"],
    },
];

/// The targets: for a match those of the first release; for a tick 10 M per second in Python.
fn target(record: Record, language: &str, subject: &str, peer: &str) -> Option<Target> {
    use Record::{Match, Tick};
    match (record, language, subject, peer) {
        (_, "c", "views", "array") => Some(Target::Ratio(2.0)),
        (Match, "python", "views", "array") => Some(Target::Metric("ns_per_match", 1_000.0)),
        (Match, "python", "objects", "array") => Some(Target::Metric("ns_per_match", 3_000.0)),
        (Tick, "python", "columns" | "arrays", "array") => Some(Target::AtLeast("per_s", 1e7)),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Verified {
    records: u64,
    /// FNV-1a 64 in hexadecimal digits, because JSON's numbers are exact only up to 2^53.
    digest: String,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in WORKLOAD.peers {
        lab.peers
            .insert((*peer).to_owned(), "this suite's".to_owned());
    }
    let mut rows = Vec::new();
    for reading in &READINGS {
        match reading.host.missing(&WORKLOAD) {
            Some(row) => rows.push(row),
            None => rows.extend(read(lab, reading)?),
        }
    }
    Ok(rows)
}

/// Compares every byte of some matches.
fn verify(program: &mut HostProgram, language: &str) -> Result<(), Problem> {
    let verified: Verified = program.ask(&format!("verify {VERIFIED}"))?;
    let digest = format!("{:016x}", Contents::new().digest(VERIFIED));
    if verified.records == VERIFIED && verified.digest == digest {
        return Ok(());
    }
    Err(Problem::Check(format!(
        "{language}: {} of {VERIFIED} matches with digest {}, which should be {digest}",
        verified.records, verified.digest
    )))
}

fn read(lab: &Lab, reading: &Reading) -> Result<Vec<Row>, Problem> {
    let Reading {
        host,
        record,
        count,
        subjects,
        peers,
    } = reading;
    let count = count / if lab.quick() { 10 } else { 1 };
    let names: Vec<&str> = subjects.iter().chain(*peers).copied().collect();
    let lines: Vec<String> = names.iter().map(|name| record.line(name, count)).collect();
    let start = || {
        let mut program = host.start()?;
        if *record == Record::Match {
            verify(&mut program, host.language)?;
        }
        Ok(program)
    };
    let sums: Vec<u64> = names
        .iter()
        .map(|name| record.checksum(name, count))
        .collect();
    let check = |side: usize, read: Read| read.each(&lines[side], count, sums[side]);
    let title = format!("view_read {} {}", host.language, record.name());
    let plan = lab.plan(Some(SAMPLES));
    let taken = processes::ask(lab, &title, &lines, plan, PROCESSES, start, check)?;

    let (ours, theirs) = taken.split_at(subjects.len());
    let (count, batch, capacity) = (count.to_string(), BATCH.to_string(), CAPACITY.to_string());
    let mut rows = Vec::new();
    for (subject, ours) in subjects.iter().zip(ours) {
        for (peer, theirs) in peers.iter().zip(theirs) {
            let mut params = vec![
                ("language", host.language),
                ("mode", *subject),
                (record.plural(), &count),
                ("batch", &batch),
                ("capacity", &capacity),
            ];
            let mut metrics = Metrics::default();
            metrics.median(&format!("ns_per_{}", record.name()), ours);
            if *record == Record::Tick {
                params.push(("record", record.name()));
                metrics.rate("per_s", 1e9, ours);
            }
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &params,
                "ns",
                ("thalweg", ours.clone()),
                Some((peer, theirs.clone())),
            )
            .checked(format!(
                "every sample read {count} records with the known sum of fields"
            ))
            .with_metrics("", metrics);
            if *record == Record::Match {
                row = row.checked(format!(
                    "every byte of {VERIFIED} matches, in order, before measuring"
                ));
            }
            rows.push(match target(*record, host.language, subject, peer) {
                Some(target) => row.held_to(&target, lab.refusal()),
                None => row,
            });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_row() {
        let mut bars = 0;
        for Reading {
            host,
            record,
            subjects,
            peers,
            ..
        } in &READINGS
        {
            for subject in *subjects {
                bars += peers
                    .iter()
                    .filter_map(|p| target(*record, host.language, subject, p))
                    .count();
            }
        }
        assert_eq!(bars, 6);
    }
}
