//! `guest_stream`.

use thalweg_lab::ticks;

use crate::child::HostProgram;
use crate::guests::Guest;
use crate::hosts;
use crate::lab::Lab;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::lab_hosts::Read;
use crate::workloads::view_read::BATCH;

use super::{Program, RUST_SERVICE, STREAM, measure, params_of, without_go};

/// The records of a stream, how they are read, and how many a sample has.
struct Stream {
    records: &'static str,
    command: &'static str,
    mode: &'static str,
    count: u64,
}

const STREAMS: [Stream; 4] = [
    stream("ticks", "stream", "one", 500_000),
    stream("ticks", "stream", "views", 1_000_000),
    stream("events", "events", "one", 200_000),
    stream("events", "events", "views", 500_000),
];

const fn stream(
    records: &'static str,
    command: &'static str,
    mode: &'static str,
    count: u64,
) -> Stream {
    Stream {
        records,
        command,
        mode,
        count,
    }
}

/// Samples of each side.
const SAMPLES: usize = 15;

pub(super) fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert(RUST_SERVICE.to_owned(), "of this commit".to_owned());
    let go = hosts::go_version();
    let mut rows = Vec::new();
    for guest in [Guest::C, Guest::Go] {
        match &go {
            Err(why) if guest == Guest::Go => rows.push(without_go(&STREAM, why)),
            _ => {
                for stream in &STREAMS {
                    rows.push(row(lab, guest, stream)?);
                }
            }
        }
    }
    Ok(rows)
}

fn row(lab: &Lab, guest: Guest, stream: &Stream) -> Result<Row, Problem> {
    let Stream {
        records,
        command,
        mode,
        count,
    } = *stream;
    let count = if lab.quick() { count / 10 } else { count };
    let line = format!("{command}-{mode} {count}");
    let title = format!("guest_stream {} {records} {mode}", guest.language());
    let sum = match records {
        "ticks" => ticks::checksum(count),
        // The numbers 0 to count - 1.
        _ => count * (count - 1) / 2,
    };
    let sides = [Program::Guest(guest), Program::Rust].map(|program| (program, line.clone()));
    let read =
        |program: &mut HostProgram, line: &str| program.ask::<Read>(line)?.each(line, count, sum);
    let plan = lab.plan(Some(SAMPLES));
    let taken = measure(lab, &title, Placement::Free, plan, &sides, &read)?;
    let [ours, peer] = [0, 1].map(|side| taken[side].clone());
    let (count, batch) = (count.to_string(), BATCH.to_string());
    let mut params = params_of(guest).to_vec();
    params.extend([
        ("mode", mode),
        (records, &*count),
        ("batch", &*batch),
        ("capacity", "8192"),
    ]);
    let mut row = Row::new(
        (STREAM.name, STREAM.group),
        &params,
        "ns",
        ("thalweg", ours),
        Some((RUST_SERVICE, peer)),
    )
    .checked(format!(
        "every sample read each of the {records} once, with the known sum of fields"
    ));
    row.metrics
        .insert("per_s".to_owned(), 1e9 / row.subject_median);
    Ok(row)
}
