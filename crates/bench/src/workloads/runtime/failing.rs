//! `failure`: the cost of monitoring actors, restarting them, and checking for cancellation.
//!
//! | `of` | an operation |
//! | --- | --- |
//! | `monitor` | an actor monitors another, and stops monitoring it |
//! | `link` | two actors are linked, then unlinked |
//! | `cancelled` | an actor checks whether its scope is cancelled |
//! | `cancelled_deadline` | the same in a scope with a deadline |
//! | `stop_restart` | a supervised child is stopped, restarted, and answers a call |
//! | `kill_restart` | the same, but the child is killed |
//!
//! All of them run on one worker. There is no peer: the targets are times. `actor_call` and the
//! others have peers.

use std::hint::black_box;
use std::time::{Duration, Instant};

use thalweg_runtime::cancel::{cancel_scope, is_cancelled, with_timeout};
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{Actor, ActorRef, Config, Context, Handler, Pid, init, sleep, spawn};

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::workloads::queue::subjects::THALWEG;
use crate::workloads::{Knob, Workload};

use super::pair::{ENDS, same};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "failure",
    group: "runtime",
    what: "Setting and dropping a monitor, linking and unlinking, checking for cancellation, restarting a child.",
    source: "the bars of supervision",
    peers: &[],
    seconds: 10,
    run,
    knobs: &[OF],
    cells: Some(open),
};

const OF: Knob = Knob {
    name: "of",
    default: "monitor,link,cancelled,cancelled_deadline,stop_restart,kill_restart",
    what: "the measured operations, as a list",
};

const CHECKED: &str = "who was monitored and linked ends without ending the other, none was cancelled, and the supervisor counted as many restarts as were asked for; ns is the median";
/// A timeout that no operation reaches.
const LONG: Duration = Duration::from_secs(3_600);

/// The number of operations per sample, and the limit of one in ns.
fn kind(of: &str) -> Option<(u64, f64)> {
    match of {
        "monitor" | "link" => Some((100_000, 100.0)),
        "cancelled" | "cancelled_deadline" => Some((2_000_000, 10.0)),
        "stop_restart" | "kill_restart" => Some((5_000, 5_000.0)),
        _ => None,
    }
}

fn unknown(of: &str) -> Problem {
    Problem::Usage(format!("of is one or more of {}, not `{of}`", OF.default))
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    for of in lab.knob(&OF).split(',').map(str::trim) {
        let (_, most) = kind(of).ok_or_else(|| unknown(of))?;
        let params = [("of", of), ("workers", "1")];
        let cell = Cell::new(WORKLOAD.name, &params, &[THALWEG]);
        let plan = lab.plan(None);
        let taken = processes::sample(lab, &cell, plan, PROCESSES)?;
        let times = processes::times(&taken[0]);
        let mut metrics = Metrics::default();
        metrics.median("ns", &times);
        let name = (WORKLOAD.name, WORKLOAD.group);
        let mut row = Row::new(name, &params, "ns", (THALWEG, times), None).checked(CHECKED);
        row.add_metrics("", metrics);
        rows.push(row.held_to(&Target::Metric("ns", most), lab.refusal()));
    }
    Ok(rows)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let of = cell.text("of")?.to_owned();
    let (full, _) = kind(&of).ok_or_else(|| unknown(&of))?;
    let times = if cell.quick { full / 100 } else { full };
    let side = Side::new(move || {
        let of = of.clone();
        let timed = init(Config::with_workers(1))
            .map_err(|error| Problem::NotReady(error.to_string()))?
            .run(move || {
                // Runs once untimed, for one-time initialisation.
                timed(&of, times / 10 + 1)?;
                timed(&of, times)
            });
        let timed = timed.map_err(Problem::Check)?;
        Ok(Sample::of(timed, times))
    });
    Ok(vec![side])
}

/// Runs in an actor.
fn timed(of: &str, times: u64) -> Result<Duration, String> {
    match of {
        "monitor" => beside_another(|other| {
            repeat(times, || {
                drop(black_box(other.monitor()));
            })
        }),
        "link" => beside_another(|other| {
            repeat(times, || {
                other.link();
                other.unlink();
            })
        }),
        "cancelled" => cancel_scope(|_| ask(times)).map_err(|error| error.to_string())?,
        "cancelled_deadline" => {
            with_timeout(LONG, || ask(times)).map_err(|error| error.to_string())?
        }
        "stop_restart" => restart(times, ActorRef::stop),
        _ => restart(times, |child| {
            let _ = child.pid().kill();
        }),
    }
}

fn repeat(times: u64, mut f: impl FnMut()) -> Duration {
    let began = Instant::now();
    for _ in 0..times {
        f();
    }
    began.elapsed()
}

/// Runs `f` with another actor, whose exit nobody observes afterwards.
fn beside_another(f: impl FnOnce(&Pid) -> Duration) -> Result<Duration, String> {
    let other = spawn(|| sleep(LONG));
    let elapsed = f(&other.pid());
    other.pid().kill().map_err(|error| error.to_string())?;
    match other.join() {
        Ok(()) => Err("the killed actor exited normally".to_owned()),
        Err(_) => Ok(elapsed),
    }
}

fn ask(times: u64) -> Result<Duration, String> {
    let mut cancelled = 0;
    let elapsed = repeat(times, || cancelled += u64::from(is_cancelled()));
    same("cancelled", cancelled, 0)?;
    Ok(elapsed)
}

struct Child;
struct Next(u64);

impl Actor for Child {}

impl Handler<Next> for Child {
    type Reply = u64;
    fn handle(&mut self, Next(number): Next, _: &Context<'_, Self>) -> u64 {
        number + 1
    }
}

/// Waits until the next incarnation has answered.
fn restart(times: u64, end: impl Fn(&ActorRef<Child>)) -> Result<Duration, String> {
    let (spec, child) = ChildSpec::actor("child", || Child);
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .unlimited_restarts()
        .child(spec)
        .start()
        .map_err(|error| error.to_string())?;
    let mut sum = 0;
    let mut number = 0;
    let elapsed = repeat(times, || {
        end(&child);
        // The incarnation that is ending may have taken the call.
        sum += loop {
            if let Ok(next) = child.call(Next(number)) {
                break next;
            }
        };
        number += 1;
    });
    same("sum of the replies", sum, times * (times + 1) / 2)?;
    let children = supervisor.which_children().map_err(|_| ENDS.to_owned())?;
    let restarts = children.iter().map(|child| child.restarts).sum();
    same("restarts", restarts, times)?;
    Ok(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_does_what_it_says() {
        for of in OF.default.split(',') {
            let timed = init(Config::with_workers(1)).unwrap().run(|| timed(of, 50));
            assert!(timed.is_ok(), "{of}: {timed:?}");
        }
    }
}
