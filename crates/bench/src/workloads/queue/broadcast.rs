//! `broadcast`: one thread sends numbers that each of several others receives.
//!
//! The sender stays at most one capacity ahead of the slowest receiver, so that no subject loses
//! messages and all do the same work: it sends half of the capacity, and waits until every receiver
//! has all messages before that half. This wait is the same for all subjects: the receivers count
//! what they have received, and the sender retries at once. A figure is the time per message that
//! was sent, however many receive it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_peers::broadcast::{Broadcast, DisruptorBroadcast, TokioBroadcast};
use thalweg_peers::channel::Waiting;
use thalweg_peers::patience;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

use super::driver::Driver;
use super::grid::{self, Axis, Grid};
use super::rows::{self, Rigour};
use super::run::{Messages, Run, Sampler};
use super::subjects::{Broadcasting, THALWEG, unknown};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "broadcast",
    group: "queue",
    what: "One thread sends numbers that each of 1 to 16 threads receives: the cost of a message.",
    source: "tokio's broadcast, with its blocking call; every message verified at every receiver",
    peers: &PEERS,
    seconds: 60,
    run,
    knobs: &[
        AXES[0].knob,
        AXES[1].knob,
        AXES[2].knob,
        grid::MESSAGES.knob,
        grid::FULL,
    ],
    cells: Some(open),
};

const AXES: [Axis; 4] = [
    Axis::partly(
        "receivers",
        "1,4,16",
        "1,2,4,8,16",
        "threads that receive, as a list",
    ),
    Axis::partly("capacity", "1024", "64,1024", "capacities, as a list"),
    Axis::partly(
        "placement",
        "free",
        "free,one_cpu",
        "free or one_cpu, as a list",
    ),
    grid::MESSAGES,
];

const PEERS: [&str; 2] = ["tokio", "disruptor"];

const CHECKED: &str = "every receiver got every message once and in order; none lagged";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &AXES) {
        let barred = point.get("capacity") == "1024" && point.get("placement") == "free";
        let rigour = if barred { Rigour::Bar } else { Rigour::Look };
        let placement = rows::process_placement(point.get("placement"))?;
        let cell = Cell::new(WORKLOAD.name, &point.params(), &grid::with_ours(&PEERS));
        let measured = rows::measure(lab, &WORKLOAD, cell.at(placement), rigour)?;
        let mut rows = measured.rows("ns", &[CHECKED]);
        for row in &mut rows {
            if row.peer.as_deref() == Some(DisruptorBroadcast::NAME) {
                let waiting = Waiting::Looks.text();
                row.checks.push(format!("the peer {waiting}"));
            }
        }
        if barred {
            rows::hold(&mut rows, "tokio", &Target::Ratio(0.5), rows::refusal(lab));
        }
        all.extend(rows);
    }
    Ok(all)
}

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    receivers: usize,
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let shape = Shape {
        capacity: cell.number("capacity")? as usize,
        receivers: cell.number("receivers")? as usize,
    };
    if shape.capacity < 2 {
        let why = "`capacity` is at least 2: the sender waits for the receivers at half of it";
        return Err(Problem::Usage(why.to_owned()));
    }
    let messages = Messages::parse(cell.text("messages")?)?;
    let sides = cell.subjects.iter().map(|name| {
        let sampler = Sampler::new(messages, 1, cell.quick);
        match name.as_str() {
            THALWEG => Ok(side::<Broadcasting>(shape, sampler)),
            "tokio" => Ok(side::<TokioBroadcast>(shape, sampler)),
            "disruptor" => Ok(side::<DisruptorBroadcast>(shape, sampler)),
            other => unknown(other),
        }
    });
    sides.collect()
}

fn side<C: Broadcast>(shape: Shape, mut sampler: Sampler) -> Side<'static, Sample> {
    Side::new(move || sampler.take(|messages| one_run::<C>(shape, messages)))
}

/// How many messages a receiver has, alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Progress(AtomicU64);

fn one_run<C: Broadcast>(shape: Shape, messages: u64) -> Result<Run, Problem> {
    let (mut sender, receivers) = C::bounded(shape.capacity, shape.receivers);
    let half = shape.capacity as u64 / 2;
    let progress = receivers.iter().map(|_| Progress::default());
    let progress: Arc<[Progress]> = progress.collect();
    let mut driver = Driver::new(C::NAME, 1 + receivers.len(), 0);
    let all = Arc::clone(&progress);
    driver.produce(None, move |mark| {
        for start in (0..messages).step_by(half as usize) {
            for one in &*all {
                let has_capacity = || one.0.load(Ordering::Acquire) + half >= start;
                patience::until(|| has_capacity().then_some(()));
            }
            let end = messages.min(start + half);
            (start..end).for_each(|message| C::send(&mut sender, mark + message));
        }
        0
    })?;
    for (place, mut receiver) in receivers.into_iter().enumerate() {
        let all = Arc::clone(&progress);
        driver.consume(None, move |mark| {
            let (mut due, mut wrong) = (0, 0);
            while due < messages {
                C::receive_each(&mut receiver, half.min(messages - due), |message| {
                    wrong |= message ^ (mark + due);
                    due += 1;
                });
                all[place].0.store(due, Ordering::Release);
            }
            wrong
        })?;
    }
    let (wrong, run) = driver.run()?;
    if wrong.iter().any(|wrong| *wrong != 0) {
        return Err(Problem::Check(format!(
            "{}: a message is out of order or changed",
            C::NAME
        )));
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_takes_a_sample_with_one_and_with_several_receivers() {
        for receivers in ["1", "4"] {
            let params = [
                ("receivers", receivers),
                ("capacity", "64"),
                ("messages", "2000"),
            ];
            let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
            cell.quick = true;
            for mut side in open(&cell).unwrap() {
                assert!(side.take().unwrap().ns > 0.0);
            }
        }
    }

    #[test]
    fn workload_lists_the_knobs_of_its_axes() {
        let knobs = WORKLOAD.knobs.iter().map(|knob| knob.name);
        let axes = AXES.iter().map(|axis| axis.knob.name).chain(["full"]);
        assert!(knobs.eq(axes));
    }
}
