//! `spsc_same_thread`: push then pop, on one thread.
//!
//! Nothing crosses between processors, and the ring never contains more than one number. The
//! workload measures the cost of the instructions alone, not of a hand-off. It exists because
//! figures for rings are often quoted this way.

use std::time::Instant;

use thalweg_peers::c11_ring;
use thalweg_peers::channel::Channel;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

use super::grid::{self, Grid};
use super::rows::{self, Rigour};
use super::run::{Messages, Run, Sampler};
use super::subjects::one_to_one;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "spsc_same_thread",
    group: "queue",
    what: "Push then pop on one thread: the instructions of a hand-off without the hand-off.",
    source: "nimsync's benchmark_spsc_simple, which counts both halves and quotes 615 M op/s",
    peers: &PEERS,
    seconds: 15,
    run,
    knobs: &[POINT, grid::FULL],
    cells: Some(open),
};

const POINT: Knob = Knob {
    name: "point",
    default: "1024:timed",
    what: "capacity:messages, as a list",
};
/// The points for which other projects quote figures.
const VERBATIM: &str = "1024:timed,16:10000000,1024:10000000,1024:100000000";

const PEERS: [&str; 5] = ["rtrb", "rtrb_0_3", "crossbeam", "c11_ring", INLINED];
/// The ring in C inlined into a loop in C. The loop in Rust calls or inlines the other rings.
const INLINED: &str = "c11_ring_inlined";

/// The quoted figure, in operations: a push is one, a pop is another.
const QUOTED: f64 = 615e6;

const CHECKED: &str =
    "same thread: every pop gave what was pushed; no message crosses between processors";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let mut all = Vec::new();
    for point in grid.words(lab, &POINT, VERBATIM) {
        let (capacity, messages) = point.split_once(':').ok_or_else(|| {
            Problem::Usage(format!("a point is capacity:messages, not `{point}`"))
        })?;
        let params = [
            ("capacity", capacity),
            ("messages", messages),
            ("threads", "1"),
        ];
        let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        let barred = messages == "timed";
        let rigour = if barred { Rigour::Bar } else { Rigour::Look };
        let measured = rows::measure(lab, &WORKLOAD, cell, rigour)?;
        let mut rows = measured.rows("ns", &[CHECKED]);
        for row in &mut rows {
            // Both halves count, as in the benchmark that the figure comes from.
            let both = 2e9 / row.subject_median;
            row.metrics.insert("both_halves_per_s".to_owned(), both);
            row.metrics
                .insert("vs_615m_per_s".to_owned(), both / QUOTED);
            if row.peer.as_deref() == Some(INLINED) {
                row.checks
                    .push("the peer's loop is in C, with the ring inlined".to_owned());
            }
        }
        if barred {
            rows::hold(&mut rows, "rtrb", &Target::Ratio(1.1), lab.refusal());
        }
        all.extend(rows);
    }
    Ok(all)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let capacity = cell.number("capacity")? as usize;
    let messages = Messages::parse(cell.text("messages")?)?;
    let quick = cell.quick;
    let sides = cell.subjects.iter().map(|name| match name.as_str() {
        INLINED => Ok(side(messages, quick, move |messages| {
            c11_ring::same_thread(capacity, messages)
        })),
        name => one_to_one!(name, turns(capacity, messages, quick)),
    });
    sides.collect()
}

fn turns<C: Channel>(
    capacity: usize,
    messages: Messages,
    quick: bool,
) -> Result<Side<'static, Sample>, Problem> {
    let (mut sender, mut receiver) = C::bounded(capacity);
    Ok(side(messages, quick, move |messages| {
        let mut wrong = 0;
        for message in 0..messages {
            C::send(&mut sender, message);
            wrong |= C::receive(&mut receiver) ^ message;
        }
        wrong == 0
    }))
}

/// A side whose loop returns whether every number came back unchanged.
fn side(
    messages: Messages,
    quick: bool,
    mut turns: impl FnMut(u64) -> bool + 'static,
) -> Side<'static, Sample> {
    let mut sampler = Sampler::new(messages, 1, quick);
    Side::new(move || {
        sampler.take(|messages| {
            let began = Instant::now();
            let right = turns(messages);
            let elapsed = began.elapsed();
            if right {
                Ok(Run {
                    elapsed,
                    ..Run::default()
                })
            } else {
                Err(Problem::Check(
                    "a pop gave something else than was pushed".to_owned(),
                ))
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_gives_back_what_it_got() {
        let params = [("capacity", "16"), ("messages", "1000")];
        let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        cell.quick = true;
        for mut side in open(&cell).unwrap() {
            assert!(side.take().unwrap().ns > 0.0);
        }
    }

    #[test]
    fn a_loop_that_found_something_else_fails_the_cell() {
        let mut side = side(Messages::Exactly(10), true, |_| false);
        assert!(side.take().is_err());
    }
}
