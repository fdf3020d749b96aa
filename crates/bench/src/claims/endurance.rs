//! Claims of nimsync's documents about runs of many hours.

use super::claim::{Claim, Finding, Verdict};
use super::evidence::{Evidence, Missing, Point};
use crate::report::Row;

/// All claims of this module.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "leaks-24h",
        whose: "nimsync, README of its benchmarks (baseline results, endurance tests)",
        says: "In 24 hours nothing leaks.",
        made: "No program of theirs measures it: the one of that name sleeps in a loop and uses no channel.",
        run: "sustained_hours --duration 24h",
        theirs: &[],
        twin: &[HOURS],
        rule: "Holds where a run of 24 hours grew by at most 64 KiB an hour after its first ten minutes, with as many descriptors and mappings \
               at its end. A shorter run can refute it, not bear it out: the page says how long the longest was.",
        judge: |evidence| leaks(evidence, DAY),
    },
    Claim {
        id: "load-12h",
        whose: "nimsync, README of its benchmarks (endurance tests)",
        says: "Under load for 12 hours performance stays as it is.",
        made: "No program of theirs measures it: theirs runs for 10 seconds.",
        run: "sustained_hours --duration 12h",
        theirs: &[],
        twin: &[HOURS],
        rule: "Holds where every hour of a run of 12 was within 10 % of the first. A shorter run can refute it, not bear it out.",
        judge: |evidence| load(evidence, DAY / 2.0),
    },
];

const HOURS: Point = Point::ours("sustained_hours", &[]);
const DAY: f64 = 24.0 * 3600.0;
/// KiB per hour.
const MOST_GROWTH: f64 = 64.0;

/// The longest run on this machine, in either workload, and its duration in seconds.
fn longest<'a>(evidence: &Evidence<'a>) -> Result<(&'a Row, f64), Missing> {
    let rows = ["sustained", "sustained_hours"].map(|workload| evidence.all(workload));
    rows.into_iter()
        .flatten()
        .filter_map(|row| Some((row, *row.metrics.get("seconds")?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .ok_or_else(|| Missing(HOURS.to_string()))
}

fn metric(row: &Row, name: &str) -> Result<f64, Missing> {
    let value = row.metrics.get(name).copied();
    value.ok_or_else(|| Missing(format!("`{name}` of the longest run")))
}

fn span(seconds: f64) -> String {
    let whole = std::time::Duration::from_secs(seconds as u64);
    humantime::format_duration(whole).to_string()
}

fn short(seconds: f64, twin: String) -> Finding {
    let why = format!("the longest run so far took {}", span(seconds));
    Finding {
        theirs: super::channels::NONE.to_owned(),
        twin,
        verdict: Verdict::NotTestable(why),
    }
}

/// A run that misses its limit refutes the claim about a longer run. A run that keeps its limit
/// proves nothing about the hours it does not cover.
fn judged(kept: bool, twin: String, seconds: f64, asked: f64) -> Finding {
    if kept && seconds < asked {
        return short(seconds, twin);
    }
    Finding {
        theirs: super::channels::NONE.to_owned(),
        twin,
        verdict: Verdict::of(kept, kept),
    }
}

fn leaks(evidence: &Evidence<'_>, asked: f64) -> Result<Finding, Missing> {
    let (row, seconds) = longest(evidence)?;
    let Some(growth) = row.metrics.get("rss_slope_kib_per_h").copied() else {
        // Within the first twenty minutes memory has not reached a steady level.
        return Ok(short(
            seconds,
            format!("in {}: too short to say anything of leaks", span(seconds)),
        ));
    };
    let (fds, mappings) = (metric(row, "fds_more")?, metric(row, "mappings_more")?);
    let twin = format!(
        "in {}: {growth:.1} KiB more an hour, {fds:.0} more descriptors, {mappings:.0} more mappings",
        span(seconds)
    );
    let flat = growth <= MOST_GROWTH && fds <= 0.0 && mappings <= 0.0;
    Ok(judged(flat, twin, seconds, asked))
}

fn load(evidence: &Evidence<'_>, asked: f64) -> Result<Finding, Missing> {
    let (row, seconds) = longest(evidence)?;
    let Some(worst) = row.metrics.get("worst_hour_percent").copied() else {
        return Ok(short(
            seconds,
            format!("in {}: there is no second hour", span(seconds)),
        ));
    };
    let twin = format!(
        "in {}: the hour that differs most is {worst:.1} % off the first",
        span(seconds)
    );
    Ok(judged(worst <= 10.0, twin, seconds, asked))
}
