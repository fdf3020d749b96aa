//! `streaming_channels`: the cost of an event of 488 bytes from its producer to its consumer.
//!
//! The workload repeats the five rows of a public benchmark of a market-data client: 100,000 events
//! with empty tails through std's unbounded channel, crossbeam's with a capacity of 256, 1,024 and
//! 8,192, and no channel at all. Each row is compared with a stream of ours, written and read 1, 16
//! and 256 events at a time. All peers but the last run between two threads. Two peers are added:
//! rings of capacity 8,192 that are written and read in place, in the same batches as our stream.
//! The rows with `tier=direct` are our stream without a hand-off: a callback takes the events on
//! the thread that writes them, as `direct_callback` does. The rows with `capacity=256` and `1024`
//! are our stream with the capacity of crossbeam's channel in that row.
//!
//! The metrics `.._of_means` are the original's arithmetic: each sample is the mean of its events,
//! and median and 99th percentile are taken over ten such means. They do not describe single
//! events.

use std::time::Duration;

use super::event::Seen;
use super::thalweg::{CAPACITY, Streams};
use super::{channels, direct, rings};
use crate::interleave::{Side, interleave};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Row, hold_best};
use crate::workloads::Workload;
use crate::workloads::queue::rows::hold;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_channels",
    group: "streaming",
    what: "An event of 488 bytes from a producer to a consumer: channels, a direct callback, and our stream.",
    source: "ThetaDataDx' benchmark of channels, row by row",
    peers: &PEERS,
    seconds: 30,
    run,
    ..Workload::USUAL
};

/// Events per sample.
const EVENTS: u64 = 100_000;

/// Samples of each side, as in the original.
const SAMPLES: usize = 10;

/// Number of events whose every field is compared before the measurement.
const VERIFIED: u64 = 20_000;

const PEERS: [&str; 7] = [
    "std_mpsc_unbounded",
    CROSSBEAM[0],
    CROSSBEAM[1],
    CROSSBEAM[2],
    DIRECT,
    RINGS[0],
    RINGS[1],
];
const RINGS: [&str; 2] = ["rtrb", "disruptor"];
const CROSSBEAM: [&str; 3] = [
    "crossbeam_bounded_256",
    "crossbeam_bounded_1024",
    "crossbeam_bounded_8192",
];
const DIRECT: &str = "direct_callback";

/// Events at a time.
const BATCHES: [u32; 3] = [1, 16, 256];

/// Smaller capacities of our stream, and the peers of the same capacity.
const SMALLER: [(u32, &str); 2] = [(256, CROSSBEAM[0]), (1024, CROSSBEAM[1])];

/// Limit for one event at a time, relative to the fastest bounded channel.
const ONE_BY_ONE: Target = Target::Ratio(0.6);
/// Limit for 256 events at a time, relative to a callback on the producer's own thread.
const IN_BATCHES: Target = Target::Ratio(1.3);
/// Limit for our callback on the producer's own thread, relative to a plain callback.
const SUBSCRIBED: Target = Target::Ratio(1.05);

/// Batch sizes of our callback.
const SUBSCRIBED_BATCHES: [u32; 2] = [1, 256];

/// Runs a peer, in batches of `batch` where the peer has batches.
fn peer(name: &str, count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
    match name {
        "rtrb" => rings::ring(count, batch),
        "disruptor" => rings::preallocated(count, batch),
        "std_mpsc_unbounded" => channels::std_mpsc(count),
        "crossbeam_bounded_256" => channels::crossbeam(count, 256),
        "crossbeam_bounded_1024" => channels::crossbeam(count, 1024),
        "crossbeam_bounded_8192" => channels::crossbeam(count, 8192),
        _ => direct::callback(count),
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for name in PEERS {
        let version = match name {
            "std_mpsc_unbounded" => thalweg_peers::versions::of("std"),
            DIRECT => "of this commit".to_owned(),
            ring if RINGS.contains(&ring) => thalweg_peers::versions::of(ring),
            _ => thalweg_peers::versions::of("crossbeam"),
        };
        lab.peers.insert(name.to_owned(), version);
    }
    let streams = &Streams::start()?;
    for batch in BATCHES {
        streams.verify(VERIFIED, batch)?;
    }
    let plan = lab.plan(Some(SAMPLES));
    // A peer without batches is one side, compared with all batch sizes of ours.
    let theirs: Vec<(&str, u32)> = PEERS
        .iter()
        .flat_map(|name| {
            let batches = if RINGS.contains(name) {
                BATCHES.as_slice()
            } else {
                &BATCHES[..1]
            };
            batches.iter().map(move |batch| (*name, *batch))
        })
        .collect();
    let smaller: Vec<(u32, &str, u32)> = SMALLER
        .iter()
        .flat_map(|(capacity, peer)| BATCHES.map(|batch| (*capacity, *peer, batch)))
        .collect();
    let sides_count = BATCHES.len() + SUBSCRIBED_BATCHES.len() + smaller.len() + theirs.len();
    lab.begin(WORKLOAD.name, sides_count * (plan.warm_up + plan.rounds));
    let expected = Seen::expected(EVENTS);
    let mean = &|subject: &str, (elapsed, seen): (Duration, Seen)| {
        seen.check(&expected, subject)?;
        Ok(elapsed.as_nanos() as f64 / EVENTS as f64)
    };
    let mut sides: Vec<Side<'_, f64>> = Vec::new();
    for batch in BATCHES {
        sides.push(Side::new(move || {
            mean("thalweg", streams.read(CAPACITY, EVENTS, batch)?)
        }));
    }
    for batch in SUBSCRIBED_BATCHES {
        sides.push(Side::new(move || {
            mean("thalweg", streams.subscribe(EVENTS, batch)?)
        }));
    }
    for &(capacity, _, batch) in &smaller {
        sides.push(Side::new(move || {
            mean("thalweg", streams.read(capacity, EVENTS, batch)?)
        }));
    }
    for &(name, batch) in &theirs {
        sides.push(Side::new(move || mean(name, peer(name, EVENTS, batch)?)));
    }
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);

    let (ours, others) = taken.split_at(BATCHES.len());
    let (subscribed, others) = others.split_at(SUBSCRIBED_BATCHES.len());
    let (of_smaller, of_theirs) = others.split_at(smaller.len());
    let mut rows = Vec::new();
    for (batch, ours) in BATCHES.iter().zip(ours) {
        let mut of_batch: Vec<Row> = theirs
            .iter()
            .zip(of_theirs)
            .filter(|((name, in_batches), _)| !RINGS.contains(name) || in_batches == batch)
            .map(|((name, _), theirs)| row(*batch, ours, name, theirs))
            .collect();
        match batch {
            1 => hold_best(&mut of_batch, &ONE_BY_ONE, lab.refusal()),
            256 => hold(&mut of_batch, DIRECT, &IN_BATCHES, lab.refusal()),
            _ => {}
        }
        rows.extend(of_batch);
    }
    let of_peer = |wanted: &str| {
        let place = theirs.iter().position(|(name, _)| *name == wanted);
        &of_theirs[place.expect("it is one of them")]
    };
    for ((capacity, peer, batch), ours) in smaller.iter().zip(of_smaller) {
        let mut row = row(*batch, ours, peer, of_peer(peer));
        row.params
            .insert("capacity".to_owned(), capacity.to_string());
        rows.push(row);
    }
    let direct = of_peer(DIRECT);
    for (batch, ours) in SUBSCRIBED_BATCHES.iter().zip(subscribed) {
        let mut row = row(*batch, ours, DIRECT, direct);
        row.params.insert("tier".to_owned(), "direct".to_owned());
        rows.push(row.held_to(&SUBSCRIBED, lab.refusal()));
    }
    Ok(rows)
}

fn row(batch: u32, ours: &[f64], name: &str, theirs: &[f64]) -> Row {
    let params = [
        ("batch", batch.to_string()),
        ("capacity", CAPACITY.to_string()),
        ("events", EVENTS.to_string()),
        ("event", "488 bytes, empty tails".to_owned()),
    ];
    let params = params.each_ref().map(|(key, value)| (*key, value.as_str()));
    let mut row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", ours.to_vec()),
        Some((name, theirs.to_vec())),
    )
    .checked("every sample: each event came once, in order, with its number, kind, last number and tails")
    .checked(format!("every field of {VERIFIED} events of ours, before measuring"));
    for (prefix, means) in [("", ours), ("peer_", theirs)] {
        for (name, value) in of_means(means) {
            row.metrics.insert(format!("{prefix}{name}"), value);
        }
    }
    row
}

/// The original's figures.
fn of_means(means: &[f64]) -> [(&'static str, f64); 3] {
    let mut sorted = means.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let p50 = at(0.5);
    [
        ("p50_ns_of_means", p50),
        ("p99_ns_of_means", at(0.99)),
        ("events_per_s_of_means", 1e9 / p50),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_delivers_every_event() {
        let expected = Seen::expected(1_000);
        for name in PEERS {
            for batch in BATCHES {
                let (_, seen) = peer(name, 1_000, batch).unwrap();
                seen.check(&expected, name).unwrap();
            }
        }
        let streams = Streams::start().unwrap();
        for batch in BATCHES {
            for capacity in [CAPACITY, 1024, 256] {
                let (_, seen) = streams.read(capacity, 1_000, batch).unwrap();
                seen.check(&expected, "thalweg").unwrap();
            }
            streams.verify(1_000, batch).unwrap();
        }
        assert!(streams.read(7, 1, 1).is_err(), "none has seven places");
        for batch in SUBSCRIBED_BATCHES {
            let (_, seen) = streams.subscribe(1_000, batch).unwrap();
            seen.check(&expected, "thalweg").unwrap();
        }
    }

    #[test]
    fn the_99th_percentile_of_ten_means_is_the_worst() {
        let means: Vec<f64> = (1..=10).map(f64::from).collect();
        let [(_, p50), (_, p99), (_, rate)] = of_means(&means);
        assert_eq!((p50, p99, rate), (6.0, 10.0, 1e9 / 6.0));
    }
}
