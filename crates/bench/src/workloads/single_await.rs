//! `single_await`: the duration of an await in Python, Node, C++ and Nim whose call does nothing, against
//! other bindings of Rust and other ways to await a thread.
//!
//! The same loop runs in a separate process for each side and awaits our call that does nothing, an
//! async function of pyo3-async-runtimes, or one of `UniFFI`. In all three another thread answers:
//! the service's actor for ours, a tokio worker for the others. The row against `uniffi_ready` is
//! `UniFFI`'s await of a value that is already ready, which involves no other thread. That row is
//! for information and has no target.
//!
//! In C++ the peer `eventfd` is a coroutine that a loop over `poll` resumes: the bare thread of
//! `crates/bench/service/src/bare.rs`, which waits as our worker does, writes the eventfd. The peer
//! `asio` is a coroutine of Asio that awaits one on a thread of `asio::thread_pool`.
//!
//! In Nim the peer `eventfd` is a future that asyncdispatch completes when the same thread has written
//! the eventfd.
//!
//! In Node the peer is an async function of napi-rs. `calls=64` awaits 64 of them together.
//!
//! A tokio worker sleeps as soon as it has nothing to do. The targets apply where ours does the
//! same: in Python with `placement=split` the loop has one processor and all other threads have another, so
//! that none of them spins (`waiting=park`). With `placement=one_cpu` our worker yields once before
//! it sleeps (`waiting=yield`, `peer_waiting=park`). There a single await in Node has its target,
//! because on two processors the figure is that of waking the other one.
//!
//! The peers are built on request (`make bench-peers`); if they are missing, the rows record it.

use std::process::Command;

use crate::child::HostProgram;
use crate::hosts;
use crate::interleave::Plan;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::{Latencies, figures};
use crate::machine;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::Workload;
use crate::workloads::first_calls::UNCOUNTED;
use crate::workloads::lab_hosts::{
    self, Block, LabHost, peer_napi, peer_pyo3, peer_uniffi, peer_version,
};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "single_await",
    group: "boundary",
    what: "An await in Python, Node, C++ and Nim whose call does nothing: ours, pyo3-async-runtimes', UniFFI's, napi-rs', a bare eventfd's and Asio's.",
    source: "reports by users of these about their bridges to asyncio and Node",
    peers: &[
        PYTHON[0].name,
        PYTHON[1].name,
        PYTHON[2].name,
        NAPI.name,
        CPP[0].name,
        CPP[1].name,
    ],
    seconds: 220,
    run,
    ..Workload::USUAL
};

/// A host, the operation that it awaits, and its peers.
struct Subject {
    host: LabHost,
    operation: &'static str,
    /// Calls that are awaited together.
    calls: &'static str,
    /// Awaits in a block.
    awaits: usize,
    peers: &'static [Peer],
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        host: lab_hosts::ASYNCIO,
        operation: "nop",
        calls: "1",
        awaits: AWAITS,
        peers: &PYTHON,
    },
    Subject {
        host: lab_hosts::NODE,
        operation: "nop",
        calls: "1",
        awaits: AWAITS,
        peers: &[NAPI],
    },
    Subject {
        host: lab_hosts::NODE,
        operation: "nop-64",
        calls: "64",
        awaits: AWAITS / 10,
        peers: &[Peer {
            operation: "nop-64",
            bars: &[(Placement::OneCpu, 0.3), (Placement::Split, 0.3)],
            ..NAPI
        }],
    },
    Subject {
        host: lab_hosts::CPP_COROUTINES,
        operation: "nop",
        calls: "1",
        awaits: AWAITS,
        peers: &CPP,
    },
    Subject {
        host: lab_hosts::NIM_FUTURES,
        operation: "nop",
        calls: "1",
        awaits: AWAITS,
        peers: &NIM,
    },
];

/// A peer, and the function that is awaited.
struct Peer {
    name: &'static str,
    version: fn() -> Result<String, Problem>,
    command: fn() -> Result<Command, Problem>,
    operation: &'static str,
    /// Whether the thread that answers waits as ours does. Otherwise it sleeps at once.
    waits_alike: bool,
    /// The largest ratio at a placement.
    bars: &'static [(Placement, f64)],
}

const PYTHON: [Peer; 3] = [
    Peer {
        name: "pyo3-async-runtimes",
        version: || peer_version("python", "pyo3-async-runtimes"),
        waits_alike: false,
        command: peer_pyo3,
        operation: "nop",
        bars: &[(Placement::Split, 0.3)],
    },
    Peer {
        name: "uniffi",
        version: || peer_version("python", "uniffi"),
        waits_alike: false,
        command: peer_uniffi,
        operation: "nop",
        bars: &[(Placement::Split, 0.2)],
    },
    Peer {
        name: "uniffi_ready",
        version: || peer_version("python", "uniffi"),
        waits_alike: false,
        command: peer_uniffi,
        operation: "ready",
        bars: &[],
    },
];

const NAPI: Peer = Peer {
    name: "napi-rs",
    version: || peer_version("node", "napi"),
    waits_alike: false,
    command: peer_napi,
    operation: "nop",
    bars: &[(Placement::OneCpu, 0.85)],
};

const CPP: [Peer; 2] = [
    Peer {
        name: "eventfd",
        version: || Ok(machine::describe().uname),
        waits_alike: true,
        command: lab_hosts::CPP_COROUTINES.command,
        operation: "bare",
        bars: &[(Placement::OneCpu, 1.2)],
    },
    Peer {
        name: "asio",
        version: hosts::asio_version,
        waits_alike: false,
        command: || {
            hosts::asio_version()?;
            Ok(Command::new(hosts::cpp_program("asio_peer")?))
        },
        operation: "nop",
        bars: &[],
    },
];

const NIM: [Peer; 1] = [Peer {
    command: lab_hosts::NIM_FUTURES.command,
    bars: &[(Placement::OneCpu, 1.3)],
    ..CPP[0]
}];

/// The placements, and how our worker waits there.
const PLACEMENTS: [(Placement, &str); 2] =
    [(Placement::OneCpu, "yield"), (Placement::Split, "park")];

/// Awaits in a block.
const AWAITS: usize = 1_000;
/// Blocks of each side, in all processes together: 102,000 awaits.
const BLOCKS: usize = 102;
const QUICK_BLOCKS: usize = 6;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    for subject in &SUBJECTS {
        if let Some(row) = subject.host.missing(&WORKLOAD) {
            rows.push(row);
            continue;
        }
        let mut there = Vec::new();
        for peer in subject.peers {
            let command = (peer.command)();
            if command.is_ok() {
                let version = (peer.version)()?;
                lab.peers.insert(peer.name.to_owned(), version);
            }
            there.push(command.map(drop));
        }
        for place in PLACEMENTS {
            if place.0.possible() {
                rows.extend(measure(lab, subject, place, &there)?);
            }
        }
    }
    Ok(rows)
}

/// The programs of one round: ours, and those of the peers that are there.
struct Programs {
    awaits: usize,
    programs: Vec<(&'static str, HostProgram)>,
}

impl Process for Programs {
    type Sample = Latencies;

    fn take(&mut self, side: usize) -> Result<Latencies, Problem> {
        let (operation, program) = &mut self.programs[side];
        let awaits = self.awaits;
        let block: Block = program.ask(&format!("{operation} {awaits} {UNCOUNTED} 0"))?;
        block.counted(awaits)
    }

    fn finish(self) -> Result<(), Problem> {
        let mut programs = self.programs.into_iter();
        programs.try_for_each(|(_, program)| program.finish())
    }
}

fn measure(
    lab: &Lab,
    subject: &Subject,
    place: (Placement, &str),
    there: &[Result<(), Problem>],
) -> Result<Vec<Row>, Problem> {
    let rounds = if lab.quick() { QUICK_BLOCKS } else { BLOCKS };
    let start = |operation, command| {
        let program = HostProgram::start("single_await", command, place.0)?;
        Ok::<_, Problem>((operation, program))
    };
    let Subject {
        host, operation, ..
    } = subject;
    let title = format!(
        "single_await {} {operation} {}",
        host.language,
        place.0.name()
    );
    let sides = 1 + there.iter().filter(|there| there.is_ok()).count();
    let plan = Plan { warm_up: 1, rounds };
    let taken = processes::measure(lab, &title, sides, plan, PROCESSES, || {
        let mut programs = vec![start(*operation, (host.command)()?)?];
        let peers = subject.peers.iter().zip(there);
        for (peer, _) in peers.filter(|(_, there)| there.is_ok()) {
            programs.push(start(peer.operation, (peer.command)()?)?);
        }
        Ok(Programs {
            awaits: subject.awaits,
            programs,
        })
    })?;
    let mut taken = taken.iter();
    let ours = taken.next().expect("our side is always measured");
    let peers = subject.peers.iter().zip(there);
    let rows = peers.map(|(peer, there)| {
        let theirs = there.is_ok().then(|| taken.next()).flatten();
        row(lab, subject, place, peer, (ours, theirs), there)
    });
    Ok(rows.collect())
}

fn row(
    lab: &Lab,
    subject: &Subject,
    (placement, waiting): (Placement, &str),
    peer: &Peer,
    (ours, theirs): (&Samples<Latencies>, Option<&Samples<Latencies>>),
    there: &Result<(), Problem>,
) -> Row {
    let mut params = vec![
        ("language", subject.host.language),
        ("mode", subject.host.mode),
        ("placement", placement.name()),
        ("waiting", waiting),
        (
            "peer_waiting",
            if peer.waits_alike { waiting } else { "park" },
        ),
        ("against", peer.name),
    ];
    if subject.calls != "1" {
        params.push(("calls", subject.calls));
    }
    let (ours, our_metrics) = figures(ours);
    let (theirs, their_metrics) = theirs.map(figures).unzip();
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", ours),
        theirs.map(|theirs| (peer.name, theirs)),
    )
    .checked("every await came back, and each program ended with 0")
    .with_metrics("", our_metrics);
    if let Some(metrics) = their_metrics {
        row.add_metrics("peer_", metrics);
    }
    match peer.bars.iter().find(|(place, _)| *place == placement) {
        Some((_, limit)) => {
            let why = there.as_ref().err().map(ToString::to_string);
            row.held_to(&Target::Ratio(*limit), why.as_deref().or(lab.refusal()))
        }
        None => row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARK: (Placement, &str) = PLACEMENTS[1];

    /// Two blocks in each of three processes, in which each await takes `ns`.
    fn blocks(ns: u64) -> Samples<Latencies> {
        let mut blocks = Samples::default();
        for process in 0..3 {
            let block = || {
                let mut latencies = Latencies::new();
                (0..10).for_each(|_| latencies.record(ns));
                latencies
            };
            blocks.extend(process, [block(), block()]);
        }
        blocks
    }

    #[test]
    fn peer_that_was_not_built_leaves_its_row_unjudged_and_says_how_to_build_it() {
        let lab = Lab::new(false, None);
        let missing = Err(Problem::NotReady("make bench-peers".to_owned()));
        let asyncio = &SUBJECTS[0];
        let row = row(
            &lab,
            asyncio,
            PARK,
            &PYTHON[0],
            (&blocks(20), None),
            &missing,
        );
        assert!(row.verdict.unwrap().contains("make bench-peers"));
        assert_eq!((row.ratio, row.peer), (None, None));
    }

    #[test]
    fn await_has_a_target_against_peers_that_wait_alike() {
        let lab = Lab::new(false, None);
        let (ours, theirs) = (blocks(29), blocks(100));
        let verdict = |subject, place, peer| {
            row(&lab, subject, place, peer, (&ours, Some(&theirs)), &Ok(())).verdict
        };
        let verdicts = |place| {
            let asyncio = |peer| verdict(&SUBJECTS[0], place, peer);
            PYTHON.iter().map(asyncio).collect::<Vec<_>>()
        };
        let said = verdicts(PARK);
        let said: Vec<Option<&str>> = said.iter().map(Option::as_deref).collect();
        // Also in a debug build, for which the lab gives no verdicts.
        if lab.refusal().is_none() {
            assert_eq!(said, [Some("met"), Some("missed"), None]);
        } else {
            assert!(said[0].is_some() && said[1].is_some() && said[2].is_none());
        }
        assert_eq!(verdicts(PLACEMENTS[0]), [None, None, None]);
        // Node's single await is judged on one processor, 64 together on both.
        let node = |number: usize| {
            let subject: &Subject = &SUBJECTS[number];
            PLACEMENTS.map(|place| verdict(subject, place, &subject.peers[0]).is_some())
        };
        assert_eq!((node(1), node(2)), ([true, false], [true, true]));
        // In C++ on one processor, against the eventfd.
        assert_eq!(node(3), [true, false]);
        // The same in Nim.
        assert_eq!(node(4), [true, false]);
    }
}
