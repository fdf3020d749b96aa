//! `ffi_flood`: calls arrive faster than they are processed, for three seconds.
//!
//! Two threads submit calls that do nothing to one port, as fast as it accepts them; one thread
//! reaps them. A call that finds the port full is refused and retried. On the same runtime an actor
//! repeatedly sleeps for 10 ms; the figure is its actual sleep time. Both sides count the accepted
//! calls. The growth of the process's memory, from the start to its peak, is measured, too.
//!
//! In Node 10,000 callers that each await one call after the other, and a reader of an endless
//! stream, flood the event loop. The figure is how late a timer of 10 ms is: its 99th percentile,
//! beyond that of the idle loop in the same program. V8's heap grows at first, so the peak of the
//! memory in the second half of a flood is compared with that in the first.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use thalweg::Code;
use thalweg::port::{Instance, Port};
use thalweg::wire::message;
use thalweg_lab::LabService;
use thalweg_lab::lab::LabServer;

use crate::cell::{Cell, Sample};
use crate::interleave::{Plan, Side};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes;
use crate::report::{Metrics, Row};
use crate::workloads::{Workload, lab_hosts};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "ffi_flood",
    group: "boundary",
    what: "Two threads that submit without end: how late a timer of 10 ms is, and how much memory that takes.",
    source: "nim-ffi's defects: timers that starve under load, queues without bound",
    peers: &[],
    seconds: 16,
    run,
    cells: Some(open),
    ..Workload::USUAL
};

const LASTING: Duration = Duration::from_secs(3);
const PERIOD: Duration = Duration::from_millis(10);
const PRODUCERS: u64 = 2;
/// Capacity of the port.
const ROOM: u32 = 16_384;

/// Sleeps take at most 20 ms, and the calls in flight take at most 1 KiB per slot.
fn target() -> Target {
    Target::All(vec![
        Target::Metric("longest_sleep_ms", 20.0),
        Target::Metric("grown_mib", f64::from(ROOM) / 1024.0),
    ])
}

/// The result of three seconds.
#[derive(Debug)]
struct Flood {
    completed: u64,
    refused: u64,
    sleeps: u64,
    longest: Duration,
    grown: u64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let params = [
        ("producers", &*PRODUCERS.to_string()),
        ("room", &ROOM.to_string()),
        ("timer", "10 ms"),
    ];
    let cell = Cell::new(WORKLOAD.name, &params, &["thalweg"]);
    // Each flood has its own process: memory that one leaves in the allocator would not grow in
    // the next.
    let plan = Plan {
        warm_up: 0,
        ..lab.plan(None)
    };
    let taken = processes::sample(lab, &cell, plan, plan.rounds)?.remove(0);
    let mut metrics = Metrics::default();
    metrics.rate("per_s", 1e9, &processes::times(&taken));
    for name in WORST {
        let values = taken.iter().map(|sample| sample.metrics[name]);
        metrics.count(name, values.fold(0.0, f64::max));
    }
    let row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", processes::times(&taken)),
        None,
    )
    .checked("each run: as many completions as accepted calls, all well; more calls were refused than none")
    .with_metrics("", metrics);
    let node = lab_hosts::NODE.missing(&WORKLOAD);
    let node = node.map_or_else(|| node_row(lab), Ok)?;
    Ok(vec![row.held_to(&target(), lab.refusal()), node])
}

/// The answer of the Node program to `flood`.
#[derive(Debug, Deserialize)]
struct NodeFlood {
    idle_ms: f64,
    flood_ms: f64,
    timers: u64,
    calls: u64,
    records: u64,
    grown_mib: f64,
}

/// The timer of the flooded loop is at most 10 ms later than that of the idle one.
fn node_target() -> Target {
    Target::All(vec![
        Target::Metric("late_above_idle_ms", 10.0),
        Target::Metric("grown_mib", f64::from(ROOM) / 1024.0),
    ])
}

fn node_row(lab: &Lab) -> Result<Row, Problem> {
    let lasting = if lab.quick() { LASTING / 10 } else { LASTING };
    let lines = [format!("flood {}", lasting.as_millis())];
    let plan = Plan {
        warm_up: 0,
        ..lab.plan(None)
    };
    let check = |_, flood: NodeFlood| match flood {
        NodeFlood { timers: 0, .. } | NodeFlood { calls: 0, .. } | NodeFlood { records: 0, .. } => {
            Err(failed(format!("it was no flood: {flood:?}")))
        }
        _ => Ok(flood),
    };
    let start = || lab_hosts::NODE.start();
    let taken = processes::ask(
        lab,
        "ffi_flood node",
        &lines,
        plan,
        plan.rounds,
        start,
        check,
    )?;
    let floods = &taken[0];
    let mut metrics = Metrics::default();
    metrics.median("idle_p99_ms", &floods.map(|flood| flood.idle_ms));
    metrics.median("p99_ms", &floods.map(|flood| flood.flood_ms));
    let above = floods.map(|flood| flood.flood_ms - flood.idle_ms);
    metrics.median("late_above_idle_ms", &above);
    metrics.count(
        "grown_mib",
        floods
            .iter()
            .map(|flood| flood.grown_mib)
            .fold(0.0, f64::max),
    );
    let each = floods.map(|flood| lasting.as_nanos() as f64 / flood.calls as f64);
    metrics.rate("per_s", 1e9, &each);
    let params = [
        ("language", lab_hosts::NODE.language),
        ("mode", lab_hosts::NODE.mode),
        ("callers", "10000"),
        ("timer", "10 ms"),
    ];
    let row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", each),
        None,
    )
    .checked("each run: calls ended and records arrived while the timer fired")
    .with_metrics("", metrics);
    Ok(row.held_to(&node_target(), lab.refusal()))
}

/// The metrics of a flood; the row has the largest value of all floods.
const WORST: [&str; 4] = ["longest_sleep_ms", "grown_mib", "refused", "sleeps"];

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let lasting = if cell.quick { LASTING / 10 } else { LASTING };
    Ok(vec![Side::new(move || {
        let flood = flood(lasting)?;
        let values = [
            flood.longest.as_secs_f64() * 1e3,
            flood.grown as f64 / f64::from(1 << 20),
            flood.refused as f64,
            flood.sleeps as f64,
        ];
        let sample = Sample::of(lasting, flood.completed);
        let with = |sample: Sample, (name, value)| sample.with(name, value);
        Ok(WORST.into_iter().zip(values).fold(sample, with))
    })])
}

fn failed(why: impl std::fmt::Display) -> Problem {
    Problem::Check(format!("ffi_flood: {why}"))
}

fn flood(lasting: Duration) -> Result<Flood, Problem> {
    let runtime = Instance::runtime().map_err(failed)?;
    let instance = Instance::open(|| LabServer::new(LabService::default()), runtime.clone());
    let port = Port::open(ROOM).map_err(failed)?;
    let layout = instance.package().methods[0].params;
    let args = &message::encode(&(), layout, Vec::new()).map_err(failed)?;
    let before = resident()?;
    let over = Arc::new(AtomicBool::new(false));

    let ended = Arc::clone(&over);
    let sleeper = runtime.spawn(move || {
        let (mut longest, mut sleeps) = (Duration::ZERO, 0);
        while !ended.load(Ordering::Relaxed) {
            let began = Instant::now();
            thalweg_runtime::sleep(PERIOD);
            longest = longest.max(began.elapsed());
            sleeps += 1;
        }
        (longest, sleeps)
    });

    let (accepted, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let producing = AtomicU64::new(PRODUCERS);
    let (mut completed, mut largest) = (0, before);
    let reaped: Result<(), Problem> = thread::scope(|scope| {
        for _ in 0..PRODUCERS {
            scope.spawn(|| {
                let (mut taken, mut not_taken) = (0, 0);
                while !over.load(Ordering::Relaxed) {
                    match instance.submit(&port, taken, 0, args, u64::MAX) {
                        Ok(_) => taken += 1,
                        Err(failure) if failure.code == Code::Overloaded => {
                            not_taken += 1;
                            thread::yield_now();
                        }
                        Err(_) => break,
                    }
                }
                accepted.fetch_add(taken, Ordering::Relaxed);
                refused.fetch_add(not_taken, Ordering::Relaxed);
                producing.fetch_sub(1, Ordering::Release);
            });
        }
        let end = Instant::now() + lasting;
        let mut looks = 0u32;
        loop {
            let all_in = producing.load(Ordering::Acquire) == 0;
            let mut well = true;
            let before = completed;
            for one in port.reap().map_err(failed)?.take(256) {
                well &= one.code == Code::Ok;
                completed += 1;
            }
            if !well {
                over.store(true, Ordering::Relaxed);
                return Err(failed("a call failed"));
            }
            if all_in && completed == accepted.load(Ordering::Relaxed) {
                return Ok(());
            }
            if completed == before {
                thread::yield_now();
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(1024) {
                largest = largest.max(resident()?);
            }
            if Instant::now() >= end {
                over.store(true, Ordering::Relaxed);
            }
        }
    });
    over.store(true, Ordering::Relaxed);
    reaped?;
    let (longest, sleeps) = sleeper
        .join()
        .map_err(|_| failed("the sleeping actor ended"))?;
    port.close();
    instance.close();
    let flood = Flood {
        completed,
        refused: refused.into_inner(),
        sleeps,
        longest,
        grown: largest - before,
    };
    if flood.refused == 0 {
        return Err(failed("it was no flood: nothing was refused"));
    }
    Ok(flood)
}

/// Resident memory of this process, in bytes.
fn resident() -> Result<u64, Problem> {
    let text = fs::read_to_string("/proc/self/statm").map_err(Problem::io("/proc/self/statm"))?;
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages
        .map(|pages| pages * rustix::param::page_size() as u64)
        .ok_or_else(|| failed("no resident size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_completes_and_the_sleeper_sleeps() {
        let flood = flood(Duration::from_millis(100)).unwrap();
        assert!(flood.completed > 0 && flood.refused > 0, "{flood:?}");
        assert!(flood.sleeps > 0 && flood.longest >= PERIOD, "{flood:?}");
    }
}
