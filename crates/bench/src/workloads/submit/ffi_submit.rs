//! `ffi_submit`: the cost for K threads of handing their requests to the thread that runs them.
//!
//! The request is a no-op, so that only the ingress is measured. The peers are the ingresses of
//! such frameworks, each woken on its edge. There is one row for each peer and number of producers;
//! one row for Thalweg alone, whose `scaling_vs_1` is its requests per second as a multiple of one
//! producer's; and the scaling gate at the largest number of producers.

use super::bell::{Edge, Rule};
use super::gate;
use super::grid::{CHECKED, Grid, open};
use super::knobs::{KNOBS, Settings};
use super::subjects::{PEERS, THALWEG, find};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::placement::allowed;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "ffi_submit",
    group: "boundary",
    what: "Requests per second that K threads hand to the thread that runs them, until the last submission has returned.",
    source: "nim-ffi's submission benchmark and its gate: does an ingress scale with its producers?",
    peers: &PEERS,
    seconds: 120,
    run,
    knobs: KNOBS,
    cells: Some(open),
};

/// The number of producers at which the targets apply.
const BARRED: usize = 8;

/// Against mutex shards, by time.
const AGAINST_SHARDS: Target = Target::Ratio(0.5);

/// The scaling of 8 producers, on two processors that they share with the consumer.
const KEPT: Target = Target::AtLeast("scaling_vs_1", 0.8);

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let settings = Settings::of(lab)?;
    let peers = PEERS.map(|peer| find(peer, Edge::NAME).expect("every structure has every rule"));
    for peer in PEERS {
        lab.peers
            .insert(peer.to_owned(), "of this commit".to_owned());
    }
    let mut subjects = vec![&THALWEG];
    subjects.extend(peers);
    let grid = Grid::take(lab, WORKLOAD.name, &settings, &subjects)?;
    let refusal = lab.refusal();
    let mut rows = Vec::new();
    for &producers in &settings.producers {
        let count = producers.to_string();
        for peer in peers {
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &[("producers", &count), ("wake", peer.rule)],
                "ns",
                (THALWEG.structure, grid.times(&THALWEG, producers)),
                Some((peer.structure, grid.times(peer, producers))),
            )
            .checked(CHECKED);
            row.add_metrics("", grid.metrics(&THALWEG, producers));
            row.add_metrics("peer_", grid.metrics(peer, producers));
            rows.push(if (peer.structure, producers) == ("mutex_shards", BARRED) {
                row.held_to(&AGAINST_SHARDS, refusal)
            } else {
                row
            });
        }
        let row = alone(
            &grid,
            producers,
            &[("producers", &count), ("wake", THALWEG.rule)],
        );
        rows.push(if producers == BARRED {
            row.held_to(&KEPT, refusal)
        } else {
            row
        });
    }
    let top = settings.top();
    let params = [
        ("producers", top.to_string()),
        ("wake", THALWEG.rule.to_owned()),
        ("gate", "scaling".to_owned()),
    ];
    let params = params.each_ref().map(|(key, value)| (*key, value.as_str()));
    let mut row = alone(&grid, top, &params);
    row.verdict = Some(gate::verdict(
        row.figures(),
        allowed().len(),
        settings.gate,
        refusal,
    ));
    row.target = Some(gate::TARGET.text());
    rows.push(row);
    Ok(rows)
}

/// Thalweg without a peer.
fn alone(grid: &Grid, producers: usize, params: &[(&str, &str)]) -> Row {
    Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        params,
        "ns",
        (THALWEG.structure, grid.times(&THALWEG, producers)),
        None,
    )
    .checked(CHECKED)
    .with_metrics("", grid.metrics(&THALWEG, producers))
}
