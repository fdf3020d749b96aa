//! `channel_memory`: the heap memory of a channel, and the memory that remains after its messages
//! were received.
//!
//! A separate program counts with its own allocator (`thalweg-bench-memory`). It counts requested
//! sizes, so the figure is the same on every machine. A channel is measured when it is new and
//! after 1,000 messages; the larger value counts.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Deserialize;
use thalweg_peers::versions;

use crate::child::beside;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;

use super::subjects::THALWEG;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "channel_memory",
    group: "queue",
    what: "Bytes of a channel for 16 numbers, and what 1,000 strings of 100 KB leave behind.",
    source: "nimsync's claim of less than 1 KB a channel, which no program of theirs measured",
    peers: &["crossbeam", "tokio"],
    seconds: 2,
    run,
    ..Workload::USUAL
};

const PROGRAM: &str = "thalweg-bench-memory";
/// The limit for a channel, in bytes.
const MOST: f64 = 1023.0;
/// The size of 1,000 strings of 100 KB. A channel must keep less than 1 % of it.
const STRINGS: f64 = 1000.0 * 100_000.0;

#[derive(Deserialize)]
struct Found {
    case: String,
    subject: String,
    fresh: i64,
    used: i64,
}

impl Found {
    fn bytes(&self) -> f64 {
        self.fresh.max(self.used) as f64
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in WORKLOAD.peers {
        lab.peers.insert((*peer).to_owned(), versions::of(peer));
    }
    let text = output()?;
    let mut cases: BTreeMap<String, Vec<Found>> = BTreeMap::new();
    for line in text.lines() {
        let found: Found = serde_json::from_str(line)
            .map_err(|error| Problem::Host(format!("{PROGRAM} said `{line}`: {error}")))?;
        cases.entry(found.case.clone()).or_default().push(found);
    }
    cases
        .iter()
        .map(|(case, found)| rows(case, found))
        .collect::<Result<Vec<_>, _>>()
        .map(|rows| rows.into_iter().flatten().collect())
}

fn output() -> Result<String, Problem> {
    let output = Command::new(beside(PROGRAM)?)
        .arg("channels")
        .output()
        .map_err(Problem::io(format!("cannot start {PROGRAM}")))?;
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|_| Problem::Host(format!("{PROGRAM}: not text")))
    } else {
        Err(Problem::Host(format!(
            "{PROGRAM} ended with {}",
            output.status
        )))
    }
}

fn rows(case: &str, found: &[Found]) -> Result<Vec<Row>, Problem> {
    let ours = found
        .iter()
        .find(|found| found.subject == THALWEG)
        .ok_or_else(|| Problem::Check(format!("{PROGRAM} measured no {case} of ours")))?;
    let strings = case == "strings";
    // The case `mpsc_8` has eight senders.
    let (channel, senders) = match case.split_once('_') {
        Some((channel, senders)) => (channel, senders),
        None if strings => ("spsc", "1"),
        None => (case, "1"),
    };
    let params = [
        ("channel", channel),
        ("senders", senders),
        ("capacity", if channel == "oneshot" { "1" } else { "16" }),
        ("payload", if strings { "strings of 100 KB" } else { "u64" }),
    ];
    let row = |peer: Option<&Found>| {
        let peer = peer.map(|peer| (peer.subject.as_str(), vec![peer.bytes()]));
        let mut row = Row::new(
            (WORKLOAD.name, WORKLOAD.group),
            &params,
            "bytes",
            (THALWEG, vec![ours.bytes()]),
            peer,
        );
        row.metrics.insert("bytes".to_owned(), ours.bytes());
        row.metrics
            .insert("fresh_bytes".to_owned(), ours.fresh as f64);
        row.metrics
            .insert("used_bytes".to_owned(), ours.used as f64);
        if strings {
            let percent = 100.0 * ours.bytes() / STRINGS;
            row.metrics.insert("left_percent".to_owned(), percent);
            row.checked("1,000 strings of 100 KB had come and gone; the channel still stands")
        } else {
            row.checked(
                "the larger of what it takes when new and after 1,000 messages of each sender",
            )
        }
    };
    let mut rows: Vec<Row> = found
        .iter()
        .filter(|found| found.subject != THALWEG)
        .map(|peer| row(Some(peer)))
        .collect();
    let target = if strings {
        Target::Metric("left_percent", 0.99)
    } else {
        Target::Metric("bytes", MOST)
    };
    // The figure is a count, not a time, so it is judged in a quick run, too.
    rows.push(row(None).held_to(&target, None));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(case: &str, subject: &str, fresh: i64, used: i64) -> Found {
        Found {
            case: case.to_owned(),
            subject: subject.to_owned(),
            fresh,
            used,
        }
    }

    #[test]
    fn the_larger_counts_and_1024_is_too_much() {
        let both = [
            found("mpsc_8", "thalweg", 400, 1024),
            found("mpsc_8", "tokio", 900, 900),
        ];
        let rows = rows("mpsc_8", &both).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].peer_median, Some(900.0));
        assert_eq!(rows[1].verdict.as_deref(), Some("missed"));
        assert_eq!(rows[1].params["senders"], "8");
    }

    #[test]
    fn what_strings_leave_is_a_share_of_what_they_were() {
        let one = [found("strings", "thalweg", 0, 1_000_000)];
        let rows = rows("strings", &one).unwrap();
        assert_eq!(rows[0].metrics["left_percent"], 1.0);
        assert_eq!(rows[0].verdict.as_deref(), Some("missed"));
    }

    #[test]
    fn a_case_without_ours_is_no_row() {
        assert!(rows("spsc", &[found("spsc", "tokio", 1, 1)]).is_err());
    }
}
