//! `gc_pause`: how long a garbage collector of the host interrupts a stream.
//!
//! A service writes a tick each millisecond, and the host records the time of each tick. The host
//! also holds a GiB of small objects that a collector has to scan (`live_mib`), and creates 200
//! garbage cycles per tick. The result is the longest gap between two ticks beyond the period. The
//! parameter `collector` sets what the collector may do:
//!
//! - `on`: the collector runs whenever it chooses;
//! - `full`: the program requests a full collection once a second, as some programs do before they
//!   go idle;
//! - `frozen`: the same after `gc.freeze()`, which excludes live objects from collection. The limit
//!   is 5 ms, because this collector makes that possible.

use serde::Deserialize;

use crate::child::HostProgram;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::{Latencies, figures};
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::lab_hosts;
use crate::workloads::{Knob, Workload};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "gc_pause",
    group: "streaming",
    what: "A tick each millisecond into Python with a GiB live there: the longest gap that its collector makes.",
    source: "nimsync's claim that pauses are below 2 ms",
    peers: &[],
    seconds: 150,
    run,
    knobs: &[LIVE, BEATS],
    ..Workload::USUAL
};

const LIVE: Knob = Knob {
    name: "live_mib",
    default: "1024",
    what: "MiB of objects that live in the host",
};
const BEATS: Knob = Knob {
    name: "beats",
    default: "5000",
    what: "ticks a sample, one a millisecond",
};

/// Time between two ticks, in ns: `PERIOD_US` in hosts/python/ticks.py.
const PERIOD: u64 = 1_000_000;

/// Ticks between two collections that the program requests: `FULL_EVERY` in hosts/python/ticks.py.
const FULL_EVERY: u64 = 1_000;

/// The modes, in the order of their numbers in hosts/python/ticks.py, and their limits.
const COLLECTORS: [(&str, Option<Target>); 3] = [
    ("on", None),
    ("full", None),
    ("frozen", Some(Target::Metric("longest_gap_ms", 5.0))),
];

#[derive(Deserialize)]
struct Gaps {
    /// Ns from each tick to the next.
    latencies: Vec<u64>,
    full_collections: u64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let (live, beats) = (lab.number(&LIVE)?, lab.number(&BEATS)?);
    let plan = lab.plan(None);
    lab.begin(WORKLOAD.name, COLLECTORS.len() * plan.rounds);
    let command = (lab_hosts::PYTHON.command)()?;
    let mut program = HostProgram::start("python", command, Placement::Free)?;
    let mut rows = Vec::new();
    for (number, (collector, target)) in COLLECTORS.iter().enumerate() {
        let mut longest = Vec::new();
        let mut gaps = Vec::new();
        let mut collections = 0;
        for _ in 0..plan.rounds {
            let took: Gaps = program.ask(&format!("pause {beats} {live} {number}"))?;
            if took.latencies.len() as u64 + 1 != beats {
                return Err(Problem::Check(format!(
                    "{} gaps between {beats} beats",
                    took.latencies.len()
                )));
            }
            longest.push(beyond(&took.latencies));
            gaps.push(Latencies::from(took.latencies.as_slice()));
            collections += took.full_collections;
            lab.step();
        }
        let asked = plan.rounds as u64 * (beats / FULL_EVERY);
        if *collector != "on" && collections < asked {
            return Err(Problem::Check(format!(
                "{collector}: {collections} full collections, and {asked} were asked for"
            )));
        }
        let params = [
            ("language", "python"),
            ("collector", *collector),
            ("live_mib", &live.to_string()),
            ("beats", &beats.to_string()),
            ("period_us", &(PERIOD / 1_000).to_string()),
        ];
        let worst = longest.iter().copied().fold(0.0, f64::max);
        let (_, metrics) = figures(&gaps.into());
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "ms",
            ("thalweg", longest),
            None,
        )
        .checked("every beat came once")
        .with_metrics("", metrics);
        row.metrics.insert("longest_gap_ms".to_owned(), worst);
        row.metrics
            .insert("full_collections".to_owned(), collections as f64);
        rows.push(match target {
            Some(target) => row.held_to(target, lab.refusal()),
            None => row,
        });
    }
    program.finish()?;
    Ok(rows)
}

/// The longest gap, in ms beyond the period.
fn beyond(gaps: &[u64]) -> f64 {
    let longest = gaps.iter().copied().max().unwrap_or(0);
    longest.saturating_sub(PERIOD) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_by_what_it_has_beyond_the_period() {
        assert_eq!(beyond(&[1_000_000, 3_500_000, 900_000]), 2.5);
        assert_eq!(beyond(&[900_000]), 0.0);
        assert_eq!(beyond(&[]), 0.0);
    }

    #[test]
    fn what_the_collector_allows_is_held() {
        let held: Vec<&str> = COLLECTORS
            .iter()
            .filter(|(_, target)| target.is_some())
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(held, ["frozen"]);
    }
}
