//! `first_calls`: how long a call that does nothing takes from each host, compared with two
//! hand-offs through eventfds.
//!
//! The bare side is the minimal work of a call over two threads: write an eventfd that a plain
//! thread waits on, then wait for the eventfd that this thread writes in answer. It is measured in
//! the same process as our call, in alternating blocks. In asyncio the loop watches the answer's
//! eventfd and resolves a future, as a call does.
//!
//! - `one_cpu`: the program is pinned to one processor before it opens anything. No waiter may
//!   spin.
//! - `hot`: two processors, calls back to back.
//! - `cold`: two processors, and a pause of 2 ms before each call, so that all threads sleep. It
//!   has no target because it measures how the machine wakes a processor.
//!
//! Each block begins with [`UNCOUNTED`] calls that are not counted, because the program has just
//! waited for its input.

use std::cell::RefCell;

use serde::Deserialize;

use crate::child::HostProgram;
use crate::interleave::{Plan, Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::machine;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::median;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "first_calls",
    group: "boundary",
    what: "How long a call that does nothing takes from each host: the basic cost of crossing the boundary.",
    source: "the round trips through asyncio, Node and Go that generators' users complain of",
    peers: &["eventfd"],
    seconds: 150,
    run,
    ..Workload::USUAL
};

/// Calls at the start of each block that are not counted.
pub const UNCOUNTED: u32 = 100;

/// One way of calling one method.
struct Way {
    host: LabHost,
    method: &'static str,
}

const WAYS: [Way; 5] = [
    Way {
        host: lab_hosts::C,
        method: "nop",
    },
    Way {
        host: lab_hosts::C,
        method: "nop-async",
    },
    Way {
        host: lab_hosts::PYTHON,
        method: "nop",
    },
    Way {
        host: lab_hosts::ASYNCIO,
        method: "nop",
    },
    Way {
        host: lab_hosts::RUST,
        method: "nop",
    },
];

/// The pacing of a row's calls.
#[derive(Clone, Copy)]
struct Pace {
    name: &'static str,
    placement: Placement,
    pause_us: u32,
    /// Calls in a block.
    calls: u32,
    /// Blocks of each side.
    blocks: usize,
    /// Blocks of each side in a quick run.
    quick_blocks: usize,
}

/// 100,000 calls each, except with pauses: that would take an hour.
const PACES: [Pace; 3] = [
    Pace {
        name: "one_cpu",
        placement: Placement::OneCpu,
        pause_us: 0,
        calls: 1_000,
        blocks: 100,
        quick_blocks: 10,
    },
    Pace {
        name: "hot",
        placement: Placement::TwoCpus,
        pause_us: 0,
        calls: 1_000,
        blocks: 100,
        quick_blocks: 10,
    },
    Pace {
        name: "cold",
        placement: Placement::TwoCpus,
        pause_us: 2_000,
        calls: 100,
        blocks: 50,
        quick_blocks: 5,
    },
];

/// The targets of issue and design: the median over all calls.
fn target(way: &Way, pace: &Pace) -> Option<Target> {
    let p50 = |ns| Target::Metric("p50_ns", ns);
    match (way.host.language, way.host.mode, way.method, pace.name) {
        ("c", _, "nop", "one_cpu") => Some(p50(3_000.0)),
        ("python", "sync", "nop", "one_cpu") => Some(p50(5_000.0)),
        ("python", "asyncio", "nop", "one_cpu") => {
            Some(Target::All(vec![p50(10_000.0), Target::Ratio(1.5)]))
        }
        ("c", _, "nop", "hot") => Some(p50(2_000.0)),
        _ => None,
    }
}

/// The answer of a host program to a block.
#[derive(Deserialize)]
struct Block {
    /// Latencies of the counted operations, in order, in ns.
    latencies: Vec<u64>,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert("eventfd".to_owned(), machine::describe().uname);
    let mut rows = Vec::new();
    for pace in PACES {
        for way in &WAYS {
            if pace.placement.possible() {
                rows.push(row(lab, way, &pace)?);
            }
        }
    }
    Ok(rows)
}

fn row(lab: &Lab, way: &Way, pace: &Pace) -> Result<Row, Problem> {
    let rounds = if lab.quick() {
        pace.quick_blocks
    } else {
        pace.blocks
    };
    let plan = Plan { warm_up: 1, rounds };
    let title = format!("{} {} {}", way.host.language, way.method, pace.name);
    lab.begin(&title, 2 * (plan.warm_up + plan.rounds));

    let program = HostProgram::start(&title, (way.host.command)()?, pace.placement)?;
    let program = RefCell::new(program);
    let block = |operation: &str| {
        let line = format!("{operation} {} {UNCOUNTED} {}", pace.calls, pace.pause_us);
        let block: Block = program.borrow_mut().ask(&line)?;
        let wanted = pace.calls as usize;
        if block.latencies.len() == wanted {
            Ok(block.latencies)
        } else {
            Err(Problem::Check(format!(
                "{} of {wanted} calls came back",
                block.latencies.len()
            )))
        }
    };
    let mut sides = [Side::new(|| block(way.method)), Side::new(|| block("bare"))];
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);
    program.into_inner().finish()?;

    let medians = |side: &[Vec<u64>]| -> Vec<f64> {
        side.iter()
            .filter_map(|block| median(&as_floats(block)))
            .collect()
    };
    let (ours, bare) = (&taken[0], &taken[1]);
    let params = [
        ("language", way.host.language),
        ("mode", way.host.mode),
        ("method", way.method),
        ("pace", pace.name),
        ("placement", pace.placement.name()),
        ("pause_us", &pace.pause_us.to_string()),
    ];
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", medians(ours)),
        Some(("eventfd", medians(bare))),
    )
    .checked(format!(
        "{} calls ended, each once and well",
        plan.rounds * pace.calls as usize
    ))
    .checked("the program closed its client and ended with 0");
    histogram(ours).write("", &mut row.metrics);
    histogram(bare).write("peer_", &mut row.metrics);
    Ok(match target(way, pace) {
        Some(target) => row.held_to(&target, lab.refusal()),
        None => row,
    })
}

fn as_floats(block: &[u64]) -> Vec<f64> {
    block.iter().map(|ns| *ns as f64).collect()
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
    use crate::latency::ENOUGH;

    #[test]
    fn every_pace_with_a_bar_takes_enough_calls_for_its_percentiles() {
        for pace in &PACES {
            let judged = WAYS.iter().any(|way| target(way, pace).is_some());
            let calls = u64::from(pace.calls) * pace.blocks as u64;
            assert!(!judged || calls >= ENOUGH, "{}: {calls}", pace.name);
        }
    }

    #[test]
    fn the_bars_are_those_of_the_first_landing() {
        let text = |way: usize, pace: usize| target(&WAYS[way], &PACES[pace]).map(|t| t.text());
        assert_eq!(text(0, 0).as_deref(), Some("p50_ns <= 3000"));
        assert_eq!(text(0, 1).as_deref(), Some("p50_ns <= 2000"));
        assert_eq!(text(2, 0).as_deref(), Some("p50_ns <= 5000"));
        assert_eq!(
            text(3, 0).as_deref(),
            Some("p50_ns <= 10000 and ratio <= 1.5")
        );
        assert!(
            (0..WAYS.len()).all(|way| text(way, 2).is_none()),
            "cold has no bar"
        );
    }
}
