//! `streaming_channels`: the cost of an event of 488 bytes from its producer to its consumer.
//!
//! The workload repeats the five rows of a public benchmark of a market-data client: 100,000 events
//! with empty tails through std's unbounded channel, crossbeam's with a capacity of 256, 1,024 and
//! 8,192, and no channel at all. Each row is compared with a stream of ours, written and read 1, 16
//! and 256 events at a time. Both ends exist before the clock starts. Two peers are added: rings
//! that are written and read in place, in the same batches as our stream. The rows with
//! `capacity=256` and `1024` have all subjects at that capacity.
//!
//! The rows with `tier=callback` compare our stream with `direct_callback`, which moves nothing
//! between threads. Those with `tier=direct` have no hand-off on our side either: a callback takes
//! the events of our stream on the thread that writes them. With `tier=reserved`, the service also
//! fills the stream's memory itself, and sets only the fields that an event has; the direct callback
//! gets a whole event.
//!
//! The metrics `.._of_means` are the original's arithmetic: each sample is the mean of its events,
//! and median and 99th percentile are taken over ten such means. They do not describe single
//! events.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::event::{Event, Work, of_event};
use super::subjects::{self, CAPACITY, Feed, Moved, Streams};
use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::queue::grid::{Axis, Grid, Point, with_ours};
use crate::workloads::queue::rows::{self, Rigour, hold};
use crate::workloads::queue::{grid, subjects::THALWEG};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_channels",
    group: "streaming",
    what: "An event of 488 bytes from a producer to a consumer: channels, a direct callback, and our stream.",
    source: "ThetaDataDx' benchmark of channels, row by row",
    peers: &PEERS,
    seconds: 60,
    run,
    knobs: &[AXES[0].knob, AXES[1].knob, grid::FULL],
    cells: Some(open),
};

const AXES: [Axis; 2] = [
    Axis::whole(
        "capacity",
        "8192,256,1024",
        "capacities of our stream, as a list",
    ),
    Axis::whole("batch", "1,16,256", "events at a time, as a list"),
];

/// Events per sample.
const EVENTS: u64 = 100_000;

/// Samples of each side, as in the original.
const SAMPLES: usize = 10;

/// Number of events whose every field is compared before the measurement.
const VERIFIED: u64 = 20_000;

const PEERS: [&str; 7] = [
    "std_mpsc_unbounded",
    "crossbeam_bounded_256",
    "crossbeam_bounded_1024",
    "crossbeam_bounded_8192",
    "rtrb",
    "disruptor",
    DIRECT,
];
const DIRECT: &str = "direct_callback";

/// Limit for one event at a time, relative to the fastest channel of crossbeam in the cell.
const ONE_BY_ONE: Target = Target::Ratio(0.55);
/// Limit for 256 events at a time, relative to the chunks of `rtrb`.
const LIKE_A_RING: Target = Target::Ratio(1.0);
/// Limit for 256 events at a time, relative to a callback on the producer's own thread.
const IN_BATCHES: Target = Target::Ratio(1.3);
/// Limits for our callback on the producer's own thread, relative to a plain callback: for a whole
/// event, for one that is filled in place, and in batches.
const SUBSCRIBED: Target = Target::Ratio(2.0);
const RESERVED: Target = Target::Ratio(1.2);

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let streams = Streams::start()?;
    let points = Grid::of(lab)?.points(lab, &AXES);
    let batches = points.iter().map(|point| point.number("batch"));
    for batch in batches.collect::<Result<BTreeSet<_>, _>>()? {
        streams.verify(VERIFIED, batch as u32)?;
    }
    drop(streams);
    let refusal = lab.refusal();
    let mut all = Vec::new();
    for point in points {
        let (capacity, batch) = (point.number("capacity")?, point.number("batch")?);
        let verbatim = capacity == u64::from(CAPACITY);
        let equal = format!("crossbeam_bounded_{capacity}");
        let peers: Vec<&str> = match verbatim {
            true => PEERS[..6].to_vec(),
            false => vec![&equal, "rtrb", "disruptor"],
        };
        let with_tier = |tier| point.clone().with("tier", tier);
        let mut rows = measure(lab, &with_tier("threads"), &peers)?;
        match batch {
            1 if verbatim => hold_fastest_crossbeam(&mut rows, refusal),
            256 if verbatim => hold(&mut rows, "rtrb", &LIKE_A_RING, refusal),
            _ => {}
        }
        all.extend(rows);
        if !verbatim {
            continue;
        }
        // A callback moves nothing between threads, so it has cells of its own.
        let mut rows = measure(lab, &with_tier("callback"), &[DIRECT])?;
        if batch == 256 {
            hold(&mut rows, DIRECT, &IN_BATCHES, refusal);
        }
        all.extend(rows);
        let direct: &[_] = match batch {
            1 => &[("direct", &SUBSCRIBED), ("reserved", &RESERVED)],
            256 => &[("direct", &RESERVED)],
            _ => &[],
        };
        for (tier, limit) in direct {
            let mut rows = measure(lab, &with_tier(tier), &[DIRECT])?;
            hold(&mut rows, DIRECT, limit, refusal);
            all.extend(rows);
        }
    }
    Ok(all)
}

fn hold_fastest_crossbeam(rows: &mut [Row], refusal: Option<&str>) {
    let is_crossbeam = |row: &&Row| {
        row.peer
            .as_deref()
            .is_some_and(|p| p.starts_with("crossbeam"))
    };
    let fastest = rows
        .iter()
        .filter(is_crossbeam)
        .filter_map(|row| Some((row.ratio?.median, row.peer.clone()?)))
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    if let Some((_, peer)) = fastest {
        hold(rows, &peer, &ONE_BY_ONE, refusal);
    }
}

fn measure(lab: &mut Lab, point: &Point, peers: &[&str]) -> Result<Vec<Row>, Problem> {
    let point = point.clone().with("partial", "yes");
    let point = point.with("events", &EVENTS.to_string());
    let point = point.with("event", "488 bytes, empty tails");
    let cell = Cell::new(WORKLOAD.name, &point.params(), &with_ours(peers));
    let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Pairs(SAMPLES))?;
    let verified = format!("every field of {VERIFIED} events of ours, before measuring");
    let checks = [
        "every sample: each event came once, in order, with its number, kind, last number and tails",
        &verified,
    ];
    let mut rows = measured.rows("ns", &checks);
    for row in &mut rows {
        let [ours, theirs] = [of_means(&row.subject_samples), of_means(&row.peer_samples)];
        for (prefix, means) in [("", ours), ("peer_", theirs)] {
            let named = means
                .into_iter()
                .map(|(name, value)| (format!("{prefix}{name}"), value));
            row.metrics.extend(named);
        }
    }
    Ok(rows)
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

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let feed = Feed {
        count: cell.number("events")?,
        capacity: cell.number("capacity")? as u32,
        batch: cell.number("batch")? as u32,
        producers: 1,
        consumers: 1,
        tails: 0,
        per_s: 0,
        work: Work::None,
    };
    let tier = cell.text("tier")?.to_owned();
    let streams = Rc::new(Streams::start()?);
    let side = |name: &String| {
        let (name, streams, tier) = (name.clone(), Rc::clone(&streams), tier.clone());
        Side::new(move || {
            let (elapsed, consumers) = once(&streams, &name, feed, &tier)?;
            for consumer in consumers {
                consumer.check(feed.count, |n| of_event(n, 0), &name)?;
            }
            Ok(Sample::of(elapsed, feed.count))
        })
    };
    Ok(cell.subjects.iter().map(side).collect())
}

fn once(streams: &Streams, name: &str, feed: Feed, tier: &str) -> Result<Moved, Problem> {
    match (name, tier) {
        (THALWEG, "direct" | "reserved") => streams.subscribe(feed, tier == "reserved"),
        (THALWEG, _) => {
            let open = |lab: &_| subjects::events(lab, feed, false);
            streams.read(feed, open, |event| (&event).into())
        }
        (DIRECT, _) => subjects::direct_callback(feed),
        (peer, _) => subjects::by_peer::<Event>(peer, feed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(params: &[(&str, &str)], subjects: &[&str]) -> Vec<Side<'static, Sample>> {
        let mut all = vec![
            ("events", "1000"),
            ("tier", "threads"),
            ("capacity", "8192"),
        ];
        all.extend(params);
        open(&Cell::new(WORKLOAD.name, &all, subjects)).unwrap()
    }

    #[test]
    fn every_subject_delivers_every_event() {
        for batch in ["1", "16", "256"] {
            for mut side in sides(&[("batch", batch)], &with_ours(&PEERS)) {
                assert!(side.take().unwrap().ns > 0.0);
            }
            for capacity in ["256", "1024"] {
                let params = [("batch", batch), ("capacity", capacity)];
                for mut side in sides(&params, &[THALWEG, "rtrb", "disruptor"]) {
                    assert!(side.take().unwrap().ns > 0.0);
                }
            }
            for tier in ["direct", "reserved"] {
                for mut side in sides(&[("batch", batch), ("tier", tier)], &[THALWEG, DIRECT]) {
                    assert!(side.take().unwrap().ns > 0.0);
                }
            }
            Streams::start()
                .unwrap()
                .verify(1_000, batch.parse().unwrap())
                .unwrap();
        }
        assert!(sides(&[("batch", "1")], &["warp"])[0].take().is_err());
        let seven = [("batch", "1"), ("capacity", "7")];
        assert!(sides(&seven, &[THALWEG])[0].take().is_err());
    }

    #[test]
    fn p99_of_ten_means_is_the_worst() {
        let means: Vec<f64> = (1..=10).map(f64::from).collect();
        let [(_, p50), (_, p99), (_, rate)] = of_means(&means);
        assert_eq!((p50, p99, rate), (6.0, 10.0, 1e9 / 6.0));
    }
}
