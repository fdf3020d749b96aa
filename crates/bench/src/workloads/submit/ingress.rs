//! `ingress`: the cost for K threads of handing their requests to the thread that runs them, over a
//! Rust channel that no foreign call uses. [`super::port_submit`] measures foreign calls.
//!
//! The request is a no-op, so that only the ingress is measured. The peers are the ingresses of
//! such frameworks, each woken on its edge. There is one row for each peer and number of producers,
//! and one for Thalweg alone, whose `scaling_vs_1` is its requests per second as a multiple of one
//! producer's.

use super::bell::{Edge, Rule};
use super::grid::{Grid, find, open};
use super::knobs::{KNOBS, Settings};
use super::sample::CHECKED;
use super::subjects::{PEERS, SUBJECTS};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "ingress",
    group: "boundary",
    what: "Requests per second that K threads hand over a Rust channel to the thread that runs them, until the last submission has returned.",
    source: "nim-ffi's submission benchmark: does an ingress scale with its producers?",
    peers: &PEERS,
    seconds: 120,
    run,
    knobs: KNOBS,
    cells: Some(|cell| open(cell, &SUBJECTS)),
};

/// The number of producers at which the targets apply.
const BARRED: usize = 8;

/// Against mutex shards, by time.
const AGAINST_SHARDS: Target = Target::Ratio(0.5);

/// The scaling of 8 producers, on two processors that they share with the consumer.
const KEPT: Target = Target::AtLeast("scaling_vs_1", 0.8);

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let settings = Settings::of(lab, KNOBS)?;
    let ours = &SUBJECTS[0];
    let peers = PEERS.map(|peer| find(&SUBJECTS, peer, Edge::NAME).expect("each has each rule"));
    let subjects = std::iter::once(ours).chain(peers);
    let grid = Grid::take(lab, &WORKLOAD, &settings, subjects)?;
    let mut rows = Vec::new();
    for &producers in &settings.producers {
        for peer in peers.into_iter().map(Some).chain([None]) {
            let wake = peer.unwrap_or(ours).variant;
            let row = grid.row(ours, producers, peer, &[("wake", wake)], CHECKED);
            rows.push(match peer.map(|peer| peer.name) {
                Some("mutex_shards") if producers == BARRED => {
                    row.held_to(&AGAINST_SHARDS, lab.refusal())
                }
                None if producers == BARRED => row.held_to(&KEPT, lab.refusal()),
                _ => row,
            });
        }
    }
    Ok(rows)
}
