//! `ffi_complete`: the cost of one call among many, until the host has its completion.
//!
//! - `whole`: calls that do nothing, submitted 64 at a time with up to 2,048 of them in flight, and
//!   reaped by the same thread, from the first submission to the last completion. There is no peer;
//!   the target is a rate.
//! - `drain`: the same number of completions is ready before the host reaps them; only the host's
//!   own time counts. The peer, `raw`, is the minimal drain: a thread has put records of 32 bytes
//!   into an array, and the host reads an eventfd, copies the records out 256 at a time under a
//!   lock, and looks at each.
//! - `latency`: 10,000, 100,000 and a million calls per second. Each latency runs from the time
//!   when the call was due until the host has its completion, so calls delayed by a late one count
//!   in full. The host waits for completions while nothing is due; on asyncio its loop runs.
//!   asyncio takes only the lowest rate because it cannot reach the others.
//!
//! In Python both sides run on asyncio, in windows of 1,024 tasks that await one call each. There
//! `raw` is an eventfd that the loop watches, a list of finished work, and a future per task.

use std::cell::RefCell;

use serde::Deserialize;

use crate::child::HostProgram;
use crate::interleave::{Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, LabHost};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "ffi_complete",
    group: "boundary",
    what: "Calls that do nothing, many at a time, to the last completion; and completions that are ready, against a bare drain.",
    source: "nim-ffi's benchmark of submission, timed to the last completion",
    peers: &["raw"],
    seconds: 25,
    run,
    ..Workload::USUAL
};

const SAMPLES: usize = 15;

/// Calls per second with one consumer, in compiled languages.
const RATE: Target = Target::AtLeast("per_s", 5e6);
/// The limit relative to a bare drain.
const DRAIN: Target = Target::Ratio(1.3);

/// Calls per second.
const RATES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// A host and its parameters.
struct Way {
    host: LabHost,
    /// Calls per sample.
    count: u64,
    /// The largest number of calls in flight.
    window: &'static str,
    /// The required calls per second with one consumer.
    rate: Option<Target>,
    commands: &'static [&'static str],
    /// The rates of `latency`, in calls per second.
    rates: &'static [u64],
}

const WAYS: [Way; 3] = [
    Way {
        host: lab_hosts::C,
        count: 200_000,
        window: "2048",
        rate: Some(RATE),
        commands: &["complete", "drain", "raw"],
        rates: &RATES,
    },
    Way {
        host: lab_hosts::RUST,
        count: 200_000,
        window: "2048",
        rate: Some(RATE),
        commands: &["complete"],
        rates: &RATES,
    },
    Way {
        host: lab_hosts::ASYNCIO,
        count: 20_480,
        window: "1024",
        rate: None,
        commands: &["complete", "drain", "raw"],
        rates: &[RATES[0]],
    },
];

#[derive(Deserialize)]
struct Read {
    ns: u64,
    records: u64,
    checksum: u64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert("raw".to_owned(), "of this commit".to_owned());
    let mut rows = Vec::new();
    for way in &WAYS {
        rows.extend(measure(lab, way)?);
    }
    Ok(rows)
}

fn measure(lab: &Lab, way: &Way) -> Result<Vec<Row>, Problem> {
    let Way {
        host,
        count,
        window,
        rate,
        commands,
        rates,
    } = way;
    let count = if lab.quick() { count / 20 } else { *count };
    let plan = lab.plan(Some(SAMPLES));
    lab.begin(
        &format!("ffi_complete {}", host.language),
        (commands.len() + rates.len()) * (plan.warm_up + plan.rounds),
    );
    let program = HostProgram::start(host.language, (host.command)()?, Placement::Free)?;
    let program = RefCell::new(program);
    let sample = |command: &str| {
        let read: Read = program.borrow_mut().ask(&format!("{command} {count}"))?;
        // The tokens are 0 to count - 1.
        if read.records != count || read.checksum != count * (count - 1) / 2 {
            return Err(Problem::Check(format!(
                "{} {command}: {} completions with sum {}",
                host.language, read.records, read.checksum
            )));
        }
        Ok(read.ns as f64 / count as f64)
    };
    let mut sides: Vec<Side<'_, f64>> = commands
        .iter()
        .map(|command| Side::new(|| sample(command)))
        .collect();
    let mut taken = interleave(&mut sides, plan, || lab.step())?.into_iter();
    drop(sides);
    let mut program = program.into_inner();
    let mut paced = Vec::new();
    for per_s in *rates {
        paced.push(latency(lab, &mut program, host.language, *per_s)?);
    }
    program.finish()?;

    let row =
        |what: &str, ours: Vec<f64>, peer: Option<(&str, Vec<f64>)>, target: Option<&Target>| {
            let mut row = Row::new(
                (WORKLOAD.name, WORKLOAD.group),
                &[
                    ("language", host.language),
                    ("what", what),
                    ("calls", &count.to_string()),
                    ("window", window),
                ],
                "ns",
                ("thalweg", ours),
                peer,
            )
            .checked("every sample: each call completed once, well, with its token");
            row.metrics
                .insert("per_s".to_owned(), 1e9 / row.subject_median);
            match target {
                Some(target) => row.held_to(target, lab.refusal()),
                None => row,
            }
        };
    let mut rows = Vec::new();
    if let Some(ours) = taken.next() {
        rows.push(row("whole", ours, None, rate.as_ref()));
    }
    if let (Some(ours), Some(theirs)) = (taken.next(), taken.next()) {
        rows.push(row("drain", ours, Some(("raw", theirs)), Some(&DRAIN)));
    }
    rows.extend(paced);
    Ok(rows)
}

#[derive(Deserialize)]
struct Late {
    latencies: Vec<u64>,
}

/// Calls at one rate, for a fifth of a second and at most a hundred thousand.
fn latency(
    lab: &Lab,
    program: &mut HostProgram,
    language: &str,
    per_s: u64,
) -> Result<Row, Problem> {
    let count = if lab.quick() { per_s / 500 } else { per_s / 5 }.min(100_000);
    let plan = lab.plan(Some(SAMPLES));
    let (mut all, mut medians) = (Latencies::new(), Vec::new());
    for round in 0..plan.warm_up + plan.rounds {
        let late: Late = program.ask(&format!("paced {count} {per_s}"))?;
        if late.latencies.len() as u64 != count || late.latencies.contains(&0) {
            return Err(Problem::Check(format!(
                "{language} paced: not each of {count} calls has completed"
            )));
        }
        if round >= plan.warm_up {
            let mut its = Latencies::new();
            late.latencies.iter().for_each(|ns| its.record(*ns));
            medians.push(its.percentile(50.0) as f64);
            all.add(&its.counts());
        }
        lab.step();
    }
    let params = [
        ("language", language),
        ("what", "latency"),
        ("calls", &count.to_string()),
        ("per_s", &per_s.to_string()),
    ];
    let identity = (WORKLOAD.name, WORKLOAD.group);
    let mut row = Row::new(identity, &params, "ns", ("thalweg", medians), None)
        .checked("every sample: each call completed once and well");
    all.write("", &mut row.metrics);
    Ok(row)
}
