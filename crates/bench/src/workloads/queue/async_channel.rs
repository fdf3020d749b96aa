//! `async_channel`: one task passes numbers to another. All subjects use the same runtime, tokio's.
//!
//! | runtime | workers | the tasks |
//! | --- | --- | --- |
//! | `current_thread` | 1 | take turns on one thread |
//! | `multi_thread` | 2 | run at once or on one worker, as the runtime decides |

use std::sync::Arc;
use std::time::Duration;

use thalweg::queue::{clock, spsc};
use thalweg_lab::gate::Gate;
use thalweg_peers::crates::tokio;
use thalweg_peers::tasks::{
    AsyncChannelTasks, FlumeTasks, KanalTasks, TaskChannel, TokioTasks, run_both, runtime,
};

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Row, hold_best};
use crate::workloads::{Knob, Workload};

use super::grid::{self, Grid};
use super::rows::{self, Rigour};
use super::run::{Messages, Run, Sampler};
use super::subjects::{THALWEG, unknown};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "async_channel",
    group: "queue",
    what: "One task passes numbers to another on tokio's runtime, on one thread and on two.",
    source: "nimsync's benchmark_concurrent: two coroutines on one thread, 512 K op/s",
    peers: &PEERS,
    seconds: 60,
    run,
    knobs: &[POINT, RUNTIME, PLACEMENT, grid::FULL],
    cells: Some(open),
};

const POINT: Knob = Knob {
    name: "point",
    default: "16:timed,1024:timed",
    what: "capacity:messages, as a list",
};
/// The points for which other projects quote figures, too.
const VERBATIM: &str = "16:timed,1024:timed,16:1000000,1024:1000000,1024:10000000";
const RUNTIME: Knob = Knob {
    name: "runtime",
    default: "current_thread,multi_thread",
    what: "tokio's runtimes, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "free,one_cpu",
    what: "free or one_cpu, as a list; by default one_cpu runs only 1,024 on two workers",
};

const PEERS: [&str; 4] = ["tokio", "async-channel", "flume", "kanal"];
const CHECKED: &str =
    "every message arrived once and in order; both sides were tasks that tokio spawned";

/// Thalweg between tasks: the same channel as between threads.
#[derive(Debug)]
pub struct Ours;

const OPEN: &str = "both sides live as long as the measurement";

impl TaskChannel for Ours {
    const NAME: &'static str = THALWEG;
    type Sender = spsc::Sender<u64>;
    type Receiver = spsc::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        spsc::channel(capacity).expect("a capacity that every subject takes")
    }

    #[inline]
    async fn send(sender: &mut Self::Sender, message: u64) {
        sender.send_async_mut(message).await.expect(OPEN);
    }

    #[inline]
    async fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv_async_mut().await.expect(OPEN)
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let placements = grid.words(lab, &PLACEMENT, PLACEMENT.default);
    let usual = !grid.full && lab.knob(&PLACEMENT) == PLACEMENT.default;
    let mut all = Vec::new();
    for point in grid.words(lab, &POINT, VERBATIM) {
        let (capacity, messages) = point.split_once(':').ok_or_else(|| {
            Problem::Usage(format!("a point is capacity:messages, not `{point}`"))
        })?;
        for runtime in grid.words(lab, &RUNTIME, RUNTIME.default) {
            for placement in &placements {
                let barred_there = capacity == "1024" && runtime == "multi_thread";
                if placement == "free" || barred_there || !usual {
                    all.extend(one(lab, capacity, messages, &runtime, placement)?);
                }
            }
        }
    }
    Ok(all)
}

fn one(
    lab: &mut Lab,
    capacity: &str,
    messages: &str,
    runtime: &str,
    placement: &str,
) -> Result<Vec<Row>, Problem> {
    let workers = workers(runtime)?.max(1).to_string();
    let params = [
        ("capacity", capacity),
        ("messages", messages),
        ("runtime", runtime),
        ("workers", workers.as_str()),
        ("placement", placement),
    ];
    let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS))
        .at(rows::process_placement(placement)?);
    let barred = messages == "timed" && ["16", "1024"].contains(&capacity);
    let rigour = if barred { Rigour::Bar } else { Rigour::Look };
    let measured = rows::measure(lab, &WORKLOAD, cell, rigour)?;
    let mut rows = measured.rows("ns", &[CHECKED]);
    if barred && placement == "free" {
        hold_best(&mut rows, &Target::Ratio(0.6), rows::refusal(lab));
    } else if barred && placement == "one_cpu" {
        hold_best(&mut rows, &Target::Ratio(1.5), lab.refusal());
    }
    Ok(rows)
}

/// The number of threads of a runtime; 0 means the calling thread.
fn workers(runtime: &str) -> Result<usize, Problem> {
    match runtime {
        "current_thread" => Ok(0),
        "multi_thread" => Ok(2),
        other => Err(Problem::Usage(format!(
            "a runtime is current_thread or multi_thread, not `{other}`"
        ))),
    }
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let shape = Shape {
        capacity: cell.number("capacity")? as usize,
        messages: Messages::parse(cell.text("messages")?)?,
        workers: workers(cell.text("runtime")?)?,
        quick: cell.quick,
    };
    let sides = cell.subjects.iter().map(|name| match name.as_str() {
        THALWEG => side::<Ours>(shape),
        "tokio" => side::<TokioTasks>(shape),
        "async-channel" => side::<AsyncChannelTasks>(shape),
        "flume" => side::<FlumeTasks>(shape),
        "kanal" => side::<KanalTasks>(shape),
        other => unknown(other),
    });
    sides.collect()
}

#[derive(Clone, Copy)]
struct Shape {
    capacity: usize,
    messages: Messages,
    workers: usize,
    quick: bool,
}

/// Both tasks start at the gate of the one driver, by yielding instead of sleeping.
async fn pass(gate: &Gate) -> u64 {
    gate.arrive();
    loop {
        if let Some(mark) = gate.begin() {
            return mark;
        }
        tokio::task::yield_now().await;
    }
}

fn side<C: TaskChannel>(shape: Shape) -> Result<Side<'static, Sample>, Problem> {
    // The runtime is started once: another workload measures the cost of its start.
    let runtime = runtime(shape.workers).map_err(Problem::io("cannot start tokio's runtime"))?;
    let mut sampler = Sampler::new(shape.messages, 1, shape.quick);
    Ok(Side::new(move || {
        sampler.take(|messages| {
            let (mut sender, mut receiver) = C::bounded(shape.capacity);
            let gate = Gate::new(2);
            let its = Arc::clone(&gate);
            let sending = async move {
                let mark = pass(&its).await;
                for message in mark..mark + messages {
                    C::send(&mut sender, message).await;
                }
            };
            let its = Arc::clone(&gate);
            let receiving = async move {
                let mark = pass(&its).await;
                let mut wrong = 0;
                for due in mark..mark + messages {
                    wrong |= C::receive(&mut receiver).await ^ due;
                }
                (clock::now(), wrong)
            };
            let ((), (ended, wrong)) = run_both(&runtime, sending, receiving);
            if wrong != 0 {
                return Err(Problem::Check(format!(
                    "{}: a message is out of order or changed",
                    C::NAME
                )));
            }
            Ok(Run {
                elapsed: Duration::from_nanos(ended - gate.began().unwrap_or(ended)),
                ..Run::default()
            })
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_takes_a_sample_on_both_runtimes() {
        for runtime in ["current_thread", "multi_thread"] {
            let params = [
                ("capacity", "16"),
                ("messages", "2000"),
                ("runtime", runtime),
            ];
            let mut cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(&PEERS));
            cell.quick = true;
            for mut side in open(&cell).unwrap() {
                assert!(side.take().unwrap().ns > 0.0);
            }
        }
    }
}
