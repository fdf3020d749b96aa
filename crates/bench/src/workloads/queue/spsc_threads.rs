//! `spsc_threads`: the cost of passing a number to another thread.

use thalweg_peers::channel::Waiting;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Row, hold_best};
use crate::workloads::{Knob, Workload};

use super::grid::{self, Grid};
use super::rows::{self, Rigour};
use super::{go_chan, sides, threads};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "spsc_threads",
    group: "queue",
    what: "One thread passes numbers to another: the cost of a message, one at a time and in batches.",
    source: "the rings' own benchmarks, with blocking calls, a wake-up check and every message verified",
    peers: &ONE_BY_ONE,
    seconds: 110,
    run,
    knobs: KNOBS,
    cells: Some(sides::one_to_one_cell),
};

const CAPACITY: Knob = Knob {
    name: "capacity",
    default: "1024",
    what: "capacities, as a list",
};
const BATCH: Knob = Knob {
    name: "batch",
    default: "1,64",
    what: "messages at a time, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "free,one_cpu",
    what: "free, one_cpu or split, as a list; by default batches run only with free",
};
const KNOBS: &[Knob] = &[CAPACITY, BATCH, PLACEMENT, grid::MESSAGES, grid::FULL];

/// Peers; those with a target come first.
const ONE_BY_ONE: [&str; 11] = [
    "rtrb",
    "rtrb_0_3",
    "crossbeam",
    "std",
    "kanal",
    "flume",
    "async-channel",
    "tokio",
    "disruptor",
    "c11_ring",
    go_chan::NAME,
];
/// Peers that support batches, and one that does not.
const IN_BATCHES: [&str; 5] = ["rtrb", "rtrb_0_3", "disruptor", "c11_ring", "crossbeam"];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let capacities = grid.numbers(lab, &CAPACITY, "64,256,1024,4096,8192,65536")?;
    let batches = grid.numbers(lab, &BATCH, "1,16,64,256")?;
    let placements = grid.words(lab, &PLACEMENT, "free,split,one_cpu");
    let messages = lab.knob(&grid::MESSAGES);
    let mut rows = Vec::new();
    for capacity in &capacities {
        for batch in &batches {
            for placement in &placements {
                let usual = !grid.full && lab.knob(&PLACEMENT) == PLACEMENT.default;
                if *batch == 1 || placement == "free" || !usual {
                    rows.extend(point(lab, *capacity, *batch, placement, &messages)?);
                }
            }
        }
    }
    Ok(rows)
}

fn point(
    lab: &mut Lab,
    capacity: u64,
    batch: u64,
    placement: &str,
    messages: &str,
) -> Result<Vec<Row>, Problem> {
    let params = [
        ("capacity", capacity.to_string()),
        ("batch", batch.to_string()),
        ("placement", placement.to_owned()),
        ("messages", messages.to_owned()),
    ];
    let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let peers: &[&str] = if batch == 1 { &ONE_BY_ONE } else { &IN_BATCHES };
    let subjects = grid::with_ours(peers);
    let cell = Cell::new(WORKLOAD.name, &params, &subjects).at(rows::process_placement(placement)?);
    let barred = capacity == 1024 && placement != "split" && (batch == 1 || batch == 64);
    let rigour = if barred { Rigour::Bar } else { Rigour::Look };
    let measured = rows::measure(lab, &WORKLOAD, cell, rigour)?;
    let mut rows = measured.rows("ns", &[threads::CHECKED_ONE]);
    for row in &mut rows {
        if row.peer.as_deref().is_some_and(looks) {
            row.checks
                .push(format!("the peer {}", Waiting::Looks.text()));
        }
    }
    let refusal = rows::refusal(lab);
    match (capacity, batch, placement) {
        (1024, 1, "free") => {
            rows::hold(&mut rows, "rtrb", &Target::Ratio(0.85), refusal);
            rows::hold(&mut rows, "rtrb_0_3", &Target::Ratio(1.1), refusal);
            rows::hold(&mut rows, "crossbeam", &Target::Ratio(0.5), refusal);
            let alone = measured.alone("ns", &[threads::CHECKED_ONE]);
            rows.push(alone.held_to(&Target::Worst(1.5), refusal));
        }
        (1024, 64, "free") => rows::hold(&mut rows, "rtrb", &Target::Ratio(1.0), refusal),
        (1024, 1, "one_cpu") => {
            hold_best(&mut rows, &Target::Ratio(1.5), lab.refusal());
        }
        _ => {}
    }
    Ok(rows)
}

/// Whether a peer has no blocking calls.
fn looks(peer: &str) -> bool {
    ["rtrb", "rtrb_0_3", "disruptor", "c11_ring", "vyukov"].contains(&peer)
}
