//! `concurrent_access`: ten channels of capacity 128, once as the quoted figure was measured, and
//! once as its name suggests.
//!
//! | twin | what runs |
//! | --- | --- |
//! | `verbatim` | one thread: 10,000 numbers through each of ten channels, one channel after another |
//! | `threads` | ten pairs of threads, a channel each, all at once |

use std::time::Instant;

use thalweg_peers::channel::Channel;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

use super::crew::Crew;
use super::grid::{self, Grid};
use super::rows::{self, Rigour};
use super::run::{Messages, Run, Sampler};
use super::subjects::one_to_one;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "concurrent_access",
    group: "queue",
    what: "Ten channels at once: on one thread as in the quoted benchmark, and on ten pairs of threads as its name says.",
    source: "nimsync's spawn_stress_test: ten channels one after another on one thread, 31 M op/s",
    peers: &PEERS,
    seconds: 20,
    run,
    knobs: &[EACH, grid::FULL],
    cells: Some(open),
};

const EACH: Knob = Knob {
    name: "each",
    default: "1000000",
    what: "messages per pair of threads; 10000000 with full=yes",
};
const PEERS: [&str; 2] = ["crossbeam", "rtrb"];
const CHANNELS: u64 = 10;
const CAPACITY: usize = 128;

/// The total of all channels; a message is one operation here, not two.
const TARGET: f64 = 30e6;

const ONE_THREAD: &str = "same thread: every receive gave what was sent";
const PAIRS: &str = "ten pairs of threads: every message arrived once and in order";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let each = grid.words(lab, &EACH, "10000000").join(",");
    let mut all = Vec::new();
    for (twin, each, check) in [("verbatim", "10000", ONE_THREAD), ("threads", &each, PAIRS)] {
        let params = [
            ("twin", twin.to_owned()),
            ("channels", CHANNELS.to_string()),
            ("capacity", CAPACITY.to_string()),
            ("each", each.to_owned()),
        ];
        let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
        all.extend(measured.rows("ns", &[check]));
        let target = Target::AtLeast("ops_per_s", TARGET);
        all.push(
            measured
                .alone("ns", &[check])
                .held_to(&target, lab.refusal()),
        );
    }
    Ok(all)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let messages = Messages::Exactly(CHANNELS * cell.number("each")?);
    let alone = match cell.text("twin")? {
        "verbatim" => true,
        "threads" => false,
        other => {
            return Err(Problem::Usage(format!(
                "a twin is verbatim or threads, not `{other}`"
            )));
        }
    };
    let sides = cell.subjects.iter();
    let sides = sides.map(|name| one_to_one!(name.as_str(), side(messages, alone, cell.quick)));
    sides.collect()
}

fn side<C: Channel>(
    messages: Messages,
    alone: bool,
    quick: bool,
) -> Result<Side<'static, Sample>, Problem> {
    let mut sampler = Sampler::new(messages, CHANNELS, quick);
    Ok(Side::new(move || {
        sampler.take(|messages| {
            let each = messages / CHANNELS;
            let (run, wrong) = if alone {
                one_thread::<C>(each)
            } else {
                pairs::<C>(each)?
            };
            if wrong == 0 {
                Ok(run)
            } else {
                Err(Problem::Check(format!(
                    "{}: a message is out of order or changed",
                    C::NAME
                )))
            }
        })
    }))
}

fn one_thread<C: Channel>(each: u64) -> (Run, u64) {
    let mut channels: Vec<_> = (0..CHANNELS).map(|_| C::bounded(CAPACITY)).collect();
    let mut wrong = 0;
    let began = Instant::now();
    for (sender, receiver) in &mut channels {
        for message in 0..each {
            C::send(sender, message);
            wrong |= C::receive(receiver) ^ message;
        }
    }
    let run = Run {
        elapsed: began.elapsed(),
        ..Run::default()
    };
    (run, wrong)
}

fn pairs<C: Channel>(each: u64) -> Result<(Run, u64), Problem> {
    let mut crew = Crew::new(C::NAME, 2 * CHANNELS as usize);
    for _ in 0..CHANNELS {
        let (mut sender, mut receiver) = C::bounded(CAPACITY);
        crew.add(None, move |began| {
            (0..each).for_each(|message| C::send(&mut sender, message));
            (began, Instant::now(), 0)
        })?;
        crew.add(None, move |began| {
            let mut wrong = 0;
            (0..each).for_each(|due| wrong |= C::receive(&mut receiver) ^ due);
            (began, Instant::now(), wrong)
        })?;
    }
    let (ends, mut run) = crew.wait()?;
    let began = ends.iter().map(|end| end.0).min();
    let ended = ends.iter().map(|end| end.1).max();
    if let (Some(began), Some(ended)) = (began, ended) {
        run.elapsed = ended.duration_since(began);
    }
    Ok((run, ends.iter().fold(0, |wrong, end| wrong | end.2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_twins_take_samples() {
        for twin in ["verbatim", "threads"] {
            let params = [("twin", twin), ("each", "500")];
            let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
            cell.quick = true;
            for mut side in open(&cell).unwrap() {
                assert!(side.take().unwrap().ns > 0.0);
            }
        }
    }
}
