//! `e2e`: calls with a payload and a reply that depends on it, from each host, against a Unix
//! socket.
//!
//! The reply to each request is a predicate of its contents, so every reply is checked. A request
//! contains either two integers and a float (`scalars`), and the predicate is whether their sum is
//! even, or 64 to 65,536 bytes, and the predicate is whether the first and the last byte are equal
//! and even.
//!
//! - `mode=sync`: one call at a time per thread, with 1, 2, 4 and 8 threads;
//! - `mode=async`: 64 calls in flight per thread; in Python on asyncio;
//! - `mode=events`: the service streams the requests, and the host computes the replies itself.
//!
//! Each thread has its own client, and thus its own instance of the service. The peer is one Unix
//! socket per thread, served by a thread of the same process: a size, the bytes, and an answer of
//! one byte. The peer has the same limit of requests in flight.

use crate::lab::Lab;
use crate::machine;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::workloads::lab_hosts::{self, LabHost, Read};
use crate::workloads::{Knob, Workload};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "e2e",
    group: "boundary",
    what: "Calls with a payload from each host, sync, with 64 in flight and as events, 24 to 65,536 bytes, 1 to 8 threads, each reply checked.",
    source: "nim-ffi's end-to-end benchmark",
    peers: &[PEER],
    seconds: 240,
    run,
    knobs: &[REQUESTS],
    ..Workload::USUAL
};

const PEER: &str = "unix_socket";

const REQUESTS: Knob = Knob {
    name: "requests",
    default: "8000",
    what: "requests per sample, over all threads",
};

/// Bytes of a request; 0 means the scalars.
const SIZES: [u32; 5] = [0, 64, 512, 4096, 65_536];
/// Threads of one host.
const THREADS: [u64; 4] = [1, 2, 4, 8];
const ONE_THREAD: [u64; 1] = [1];

/// How a host sends its requests.
struct Way {
    host: LabHost,
    modes: &'static [&'static str],
    threads: &'static [u64],
    /// The divisor of [`REQUESTS`]: an interpreter is slower.
    part: u64,
}

const WAYS: [Way; 4] = [
    Way {
        host: lab_hosts::RUST,
        modes: &["sync", "async", "events"],
        threads: &THREADS,
        part: 1,
    },
    Way {
        host: lab_hosts::C,
        modes: &["sync", "async", "events"],
        threads: &THREADS,
        part: 1,
    },
    Way {
        host: lab_hosts::PYTHON,
        modes: &["sync", "events"],
        threads: &THREADS,
        part: 4,
    },
    Way {
        host: lab_hosts::ASYNCIO,
        modes: &["async", "events"],
        threads: &ONE_THREAD,
        part: 4,
    },
];

/// Whether a mode has the peer. asyncio has no peer for events: its loop has no such socket here.
fn peer(host: &LabHost, mode: &str) -> bool {
    host.mode != "asyncio" || mode != "events"
}

/// The expected result of `requests` by this many threads: the number of replies and of true
/// replies. Each thread numbers its requests from 0.
fn expected(requests: u64, threads: u64) -> (u64, u64) {
    let share = requests / threads;
    (share * threads, share.div_ceil(2) * threads)
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers.insert(PEER.to_owned(), machine::describe().uname);
    let requests = lab.number(&REQUESTS)?;
    if requests < THREADS[3] {
        return Err(Problem::Usage(format!(
            "{} is at least {}",
            REQUESTS.name, THREADS[3]
        )));
    }
    let mut rows = Vec::new();
    for way in &WAYS {
        rows.extend(measure(lab, way, (requests / way.part).max(THREADS[3]))?);
    }
    Ok(rows)
}

/// One way of sending requests: its mode, the bytes of a request, and the threads.
type Point = (&'static str, u32, u64);

/// All points of a host in the same processes. A side and its peer are next to each other.
fn measure(lab: &Lab, way: &Way, requests: u64) -> Result<Vec<Row>, Problem> {
    let host = &way.host;
    let mut points: Vec<Point> = Vec::new();
    for mode in way.modes {
        for size in SIZES {
            points.extend(way.threads.iter().map(|threads| (*mode, size, *threads)));
        }
    }
    let mut sides: Vec<(&str, Point)> = Vec::new();
    for point in &points {
        sides.push(("", *point));
        if peer(host, point.0) {
            sides.push(("unix-", *point));
        }
    }
    let line = |(prefix, (mode, size, threads)): &(&str, Point)| {
        format!("e2e-{prefix}{mode} {size} {requests} {threads}")
    };
    let lines: Vec<String> = sides.iter().map(line).collect();
    let check = |side: usize, read: Read| {
        let (replies, true_ones) = expected(requests, sides[side].1.2);
        read.each(&lines[side], replies, true_ones)
    };
    let title = format!("e2e {} {}", host.language, host.mode);
    let start = || host.start();
    let taken = processes::ask(lab, &title, &lines, lab.plan(None), PROCESSES, start, check)?;

    let mut taken = taken.into_iter();
    let mut rows = Vec::new();
    for (mode, size, threads) in points {
        let payload = match size {
            0 => "scalars".to_owned(),
            size => size.to_string(),
        };
        let params = [
            ("language", host.language),
            ("host", host.mode),
            ("mode", mode),
            ("payload", &payload),
            ("threads", &threads.to_string()),
            ("requests", &requests.to_string()),
            ("window", if mode == "async" { "64" } else { "1" }),
        ];
        let ours = taken.next().expect("each point has a side");
        let theirs = peer(host, mode).then(|| taken.next().expect("and its peer"));
        let mut metrics = Metrics::default();
        metrics.rate("per_s", 1e9, &ours);
        let row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            ("thalweg", ours),
            theirs.map(|theirs| (PEER, theirs)),
        )
        .checked("every reply is the predicate of its request")
        .with_metrics("", metrics);
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_share_and_half_of_it_true() {
        assert_eq!(expected(200, 1), (200, 100));
        assert_eq!(expected(201, 2), (200, 100));
        assert_eq!(expected(202, 2), (202, 102));
    }

    #[test]
    fn every_mode_is_there_in_every_language() {
        for language in ["rust", "c", "python"] {
            for mode in ["sync", "async", "events"] {
                let has = |way: &&Way| way.host.language == language && way.modes.contains(&mode);
                assert!(WAYS.iter().any(|way| has(&way)), "{language} {mode}");
            }
        }
    }
}
