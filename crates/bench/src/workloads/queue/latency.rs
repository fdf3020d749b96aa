//! `spsc_latency`: the round-trip time of a number to another thread and back.
//!
//! This is a closed loop: the next number is sent when the last one has returned, so there is no
//! fixed rate, and no latency is omitted. A round trip is timed from one arrival to the next, and
//! includes one reading of the clock.
//!
//! | mode | how the ends wait |
//! | --- | --- |
//! | `spin` | they retry at once; the lower bound is two words in memory |
//! | `block` | they use their own blocking calls in their default configuration: ours spins for a moment, then sleeps |
//! | `park` | they sleep at once; the peers are kernel objects |

use std::time::Instant;

use thalweg_peers::ring::Rtrb;
use thalweg_peers::shared::{Crossbeam, Flume, Kanal};
use thalweg_peers::std_mpsc::Std;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::lab::Lab;
use crate::latency::Latencies;
use crate::problem::Problem;
use crate::report::Row;
use crate::workloads::{Knob, Workload};

use super::crew::Crew;
use super::grid::{self, Grid};
use super::links::{Atomics, Blocking, EventFd, Link, Spinning, UnixSocket};
use super::rows::{self, Rigour};
use super::subjects::{Spsc, SpscParking, THALWEG, unknown};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "spsc_latency",
    group: "queue",
    what: "A round trip to another thread: percentiles, spinning, blocking and asleep, from the lower bound up.",
    source: "rigtorp's and atomic_queue's ping-pong; nimsync's, which timed two clock reads on one thread",
    peers: &ALL,
    seconds: 60,
    run,
    knobs: &[MODE, PLACEMENT, grid::FULL],
    cells: Some(open),
};

const MODE: Knob = Knob {
    name: "mode",
    default: "spin,block,park",
    what: "how the ends wait, as a list",
};
const PLACEMENT: Knob = Knob {
    name: "placement",
    default: "free",
    what: "free, one_cpu or split, as a list",
};

const ALL: [&str; 8] = [
    "atomics",
    "rtrb",
    "crossbeam",
    "kanal",
    "std",
    "flume",
    "eventfd",
    "unix_socket",
];
const SPIN: [&str; 3] = ["atomics", "rtrb", "crossbeam"];
const BLOCK: [&str; 4] = ["crossbeam", "kanal", "std", "flume"];
const PARK: [&str; 3] = ["eventfd", "unix_socket", "std"];

/// Five samples of this size are enough for the far tail.
const ROUND_TRIPS: u64 = 20_000;
const QUICK_ROUND_TRIPS: u64 = 500;
/// Per mille of a sample's round trips, at its start, that are not counted.
const WARM_UP: u64 = 20;

const CHECKED: &str = "every number came back as it went, before the next left";

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    for (name, what) in [
        ("atomics", "two words in memory, spinning"),
        ("eventfd", "the kernel's, blocking"),
        ("unix_socket", "the kernel's, a stream, blocking"),
    ] {
        lab.peers.insert(name.to_owned(), what.to_owned());
    }
    let mut all = Vec::new();
    for placement in grid.words(lab, &PLACEMENT, "free,one_cpu,split") {
        for mode in grid.words(lab, &MODE, MODE.default) {
            let peers: &[&str] = match mode.as_str() {
                "spin" => &SPIN,
                "block" => &BLOCK,
                "park" => &PARK,
                other => return Err(no_mode(other)),
            };
            let trips = if lab.quick() {
                QUICK_ROUND_TRIPS
            } else {
                ROUND_TRIPS
            };
            let trips = trips.to_string();
            let params = [
                ("mode", mode.as_str()),
                ("placement", placement.as_str()),
                ("round_trips", trips.as_str()),
            ];
            let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(peers))
                .at(rows::process_placement(&placement)?);
            let measured = rows::measure(lab, &WORKLOAD, cell, Rigour::Look)?;
            all.extend(measured.rows("ns", &[CHECKED]));
        }
    }
    Ok(all)
}

fn no_mode(mode: &str) -> Problem {
    Problem::Usage(format!("a mode is spin, block or park, not `{mode}`"))
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let mode = cell.text("mode")?;
    let trips = cell.number("round_trips")?;
    let split = cell.text("placement")? == "split";
    let sides = cell
        .subjects
        .iter()
        .map(|name| match (mode, name.as_str()) {
            ("spin", "atomics") => Ok(side::<Atomics>(trips, split)),
            ("spin", THALWEG) => Ok(side::<Spinning<Spsc>>(trips, split)),
            ("spin", "rtrb") => Ok(side::<Spinning<Rtrb>>(trips, split)),
            ("spin", "crossbeam") => Ok(side::<Spinning<Crossbeam>>(trips, split)),
            ("block", THALWEG) => Ok(side::<Blocking<Spsc>>(trips, split)),
            ("block", "crossbeam") => Ok(side::<Blocking<Crossbeam>>(trips, split)),
            ("block", "kanal") => Ok(side::<Blocking<Kanal>>(trips, split)),
            ("block", "flume") => Ok(side::<Blocking<Flume>>(trips, split)),
            ("park", THALWEG) => Ok(side::<Blocking<SpscParking>>(trips, split)),
            ("park", "eventfd") => Ok(side::<EventFd>(trips, split)),
            ("park", "unix_socket") => Ok(side::<UnixSocket>(trips, split)),
            ("block" | "park", "std") => Ok(side::<Blocking<Std>>(trips, split)),
            ("spin" | "block" | "park", other) => unknown(other),
            (other, _) => Err(no_mode(other)),
        });
    sides.collect()
}

fn side<L: Link>(trips: u64, split: bool) -> Side<'static, Sample> {
    Side::new(move || sample::<L>(trips, split))
}

/// The result of one of the two threads.
enum End {
    Here(Latencies),
    There,
    Wrong,
}

fn sample<L: Link>(trips: u64, split: bool) -> Result<Sample, Problem> {
    let (mut there, mut at_there) = L::new()?;
    let (mut back, mut at_here) = L::new()?;
    let cpus = if split {
        crate::placement::allowed()
    } else {
        Vec::new()
    };
    let warm_up = (trips * WARM_UP / 1000).max(1);
    let all = warm_up + trips;
    let mut crew = Crew::new(L::NAME, 2);
    crew.add(cpus.first().copied(), move |_| {
        let mut latencies = Latencies::new();
        let mut wrong = 0;
        let mut last = Instant::now();
        for number in 0..all {
            L::send(&mut there, number);
            wrong |= L::receive(&mut at_here) ^ number;
            let now = Instant::now();
            if number >= warm_up {
                let took = now.duration_since(last).as_nanos();
                latencies.record(u64::try_from(took).unwrap_or(u64::MAX));
            }
            last = now;
        }
        if wrong == 0 {
            End::Here(latencies)
        } else {
            End::Wrong
        }
    })?;
    crew.add(cpus.get(1).copied(), move |_| {
        for _ in 0..all {
            let number = L::receive(&mut at_there);
            L::send(&mut back, number);
        }
        End::There
    })?;
    for end in crew.wait()?.0 {
        match end {
            End::There => {}
            End::Wrong => {
                return Err(Problem::Check(format!(
                    "{}: another number came back than went",
                    L::NAME
                )));
            }
            End::Here(latencies) => {
                let sample = Sample {
                    ns: latencies.percentile(50.0) as f64,
                    ..Sample::default()
                };
                return Ok(sample.with_latencies(&latencies));
            }
        }
    }
    Err(Problem::Check(format!("{}: nobody took the time", L::NAME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_brings_numbers_there_and_back() {
        for (mode, peers) in [("spin", &SPIN[..]), ("block", &BLOCK), ("park", &PARK)] {
            let params = [
                ("mode", mode),
                ("placement", "free"),
                ("round_trips", "200"),
            ];
            let cell = Cell::new(WORKLOAD.name, &params, &grid::with_ours(peers));
            for mut side in open(&cell).unwrap() {
                let sample = side.take().unwrap();
                assert!(sample.ns > 0.0);
                let counted: u64 = sample.latencies.iter().map(|(_, count)| count).sum();
                assert_eq!(counted, 200);
            }
        }
    }

    #[test]
    fn a_mode_or_a_subject_that_is_none_is_refused() {
        for (mode, subject) in [("sleep", "thalweg"), ("park", "rtrb")] {
            let params = [("mode", mode), ("placement", "free"), ("round_trips", "10")];
            assert!(open(&Cell::new(WORKLOAD.name, &params, &[subject])).is_err());
        }
    }
}
