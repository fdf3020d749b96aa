//! `ablation`: does the structure or the wake-up rule make an ingress fast?
//!
//! Every structure is measured with every rule. Everything else is equal: the request, the threads,
//! the eventfd, and a consumer that never spins. There is one row per cell, against 16 mutex shards
//! woken on their edge. The question comes from a comparison with that subject, which changed
//! structure and rule together. Thalweg's channel, which has its own way to sleep, is measured next
//! to the cells.

use super::bell::{Edge, Rule};
use super::grid::{CHECKED, Grid, open};
use super::knobs::{KNOBS, Settings};
use super::subjects::{CELLS, PEERS, Subject, THALWEG, all, find};
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "ablation",
    group: "boundary",
    what: "Every ingress with every wake-up rule: does the structure or the rule make submission fast?",
    source: "nim-ffi's comparison of sharded mutexes with a lock-free queue, which changed both at once",
    peers: &PEERS,
    seconds: 300,
    run,
    knobs: KNOBS,
    cells: Some(open),
};

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let settings = Settings::of(lab)?;
    for peer in PEERS {
        lab.peers
            .insert(peer.to_owned(), "of this commit".to_owned());
    }
    let subjects: Vec<&'static Subject> = all().collect();
    let grid = Grid::take(lab, WORKLOAD.name, &settings, &subjects)?;
    let mut rows = Vec::new();
    for &producers in &settings.producers {
        rows.extend(
            CELLS
                .iter()
                .chain([&THALWEG])
                .map(|cell| row(&grid, cell, producers)),
        );
    }
    Ok(rows)
}

fn row(grid: &Grid, cell: &Subject, producers: usize) -> Row {
    let reference = find("mutex_shards", Edge::NAME).expect("every structure has every rule");
    let itself = (cell.structure, cell.rule) == (reference.structure, reference.rule);
    let params = [
        ("producers", producers.to_string()),
        ("wake", cell.rule.to_owned()),
        ("peer_wake", reference.rule.to_owned()),
    ];
    let params = params.each_ref().map(|(key, value)| (*key, value.as_str()));
    Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        if itself { &params[..2] } else { &params },
        "ns",
        (cell.structure, grid.times(cell, producers)),
        (!itself).then(|| (reference.structure, grid.times(reference, producers))),
    )
    .checked(CHECKED)
    .with_metrics("", grid.metrics(cell, producers))
}
