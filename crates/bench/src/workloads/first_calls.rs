//! `first_calls`: how long a call that does nothing takes from each host, compared with two bare
//! hand-offs between two threads.
//!
//! The bare side is the least that a call over two threads can be: the caller hands a word to a
//! plain thread, which hands one back. A side that waits does so exactly as a Thalweg caller or
//! worker does, and sleeps in a read of an eventfd (`crates/bench/service/src/bare.rs`). It is
//! measured in the same process as our call, in alternating blocks. In asyncio the loop watches the
//! eventfd of the reply and resolves a future, as a call does. In Node the loop watches it
//! (`uv_poll`) and resolves a promise (`crates/bench/peers/node/by_hand.c`). In C++ a loop over `poll`
//! watches it and resumes a coroutine. In Nim asyncdispatch watches it and completes a future.
//!
//! | `pace` | `waiting` | processors |
//! | --- | --- | --- |
//! | `one_cpu` | `yield`: once, then sleep | the program is pinned to one before it opens anything |
//! | `one_cpu` | `peer sleeps`: ours yields once; the bare sides sleep at once, as a plain eventfd does | one |
//! | `hot` | `spin`: for up to 50 us, then sleep | two, calls back to back |
//! | `hot` | `park`: sleep at once | two, the caller on one and all other threads on the other |
//! | `cold` | `spin` | two, and a pause of 2 ms before each call, so that all threads sleep. It has no target because it measures how the machine wakes a processor |
//!
//! In asyncio, in Node, with coroutines and with asyncdispatch the caller waits in the loop, which never spins; `waiting` is
//! that of the other side.
//! The method `tally` is brief, so the caller's thread runs it: those rows show what the second thread
//! costs.
//! Each block begins with [`UNCOUNTED`] calls that are not counted, because the program has just
//! waited for its input.

use crate::child::HostProgram;
use crate::interleave::Plan;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::latency::figures;
use crate::machine;
use crate::placement::Placement;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES};
use crate::report::Row;
use crate::workloads::Workload;
use crate::workloads::lab_hosts::{self, Block, LabHost};

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "first_calls",
    group: "boundary",
    what: "How long a call that does nothing takes from each host: the basic cost of crossing the boundary.",
    source: "the round trips through asyncio, Node and Go that generators' users complain of",
    peers: &["eventfd"],
    seconds: 480,
    run,
    ..Workload::USUAL
};

/// Calls at the start of each block that are not counted.
pub const UNCOUNTED: u32 = 100;

/// Each way of calling one method.
const WAYS: [(LabHost, &str); 19] = [
    (lab_hosts::C, "nop"),
    (lab_hosts::C, "nop-async"),
    (lab_hosts::PYTHON, "nop"),
    (lab_hosts::ASYNCIO, "nop"),
    (lab_hosts::RUST, "nop"),
    (lab_hosts::NODE, "nop"),
    (lab_hosts::CPP, "nop"),
    (lab_hosts::CPP_COROUTINES, "nop"),
    (lab_hosts::NIM, "nop"),
    (lab_hosts::NIM_FUTURES, "nop"),
    (lab_hosts::C, BRIEF),
    (lab_hosts::PYTHON, BRIEF),
    (lab_hosts::ASYNCIO, BRIEF),
    (lab_hosts::RUST, BRIEF),
    (lab_hosts::NODE, BRIEF),
    (lab_hosts::CPP, BRIEF),
    (lab_hosts::CPP_COROUTINES, BRIEF),
    (lab_hosts::NIM, BRIEF),
    (lab_hosts::NIM_FUTURES, BRIEF),
];

/// A brief method that adds to the instance's state and returns it. The caller's thread runs it.
const BRIEF: &str = "tally";

/// The pacing of a row's calls, and how its threads wait.
struct Pace {
    name: &'static str,
    waiting: &'static str,
    placement: Placement,
    pause_us: u32,
    /// Calls in a block.
    calls: usize,
    /// Blocks of each side, in all processes together.
    blocks: usize,
    /// The same in a quick run.
    quick_blocks: usize,
}

impl Pace {
    /// Whether the bare sides sleep at once.
    fn peer_sleeps(&self) -> bool {
        self.waiting == PEER_SLEEPS
    }

    /// Whether this way of calling is measured. A pause of 2 ms before each call takes long.
    fn has(&self, (host, method): &(LabHost, &str)) -> bool {
        self.pause_us == 0 || *method != BRIEF || matches!(host.language, "c" | "python")
    }
}

const PEER_SLEEPS: &str = "peer sleeps";

/// 100,000 calls each, except with pauses: that would take an hour.
const HOT: Pace = Pace {
    name: "hot",
    waiting: "spin",
    placement: Placement::TwoCpus,
    pause_us: 0,
    calls: 1_000,
    blocks: 102,
    quick_blocks: 9,
};

const PACES: [Pace; 5] = [
    Pace {
        name: "one_cpu",
        waiting: "yield",
        placement: Placement::OneCpu,
        ..HOT
    },
    Pace {
        name: "one_cpu",
        waiting: PEER_SLEEPS,
        placement: Placement::OneCpu,
        ..HOT
    },
    HOT,
    Pace {
        waiting: "park",
        placement: Placement::Split,
        ..HOT
    },
    Pace {
        name: "cold",
        pause_us: 2_000,
        calls: 100,
        blocks: 51,
        quick_blocks: 6,
        ..HOT
    },
];

/// The targets of issue and design: the median over all calls.
fn target((host, method): &(LabHost, &str), pace: &Pace) -> Option<Target> {
    let p50 = |ns| Target::Metric("p50_ns", ns);
    let ratio = Target::Ratio;
    match (host.language, host.mode, *method, pace.name, pace.waiting) {
        ("c", _, "nop", "one_cpu", "yield") => Some(p50(3_000.0)),
        ("python", "sync", "nop", "one_cpu", "yield") => Some(p50(5_000.0)),
        ("python", "asyncio", "nop", "one_cpu", "yield") => {
            Some(Target::All(vec![p50(10_000.0), ratio(1.5)]))
        }
        ("node", _, "nop", "one_cpu", "yield") => Some(ratio(1.3)),
        ("c", _, "nop", _, PEER_SLEEPS) => Some(ratio(0.8)),
        ("python", "sync", "nop", _, PEER_SLEEPS) => Some(ratio(0.85)),
        ("python" | "node", _, "nop", _, PEER_SLEEPS) => Some(ratio(1.05)),
        ("c", _, BRIEF, "one_cpu", _) => Some(ratio(0.15)),
        ("python", "sync", BRIEF, "one_cpu", _) => Some(ratio(0.3)),
        ("c", _, "nop", "hot", "spin") => Some(Target::All(vec![p50(2_000.0), ratio(3.0)])),
        _ => None,
    }
}

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    lab.peers
        .insert("eventfd".to_owned(), machine::describe().uname);
    let mut rows = Vec::new();
    for pace in PACES.iter().filter(|pace| pace.placement.possible()) {
        for way in WAYS
            .iter()
            .filter(|(host, _)| host.missing(&WORKLOAD).is_none())
            .filter(|way| pace.has(way))
        {
            rows.push(row(lab, way, pace)?);
        }
    }
    let optional = [lab_hosts::NODE, lab_hosts::NIM];
    rows.extend(optional.iter().filter_map(|host| host.missing(&WORKLOAD)));
    Ok(rows)
}

fn row(lab: &Lab, way: &(LabHost, &str), pace: &Pace) -> Result<Row, Problem> {
    let (host, method) = way;
    let Pace {
        name,
        waiting,
        placement,
        pause_us,
        calls,
        ..
    } = pace;
    let rounds = match lab.quick() {
        true => pace.quick_blocks,
        false => pace.blocks,
    };
    let title = format!("{} {method} {name} {waiting}", host.language);
    let lines = [method, "bare"].map(|what| format!("{what} {calls} {UNCOUNTED} {pause_us}"));
    let taken = processes::ask(
        lab,
        &title,
        &lines,
        Plan { warm_up: 1, rounds },
        PROCESSES,
        || {
            let mut command = (host.command)()?;
            if pace.peer_sleeps() {
                command.env(thalweg_lab::bare::SLEEPS, "1");
            }
            HostProgram::start(&title, command, *placement)
        },
        |_, block: Block| block.counted(*calls),
    )?;
    let [(ours, our_metrics), (bare, bare_metrics)] = [0, 1].map(|side| figures(&taken[side]));
    let params = [
        ("language", host.language),
        ("mode", host.mode),
        ("method", method),
        ("pace", name),
        ("waiting", waiting),
        ("placement", placement.name()),
        ("pause_us", &pause_us.to_string()),
    ];
    let row = Row::new(
        (WORKLOAD.name, WORKLOAD.group),
        &params,
        "ns",
        ("thalweg", ours),
        Some(("eventfd", bare)),
    )
    .checked(format!(
        "{} calls ended, each once and well",
        rounds * calls
    ))
    .checked("the program closed its client and ended with 0")
    .with_metrics("", our_metrics)
    .with_metrics("peer_", bare_metrics);
    Ok(match target(way, pace) {
        Some(target) => row.held_to(&target, lab.refusal()),
        None => row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::ENOUGH;

    #[test]
    fn pace_with_a_target_takes_enough_calls_for_its_percentiles() {
        for pace in &PACES {
            let judged = WAYS.iter().any(|way| target(way, pace).is_some());
            let calls = (pace.calls * pace.blocks) as u64;
            assert!(!judged || calls >= ENOUGH, "{}: {calls}", pace.name);
        }
    }

    #[test]
    fn targets_are_those_of_the_first_landing() {
        let text = |way: usize, pace: usize| target(&WAYS[way], &PACES[pace]).map(|t| t.text());
        assert_eq!(text(0, 0).as_deref(), Some("p50_ns <= 3000"));
        assert_eq!(text(0, 1).as_deref(), Some("ratio <= 0.8"));
        assert_eq!(text(0, 2).as_deref(), Some("p50_ns <= 2000 and ratio <= 3"));
        assert_eq!(text(2, 0).as_deref(), Some("p50_ns <= 5000"));
        let asyncio = text(3, 0);
        assert_eq!(asyncio.as_deref(), Some("p50_ns <= 10000 and ratio <= 1.5"));
        assert_eq!(text(3, 1).as_deref(), Some("ratio <= 1.05"));
        assert_eq!(text(5, 0).as_deref(), Some("ratio <= 1.3"));
        for pace in 0..2 {
            assert_eq!(text(10, pace).as_deref(), Some("ratio <= 0.15"));
            assert_eq!(text(11, pace).as_deref(), Some("ratio <= 0.3"));
        }
        let none = |pace| (0..WAYS.len()).all(|way| text(way, pace).is_none());
        assert!(
            none(3) && none(4),
            "threads pinned apart and cold calls have no target"
        );
    }
}
