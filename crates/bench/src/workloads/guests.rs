//! `guest_call` and `guest_stream`: what a service costs that is not written in Rust.
//!
//! The program is the same, and so are its calls: the host in C, with the generated header. Only the
//! library differs. The service in Rust is opened by its path, the one in C by its address, and
//! the core calls its functions on a worker (`delivery=callback`). Each has a program of its own, in
//! turns.
//!
//! | row | ours | peers |
//! | --- | --- | --- |
//! | `guest_call`, `service=c` | a call of the service in C | `rust_service`; `eventfd`, two bare hand-offs between two threads |
//! | `guest_call`, `service=rust` | a call of the service in Rust | `eventfd` |
//! | `guest_stream` | a stream that a thread of the service in C writes | `rust_service` |
//!
//! The methods are those of [`first_calls`](super::first_calls), where the waiting of both sides is
//! described; streams are read as in [`streaming_hosts`](super::streaming::hosts).

use thalweg_lab::ticks;

use crate::child::HostProgram;
use crate::interleave::Plan;
use crate::lab::Lab;
use crate::latency::{Latencies, figures};
use crate::machine;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::first_calls::UNCOUNTED;
use crate::workloads::lab_hosts::{self, Block, LabHost, Read};
use crate::workloads::view_read::BATCH;

/// `guest_call`; see the module.
pub const CALL: Workload = Workload {
    name: "guest_call",
    group: "boundary",
    what: "A call from C of a service in C, opened by its address, against the same service in Rust and a bare hand-off.",
    source: "services in other languages: what the second language costs",
    peers: &[RUST_SERVICE, EVENTFD],
    seconds: 60,
    run: run_calls,
    ..Workload::USUAL
};

/// `guest_stream`; see the module.
pub const STREAM: Workload = Workload {
    name: "guest_stream",
    group: "streaming",
    what: "The whole way of a tick of 64 bytes or an event of 488 from a service in C to a host in C, against the same service in Rust.",
    source: "services in other languages: what the check and the copy of their records cost",
    peers: &[RUST_SERVICE],
    seconds: 30,
    run: run_streams,
    ..Workload::USUAL
};

/// The peer that is the same service in Rust.
const RUST_SERVICE: &str = "rust_service";
/// The peer that is two bare hand-offs.
const EVENTFD: &str = "eventfd";

/// Calls in a block, and blocks of each side: 100,000 calls together.
const CALLS: usize = 1_000;
const BLOCKS: usize = 102;
const QUICK_BLOCKS: usize = 9;

const METHODS: [&str; 3] = ["nop", "nop-async", "tally"];
const PLACEMENTS: [(Placement, &str, &str); 2] = [
    (Placement::OneCpu, "one_cpu", "yield"),
    (Placement::TwoCpus, "hot", "spin"),
];

/// The programs that take turns, and the line of each side.
struct Programs<'a, S> {
    programs: Vec<HostProgram>,
    /// The number of a side's program, and its line.
    sides: &'a [(usize, String)],
    read: &'a dyn Fn(&mut HostProgram, &str) -> Result<S, Problem>,
}

impl<S> Process for Programs<'_, S> {
    type Sample = S;

    fn take(&mut self, side: usize) -> Result<S, Problem> {
        let (program, line) = &self.sides[side];
        (self.read)(&mut self.programs[*program], line)
    }

    fn finish(self) -> Result<(), Problem> {
        self.programs.into_iter().try_for_each(HostProgram::finish)
    }
}

const GUEST: usize = 0;
const RUST: usize = 1;

/// Starts the program that calls the guest, and the one that calls the service in Rust.
fn start(title: &str, placement: Placement) -> Result<Vec<HostProgram>, Problem> {
    let one = |host: &LabHost| HostProgram::start(title, (host.command)()?, placement);
    Ok(vec![one(&lab_hosts::C_OF_C_GUEST)?, one(&lab_hosts::C)?])
}

fn run_calls(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert(EVENTFD.to_owned(), machine::describe().uname);
    lab.peers
        .insert(RUST_SERVICE.to_owned(), "of this commit".to_owned());
    let mut rows = Vec::new();
    for place in PLACEMENTS.iter().filter(|place| place.0.possible()) {
        for method in METHODS {
            rows.extend(call_rows(lab, method, place)?);
        }
    }
    Ok(rows)
}

fn call_rows(
    lab: &Lab,
    method: &str,
    (placement, pace, waiting): &(Placement, &str, &str),
) -> Result<[Row; 3], Problem> {
    let title = format!("guest_call {method} {pace}");
    let rounds = if lab.quick() { QUICK_BLOCKS } else { BLOCKS };
    let line = |what| format!("{what} {CALLS} {UNCOUNTED} 0");
    let sides = [
        (GUEST, line(method)),
        (RUST, line(method)),
        (RUST, line("bare")),
    ];
    let read = |program: &mut HostProgram, line: &str| -> Result<Latencies, Problem> {
        program.ask::<Block>(line)?.counted(CALLS)
    };
    let plan = Plan { warm_up: 1, rounds };
    let taken = processes::measure(lab, &title, sides.len(), plan, PROCESSES, || {
        Ok(Programs {
            programs: start(&title, *placement)?,
            sides: &sides,
            read: &read,
        })
    })?;
    let row = |service: &str, ours: usize, peer: (&'static str, usize)| {
        let (own, own_metrics) = figures(&taken[ours]);
        let (other, peer_metrics) = figures(&taken[peer.1]);
        let mut params = vec![
            ("language", "c"),
            ("service", service),
            ("method", method),
            ("pace", pace),
            ("waiting", waiting),
            ("placement", placement.name()),
        ];
        if service == "c" {
            params.push(("delivery", "callback"));
        }
        Row::new(
            (CALL.name, CALL.group),
            &params,
            "ns",
            ("thalweg", own),
            Some((peer.0, other)),
        )
        .checked(format!(
            "{} calls ended, each once and well",
            rounds * CALLS
        ))
        .checked("the programs closed their clients and ended with 0")
        .with_metrics("", own_metrics)
        .with_metrics("peer_", peer_metrics)
    };
    Ok([
        row("c", 0, (RUST_SERVICE, 1)),
        row("c", 0, (EVENTFD, 2)),
        row("rust", 1, (EVENTFD, 2)),
    ])
}

/// The records of a stream, how they are read, and how many a sample has.
const STREAMS: [(&str, &str, &str, u64); 4] = [
    ("ticks", "stream", "one", 500_000),
    ("ticks", "stream", "views", 1_000_000),
    ("events", "events", "one", 200_000),
    ("events", "events", "views", 500_000),
];

/// Samples of each side.
const SAMPLES: usize = 15;

fn run_streams(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert(RUST_SERVICE.to_owned(), "of this commit".to_owned());
    STREAMS
        .iter()
        .map(|(records, command, mode, count)| {
            let count = if lab.quick() { count / 10 } else { *count };
            stream_row(
                lab,
                records,
                &format!("{command}-{mode} {count}"),
                mode,
                count,
            )
        })
        .collect()
}

fn stream_row(
    lab: &Lab,
    records: &'static str,
    line: &str,
    mode: &str,
    count: u64,
) -> Result<Row, Problem> {
    let title = format!("guest_stream {records} {mode}");
    let sum = match records {
        "ticks" => ticks::checksum(count),
        // The numbers 0 to count - 1.
        _ => count * (count - 1) / 2,
    };
    let sides = [GUEST, RUST].map(|program| (program, line.to_owned()));
    let read =
        |program: &mut HostProgram, line: &str| program.ask::<Read>(line)?.each(line, count, sum);
    let plan = lab.plan(Some(SAMPLES));
    let taken = processes::measure(lab, &title, sides.len(), plan, PROCESSES, || {
        Ok(Programs {
            programs: start(&title, Placement::Free)?,
            sides: &sides,
            read: &read,
        })
    })?;
    let [ours, peer] = [0, 1].map(|side| taken[side].clone());
    let (count, batch) = (count.to_string(), BATCH.to_string());
    let params = [
        ("language", "c"),
        ("service", "c"),
        ("delivery", "callback"),
        ("mode", mode),
        (records, &*count),
        ("batch", &*batch),
        ("capacity", "8192"),
    ];
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
