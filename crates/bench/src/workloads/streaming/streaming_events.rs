//! `streaming_events`: the realistic counterpart of
//! [`streaming_channels`](super::streaming_channels).
//!
//! There the events are few, have no tails, and their consumer does no work. Here there are 64
//! times as many events as a ring has slots, and each row changes one property of the plain case
//! (488 bytes, empty tails, one producer, one consumer that does no work):
//!
//! - `what=payload`: events of 16, 64 and 488 bytes; of 488 with both tails; of 4 KiB, most of it
//!   in a tail;
//! - `what=topology`: four producers and one consumer; one producer and four consumers that each
//!   get every event, ours by `tee`, the others by one channel per consumer;
//! - `what=consumer`: a consumer that works for a microsecond per event; one that sleeps 5 ms after
//!   each 10,000;
//! - `what=latency`: one event at a time, 10,000, 100,000 and a million a second, from its due time
//!   until the consumer has it, so that waiting behind a late event counts; `linger=1us` is our
//!   stream with that policy;
//! - `what=wake`: an event each 2 ms, from when it is written: the consumer sleeps, except with
//!   rings, which cannot block;
//! - `what=idle`: the processor time of the process while a consumer waits a second for an event.

use std::rc::Rc;

use thalweg_lab::lab::{LabClient, Pulse, Tick};
use thalweg_lab::ticks;

use super::event::{Event, Look, Work, of_event};
use super::subjects::{self, CAPACITY, Feed, Moved, Streams};
use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::queue::driver::processor_time;
use crate::workloads::queue::grid::with_ours;
use crate::workloads::queue::rows::{self, Rigour};
use crate::workloads::queue::subjects::THALWEG;
use crate::workloads::{Knob, Workload};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_events",
    group: "streaming",
    what: "Events of all sizes, with tails, from several producers, to several consumers, slow ones too; latency at four rates, wake and idle.",
    source: "the twin of ThetaDataDx' benchmark of channels",
    peers: &["std", "crossbeam", "rtrb", "disruptor"],
    seconds: 480,
    run,
    knobs: &[EVENTS],
    cells: Some(open),
};

const EVENTS: Knob = Knob {
    name: "events",
    default: "524288",
    what: "events a sample; 64 times the places of a ring",
};

/// Samples of each side: two in each process.
const SAMPLES: usize = 6;

/// Limit for the median and the 99th percentile of a latency, relative to crossbeam's receiver, which
/// sleeps as ours does.
const AS_LATE: f64 = 1.3;

/// The cases of throughput: what differs, the payload, the topology, the consumer.
const CASES: [[&str; 4]; 9] = [
    ["payload", "16 bytes", "1P1C", "none"],
    ["payload", "64 bytes", "1P1C", "none"],
    ["payload", PLAIN, "1P1C", "none"],
    ["payload", "488 bytes and 64 in both tails", "1P1C", "none"],
    [
        "payload",
        "488 bytes and 3608 in both tails",
        "1P1C",
        "none",
    ],
    ["topology", PLAIN, "4P1C", "none"],
    ["topology", PLAIN, "1P4C", "none"],
    ["consumer", PLAIN, "1P1C", "1 us"],
    ["consumer", PLAIN, "1P1C", "5 ms each 10,000"],
];
const PLAIN: &str = "488 bytes, empty tails";

/// The work of a consumer per event, as a value of the parameter.
const CONSUMERS: [(&str, Work); 4] = [
    ("none", Work::None),
    ("1 us", Work::Busy),
    ("5 ms each 10,000", Work::Bursty),
    ("reads the clock", Work::Timed),
];

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Pulse,
    Tick,
    /// 488 bytes, and this many in both tails together.
    Event(u32),
}

impl Payload {
    fn parse(text: &str) -> Result<Self, Problem> {
        let tails = || {
            let text = text.strip_prefix("488 bytes and ")?;
            text.strip_suffix(" in both tails")?.parse().ok()
        };
        match text {
            "16 bytes" => Ok(Self::Pulse),
            "64 bytes" => Ok(Self::Tick),
            PLAIN => Ok(Self::Event(0)),
            other => tails()
                .map(Self::Event)
                .ok_or_else(|| Problem::Usage(format!("there is no payload `{other}`"))),
        }
    }

    /// The fields that a consumer must read of event number `n`.
    fn look(self, n: u64) -> Look {
        match self {
            Self::Pulse => (&ticks::pulse(n)).into(),
            Self::Tick => (&ticks::tick(n)).into(),
            Self::Event(tails) => of_event(n, tails),
        }
    }
}

/// The peers that support the topology: a ring has one producer, and the poller of `disruptor` one
/// consumer.
fn peers(topology: &str) -> &'static [&'static str] {
    match topology {
        "1P1C" => WORKLOAD.peers,
        "1P4C" => &WORKLOAD.peers[..3],
        _ => &WORKLOAD.peers[..2],
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let events = lab.number(&EVENTS)?;
    let mut rows = Vec::new();
    for [what, payload, topology, consumer] in CASES {
        for batch in ["1", "256"] {
            let capacity = CAPACITY.to_string();
            // Every producer has the same share.
            let events = events.next_multiple_of(4).to_string();
            let params = [
                ("what", what),
                ("payload", payload),
                ("topology", topology),
                ("consumer", consumer),
                ("batch", batch),
                ("partial", "yes"),
                ("capacity", &capacity),
                ("events", &events),
            ];
            let check =
                "each consumer had each event once, each producer's in order, with its tails";
            rows.extend(measure(lab, &params, peers(topology), check)?);
        }
    }
    let share = events as f64 / 524_288.0;
    for (what, per_s, count) in [
        ("latency", 1_000, 2_000.0),
        ("latency", 10_000, 20_000.0),
        ("latency", 100_000, 40_000.0),
        ("latency", 1_000_000, 200_000.0),
        ("wake", 500, 256.0),
        ("idle", 1, 1.0),
    ] {
        let count = if what == "idle" { 1.0 } else { count * share };
        for linger in [None, Some(("linger", "1us"))] {
            // A slow stream does not linger by default either.
            if per_s <= 1_000 && what != "wake" && linger.is_some() {
                continue;
            }
            // At a million a second the reader trades latency for throughput.
            let is_judged = what == "latency" && per_s <= 100_000 && linger.is_none();
            let (per_s, events) = (per_s.to_string(), (count.max(1.0) as u64).to_string());
            let mut params = vec![
                ("what", what),
                ("payload", PLAIN),
                ("topology", "1P1C"),
                ("consumer", "reads the clock"),
                ("batch", "1"),
                ("per_s", &per_s),
                ("events", &events),
            ];
            params.extend(linger);
            let check = "each event came once, in order";
            let mut measured = measure(lab, &params, WORKLOAD.peers, check)?;
            if is_judged {
                let as_late = ["p50_ns", "p99_ns"].map(|name| Target::AtMostPeers(name, AS_LATE));
                let target = Target::All(as_late.into());
                rows::hold(&mut measured, "crossbeam", &target, lab.refusal());
            }
            rows.extend(measured);
        }
    }
    Ok(rows)
}

fn measure(
    lab: &mut Lab,
    params: &[(&str, &str)],
    peers: &[&str],
    check: &str,
) -> Result<Vec<Row>, Problem> {
    let cell = Cell::new(WORKLOAD.name, params, &with_ours(peers));
    let idle = params[0].1 == "idle";
    let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Pairs(SAMPLES))?;
    let mut rows = measured.rows(if idle { "percent" } else { "ns" }, &[check]);
    if idle {
        for row in &mut rows {
            // The time of an operation is a share of a processor here.
            let is_rate = |name: &String| name.ends_with("ops_per_s");
            row.metrics.retain(|name, _| !is_rate(name));
            row.metric_intervals.retain(|name, _| !is_rate(name));
            let percent = row.subject_median;
            row.metrics.insert("cpu_percent".to_owned(), percent);
        }
    }
    Ok(rows)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let payload = Payload::parse(cell.text("payload")?)?;
    let consumer = cell.text("consumer")?;
    let work = CONSUMERS.iter().find(|(name, _)| *name == consumer);
    let topology = cell.text("topology")?;
    let threads = topology.split_once('P').and_then(|(producers, consumers)| {
        let consumers = consumers.strip_suffix('C')?;
        Some((producers.parse().ok()?, consumers.parse().ok()?))
    });
    let (Some((_, work)), Some((producers, consumers))) = (work, threads) else {
        return Err(Problem::Usage(format!(
            "there is no consumer `{consumer}`, or no topology `{topology}`"
        )));
    };
    let feed = Feed {
        count: cell.number("events")?,
        capacity: CAPACITY,
        batch: cell.number("batch")? as u32,
        producers,
        consumers,
        tails: match payload {
            Payload::Event(tails) => tails,
            Payload::Pulse | Payload::Tick => 0,
        },
        per_s: match cell.params.contains_key("per_s") {
            true => cell.number("per_s")?,
            false => 0,
        },
        work: *work,
    };
    let at_once = cell.params.contains_key("linger");
    let idle = cell.text("what")? == "idle";
    let streams = Rc::new(Streams::start()?);
    let side = |name: &String| {
        let (name, streams) = (name.clone(), Rc::clone(&streams));
        Side::new(move || {
            let before = processor_time();
            let (elapsed, consumers) = once(&streams, &name, payload, feed, at_once)?;
            let spent = processor_time().saturating_sub(before);
            for consumer in &consumers {
                consumer.check(feed.count, |n| payload.look(n), &name)?;
            }
            let mut sample = Sample::of(elapsed, feed.count);
            if idle {
                sample.ns = 100.0 * spent.as_secs_f64() / elapsed.as_secs_f64();
            } else if let ([consumer], Work::Timed) = (consumers.as_slice(), feed.work) {
                sample.ns = consumer.latencies().percentile(50.0) as f64;
                return Ok(sample.with_latencies(consumer.latencies()));
            }
            Ok(sample)
        })
    };
    Ok(cell.subjects.iter().map(side).collect())
}

/// Moves the events of `feed` once.
fn once(
    streams: &Streams,
    name: &str,
    payload: Payload,
    feed: Feed,
    at_once: bool,
) -> Result<Moved, Problem> {
    let failed = |why: thalweg::CallError<thalweg::port::NoError>| {
        Problem::Check(format!("a stream was not opened: {why:?}"))
    };
    let Feed { count, batch, .. } = feed;
    match payload {
        Payload::Pulse if name == THALWEG => {
            let open = |lab: &LabClient| lab.pulses(count, batch).wait().map_err(failed);
            streams.read(feed, open, |pulse| (&pulse).into())
        }
        Payload::Tick if name == THALWEG => {
            let open = |lab: &LabClient| lab.ticks(count, batch).wait().map_err(failed);
            streams.read(feed, open, |tick| (&tick).into())
        }
        Payload::Event(_) if name == THALWEG => {
            let open = |lab: &LabClient| subjects::events(lab, feed, at_once);
            streams.read(feed, open, |event| (&event).into())
        }
        Payload::Pulse => subjects::by_peer::<Pulse>(name, feed),
        Payload::Tick => subjects::by_peer::<Tick>(name, feed),
        Payload::Event(_) => subjects::by_peer::<Event>(name, feed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(params: &[(&str, &str)], subjects: &[&str]) -> Vec<Side<'static, Sample>> {
        open(&Cell::new(WORKLOAD.name, params, subjects)).unwrap()
    }

    #[test]
    fn every_subject_delivers_every_event_of_every_case() {
        for [what, payload, topology, consumer] in CASES {
            for batch in ["1", "256"] {
                let params = [
                    ("what", what),
                    ("payload", payload),
                    ("topology", topology),
                    ("consumer", consumer),
                    ("batch", batch),
                    // More than one ring contains, so that each has to wait.
                    ("events", if consumer == "none" { "20000" } else { "500" }),
                ];
                // A consumer that works for a microsecond is a slow peer of known delay.
                let least = if consumer == "1 us" { 1_000.0 } else { 1.0 };
                for mut side in sides(&params, &with_ours(peers(topology))) {
                    assert!(side.take().unwrap().ns >= least);
                }
            }
        }
    }

    #[test]
    fn latency_of_each_event_is_counted_for_every_subject() {
        for (per_s, events, linger) in [("100000", "200", false), ("500", "2", true)] {
            let mut params = vec![
                ("what", "latency"),
                ("payload", PLAIN),
                ("topology", "1P1C"),
                ("consumer", "reads the clock"),
                ("batch", "1"),
                ("per_s", per_s),
                ("events", events),
            ];
            params.extend(linger.then_some(("linger", "1us")));
            for mut side in sides(&params, &with_ours(WORKLOAD.peers)) {
                let sample = side.take().unwrap();
                let counted: u64 = sample.latencies.iter().map(|(_, count)| count).sum();
                assert_eq!(counted.to_string(), events);
            }
        }
    }

    #[test]
    fn cases_are_those_of_the_module() {
        let of = |what| CASES.iter().filter(|case| case[0] == what).count();
        assert_eq!([of("payload"), of("topology"), of("consumer")], [5, 2, 2]);
        assert!(Payload::parse("489 bytes").is_err());
    }
}
