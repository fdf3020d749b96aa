//! `mpmc`: many threads pass numbers to many others; each number is received once.

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
    name: "mpmc",
    group: "queue",
    what: "Several threads pass numbers to several others: both ends are shared.",
    source: "crossbeam's own grid; 5x3 is nimsync's, which ran it on one thread and lost 4,744 of 5,000",
    peers: &PEERS,
    seconds: 60,
    run,
    knobs: KNOBS,
    cells: Some(sides::many_to_many_cell),
};

const TOPOLOGY: Knob = Knob {
    name: "topology",
    default: "2x2,4x4",
    what: "senders x receivers, as a list",
};
const CAPACITY: Knob = Knob {
    name: "capacity",
    default: "1024",
    what: "capacities, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "free,one_cpu",
    what: "free, one_cpu or split, as a list; by default one_cpu runs only 2x2",
};
const KNOBS: &[Knob] = &[TOPOLOGY, CAPACITY, PLACEMENT, grid::MESSAGES, grid::FULL];

const PEERS: [&str; 6] = [
    "crossbeam",
    "kanal",
    "flume",
    "async-channel",
    "vyukov",
    go_chan::NAME,
];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let topologies = grid.words(lab, &TOPOLOGY, "2x2,5x3,1x4,4x1,4x4");
    let capacities = grid.numbers(lab, &CAPACITY, "1024")?;
    let placements = grid.words(lab, &PLACEMENT, "free,one_cpu");
    let messages = lab.knob(&grid::MESSAGES);
    let usual = !grid.full && lab.knob(&PLACEMENT) == PLACEMENT.default;
    let mut rows = Vec::new();
    for topology in &topologies {
        sides::topology(topology)?;
        for capacity in &capacities {
            for placement in &placements {
                if placement == "free" || topology == "2x2" || !usual {
                    rows.extend(point(lab, topology, *capacity, placement, &messages)?);
                }
            }
        }
    }
    Ok(rows)
}

fn point(
    lab: &mut Lab,
    topology: &str,
    capacity: u64,
    placement: &str,
    messages: &str,
) -> Result<Vec<Row>, Problem> {
    let capacity_text = capacity.to_string();
    let params = [
        ("topology", topology),
        ("capacity", capacity_text.as_str()),
        ("placement", placement),
        ("messages", messages),
    ];
    let subjects = grid::with_ours(&PEERS);
    let cell = Cell::new(WORKLOAD.name, &params, &subjects).at(rows::process_placement(placement)?);
    let barred = capacity == 1024 && ["2x2", "4x4"].contains(&topology) && placement != "split";
    let rigour = if barred { Rigour::Bar } else { Rigour::Look };
    let measured = rows::measure(lab, &WORKLOAD, cell, rigour)?;
    let mut rows = measured.rows("ns", &[threads::CHECKED_MANY]);
    for row in &mut rows {
        if row.peer.as_deref() == Some("vyukov") {
            row.checks
                .push(format!("the peer {}", Waiting::Looks.text()));
        }
    }
    if barred && placement == "one_cpu" {
        hold_best(&mut rows, &Target::Ratio(1.5), lab.refusal());
    } else if barred {
        let refusal = rows::refusal(lab);
        hold_best(&mut rows, &Target::Ratio(1.0), refusal);
    }
    Ok(rows)
}
