//! `ablation`: does the structure or the wake-up rule make an ingress fast?
//!
//! Every structure is measured with every rule. Everything else is equal: the request, the threads,
//! the eventfd, and a consumer that never spins. There is one row per cell, against 16 mutex shards
//! woken on their edge. The question comes from a comparison with that subject, which changed
//! structure and rule together. Thalweg's channel, which has its own way to sleep, is measured next
//! to the cells.

use super::bell::{Edge, Rule};
use super::grid::{Grid, find, open};
use super::knobs::{KNOBS, Settings};
use super::sample::CHECKED;
use super::subjects::{PEERS, SUBJECTS};
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
    cells: Some(|cell| open(cell, &SUBJECTS)),
};

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let settings = Settings::of(lab, KNOBS)?;
    let grid = Grid::take(lab, &WORKLOAD, &settings, SUBJECTS.iter())?;
    let reference = find(&SUBJECTS, "mutex_shards", Edge::NAME).expect("each has each rule");
    let mut rows = Vec::new();
    for &producers in &settings.producers {
        for cell in &SUBJECTS {
            let itself = (cell.name, cell.variant) == (reference.name, reference.variant);
            let params = [("wake", cell.variant), ("peer_wake", reference.variant)];
            let (peer, params) = match itself {
                true => (None, &params[..1]),
                false => (Some(reference), &params[..]),
            };
            rows.push(grid.row(cell, producers, peer, params, CHECKED));
        }
    }
    Ok(rows)
}
