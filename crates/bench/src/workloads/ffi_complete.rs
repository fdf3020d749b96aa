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
//! `raw` is an eventfd that the loop watches, a list of finished work, and a future per task. In Node
//! both sides are promises in windows of 1,024, and `raw` is the same with `uv_poll` and a promise
//! each. In C++ each call is awaited by a coroutine, also in `whole`; `raw` is an eventfd, an array of
//! finished work, and a coroutine each. Neither has a target here.

use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::figures;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::{Metrics, Row};
use crate::statistics::Samples;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, Block, LabHost, Read};

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
    /// The required calls per second of `whole`.
    rate: Option<Target>,
    /// The limit of `drain`.
    drain: Option<Target>,
    /// The command for the host program; `raw` is the peer of `drain`.
    commands: &'static [&'static str],
    /// The rates of `latency`, in calls per second.
    rates: &'static [u64],
}

const WAYS: [Way; 5] = [
    Way {
        host: lab_hosts::C,
        count: 200_000,
        window: "2048",
        rate: Some(RATE),
        drain: Some(DRAIN),
        commands: &["complete", "drain", "raw"],
        rates: &RATES,
    },
    Way {
        host: lab_hosts::RUST,
        count: 200_000,
        window: "2048",
        rate: Some(RATE),
        drain: None,
        commands: &["complete"],
        rates: &RATES,
    },
    Way {
        host: lab_hosts::ASYNCIO,
        count: 20_480,
        window: "1024",
        rate: None,
        drain: Some(DRAIN),
        commands: &["complete", "drain", "raw"],
        rates: &[RATES[0]],
    },
    Way {
        host: lab_hosts::CPP_COROUTINES,
        count: 200_000,
        window: "2048",
        rate: None,
        drain: None,
        commands: &["complete", "drain", "raw"],
        rates: &[RATES[0], RATES[1]],
    },
    Way {
        host: lab_hosts::NODE,
        count: 102_400,
        window: "1024",
        rate: None,
        drain: None,
        commands: &["complete", "drain", "raw"],
        rates: &[RATES[0], RATES[1]],
    },
];

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert("raw".to_owned(), "of this commit".to_owned());
    let mut rows = Vec::new();
    for way in &WAYS {
        if let Some(row) = way.host.missing(&WORKLOAD) {
            rows.push(row);
            continue;
        }
        rows.extend(throughput(lab, way)?);
        rows.extend(latency(lab, way)?);
    }
    Ok(rows)
}

fn throughput(lab: &Lab, way: &Way) -> Result<Vec<Row>, Problem> {
    let count = way.count / if lab.quick() { 20 } else { 1 };
    let line = |command: &&str| format!("{command} {count}");
    let lines: Vec<String> = way.commands.iter().map(line).collect();
    // The tokens are 0 to count - 1.
    let sum = count * (count - 1) / 2;
    let check = |side: usize, read: Read| read.each(&lines[side], count, sum);
    let title = format!("ffi_complete {}", way.host.language);
    let plan = lab.plan(Some(SAMPLES));
    let start = || way.host.start();
    let taken = processes::ask(lab, &title, &lines, plan, PROCESSES, start, check)?;

    let calls = count.to_string();
    let row = |what, ours: &Samples, peer: Option<&Samples>, target: Option<&Target>| {
        let params = [
            ("language", way.host.language),
            ("what", what),
            ("calls", &calls),
            ("window", way.window),
        ];
        let mut metrics = Metrics::default();
        metrics.rate("per_s", 1e9, ours);
        let row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            ("thalweg", ours.clone()),
            peer.map(|peer| ("raw", peer.clone())),
        )
        .checked("every sample: each call completed once, well, with its token")
        .with_metrics("", metrics);
        match target {
            Some(target) => row.held_to(target, lab.refusal()),
            None => row,
        }
    };
    let mut rows = vec![row("whole", &taken[0], None, way.rate.as_ref())];
    if let [_, drain, raw] = taken.as_slice() {
        rows.push(row("drain", drain, Some(raw), way.drain.as_ref()));
    }
    Ok(rows)
}

/// Calls at each rate, for a fifth of a second and at most a hundred thousand per sample.
fn latency(lab: &Lab, way: &Way) -> Result<Vec<Row>, Problem> {
    let part = if lab.quick() { 500 } else { 5 };
    let points: Vec<(usize, u64)> = way
        .rates
        .iter()
        .map(|per_s| ((*per_s as usize / part).min(100_000), *per_s))
        .collect();
    let line = |(count, per_s): &(usize, u64)| format!("paced {count} {per_s}");
    let lines: Vec<String> = points.iter().map(line).collect();
    let check = |side: usize, block: Block| block.counted(points[side].0);
    let title = format!("ffi_complete {} latency", way.host.language);
    let plan = lab.plan(Some(SAMPLES));
    let start = || way.host.start();
    let taken = processes::ask(lab, &title, &lines, plan, PROCESSES, start, check)?;

    let rows = points.iter().zip(&taken).map(|((count, per_s), samples)| {
        let params = [
            ("language", way.host.language),
            ("what", "latency"),
            ("calls", &count.to_string()),
            ("per_s", &per_s.to_string()),
        ];
        let (medians, metrics) = figures(samples);
        Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ns",
            ("thalweg", medians),
            None,
        )
        .checked("every sample: each call completed once and well")
        .with_metrics("", metrics)
    });
    Ok(rows.collect())
}
