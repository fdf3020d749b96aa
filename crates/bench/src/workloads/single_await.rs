//! `single_await`: the duration of an await in Python whose call does nothing, against other
//! bindings between Rust and asyncio.
//!
//! The same loop runs in a separate process for each side and awaits our call that does nothing, an
//! async function of pyo3-async-runtimes, or one of `UniFFI`. In all three another thread answers:
//! the service's actor for ours, a tokio worker for the others. The row against `uniffi_ready` is
//! `UniFFI`'s await of a value that is already ready, which involves no other thread. That row is
//! for information and has no target.
//!
//! A tokio worker sleeps as soon as it has nothing to do. The targets apply where ours does the
//! same: with `placement=split` the loop has one processor and all other threads have another, so
//! that none of them spins (`waiting=park`). With `placement=one_cpu` our worker yields once before
//! it sleeps (`waiting=yield`, `peer_waiting=park`); those rows are for information.
//!
//! The peers are built on request (`make bench-peers`); if they are missing, the rows record it.

use std::process::Command;

use crate::child::HostProgram;
use crate::interleave::Plan;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::{Latencies, figures};
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, Process};
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::Workload;
use crate::workloads::first_calls::UNCOUNTED;
use crate::workloads::lab_hosts::{self, Block, peer_pyo3, peer_uniffi, peer_version};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "single_await",
    group: "boundary",
    what: "An await in Python whose call does nothing: ours, pyo3-async-runtimes' and UniFFI's.",
    source: "reports by users of both about their bridges to asyncio",
    peers: &[PEERS[0].name, PEERS[1].name, PEERS[2].name],
    seconds: 60,
    run,
    ..Workload::USUAL
};

/// A peer, and the function that is awaited.
struct Peer {
    name: &'static str,
    program: &'static str,
    command: fn() -> Result<Command, Problem>,
    operation: &'static str,
    target: Option<f64>,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "pyo3-async-runtimes",
        program: "pyo3-async-runtimes",
        command: peer_pyo3,
        operation: "nop",
        target: Some(0.3),
    },
    Peer {
        name: "uniffi",
        program: "uniffi",
        command: peer_uniffi,
        operation: "nop",
        target: Some(0.2),
    },
    Peer {
        name: "uniffi_ready",
        program: "uniffi",
        command: peer_uniffi,
        operation: "ready",
        target: None,
    },
];

/// The placements, and how our worker waits there.
const PLACEMENTS: [(Placement, &str); 2] =
    [(Placement::OneCpu, "yield"), (Placement::Split, "park")];

/// Awaits in a block.
const AWAITS: usize = 1_000;
/// Blocks of each side, in all processes together: 102,000 awaits.
const BLOCKS: usize = 102;
const QUICK_BLOCKS: usize = 6;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut there = Vec::new();
    for peer in &PEERS {
        let command = (peer.command)();
        if command.is_ok() {
            let version = peer_version(peer.program)?;
            lab.peers.insert(peer.name.to_owned(), version);
        }
        there.push(command.map(drop));
    }
    let mut rows = Vec::new();
    for place in PLACEMENTS {
        if place.0.possible() {
            rows.extend(measure(lab, place, &there)?);
        }
    }
    Ok(rows)
}

/// The programs of one round: ours, and those of the peers that are there.
struct Programs(Vec<(&'static str, HostProgram)>);

impl Process for Programs {
    type Sample = Latencies;

    fn take(&mut self, side: usize) -> Result<Latencies, Problem> {
        let (operation, program) = &mut self.0[side];
        let block: Block = program.ask(&format!("{operation} {AWAITS} {UNCOUNTED} 0"))?;
        block.counted(AWAITS)
    }

    fn finish(self) -> Result<(), Problem> {
        let mut programs = self.0.into_iter();
        programs.try_for_each(|(_, program)| program.finish())
    }
}

fn measure(
    lab: &Lab,
    place: (Placement, &str),
    there: &[Result<(), Problem>],
) -> Result<Vec<Row>, Problem> {
    let rounds = if lab.quick() { QUICK_BLOCKS } else { BLOCKS };
    let start = |operation, command| {
        let program = HostProgram::start("single_await", command, place.0)?;
        Ok::<_, Problem>((operation, program))
    };
    let title = format!("single_await {}", place.0.name());
    let sides = 1 + there.iter().filter(|there| there.is_ok()).count();
    let plan = Plan { warm_up: 1, rounds };
    let taken = processes::measure(lab, &title, sides, plan, PROCESSES, || {
        let mut programs = vec![start("nop", (lab_hosts::ASYNCIO.command)()?)?];
        for (peer, _) in PEERS.iter().zip(there).filter(|(_, there)| there.is_ok()) {
            programs.push(start(peer.operation, (peer.command)()?)?);
        }
        Ok(Programs(programs))
    })?;
    let mut taken = taken.iter();
    let ours = taken.next().expect("our side is always measured");
    let peers = PEERS.iter().zip(there);
    let rows = peers.map(|(peer, there)| {
        let theirs = there.is_ok().then(|| taken.next()).flatten();
        row(lab, place, peer, (ours, theirs), there)
    });
    Ok(rows.collect())
}

fn row(
    lab: &Lab,
    (placement, waiting): (Placement, &str),
    peer: &Peer,
    (ours, theirs): (&Samples<Latencies>, Option<&Samples<Latencies>>),
    there: &Result<(), Problem>,
) -> Row {
    let params = [
        ("language", "python"),
        ("mode", "asyncio"),
        ("placement", placement.name()),
        ("waiting", waiting),
        ("peer_waiting", "park"),
        ("against", peer.name),
    ];
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
    match peer.target.filter(|_| waiting == "park") {
        Some(limit) => {
            let why = there.as_ref().err().map(ToString::to_string);
            row.held_to(&Target::Ratio(limit), why.as_deref().or(lab.refusal()))
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
        let row = row(&lab, PARK, &PEERS[0], (&blocks(20), None), &missing);
        assert!(row.verdict.unwrap().contains("make bench-peers"));
        assert_eq!((row.ratio, row.peer), (None, None));
    }

    #[test]
    fn await_has_a_target_against_peers_that_wait_alike() {
        let lab = Lab::new(false, None);
        let (ours, theirs) = (blocks(29), blocks(100));
        let verdicts = |place| {
            let verdict = |peer| row(&lab, place, peer, (&ours, Some(&theirs)), &Ok(())).verdict;
            PEERS.iter().map(verdict).collect::<Vec<_>>()
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
    }
}
