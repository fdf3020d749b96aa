//! `guest_call`.

use crate::child::HostProgram;
use crate::guests::Guest;
use crate::hosts;
use crate::interleave::Plan;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::{Latencies, figures};
use crate::machine;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::report::Row;
use crate::statistics::Samples;
use crate::workloads::first_calls::UNCOUNTED;
use crate::workloads::lab_hosts::{Block, Read};

use super::{
    CALL, CHAN_CGO, EVENTFD, NETPOLL, Program, RUST_SERVICE, Side, measure, params_of, without_go,
};

/// Calls in a block, and blocks of each side: 100,000 calls together.
const CALLS: usize = 1_000;
const BLOCKS: usize = 102;
const QUICK_BLOCKS: usize = 9;

/// A sample of calls in flight, and samples of each side.
const MANY_CALLS: u64 = 100_000;
const QUICK_MANY_CALLS: u64 = 5_000;
const SAMPLES: usize = 15;
const IN_FLIGHT: u64 = 64;

const METHODS: [&str; 3] = ["nop", "nop-async", "tally"];

/// Where the programs run, and how they wait.
struct Place {
    placement: Placement,
    pace: &'static str,
    waiting: &'static str,
}

const PLACES: [Place; 2] = [
    Place {
        placement: Placement::OneCpu,
        pace: "one_cpu",
        waiting: "yield",
    },
    Place {
        placement: Placement::TwoCpus,
        pace: "hot",
        waiting: "spin",
    },
];

pub(super) fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let this_commit = "of this commit".to_owned();
    lab.peers
        .insert(EVENTFD.to_owned(), machine::describe().uname);
    lab.peers.insert(RUST_SERVICE.to_owned(), this_commit);
    let go = hosts::go_version();
    if let Ok(version) = &go {
        for peer in [NETPOLL, CHAN_CGO] {
            lab.peers.insert(peer.to_owned(), version.clone());
        }
    }
    let mut rows = Vec::new();
    for place in PLACES.iter().filter(|place| place.placement.possible()) {
        for method in METHODS {
            rows.extend(rows_of_c(lab, method, place)?);
            if go.is_ok() {
                rows.push(row_of_go(lab, method, place)?);
            }
        }
        rows.push(batch_of_c(lab, place)?);
        if go.is_ok() {
            rows.push(in_flight_of_go(lab, place)?);
        }
    }
    rows.extend(go.err().map(|why| without_go(&CALL, &why)));
    Ok(rows)
}

/// One call at a time, with the latency of each.
struct OneByOne<'a> {
    lab: &'a Lab,
    method: &'a str,
    place: &'a Place,
    sides: Vec<Side>,
    taken: Vec<Samples<Latencies>>,
    rounds: usize,
}

impl<'a> OneByOne<'a> {
    /// Measures the lines of these programs.
    fn measure(
        lab: &'a Lab,
        method: &'a str,
        place: &'a Place,
        lines: &[(Program, &str)],
    ) -> Result<Self, Problem> {
        let title = format!("guest_call {method} {}", place.pace);
        let rounds = if lab.quick() { QUICK_BLOCKS } else { BLOCKS };
        let lines = lines.iter();
        let sides: Vec<Side> = lines
            .map(|(program, what)| (*program, format!("{what} {CALLS} {UNCOUNTED} 0")))
            .collect();
        let read = |program: &mut HostProgram, line: &str| -> Result<Latencies, Problem> {
            program.ask::<Block>(line)?.counted(CALLS)
        };
        let plan = Plan { warm_up: 1, rounds };
        let taken = measure(lab, &title, place.placement, plan, &sides, &read)?;
        Ok(Self {
            lab,
            method,
            place,
            sides,
            taken,
            rounds,
        })
    }

    /// The row of side `ours`, with a target for its ratio.
    fn row(&self, ours: usize, peer: (&str, usize), target: Option<f64>) -> Row {
        let (own, own_metrics) = figures(&self.taken[ours]);
        let (other, peer_metrics) = figures(&self.taken[peer.1]);
        let mut params = match self.sides[ours].0 {
            Program::Guest(guest) => params_of(guest).to_vec(),
            Program::Rust | Program::GoPeers => vec![("language", "c"), ("service", "rust")],
        };
        params.extend([
            ("method", self.method),
            ("pace", self.place.pace),
            ("waiting", self.place.waiting),
            ("placement", self.place.placement.name()),
        ]);
        if peer.0 == NETPOLL {
            params.push(("peer_waiting", "park"));
        }
        let row = Row::new(
            (CALL.name, CALL.group),
            &params,
            "ns",
            ("thalweg", own),
            Some((peer.0, other)),
        )
        .checked(format!(
            "{} calls ended, each once and well",
            self.rounds * CALLS
        ))
        .checked("the programs closed their clients and ended with 0")
        .with_metrics("", own_metrics)
        .with_metrics("peer_", peer_metrics);
        hold(row, target, self.lab)
    }
}

fn hold(row: Row, target: Option<f64>, lab: &Lab) -> Row {
    match target {
        Some(limit) => row.held_to(&Target::Ratio(limit), lab.refusal()),
        None => row,
    }
}

fn rows_of_c(lab: &Lab, method: &str, place: &Place) -> Result<[Row; 4], Problem> {
    let lines = [
        (Program::Guest(Guest::C), method),
        (Program::Guest(Guest::CPort), method),
        (Program::Rust, method),
        (Program::Rust, "bare"),
    ];
    let all = OneByOne::measure(lab, method, place, &lines)?;
    // The caller's thread runs a brief method in Rust, and a thread of the guest takes it from the port.
    let of_port = (method != "tally").then_some(1.3);
    Ok([
        all.row(0, (RUST_SERVICE, 2), None),
        all.row(0, (EVENTFD, 3), None),
        all.row(1, (RUST_SERVICE, 2), of_port),
        all.row(2, (EVENTFD, 3), None),
    ])
}

fn row_of_go(lab: &Lab, method: &str, place: &Place) -> Result<Row, Problem> {
    let lines = [
        (Program::Guest(Guest::Go), method),
        (Program::GoPeers, "netpoll"),
    ];
    let all = OneByOne::measure(lab, method, place, &lines)?;
    Ok(all.row(0, (NETPOLL, 1), Some(1.3)))
}

/// 64 calls in a submission, until all have ended.
fn batch_of_c(lab: &Lab, place: &Place) -> Result<Row, Problem> {
    let line = |count| format!("in-flight {count} {IN_FLIGHT} {IN_FLIGHT}");
    let programs = [Program::Guest(Guest::C), Program::Rust];
    let peer = (RUST_SERVICE, 1.1);
    many(lab, place, "64", peer, |count| {
        programs.map(|program| (program, line(count)))
    })
}

/// Up to 64 calls in flight, one in a submission.
fn in_flight_of_go(lab: &Lab, place: &Place) -> Result<Row, Problem> {
    many(lab, place, "1", (CHAN_CGO, 1.3), |count| {
        let calls = format!("in-flight {count} {IN_FLIGHT} 1");
        let channel = format!("channel {count} {IN_FLIGHT}");
        [
            (Program::Guest(Guest::Go), calls),
            (Program::GoPeers, channel),
        ]
    })
}

/// The row of many calls of a guest against a peer with a target. `sides` has the two sides for a number of calls.
fn many(
    lab: &Lab,
    place: &Place,
    batch: &str,
    (peer, limit): (&'static str, f64),
    sides: impl Fn(u64) -> [Side; 2],
) -> Result<Row, Problem> {
    let count = if lab.quick() {
        QUICK_MANY_CALLS
    } else {
        MANY_CALLS
    };
    // The numbers 0 to count - 1.
    let sum = count * (count - 1) / 2;
    let sides = sides(count);
    let read =
        |program: &mut HostProgram, line: &str| program.ask::<Read>(line)?.each(line, count, sum);
    let title = format!("guest_call in flight {}", place.pace);
    let plan = lab.plan(Some(SAMPLES));
    let taken = measure(lab, &title, place.placement, plan, &sides, &read)?;
    let [ours, other] = [0, 1].map(|side| taken[side].clone());
    let Program::Guest(guest) = sides[0].0 else {
        unreachable!("the first side is a guest");
    };
    let in_flight = IN_FLIGHT.to_string();
    let mut params = params_of(guest).to_vec();
    params.extend([
        ("method", "nop"),
        ("pace", place.pace),
        ("placement", place.placement.name()),
        ("in_flight", &in_flight),
        ("batch", batch),
    ]);
    let row = Row::new(
        (CALL.name, CALL.group),
        &params,
        "ns",
        ("thalweg", ours),
        Some((peer, other)),
    )
    .checked("every call of a sample ended, each once and well");
    Ok(hold(row, Some(limit), lab))
}
