//! `view_read`: what reading a match costs the host, once it is there.
//!
//! A generator service fills a stream. The host waits, untimed, until the stream is full; then it times acquiring a
//! batch, touching line, column, the path's length and the first and last byte of the text of each match, and
//! releasing the batch; then the next, until a stream's worth was read. What the generator does meanwhile is not the
//! host's time, but what it does to the caches is.
//!
//! The peer is the same loop over an array, in the same process:
//! - `array`: as many matches as were streamed, each read once, as they come from memory;
//! - `kept`: a stream's worth, read over and over, so that it never leaves the cache. No stream between
//!   two processors can have that; it says what the loop itself costs.

use std::cell::RefCell;

use serde::Deserialize;
use thalweg_lab::Contents;

use crate::child::HostProgram;
use crate::interleave::{Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "view_read",
    group: "boundary",
    what: "The host's own time for a match of a stream, read in place or as objects, against an array.",
    source: "the batch view: one crossing a batch instead of one a record",
    peers: &["array", "kept"],
    seconds: 60,
    run,
    ..Workload::USUAL
};

/// Samples of each side.
const SAMPLES: usize = 20;

/// Records in a batch, in every host: what a loop takes in one turn and stays fair.
pub const BATCH: u32 = 256;

/// A stream's worth: its capacity in `wit/lab.thalweg.toml`.
pub const CAPACITY: u64 = 8192;

/// Matches of which every byte is checked before anything is measured.
const VERIFIED: u64 = 20_000;

/// What one language reads.
struct Reading {
    host: LabHost,
    /// Matches a sample: a few ms to a few 100 ms of the host's time.
    count: u64,
    /// What is read through Thalweg: `views`, `objects`.
    subjects: &'static [&'static str],
    peers: &'static [&'static str],
}

const READINGS: [Reading; 3] = [
    Reading {
        host: lab_hosts::C,
        count: 1_000_000,
        subjects: &["views"],
        peers: &["array", "kept"],
    },
    Reading {
        host: lab_hosts::RUST,
        count: 1_000_000,
        subjects: &["views", "objects"],
        peers: &["array", "kept"],
    },
    Reading {
        host: lab_hosts::PYTHON,
        count: 100_000,
        subjects: &["views", "objects"],
        peers: &["array"],
    },
];

/// The bars of the first landing, per match.
fn target(language: &str, subject: &str, peer: &str) -> Option<Target> {
    match (language, subject, peer) {
        ("c", "views", "array") => Some(Target::Ratio(2.0)),
        ("python", "views", "array") => Some(Target::Metric("ns_per_match", 1_000.0)),
        ("python", "objects", "array") => Some(Target::Metric("ns_per_match", 3_000.0)),
        _ => None,
    }
}

/// What a program answers to a sample.
#[derive(Clone, Copy, Deserialize)]
struct Read {
    /// The host's own time, all matches together.
    ns: u64,
    records: u64,
    checksum: u64,
}

#[derive(Deserialize)]
struct Verified {
    records: u64,
    /// FNV-1a 64, as hexadecimal digits: JSON's numbers end at 2^53.
    digest: String,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in WORKLOAD.peers {
        lab.peers
            .insert((*peer).to_owned(), "this suite's".to_owned());
    }
    let mut rows = Vec::new();
    for reading in &READINGS {
        rows.extend(read(lab, reading)?);
    }
    Ok(rows)
}

fn read(lab: &Lab, reading: &Reading) -> Result<Vec<Row>, Problem> {
    let Reading {
        host,
        subjects,
        peers,
        ..
    } = reading;
    let count = if lab.quick() {
        reading.count / 10
    } else {
        reading.count
    };
    let plan = lab.plan(Some(SAMPLES));
    let names: Vec<&str> = subjects.iter().chain(*peers).copied().collect();
    lab.begin(
        &format!("view_read {}", host.language),
        names.len() * (plan.warm_up + plan.rounds),
    );

    let contents = Contents::new();
    let checksum = contents.checksum(count);
    let kept = count / CAPACITY * contents.checksum(CAPACITY) + contents.checksum(count % CAPACITY);
    let mut program = HostProgram::start(host.language, (host.command)()?, Placement::Free)?;
    let verified: Verified = program.ask(&format!("verify {VERIFIED}"))?;
    let digest = format!("{:016x}", contents.digest(VERIFIED));
    if verified.records != VERIFIED || verified.digest != digest {
        return Err(Problem::Check(format!(
            "{}: {} of {VERIFIED} matches with digest {}, which should be {digest}",
            host.language, verified.records, verified.digest
        )));
    }

    let program = RefCell::new(program);
    let sample = |name: &str| {
        let read: Read = program.borrow_mut().ask(&format!("{name} {count}"))?;
        let checksum = if name == "kept" { kept } else { checksum };
        if read.records != count || read.checksum != checksum {
            return Err(Problem::Check(format!(
                "{} {name}: {} matches with sum {}, which should be {count} with {checksum}",
                host.language, read.records, read.checksum
            )));
        }
        Ok(read.ns as f64 / count as f64)
    };
    let mut sides: Vec<Side<'_, f64>> = names
        .iter()
        .map(|name| Side::new(|| sample(name)))
        .collect();
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);
    program.into_inner().finish()?;

    let samples = |name: &str| {
        let place = names
            .iter()
            .position(|known| *known == name)
            .expect("one of the names");
        taken[place].clone()
    };
    let mut rows = Vec::new();
    for subject in *subjects {
        for peer in *peers {
            let params = [
                ("language", host.language),
                ("mode", *subject),
                ("matches", &count.to_string()),
                ("batch", &BATCH.to_string()),
                ("capacity", &CAPACITY.to_string()),
            ];
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &params,
                "ns",
                ("thalweg", samples(subject)),
                Some((peer, samples(peer))),
            )
            .checked(format!(
                "every sample read {count} matches with the known sum of fields"
            ))
            .checked(format!(
                "every byte of {VERIFIED} matches, in order, before measuring"
            ));
            row.metrics
                .insert("ns_per_match".to_owned(), row.subject_median);
            rows.push(match target(host.language, subject, peer) {
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
            subjects,
            peers,
            ..
        } in &READINGS
        {
            for subject in *subjects {
                bars += peers
                    .iter()
                    .filter_map(|p| target(host.language, subject, p))
                    .count();
            }
        }
        assert_eq!(bars, 3);
    }
}
