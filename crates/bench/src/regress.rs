//! Whether a run is worse than its baseline.
//!
//! 1. A row is judged by its ratio if it has a peer, because fluctuations of the machine then
//!    affected both sides alike. Otherwise it is judged by `instructions`, which do not depend on
//!    the neighbours; otherwise by the metric that its target names; otherwise by the subject's
//!    median.
//! 2. A row is worse if it is worse by more than the threshold **and** the two intervals do not
//!    overlap. It is better if the same holds in the other direction.
//! 3. The smallest detectable change of a row follows from the widths of both intervals
//!    ([`Figure::detectable`]). If it is larger than the threshold, then a change of the allowed
//!    size would not be seen, and a row that is neither worse nor better cannot be judged. The
//!    reason contains the smallest threshold with which it can.
//! 4. A row cannot be judged if the two runs were not measured alike: on another host, with other
//!    knobs, or against another version of the peer. The same applies if either row is missing.
//!    Such a comparison is not a pass.
//!
//! All of this is arithmetic on result files: nothing here measures.

mod figure;
mod table;

use crate::baseline;
use crate::report::{Host, Report, Row};

pub use figure::Figure;
pub use table::text;

/// Params that a workload determines itself while it measures: the number of operations per sample.
const FOUND_OUT: [&str; 1] = ["searches"];

/// Knobs of a run that change the certainty of its figures, not their meaning.
const OF_NO_ACCOUNT: [&str; 2] = ["samples", "load_at_start"];

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Worse than the threshold allows, and outside of the noise.
    Worse,
    /// Better than the threshold, and outside of the noise.
    Better,
    /// Neither.
    Same,
    /// The run has the row and the baseline does not.
    New,
    /// The row cannot be judged; contains the reason.
    NotJudged(String),
}

/// One row against its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The workload.
    pub workload: String,
    /// Its params, as in the table.
    pub params: String,
    /// The compared figure.
    pub figure: String,
    /// Its value in the baseline.
    pub before: Option<Figure>,
    /// Its value in the run.
    pub now: Option<Figure>,
    /// Change in percent; positive if the figure became worse.
    pub worse_by: Option<f64>,
    /// The smallest change for the worse that can be detected, in percent.
    pub detectable: Option<f64>,
    /// The result.
    pub outcome: Outcome,
}

/// Compares `run` with `baselines`. Each row of the run belongs to at most one of them. `threshold`
/// is in percent.
#[must_use]
pub fn compare(baselines: &[Report], run: &Report, threshold: f64) -> Vec<Line> {
    let unusable = baseline::refusal(run).map(|why| format!("the run: {why}"));
    let mut lines = Vec::new();
    let mut seen: Vec<&Row> = Vec::new();
    for row in &run.results {
        let partner = baselines.iter().find_map(|report| {
            let found = report.results.iter().find(|known| same_row(known, row))?;
            Some((report, found))
        });
        lines.push(match partner {
            None => new_line(row),
            Some((report, known)) => {
                seen.push(known);
                let why = unusable
                    .clone()
                    .or_else(|| not_alike(report, run, row))
                    .map_or(Ok(()), Err);
                judged(known, row, threshold, why)
            }
        });
    }
    for known in baselines.iter().flat_map(|report| &report.results) {
        if !seen.iter().any(|row| std::ptr::eq(*row, known)) {
            lines.push(gone_line(known));
        }
    }
    lines
}

/// 0 if no row is worse, 1 if one is, 2 if the run cannot be judged.
#[must_use]
pub fn exit_status(lines: &[Line]) -> u8 {
    let any = |wanted: fn(&Outcome) -> bool| lines.iter().any(|line| wanted(&line.outcome));
    if any(|outcome| *outcome == Outcome::Worse) {
        1
    } else if any(|outcome| matches!(outcome, Outcome::NotJudged(_)))
        || !any(|outcome| *outcome != Outcome::New)
    {
        2
    } else {
        0
    }
}

fn same_row(one: &Row, other: &Row) -> bool {
    let set = |row: &Row| -> Vec<(String, String)> {
        let found_out = |name: &str| FOUND_OUT.contains(&name);
        let params = row.params.iter().filter(|(name, _)| !found_out(name));
        params.map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    one.workload == other.workload
        && one.subject == other.subject
        && one.peer == other.peer
        && set(one) == set(other)
}

/// The reason why `row` of `run` cannot be compared with `baseline`, if there is one.
fn not_alike(baseline: &Report, run: &Report, row: &Row) -> Option<String> {
    if let Some(why) = baseline::refusal(baseline) {
        return Some(format!("the baseline: {why}"));
    }
    if let Some((what, before, now)) = hosts_differ(&baseline.host, &run.host) {
        return Some(format!("another host: {what} was {before}, is {now}"));
    }
    let of_row = |name: &str| {
        !OF_NO_ACCOUNT.contains(&name)
            && baseline::knob_of(name).is_none_or(|of| of == row.workload)
    };
    let named = |report: &Report, name: &str| {
        report
            .knobs
            .get(name)
            .cloned()
            .unwrap_or_else(|| "not set".to_owned())
    };
    for name in baseline.knobs.keys().chain(run.knobs.keys()) {
        let (before, now) = (named(baseline, name), named(run, name));
        if of_row(name) && before != now {
            return Some(format!("another knob: {name} was {before}, is {now}"));
        }
    }
    // The version of `crossbeam_bounded_256` is listed under `crossbeam`.
    let peer = row.peer.as_deref()?;
    let of_peer = |name: &str| {
        peer.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    baseline.peers.iter().find_map(|(name, before)| {
        let now = run.peers.get(name).filter(|_| of_peer(name))?;
        (before != now).then(|| format!("another {name}: was {before}, is {now}"))
    })
}

/// The first property that makes two hosts different. Load and limits are ignored: they vary from
/// day to day.
fn hosts_differ(before: &Host, now: &Host) -> Option<(&'static str, String, String)> {
    let count = |host: &Host| host.processors.to_string();
    let all = [
        ("cpu", before.cpu.clone(), now.cpu.clone()),
        ("processors", count(before), count(now)),
        ("affinity", before.affinity.clone(), now.affinity.clone()),
        ("governor", before.governor.clone(), now.governor.clone()),
        ("kernel", before.uname.clone(), now.uname.clone()),
        ("virtual", before.r#virtual.clone(), now.r#virtual.clone()),
    ];
    all.into_iter().find(|(_, before, now)| before != now)
}

fn line(row: &Row) -> Line {
    let params: Vec<String> = row.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    Line {
        workload: row.workload.clone(),
        params: params.join(" "),
        figure: Figure::of(row).name,
        before: None,
        now: None,
        worse_by: None,
        detectable: None,
        outcome: Outcome::Same,
    }
}

fn new_line(row: &Row) -> Line {
    Line {
        now: Some(Figure::of(row)),
        outcome: Outcome::New,
        ..line(row)
    }
}

fn gone_line(row: &Row) -> Line {
    Line {
        before: Some(Figure::of(row)),
        outcome: Outcome::NotJudged("the run has no such row".to_owned()),
        ..line(row)
    }
}

fn judged(known: &Row, row: &Row, threshold: f64, alike: Result<(), String>) -> Line {
    let (before, now) = (Figure::of(known), Figure::of(row));
    let mut line = Line {
        before: Some(before.clone()),
        now: Some(now.clone()),
        ..line(row)
    };
    if let Err(why) = alike {
        line.outcome = Outcome::NotJudged(why);
    } else if before.name != now.name {
        line.outcome = Outcome::NotJudged(format!(
            "the baseline has {}, the run {}",
            before.name, now.name
        ));
    } else {
        let worse_by = now.worse_by(&before);
        let detectable = now.detectable(&before);
        line.worse_by = Some(worse_by);
        line.detectable = Some(detectable);
        let apart = !now.overlaps(&before);
        line.outcome = if apart && worse_by > threshold {
            Outcome::Worse
        } else if apart && before.worse_by(&now) > threshold {
            Outcome::Better
        } else if detectable <= threshold {
            Outcome::Same
        } else {
            Outcome::NotJudged(format!(
                "cannot judge a change of {threshold} %: the smallest detectable change is \
                 {detectable:.1} %"
            ))
        };
    }
    line
}

#[cfg(test)]
mod tests;
