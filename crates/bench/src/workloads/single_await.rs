//! `single_await`: the duration of an await in Python whose call does nothing, against other
//! bindings between Rust and asyncio.
//!
//! The same loop runs in a separate process for each side and awaits our call that does nothing, an
//! async function of pyo3-async-runtimes, or one of `UniFFI`. In all three another thread answers:
//! the service's actor for ours, a tokio worker for the others. The row against `uniffi_ready` is
//! `UniFFI`'s await of a value that is already ready, which involves no other thread. That row is
//! for information and has no target.
//!
//! - `one_cpu`: each process is pinned to one processor;
//! - `hot`: two processors, awaits back to back.
//!
//! The peers are built on request (`make bench-peers`); if they are missing, the rows record it.

use std::cell::RefCell;

use serde::Deserialize;

use crate::child::HostProgram;
use crate::interleave::{Plan, Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::median;
use crate::workloads::Workload;
use crate::workloads::first_calls::UNCOUNTED;
use crate::workloads::lab_hosts::{self, peer_pyo3, peer_uniffi, peer_version};

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
    command: fn() -> Result<std::process::Command, Problem>,
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

const PACES: [(&str, Placement); 2] = [("one_cpu", Placement::OneCpu), ("hot", Placement::TwoCpus)];

/// Awaits in a block.
const AWAITS: u32 = 1_000;
/// Blocks of each side: 100,000 awaits.
const BLOCKS: usize = 100;
const QUICK_BLOCKS: usize = 5;

#[derive(Deserialize)]
struct Block {
    /// Latencies of the counted awaits, in order, in ns.
    latencies: Vec<u64>,
}

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
    for (pace, placement) in PACES {
        if placement.possible() {
            rows.extend(measure(lab, (pace, placement), &there)?);
        }
    }
    Ok(rows)
}

fn measure(
    lab: &Lab,
    (pace, placement): (&str, Placement),
    there: &[Result<(), Problem>],
) -> Result<Vec<Row>, Problem> {
    let rounds = if lab.quick() { QUICK_BLOCKS } else { BLOCKS };
    let plan = Plan { warm_up: 1, rounds };
    let mut programs = vec![("nop", start((lab_hosts::ASYNCIO.command)()?, placement)?)];
    for (peer, there) in PEERS.iter().zip(there) {
        if there.is_ok() {
            programs.push((peer.operation, start((peer.command)()?, placement)?));
        }
    }
    lab.begin(
        &format!("single_await {pace}"),
        programs.len() * (plan.warm_up + plan.rounds),
    );
    let block = |operation: &str, program: &RefCell<HostProgram>| {
        let line = format!("{operation} {AWAITS} {UNCOUNTED} 0");
        let block: Block = program.borrow_mut().ask(&line)?;
        if block.latencies.len() == AWAITS as usize {
            Ok(block.latencies)
        } else {
            Err(Problem::Check(format!(
                "{} of {AWAITS} awaits came back",
                block.latencies.len()
            )))
        }
    };
    let mut sides: Vec<Side<'_, Vec<u64>>> = programs
        .iter()
        .map(|(operation, program)| Side::new(|| block(operation, program)))
        .collect();
    let mut taken = interleave(&mut sides, plan, || lab.step())?.into_iter();
    drop(sides);
    for (_, program) in programs {
        program.into_inner().finish()?;
    }

    let ours = taken.next().unwrap_or_default();
    let mut rows = Vec::new();
    for (peer, there) in PEERS.iter().zip(there) {
        let theirs = there.is_ok().then(|| taken.next()).flatten();
        rows.push(row((pace, placement), lab, peer, (&ours, theirs), there));
    }
    Ok(rows)
}

fn start(
    command: std::process::Command,
    placement: Placement,
) -> Result<RefCell<HostProgram>, Problem> {
    HostProgram::start("single_await", command, placement).map(RefCell::new)
}

fn row(
    (pace, placement): (&str, Placement),
    lab: &Lab,
    peer: &Peer,
    (ours, theirs): (&[Vec<u64>], Option<Vec<Vec<u64>>>),
    there: &Result<(), Problem>,
) -> Row {
    let params = [
        ("language", "python"),
        ("mode", "asyncio"),
        ("pace", pace),
        ("placement", placement.name()),
        ("against", peer.name),
    ];
    let medians = |side: &[Vec<u64>]| -> Vec<f64> {
        let of = |block: &Vec<u64>| {
            let block: Vec<f64> = block.iter().map(|ns| *ns as f64).collect();
            median(&block)
        };
        side.iter().filter_map(of).collect()
    };
    let with = theirs.as_deref().map(|theirs| (peer.name, medians(theirs)));
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", medians(ours)),
        with,
    )
    .checked("every await came back, and each program ended with 0");
    histogram(ours).write("", &mut row.metrics);
    if let Some(theirs) = &theirs {
        histogram(theirs).write("peer_", &mut row.metrics);
    }
    if let Some(limit) = peer.target {
        let why = there.as_ref().err().map(ToString::to_string);
        row = row.held_to(&Target::Ratio(limit), why.as_deref().or(lab.refusal()));
    }
    row
}

fn histogram(side: &[Vec<u64>]) -> Latencies {
    let mut latencies = Latencies::new();
    for ns in side.iter().flatten() {
        latencies.record(*ns);
    }
    latencies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_was_not_built_leaves_its_row_unjudged_and_says_how_to_build_it() {
        let lab = Lab::new(false, None);
        let ours = vec![vec![10, 20, 30]; 5];
        let missing = Err(Problem::NotReady("make bench-peers".to_owned()));
        let at = (PACES[0].0, PACES[0].1);
        let row = row(at, &lab, &PEERS[0], (&ours, None), &missing);
        assert!(row.verdict.unwrap().contains("make bench-peers"));
        assert_eq!((row.ratio, row.peer), (None, None));
    }

    #[test]
    fn an_await_is_held_against_those_that_another_thread_answers() {
        let lab = Lab::new(false, None);
        let (ours, theirs) = (vec![vec![29]; 5], vec![vec![100]; 5]);
        let at = (PACES[0].0, PACES[0].1);
        let verdicts = PEERS.iter().map(|peer| {
            let sides = (ours.as_slice(), Some(theirs.clone()));
            row(at, &lab, peer, sides, &Ok(())).verdict
        });
        let verdicts: Vec<Option<String>> = verdicts.collect();
        let said: Vec<Option<&str>> = verdicts.iter().map(Option::as_deref).collect();
        // Also in a debug build, for which the lab gives no verdicts.
        if lab.refusal().is_none() {
            assert_eq!(said, [Some("met"), Some("missed"), None]);
        } else {
            assert!(said[0].is_some() && said[1].is_some() && said[2].is_none());
        }
    }
}
