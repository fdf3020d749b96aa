//! `burst`: messages arrive in bursts, and the next burst starts when the previous one has been
//! received.
//!
//! With one thread, a burst is sent and then received, as in the benchmark that the figure comes
//! from. With two threads, the sender waits after each burst until the receiver confirms that it
//! has all of it, so the time includes the way there and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    name: "burst",
    group: "queue",
    what: "Bursts of 100 to 500 numbers, on one thread and between two.",
    source: "nimsync's benchmark_burst: 100 bursts on one thread, 385 M op/s with both halves counted",
    peers: &PEERS,
    seconds: 15,
    run,
    knobs: &[ITEMS, BURSTS, grid::FULL],
    cells: Some(open),
};

const ITEMS: Knob = Knob {
    name: "items",
    default: "100,250,500",
    what: "numbers per burst, as a list",
};
const BURSTS: Knob = Knob {
    name: "bursts",
    default: "100",
    what: "bursts per run, as a list",
};
const PEERS: [&str; 2] = ["rtrb", "crossbeam"];
const CAPACITY: u64 = 1024;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let mut all = Vec::new();
    for bursts in grid.numbers(lab, &BURSTS, "100,10000")? {
        for items in grid.numbers(lab, &ITEMS, "100,250,500")? {
            for threads in ["1", "2"] {
                let params = [
                    ("capacity", CAPACITY.to_string()),
                    ("items", items.to_string()),
                    ("bursts", bursts.to_string()),
                    ("threads", threads.to_owned()),
                ];
                let params: Vec<_> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
                let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
                let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
                let mut rows = measured.rows("ns", &[CHECKED_ONE]);
                if threads == "1" {
                    for row in &mut rows {
                        row.checks.push("same thread".to_owned());
                        let both = 2e9 / row.subject_median;
                        row.metrics.insert("both_halves_per_s".to_owned(), both);
                    }
                }
                all.extend(rows);
            }
        }
    }
    Ok(all)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let capacity = cell.number("capacity")? as usize;
    let items = cell.number("items")?.max(1);
    if items > capacity as u64 {
        return Err(Problem::Usage(format!(
            "a burst of {items} does not fit into {capacity}"
        )));
    }
    let burst = Burst {
        capacity,
        items,
        bursts: cell.number("bursts")?,
        alone: cell.number("threads")? == 1,
        quick: cell.quick,
    };
    let sides = cell.subjects.iter();
    let sides = sides.map(|name| one_to_one!(name.as_str(), side(burst)));
    sides.collect()
}

#[derive(Clone, Copy)]
struct Burst {
    capacity: usize,
    items: u64,
    bursts: u64,
    alone: bool,
    quick: bool,
}

fn side<C: Channel>(burst: Burst) -> Result<Side<'static, Sample>, Problem> {
    let messages = Messages::Exactly(burst.items * burst.bursts);
    let mut sampler = Sampler::new(messages, burst.items, burst.quick);
    Ok(Side::new(move || {
        sampler.take(|messages| {
            if burst.alone {
                one_thread::<C>(burst, messages)
            } else {
                two_threads::<C>(burst, messages)
            }
        })
    }))
}

fn one_thread<C: Channel>(burst: Burst, messages: u64) -> Result<Run, Problem> {
    let (mut sender, mut receiver) = C::bounded(burst.capacity);
    let mut wrong = 0;
    let began = Instant::now();
    for first in (0..messages).step_by(burst.items as usize) {
        for message in first..first + burst.items {
            C::send(&mut sender, message);
        }
        for due in first..first + burst.items {
            wrong |= C::receive(&mut receiver) ^ due;
        }
    }
    let elapsed = began.elapsed();
    checked::<C>(wrong)?;
    Ok(Run {
        elapsed,
        ..Run::default()
    })
}

/// The receiver's progress, alone on its cache lines.
#[repr(align(128))]
struct Progress(AtomicU64);

fn two_threads<C: Channel>(burst: Burst, messages: u64) -> Result<Run, Problem> {
    let (mut sender, mut receiver) = C::bounded(burst.capacity);
    let through = Arc::new(Progress(AtomicU64::new(0)));
    let told = Arc::clone(&through);
    let mut crew = Crew::new(C::NAME, 2);
    crew.add(None, move |began| {
        for first in (0..messages).step_by(burst.items as usize) {
            let end = first + burst.items;
            for message in first..end {
                C::send(&mut sender, message);
            }
            patience::until(|| (told.0.load(Ordering::Acquire) == end).then_some(()));
        }
        // The receiver's last confirmation ends the last burst.
        (began, Instant::now(), 0)
    })?;
    crew.add(None, move |began| {
        let mut wrong = 0;
        for first in (0..messages).step_by(burst.items as usize) {
            let end = first + burst.items;
            for due in first..end {
                wrong |= C::receive(&mut receiver) ^ due;
            }
            through.0.store(end, Ordering::Release);
        }
        (began, Instant::now(), wrong)
    })?;
    let (ends, mut run) = crew.wait()?;
    checked::<C>(ends.iter().fold(0, |wrong, end| wrong | end.2))?;
    let began = ends.iter().map(|end| end.0).min();
    let ended = ends.iter().map(|end| end.1).max();
    if let (Some(began), Some(ended)) = (began, ended) {
        run.elapsed = ended.duration_since(began);
    }
    Ok(run)
}

fn checked<C: Channel>(wrong: u64) -> Result<(), Problem> {
    if wrong == 0 {
        Ok(())
    } else {
        Err(Problem::Check(format!(
            "{}: a message is out of order or changed",
            C::NAME
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(threads: &str, items: &str) -> Cell {
        let params = [
            ("capacity", "64"),
            ("items", items),
            ("bursts", "50"),
            ("threads", threads),
        ];
        let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
        cell.quick = true;
        cell
    }

    #[test]
    fn bursts_go_through_on_one_thread_and_between_two() {
        for threads in ["1", "2"] {
            for mut side in open(&cell(threads, "64")).unwrap() {
                assert!(side.take().unwrap().ns > 0.0);
            }
        }
    }

    #[test]
    fn a_burst_that_one_thread_could_never_send_is_refused() {
        assert!(open(&cell("1", "65")).is_err());
    }
}
