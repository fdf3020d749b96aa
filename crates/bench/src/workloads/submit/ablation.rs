//! `ablation`: which of the two makes an ingress fast, the structure that carries or the rule that wakes?
//!
//! Every structure under every rule, all else equal: the request, the threads, the eventfd, and a consumer that never spins. A
//! row for each cell, against 16 mutex shards woken on their edge, which is where the question comes from: there, structure
//! and rule were changed together. Thalweg's channel, which brings its own way to sleep, stands beside the cells.

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
    what: "Every ingress under every rule of waking: is it the structure or the rule that makes submission fast?",
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
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        if itself { &params[..2] } else { &params },
        "ns",
        (cell.structure, grid.times(cell, producers)),
        (!itself).then(|| (reference.structure, grid.times(reference, producers))),
    )
    .checked(CHECKED);
    row.metrics = grid.metrics(cell, producers);
    row
}
