//! `mpsc`: many threads pass numbers to one.
//!
//! Capacities are totals, the same for every subject. With 32 producers and more there are many
//! threads per processor. The requirement is that the cost per message does not grow, so Thalweg
//! with 4 producers runs in the same rounds.

use thalweg_peers::channel::Waiting;

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Metrics, Row, hold_best};
use crate::statistics::{Interval, Ratio, ratio_of_pairs};
use crate::workloads::{Knob, Workload};

use super::grid::{self, Grid};
use super::rows::{self, Measured, Rigour};
use super::{go_chan, sides, subjects, threads};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "mpsc",
    group: "queue",
    what: "2 to 100 threads pass numbers to one: the cost of a shared tail.",
    source: "nimsync's mpsc benchmark (which timed a thread's own clock) and atomic_queue's charts",
    peers: &PEERS,
    seconds: 120,
    run,
    knobs: KNOBS,
    cells: Some(sides::many_to_one_cell),
};

const PRODUCERS: Knob = Knob {
    name: "producers",
    default: "2,4,8,32,100",
    what: "threads that send, as a list",
};
const CAPACITY: Knob = Knob {
    name: "capacity",
    default: "1024",
    what: "capacities in all, or unbounded, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "free,one_cpu",
    what: "free, one_cpu or split, as a list; by default one_cpu runs only 4 producers",
};
const KNOBS: &[Knob] = &[PRODUCERS, CAPACITY, PLACEMENT, grid::MESSAGES, grid::FULL];

const PEERS: [&str; 8] = [
    "crossbeam",
    "std",
    "flume",
    "kanal",
    "tokio",
    "disruptor",
    "vyukov",
    go_chan::NAME,
];
/// The peers that have an unbounded variant.
const UNBOUNDED: [&str; 5] = ["crossbeam", "std", "flume", "kanal", "tokio"];

/// Thalweg with few producers, for comparison with many.
const OURS_AT_4: &str = "thalweg@4";
/// The number of producers from which the comparison is made.
const CROWD: u64 = 32;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let producers = grid.numbers(lab, &PRODUCERS, "1,2,4,8,16,32,64,100")?;
    let capacities = grid.words(lab, &CAPACITY, "64,256,1024,4096,unbounded");
    let placements = grid.words(lab, &PLACEMENT, "free,one_cpu");
    let messages = lab.knob(&grid::MESSAGES);
    let usual = !grid.full && lab.knob(&PLACEMENT) == PLACEMENT.default;
    let mut rows = Vec::new();
    for capacity in &capacities {
        for producers in &producers {
            for placement in &placements {
                if placement == "free" || *producers == 4 || !usual {
                    rows.extend(point(lab, *producers, capacity, placement, &messages)?);
                }
            }
        }
    }
    Ok(rows)
}

fn point(
    lab: &mut Lab,
    producers: u64,
    capacity: &str,
    placement: &str,
    messages: &str,
) -> Result<Vec<Row>, Problem> {
    let producers_text = producers.to_string();
    let params = [
        ("producers", producers_text.as_str()),
        ("capacity", capacity),
        ("placement", placement),
        ("messages", messages),
    ];
    let crowd = producers >= CROWD && placement == "free";
    let peers: &[&str] = if capacity == "unbounded" {
        &UNBOUNDED
    } else {
        &PEERS
    };
    let mut subjects = grid::with_ours(peers);
    if crowd {
        subjects.push(OURS_AT_4);
    }
    let cell = Cell::new(WORKLOAD.name, &params, &subjects).at(rows::process_placement(placement)?);
    let barred = capacity == "1024" && [2, 4, 8, 32, 100].contains(&producers);
    let rigour = if barred { Rigour::Bar } else { Rigour::Look };
    let measured = rows::measure(lab, &WORKLOAD, cell, rigour)?;
    let mut rows = measured.rows("ns", &[threads::CHECKED_ONE]);
    rows.retain(|row| row.peer.as_deref() != Some(OURS_AT_4));
    for row in &mut rows {
        if matches!(row.peer.as_deref(), Some("disruptor" | "vyukov")) {
            row.checks
                .push(format!("the peer {}", Waiting::Looks.text()));
        }
    }
    if !barred {
        return Ok(rows);
    }
    if placement == "one_cpu" {
        let limit = Target::Ratio(1.5);
        hold_best(&mut rows, &limit, lab.refusal());
    } else if placement == "free" {
        let limit = Target::Ratio(if producers == 2 { 0.75 } else { 0.6 });
        let refusal = rows::refusal(lab);
        hold_best(&mut rows, &limit, refusal);
        if crowd {
            rows.push(beside_few(&measured).held_to(&Target::Metric("cost_vs_4", 2.0), refusal));
        }
    }
    Ok(rows)
}

/// Thalweg with many producers against Thalweg with 4, pair by pair.
fn beside_few(measured: &Measured<'_>) -> Row {
    let row = measured.alone("ns", &[threads::CHECKED_ONE]);
    let many = measured.times_of(subjects::THALWEG);
    let few = measured.times_of(OURS_AT_4);
    let cost = many
        .zip(few)
        .and_then(|(many, few)| ratio_of_pairs(&many, &few));
    let mut metrics = Metrics::default();
    if let Some(Ratio { median, low, high }) = cost {
        metrics.estimate("cost_vs_4", median, Interval { low, high });
    }
    row.with_metrics("", metrics)
}
