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

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use thalweg_lab::LabService;
use thalweg_lab::lab::{LabClient, Pulse, Tick};
use thalweg_peers::patience::set_crowded;

use super::eater::{Appetite, Look, Stamped, of_event};
use super::feeds::{self, CAPACITY, Fed, Feed};
use crate::interleave::{Side, interleave};
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "streaming_events",
    group: "streaming",
    what: "Events of all sizes, with tails, from several producers, to several consumers, slow ones too; latency at three rates, wake and idle.",
    source: "the twin of ThetaDataDx' benchmark of channels",
    peers: &["std", "crossbeam", "rtrb", "disruptor"],
    seconds: 420,
    run,
    knobs: &[EVENTS],
    ..Workload::USUAL
};

const EVENTS: Knob = Knob {
    name: "events",
    default: "524288",
    what: "events a sample; 64 times the places of a ring",
};

/// Samples of each side.
const SAMPLES: usize = 5;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Pulse,
    Tick,
    /// 488 bytes, and this many in both tails together.
    Event(u32),
}

impl Payload {
    fn name(self) -> String {
        match self {
            Self::Pulse => "16 bytes".to_owned(),
            Self::Tick => "64 bytes".to_owned(),
            Self::Event(0) => "488 bytes, empty tails".to_owned(),
            Self::Event(tails) => format!("488 bytes and {tails} in both tails"),
        }
    }

    fn tails(self) -> u32 {
        match self {
            Self::Event(tails) => tails,
            Self::Pulse | Self::Tick => 0,
        }
    }

    /// The fields that a consumer must read of event number `n`.
    fn look(self, n: u64) -> Look {
        match self {
            Self::Pulse => (&thalweg_lab::ticks::pulse(n)).into(),
            Self::Tick => (&thalweg_lab::ticks::tick(n)).into(),
            Self::Event(tails) => of_event(n, tails),
        }
    }
}

/// One case of those above.
#[derive(Clone, Copy, Debug)]
struct Case {
    what: &'static str,
    payload: Payload,
    producers: u64,
    consumers: u64,
    appetite: Appetite,
}

const PLAIN: Case = Case {
    what: "payload",
    payload: Payload::Event(0),
    producers: 1,
    consumers: 1,
    appetite: Appetite::Free,
};

const CASES: [Case; 9] = [
    Case {
        payload: Payload::Pulse,
        ..PLAIN
    },
    Case {
        payload: Payload::Tick,
        ..PLAIN
    },
    PLAIN,
    Case {
        payload: Payload::Event(64),
        ..PLAIN
    },
    Case {
        payload: Payload::Event(3608),
        ..PLAIN
    },
    Case {
        what: "topology",
        producers: 4,
        ..PLAIN
    },
    Case {
        what: "topology",
        consumers: 4,
        ..PLAIN
    },
    Case {
        what: "consumer",
        appetite: Appetite::Busy,
        ..PLAIN
    },
    Case {
        what: "consumer",
        appetite: Appetite::Bursty,
        ..PLAIN
    },
];

/// A subject: ours in batches of the given size, ours by a stream that wakes its reader for each
/// event, or a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Ours(u32),
    AtOnce,
    Peer(&'static str),
}

const OURS: [Subject; 2] = [Subject::Ours(1), Subject::Ours(256)];

/// The peers that support the topology: a ring has one producer, and the poller of `disruptor` one
/// consumer.
fn peers(producers: u64, consumers: u64) -> &'static [&'static str] {
    match (producers, consumers) {
        (1, 1) => &["std", "crossbeam", "rtrb", "disruptor"],
        (1, _) => &["std", "crossbeam", "rtrb"],
        _ => &["std", "crossbeam"],
    }
}

/// Moves the events of `feed` by `subject`.
fn fed(lab: &LabClient, subject: Subject, payload: Payload, feed: &Feed) -> Result<Fed, Problem> {
    let failed = |why: thalweg::CallError<thalweg::port::NoError>| {
        Problem::Check(format!("a stream was not opened: {why:?}"))
    };
    let Feed {
        count,
        producers,
        tails,
        per_s,
        ..
    } = *feed;
    let batch = match subject {
        Subject::Ours(batch) => batch,
        Subject::AtOnce => 1,
        Subject::Peer(name) => {
            return Ok(match payload {
                Payload::Pulse => by_peer::<Pulse>(name, feed),
                Payload::Tick => by_peer::<Tick>(name, feed),
                Payload::Event(_) => by_peer::<Stamped>(name, feed),
            });
        }
    };
    match payload {
        Payload::Pulse => {
            let open = || lab.pulses(count, batch).wait().map_err(failed);
            feeds::stream(feed, batch, open, |pulse| (&pulse).into())
        }
        Payload::Tick => {
            let open = || lab.ticks(count, batch).wait().map_err(failed);
            feeds::stream(feed, batch, open, |tick| (&tick).into())
        }
        Payload::Event(_) => {
            let producers = u32::try_from(producers).unwrap_or(u32::MAX);
            let open = || {
                let opened = match subject {
                    Subject::AtOnce => lab.feed_at_once(count, batch, producers, tails, per_s),
                    _ => lab.feed(count, batch, producers, tails, per_s),
                };
                opened.wait().map_err(failed)
            };
            feeds::stream(feed, batch, open, |event| (&event).into())
        }
    }
}

fn by_peer<T: super::eater::Item>(name: &str, feed: &Feed) -> Fed {
    match name {
        "std" => feeds::std_mpsc::<T>(feed),
        "crossbeam" => feeds::crossbeam::<T>(feed),
        "rtrb" => feeds::ring::<T>(feed),
        _ => feeds::preallocated::<T>(feed),
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for name in WORKLOAD.peers {
        let version = thalweg_peers::versions::of(name);
        lab.peers.insert((*name).to_owned(), version);
    }
    let events = lab.number(&EVENTS)?;
    let client = LabClient::start(|| LabService)
        .map_err(|why| Problem::Check(format!("the service: {why}")))?;
    let mut rows = Vec::new();
    for case in CASES {
        rows.extend(throughput(lab, &client, case, events)?);
    }
    for (per_s, seconds) in [(10_000, 2.0), (100_000, 0.4), (1_000_000, 0.2)] {
        let share = events as f64 / 524_288.0;
        let count = (per_s as f64 * seconds * share).max(1.0) as u64;
        rows.extend(latency(lab, &client, "latency", per_s, count)?);
    }
    rows.extend(latency(lab, &client, "wake", 500, (events / 2048).max(1))?);
    rows.extend(idle(lab, &client)?);
    Ok(rows)
}

fn feed_of(case: &Case, count: u64) -> Feed {
    Feed {
        count,
        producers: case.producers,
        consumers: case.consumers,
        tails: case.payload.tails(),
        per_s: 0,
        appetite: case.appetite,
        timed: false,
    }
}

/// Time and events of one subject, checked.
fn sample(
    client: &LabClient,
    subject: Subject,
    case: &Case,
    count: u64,
) -> Result<(Duration, u64), Problem> {
    let feed = feed_of(case, count);
    let (elapsed, eaters) = fed(client, subject, case.payload, &feed)?;
    // A reader that `tee` creates starts with the next event written.
    let late = matches!(subject, Subject::Ours(_)) && case.consumers > 1;
    for eater in &eaters {
        let name = format!("{subject:?}");
        eater.check(count, late, |n| case.payload.look(n), &name)?;
    }
    Ok((
        elapsed,
        eaters
            .iter()
            .map(super::eater::Eater::eaten)
            .max()
            .unwrap_or(0),
    ))
}

fn throughput(lab: &Lab, client: &LabClient, case: Case, count: u64) -> Result<Vec<Row>, Problem> {
    let peers = peers(case.producers, case.consumers);
    let plan = lab.plan(Some(SAMPLES));
    let subjects: Vec<Subject> = OURS
        .into_iter()
        .chain(peers.iter().copied().map(Subject::Peer))
        .collect();
    lab.begin(
        &format!("streaming_events {}", case.what),
        subjects.len() * (plan.warm_up + plan.rounds),
    );
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    set_crowded(case.producers + case.consumers > processors as u64);
    let case = &case;
    let mut sides: Vec<Side<'_, f64>> = subjects
        .iter()
        .map(|subject| {
            Side::new(move || {
                let (elapsed, eaten) = sample(client, *subject, case, count)?;
                Ok(elapsed.as_nanos() as f64 / eaten as f64)
            })
        })
        .collect();
    let taken = interleave(&mut sides, plan, || lab.step());
    drop(sides);
    set_crowded(false);
    let taken = taken?;
    let (ours, theirs) = taken.split_at(OURS.len());
    let mut rows = Vec::new();
    for (batch, ours) in ["1", "256"].iter().zip(ours) {
        for (peer, theirs) in peers.iter().zip(theirs) {
            let params = [
                ("what", case.what.to_owned()),
                ("payload", case.payload.name()),
                (
                    "topology",
                    format!("{}P{}C", case.producers, case.consumers),
                ),
                ("consumer", case.appetite.name().to_owned()),
                ("batch", (*batch).to_owned()),
                ("capacity", CAPACITY.to_string()),
                ("events", count.to_string()),
            ];
            let row = row(&params, "ns", ours, Some((peer, theirs))).checked(
                "each consumer had each event once, each producer's in order, with its tails",
            );
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(params: &[(&str, String)], unit: &str, ours: &[f64], peer: Option<(&str, &[f64])>) -> Row {
    let params: Vec<(&str, &str)> = params.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let peer = peer.map(|(name, theirs)| (name, theirs.to_vec()));
    Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        unit,
        ("thalweg", ours.to_vec()),
        peer,
    )
}

/// Ours, one event at a time, and the peers of one producer and one consumer.
fn one_to_one() -> Vec<Subject> {
    let peers = peers(1, 1).iter().copied().map(Subject::Peer);
    [Subject::Ours(1)].into_iter().chain(peers).collect()
}

fn paced(count: u64, per_s: u64) -> Feed {
    Feed {
        per_s,
        timed: true,
        ..feed_of(&PLAIN, count)
    }
}

fn latency(
    lab: &Lab,
    client: &LabClient,
    what: &str,
    per_s: u64,
    count: u64,
) -> Result<Vec<Row>, Problem> {
    let mut subjects = one_to_one();
    subjects.insert(1, Subject::AtOnce);
    let plan = lab.plan(Some(SAMPLES));
    lab.begin(
        &format!("streaming_events {what} {per_s}"),
        subjects.len() * (plan.warm_up + plan.rounds),
    );
    let feed = &paced(count, per_s);
    let mut sides: Vec<Side<'_, Latencies>> = subjects
        .iter()
        .map(|subject| {
            Side::new(move || {
                let (_, mut eaters) = fed(client, *subject, PLAIN.payload, feed)?;
                let eater = eaters.remove(0);
                eater.check(count, false, |n| of_event(n, 0), &format!("{subject:?}"))?;
                Ok(eater.latencies())
            })
        })
        .collect();
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);
    let medians = |side: &[Latencies]| -> Vec<f64> {
        side.iter().map(|all| all.percentile(50.0) as f64).collect()
    };
    let whole = |side: &[Latencies]| {
        let mut whole = Latencies::new();
        side.iter().for_each(|all| whole.add(&all.counts()));
        whole
    };
    let (ours, theirs) = taken.split_at(2);
    let mut rows = Vec::new();
    for (linger, ours) in [None, Some("1us")].iter().zip(ours) {
        for (peer, theirs) in peers(1, 1).iter().zip(theirs) {
            let mut params = vec![
                ("what", what.to_owned()),
                ("payload", PLAIN.payload.name()),
                ("topology", "1P1C".to_owned()),
                ("batch", "1".to_owned()),
                ("per_s", per_s.to_string()),
                ("events", count.to_string()),
            ];
            params.extend(linger.map(|linger| ("linger", linger.to_owned())));
            let (ours_p50, theirs_p50) = (medians(ours), medians(theirs));
            let mut row = row(&params, "ns", &ours_p50, Some((peer, &theirs_p50)))
                .checked("each event came once, in order");
            whole(ours).write("", &mut row.metrics);
            whole(theirs).write("peer_", &mut row.metrics);
            rows.push(row);
        }
    }
    Ok(rows)
}

fn processor_time() -> Duration {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec as u32)
}

/// Processor time of the whole process, in percent of one processor, while a consumer waits a
/// second for the only event.
fn idle(lab: &Lab, client: &LabClient) -> Result<Vec<Row>, Problem> {
    let subjects = one_to_one();
    let plan = lab.plan(Some(SAMPLES));
    lab.begin(
        "streaming_events idle",
        subjects.len() * (plan.warm_up + plan.rounds),
    );
    let mut sides: Vec<Side<'_, f64>> = subjects
        .iter()
        .map(|subject| {
            Side::new(move || {
                let before = processor_time();
                let (elapsed, _) = fed(client, *subject, PLAIN.payload, &paced(1, 1))?;
                let spent = processor_time().saturating_sub(before);
                Ok(100.0 * spent.as_secs_f64() / elapsed.as_secs_f64())
            })
        })
        .collect();
    let taken = interleave(&mut sides, plan, || lab.step())?;
    drop(sides);
    let mut rows = Vec::new();
    for (peer, theirs) in peers(1, 1).iter().zip(&taken[1..]) {
        let params = [("what", "idle".to_owned()), ("seconds", "1".to_owned())];
        let mut row =
            row(&params, "percent", &taken[0], Some((peer, theirs))).checked("the event came");
        row.metrics
            .insert("cpu_percent".to_owned(), row.subject_median);
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_delivers_every_event_of_every_case() {
        let client = LabClient::start(|| LabService).unwrap();
        for case in CASES {
            // More than one ring holds, so that each has to wait.
            let count = if case.appetite == Appetite::Free {
                20_000
            } else {
                500
            };
            set_crowded(true);
            for subject in OURS {
                sample(&client, subject, &case, count).unwrap();
            }
            for peer in peers(case.producers, case.consumers) {
                sample(&client, Subject::Peer(peer), &case, count).unwrap();
            }
        }
        set_crowded(false);
    }

    #[test]
    fn every_subject_says_what_each_event_waited() {
        let client = LabClient::start(|| LabService).unwrap();
        for subject in one_to_one() {
            for (per_s, count) in [(100_000, 200), (500, 2)] {
                let feed = paced(count, per_s);
                let (_, mut eaters) = fed(&client, subject, PLAIN.payload, &feed).unwrap();
                let eater = eaters.remove(0);
                eater.check(count, false, |n| of_event(n, 0), "it").unwrap();
                assert_eq!(eater.latencies().count(), count, "{subject:?}");
            }
        }
    }

    #[test]
    fn the_cases_are_those_of_the_module() {
        let of = |what| CASES.iter().filter(|case| case.what == what).count();
        assert_eq!([of("payload"), of("topology"), of("consumer")], [5, 2, 2]);
    }
}
