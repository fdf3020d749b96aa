//! `rendezvous`: channels without capacity, whose sends end when a receiver has the message.
//!
//! | mode | what is timed |
//! | --- | --- |
//! | `one_way` | one thread passes numbers to another: the cost of a message |
//! | `round_trip` | a number to another thread and back, through two channels: the median time |
//!
//! Every subject waits in its own blocking calls. `tokio` has no such channel.

use thalweg_peers::channel::Channel;
use thalweg_peers::channels::{Crossbeam, Flume, Kanal, Std};

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Row, hold_best};
use crate::workloads::Workload;

use super::grid::{self, Axis, Grid};
use super::latency::{self, Blocking};
use super::numbers::{CHECKED_ONE, ONE_BY_ONE, Threads, hand_over};
use super::rows::{self, Rigour};
use super::run::{Messages, Sampler};
use super::subjects::{Rendezvous, THALWEG, unknown};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "rendezvous",
    group: "queue",
    what: "One thread meets another in a channel without capacity: the cost of a message, and a round trip.",
    source: "crossbeam's bounded0 benchmarks, and Go's unbuffered channel",
    peers: &PEERS,
    seconds: 40,
    run,
    knobs: &[AXES[0].knob, AXES[1].knob, grid::FULL],
    cells: Some(open),
};

const AXES: [Axis; 2] = [
    Axis::whole("mode", "one_way,round_trip", "what is timed, as a list"),
    Axis::partly(
        "placement",
        "free,one_cpu",
        "free,one_cpu,split",
        "free, one_cpu or split, as a list",
    ),
];

const PEERS: [&str; 4] = ["kanal", "crossbeam", "flume", "std"];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let trips = match lab.quick() {
        true => latency::QUICK_ROUND_TRIPS,
        false => latency::ROUND_TRIPS,
    };
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &AXES) {
        let is_round_trip = point.get("mode") == "round_trip";
        let (point, check) = if is_round_trip {
            let point = point.with("round_trips", &trips.to_string());
            (point, latency::CHECKED)
        } else {
            (point.with("messages", "timed"), CHECKED_ONE)
        };
        let placement = rows::process_placement(point.get("placement"))?;
        let cell = Cell::new(WORKLOAD.name, &point.params(), &grid::with_ours(&PEERS));
        let measured = rows::measure(lab, &WORKLOAD, cell.at(placement), Rigour::Bar)?;
        let mut rows = measured.rows("ns", &[check]);
        match point.get("placement") {
            "free" => hold_best(&mut rows, &Target::Ratio(1.0), rows::refusal(lab)),
            "one_cpu" => hold_best(&mut rows, &Target::Ratio(1.5), lab.refusal()),
            _ => {}
        }
        all.extend(rows);
    }
    Ok(all)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let sides = cell.subjects.iter().map(|name| match name.as_str() {
        THALWEG => side::<Rendezvous>(cell),
        "kanal" => side::<Kanal>(cell),
        "crossbeam" => side::<Crossbeam>(cell),
        "flume" => side::<Flume>(cell),
        "std" => side::<Std>(cell),
        other => unknown(other),
    });
    sides.collect()
}

fn side<C: Channel>(cell: &Cell) -> Result<Side<'static, Sample>, Problem> {
    let split = cell.text("placement")? == "split";
    match cell.text("mode")? {
        "one_way" => {
            let messages = Messages::parse(cell.text("messages")?)?;
            let mut sampler = Sampler::new(messages, 1, cell.quick);
            let threads = Threads {
                split,
                ..ONE_BY_ONE
            };
            Ok(Side::new(move || {
                sampler.take(|messages| {
                    let (sender, receiver) = C::bounded(0);
                    hand_over::<C>(
                        vec![(vec![sender], vec![receiver])],
                        messages,
                        threads,
                        None,
                    )
                })
            }))
        }
        "round_trip" => {
            let trips = cell.number("round_trips")?;
            Ok(Side::new(move || {
                latency::sample::<Blocking<C, 0>>(trips, split)
            }))
        }
        other => Err(Problem::Usage(format!(
            "a mode is one_way or round_trip, not `{other}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_takes_a_sample_in_both_modes() {
        for mode in ["one_way", "round_trip"] {
            let params = [
                ("mode", mode),
                ("placement", "free"),
                ("messages", "200"),
                ("round_trips", "200"),
            ];
            let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
            cell.quick = true;
            for mut side in open(&cell).unwrap() {
                assert!(side.take().unwrap().ns > 0.0);
            }
        }
    }

    #[test]
    fn invalid_mode_or_subject_is_refused() {
        for (mode, subject) in [("sleep", THALWEG), ("one_way", "tokio")] {
            let params = [("mode", mode), ("placement", "free"), ("messages", "200")];
            assert!(open(&Cell::new(WORKLOAD.name, &params, &[subject])).is_err());
        }
    }
}
