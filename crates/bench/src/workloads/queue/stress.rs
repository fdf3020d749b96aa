//! `stress`: two threads that never wait, and how often each of them finds the ring full or empty.

use std::time::Instant;

use thalweg_peers::channel::Channel;
use thalweg_peers::patience;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

use super::crew::Crew;
use super::grid::{self, Grid};
use super::rows::{self, Rigour};
use super::run::{Messages, Run, Sampler};
use super::subjects::one_to_one;
use super::threads::CHECKED_ONE;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "stress",
    group: "queue",
    what: "Two threads retry without waiting: throughput, and the share of tries that failed.",
    source: "nimsync's benchmark_stress, whose one thread could never fail and was quoted as 0 % contention",
    peers: &PEERS,
    seconds: 10,
    run,
    knobs: &[MESSAGES, grid::FULL],
    cells: Some(open),
};

const MESSAGES: Knob = Knob {
    name: "messages",
    default: "500000",
    what: "messages a run, as a list",
};
const PEERS: [&str; 2] = ["rtrb", "crossbeam"];
const CAPACITY: usize = 1024;

/// The metric for sends that found the ring full.
const FAILED_SENDS: &str = "failed_sends";
const FAILED_RECEIVES: &str = "failed_receives";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let mut all = Vec::new();
    for messages in grid.numbers(lab, &MESSAGES, "100000,250000,500000,10000000")? {
        let params = [
            ("capacity", CAPACITY.to_string()),
            ("messages", messages.to_string()),
            ("placement", "free".to_owned()),
        ];
        let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
        let tries =
            "failed tries are sums over a sample's runs; a failed try is followed by a spin hint";
        all.extend(measured.rows("ns", &[CHECKED_ONE, tries]));
    }
    Ok(all)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let messages = Messages::Exactly(cell.number("messages")?);
    let capacity = cell.number("capacity")? as usize;
    let quick = cell.quick;
    let sides = cell.subjects.iter();
    let sides = sides.map(|name| one_to_one!(name.as_str(), side(capacity, messages, quick)));
    sides.collect()
}

fn side<C: Channel>(
    capacity: usize,
    messages: Messages,
    quick: bool,
) -> Result<Side<'static, Sample>, Problem> {
    let mut sampler = Sampler::new(messages, 1, quick);
    Ok(Side::new(move || {
        let sample = sampler.take(|messages| once::<C>(capacity, messages))?;
        let count = |name| sample.metrics.get(name).copied().unwrap_or(0.0);
        let failed = count(FAILED_SENDS) + count(FAILED_RECEIVES);
        let tries = 2.0 * count("messages") + failed;
        Ok(sample.with("failed_percent", 100.0 * failed / tries))
    }))
}

/// The result of one of the two threads.
struct End {
    began: Instant,
    ended: Instant,
    failed: u64,
    wrong: u64,
    receives: bool,
}

fn once<C: Channel>(capacity: usize, messages: u64) -> Result<Run, Problem> {
    let (mut sender, mut receiver) = C::bounded(capacity);
    let mut crew = Crew::new(C::NAME, 2);
    crew.add(None, move |began| {
        let mut failed = 0;
        for message in 0..messages {
            patience::until(|| {
                let sent = C::try_send(&mut sender, message);
                failed += u64::from(!sent);
                sent.then_some(())
            });
        }
        End {
            began,
            ended: Instant::now(),
            failed,
            wrong: 0,
            receives: false,
        }
    })?;
    crew.add(None, move |began| {
        let (mut failed, mut wrong) = (0, 0);
        for due in 0..messages {
            let message = patience::until(|| {
                let message = C::try_receive(&mut receiver);
                failed += u64::from(message.is_none());
                message
            });
            wrong |= message ^ due;
        }
        End {
            began,
            ended: Instant::now(),
            failed,
            wrong,
            receives: true,
        }
    })?;
    let (ends, mut run) = crew.wait()?;
    for end in &ends {
        let name = if end.receives {
            FAILED_RECEIVES
        } else {
            FAILED_SENDS
        };
        run.counts.insert(name, end.failed as f64);
        if end.wrong != 0 {
            return Err(Problem::Check(format!(
                "{}: a message is out of order or changed",
                C::NAME
            )));
        }
        if end.receives {
            let began = ends.iter().map(|end| end.began).min().unwrap_or(end.began);
            run.elapsed = end.ended.duration_since(began);
        }
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_that_fail_are_counted() {
        // With one slot the threads must take turns, so tries fail on both sides.
        let params = [("capacity", "1"), ("messages", "20000")];
        let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        cell.quick = true;
        for mut side in open(&cell).unwrap() {
            let sample = side.take().unwrap();
            assert!(sample.metrics[FAILED_SENDS] + sample.metrics[FAILED_RECEIVES] > 0.0);
            let percent = sample.metrics["failed_percent"];
            assert!(percent > 0.0 && percent < 100.0, "{percent}");
        }
    }
}
