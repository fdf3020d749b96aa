//! `actor_memory`: the memory of an idle actor, against actor libraries on tokio.
//!
//! Each subject has its own process, `thalweg-bench-memory actors SUBJECT ACTORS`, with one worker:
//! memory that another subject left in the allocator would not be requested again. That program's
//! allocator counts the bytes requested from the heap, which are the same on every machine. The
//! kernel counts the resident memory. Every actor has answered a call, and each side uses its
//! default mailbox unless a knob changes it.

use std::process::Command;

use serde::Deserialize;
use thalweg_peers::versions;

use crate::child::beside;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::queue::subjects::THALWEG;
use crate::workloads::{Knob, Workload};

use super::actors::LIBRARIES;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "actor_memory",
    group: "runtime",
    what: "Bytes of an actor that has answered a call and waits for the next.",
    source: "a million live actors: what each takes decides how many there can be",
    peers: &["tokio_current_thread", "ractor", "kameo"],
    seconds: 5,
    run,
    knobs: &[ACTORS],
    ..Workload::USUAL
};

const ACTORS: Knob = Knob {
    name: "actors",
    default: "100000",
    what: "number of actors",
};

const PROGRAM: &str = "thalweg-bench-memory";
/// The limit relative to the libraries.
const MOST: f64 = 0.1;
const CHECKED: &str = "bytes that an actor asks of the heap; rss_bytes is what it adds to the process's memory; every actor answered a call before";

/// Bytes per actor.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Found {
    heap: f64,
    rss: f64,
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let actors = lab.knob(&ACTORS);
    let ours = found(THALWEG, &actors)?;
    let peers = WORKLOAD.peers.iter().map(|peer| {
        lab.peers.insert((*peer).to_owned(), versions::of(peer));
        Ok(row(&actors, ours, peer, found(peer, &actors)?))
    });
    peers.collect()
}

fn found(subject: &str, actors: &str) -> Result<Found, Problem> {
    let output = Command::new(beside(PROGRAM)?)
        .args(["actors", subject, actors])
        .output()
        .map_err(Problem::io(format!("cannot start {PROGRAM}")))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::Host(format!(
            "{PROGRAM} ended with {}: {told}",
            output.status
        )));
    }
    serde_json::from_str(&said)
        .map_err(|error| Problem::Host(format!("{PROGRAM} said `{said}`: {error}")))
}

fn row(actors: &str, ours: Found, peer: &str, theirs: Found) -> Row {
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &[("actors", actors), ("workers", "1")],
        "bytes",
        (THALWEG, vec![ours.heap]),
        Some((peer, vec![theirs.heap])),
    )
    .checked(CHECKED);
    for (name, value) in [
        ("bytes", ours.heap),
        ("peer_bytes", theirs.heap),
        ("rss_bytes", ours.rss),
        ("peer_rss_bytes", theirs.rss),
    ] {
        row.metrics.insert(name.to_owned(), value);
    }
    if !LIBRARIES.contains(&peer) {
        return row;
    }
    let target = Target::All(vec![
        Target::AtMostPeers("bytes", MOST),
        Target::AtMostPeers("rss_bytes", MOST),
    ]);
    // The figures are counts, not times, so they are judged in a quick run, too.
    row.held_to(&target, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_counts_are_held_to_a_tenth_of_a_librarys_and_to_nothing_of_tokios() {
        let ours = Found {
            heap: 10.0,
            rss: 10.0,
        };
        let verdict = |peer, heap, rss| row("5", ours, peer, Found { heap, rss }).verdict;
        assert_eq!(verdict("kameo", 100.0, 100.0).as_deref(), Some("met"));
        assert_eq!(verdict("kameo", 99.0, 100.0).as_deref(), Some("missed"));
        assert_eq!(verdict("ractor", 100.0, 99.0).as_deref(), Some("missed"));
        assert_eq!(verdict("tokio_current_thread", 1.0, 1.0), None);
    }
}
