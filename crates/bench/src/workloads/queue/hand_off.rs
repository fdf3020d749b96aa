//! The cost of passing a number to another thread: `spsc_threads`, `mpsc`, `mpmc`.
//!
//! Capacities are totals, the same for every subject. In batches, both sides write and read in
//! place, retry at once, and follow one rule: with `partial=yes` a part of a batch is moved as soon
//! as it fits or is there, with `partial=no` only whole batches are.
//!
//! With 32 producers and more there are many threads per processor. The requirement is that the cost
//! per message does not grow, so Thalweg with 4 producers runs in the same rounds.

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::report::{Metrics, Row, hold_best};
use crate::statistics::{Interval, Ratio, ratio_of_pairs};
use crate::workloads::Workload;

use super::grid::{self, Axis, Grid, Point};
use super::numbers::{CHECKED_MANY, CHECKED_ONE};
use super::rows::{self, Measured, Rigour};
use super::sides::{self, IN_BATCHES, MANY_TO_MANY, MANY_TO_ONE, ONE_TO_ONE, Subject, peers};
use super::{go_chan, subjects};

/// One thread to one.
pub const SPSC_THREADS: Workload = Workload {
    name: "spsc_threads",
    group: "queue",
    what: "One thread passes numbers to another: the cost of a message, one at a time and in batches.",
    source: "the rings' own benchmarks, with blocking calls, a wake-up check and every message verified",
    peers: &[
        "rtrb",
        "rtrb_0_3",
        "crossbeam",
        "std",
        "kanal",
        "flume",
        "async-channel",
        "tokio",
        "disruptor",
        "c11_ring",
        go_chan::NAME,
    ],
    seconds: 140,
    run: spsc_threads,
    knobs: &[
        SPSC_AXES[0].knob,
        SPSC_AXES[1].knob,
        SPSC_AXES[2].knob,
        SPSC_AXES[3].knob,
        grid::MESSAGES.knob,
        grid::FULL,
    ],
    cells: Some(sides::open),
};

const SPSC_AXES: [Axis; 5] = [
    Axis::partly(
        "capacity",
        "1024",
        "64,256,1024,4096,8192,65536",
        "capacities, as a list",
    ),
    Axis::partly(
        "batch",
        "1,64",
        "1,16,64,256",
        "messages at a time, as a list",
    ),
    Axis::whole(
        "partial",
        "yes,no",
        "whether a part of a batch may be moved: yes or no, as a list",
    ),
    Axis::partly(
        "placement",
        "free,one_cpu",
        "free,split,one_cpu",
        "free, one_cpu or split, as a list; by default batches run only with free",
    ),
    grid::MESSAGES,
];

/// Many threads to one.
pub const MPSC: Workload = Workload {
    name: "mpsc",
    group: "queue",
    what: "2 to 100 threads pass numbers to one: the cost of a shared tail.",
    source: "nimsync's mpsc benchmark (which timed a thread's own clock) and atomic_queue's charts",
    peers: &MPSC_PEERS,
    seconds: 120,
    run: mpsc,
    knobs: &[
        MPSC_AXES[0].knob,
        MPSC_AXES[1].knob,
        MPSC_AXES[2].knob,
        grid::MESSAGES.knob,
        grid::FULL,
    ],
    cells: Some(sides::open),
};

const MPSC_AXES: [Axis; 4] = [
    Axis::partly(
        "capacity",
        "1024",
        "64,256,1024,4096,unbounded",
        "capacities in all, or unbounded, as a list",
    ),
    Axis::partly(
        "producers",
        "2,4,8,32,100",
        "1,2,4,8,16,32,64,100",
        "threads that send, as a list",
    ),
    Axis::whole(
        "placement",
        "free,one_cpu",
        "free, one_cpu or split, as a list; by default one_cpu runs only 4 producers",
    ),
    grid::MESSAGES,
];

const MPSC_PEERS: [&str; 8] = [
    "crossbeam",
    "std",
    "flume",
    "kanal",
    "tokio",
    "disruptor",
    "vyukov",
    go_chan::NAME,
];
/// The peers that have an unbounded variant.
const UNBOUNDED: [&str; 5] = ["crossbeam", "std", "flume", "kanal", "tokio"];

/// Thalweg with few producers, for comparison with many.
const OURS_AT_4: &str = "thalweg@producers=4";
/// The number of producers from which the comparison is made.
const CROWD: u64 = 32;

/// Many threads to many.
pub const MPMC: Workload = Workload {
    name: "mpmc",
    group: "queue",
    what: "Several threads pass numbers to several others: both ends are shared.",
    source: "crossbeam's own grid; 5x3 is nimsync's, which ran it on one thread and lost 4,744 of 5,000",
    peers: &[
        "crossbeam",
        "kanal",
        "flume",
        "async-channel",
        "vyukov",
        go_chan::NAME,
    ],
    seconds: 80,
    run: mpmc,
    knobs: &[
        MPMC_AXES[0].knob,
        MPMC_AXES[1].knob,
        MPMC_AXES[2].knob,
        grid::MESSAGES.knob,
        grid::FULL,
    ],
    cells: Some(sides::open),
};

const MPMC_AXES: [Axis; 4] = [
    Axis::partly(
        "topology",
        "2x2,5x3,4x4",
        "2x2,5x3,1x4,4x1,4x4",
        "senders x receivers, as a list",
    ),
    Axis::whole("capacity", "1024", "capacities, as a list"),
    Axis::whole(
        "placement",
        "free,one_cpu",
        "free, one_cpu or split, as a list; by default one_cpu runs only 2x2",
    ),
    grid::MESSAGES,
];

/// Measures one point against `peers`, and notes how each waits.
fn measure<'a>(
    lab: &mut Lab,
    workload: &'a Workload,
    point: &Point,
    peers: &[&str],
    table: &[Subject],
    barred: bool,
    check: &str,
) -> Result<(Measured<'a>, Vec<Row>), Problem> {
    let placement = rows::process_placement(point.get("placement"))?;
    let subjects = grid::with_ours(peers);
    let cell = Cell::new(workload.name, &point.params(), &subjects).at(placement);
    let rigour = if barred { Rigour::Bar } else { Rigour::Look };
    let measured = rows::measure(lab, workload, cell, rigour)?;
    let mut all = measured.rows("ns", &[check]);
    rows::note_waiting(&mut all, table);
    Ok((measured, all))
}

/// The limit where all threads share one processor: against the fastest peer.
const ONE_CPU: Target = Target::Ratio(1.5);

fn spsc_threads(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let usual = grid.is_default(lab, &SPSC_AXES[3]);
    let mut all = Vec::new();
    for point in grid.points(lab, &SPSC_AXES) {
        let (capacity, batch) = (point.number("capacity")?, point.number("batch")?);
        let whole = point.get("partial") == "no";
        let placement = point.get("placement");
        // One message has no parts. A whole batch of more than half of the ring would make the
        // sides take turns.
        let skipped = whole && (batch == 1 || batch > capacity / 2);
        if skipped || (usual && batch > 1 && placement != "free") {
            continue;
        }
        let (table, mut names) = match batch {
            1 => (ONE_TO_ONE, peers(ONE_TO_ONE)),
            _ => (IN_BATCHES, peers(IN_BATCHES)),
        };
        if batch == 1 {
            names.push(go_chan::NAME);
        }
        // Its poller cannot wait for whole batches.
        names.retain(|name| !whole || *name != "disruptor");
        let barred = capacity == 1024 && placement != "split" && (batch == 1 || batch == 64);
        let (measured, mut rows) = measure(
            lab,
            &SPSC_THREADS,
            &point,
            &names,
            table,
            barred,
            CHECKED_ONE,
        )?;
        if batch > 1 {
            let text = "both sides move batches in place, under the same rule for parts, and look again at once";
            rows.iter_mut()
                .for_each(|row| row.checks.push(text.to_owned()));
        }
        let refusal = rows::refusal(lab);
        match (capacity, batch, placement) {
            (1024, 1, "free") => {
                rows::hold(&mut rows, "rtrb", &Target::Ratio(0.85), refusal);
                rows::hold(&mut rows, "rtrb_0_3", &Target::Ratio(1.1), refusal);
                rows::hold(&mut rows, "crossbeam", &Target::Ratio(0.5), refusal);
                let alone = measured.alone("ns", &[CHECKED_ONE]);
                rows.push(alone.held_to(&Target::Worst(1.5), refusal));
            }
            (1024, 64, "free") => rows::hold(&mut rows, "rtrb", &Target::Ratio(1.0), refusal),
            (1024, 1, "one_cpu") => hold_best(&mut rows, &ONE_CPU, lab.refusal()),
            _ => {}
        }
        all.extend(rows);
    }
    Ok(all)
}

fn mpsc(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let usual = grid.is_default(lab, &MPSC_AXES[2]);
    let mut all = Vec::new();
    for point in grid.points(lab, &MPSC_AXES) {
        let (producers, placement) = (point.number("producers")?, point.get("placement"));
        if usual && placement != "free" && producers != 4 {
            continue;
        }
        let crowd = producers >= CROWD && placement == "free";
        let mut names = match point.get("capacity") {
            "unbounded" => UNBOUNDED.to_vec(),
            _ => MPSC_PEERS.to_vec(),
        };
        names.extend(crowd.then_some(OURS_AT_4));
        let barred = point.get("capacity") == "1024" && [2, 4, 8, 32, 100].contains(&producers);
        let (measured, mut rows) =
            measure(lab, &MPSC, &point, &names, MANY_TO_ONE, barred, CHECKED_ONE)?;
        rows.retain(|row| row.peer.as_deref() != Some(OURS_AT_4));
        if barred && placement == "one_cpu" {
            hold_best(&mut rows, &ONE_CPU, lab.refusal());
        } else if barred && placement == "free" {
            let refusal = rows::refusal(lab);
            hold_best(&mut rows, &Target::Ratio(0.6), refusal);
            if crowd {
                let target = Target::Metric("cost_vs_4", 2.0);
                rows.push(beside_few(&measured).held_to(&target, refusal));
            }
        }
        all.extend(rows);
    }
    Ok(all)
}

/// Thalweg with many producers against Thalweg with 4, pair by pair.
fn beside_few(measured: &Measured<'_>) -> Row {
    let row = measured.alone("ns", &[CHECKED_ONE]);
    let many = measured.times_of(subjects::THALWEG);
    let few = measured.times_of(OURS_AT_4);
    let cost = many
        .zip(few)
        .and_then(|(many, few)| ratio_of_pairs(&many, &few));
    let mut metrics = Metrics::default();
    if let Some(Ratio { median, low, high }) = cost {
        metrics.estimate("cost_vs_4", median, Interval { low, high });
    }
    row.with_metrics("", metrics)
}

fn mpmc(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let usual = grid.is_default(lab, &MPMC_AXES[2]);
    let mut all = Vec::new();
    for point in grid.points(lab, &MPMC_AXES) {
        let (topology, placement) = (point.get("topology"), point.get("placement"));
        sides::topology(topology)?;
        if usual && placement != "free" && topology != "2x2" {
            continue;
        }
        let barred = point.get("capacity") == "1024"
            && ["2x2", "5x3", "4x4"].contains(&topology)
            && placement != "split";
        let (_, mut rows) = measure(
            lab,
            &MPMC,
            &point,
            MPMC.peers,
            MANY_TO_MANY,
            barred,
            CHECKED_MANY,
        )?;
        if barred && placement == "one_cpu" {
            hold_best(&mut rows, &ONE_CPU, lab.refusal());
        } else if barred {
            hold_best(&mut rows, &Target::Ratio(1.0), rows::refusal(lab));
        }
        all.extend(rows);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_lists_every_peer_of_its_table() {
        let listed = |workload: &Workload, table: &[Subject]| {
            let names = peers(table).into_iter().chain([go_chan::NAME]);
            let missing: Vec<_> = names
                .filter(|name| !workload.peers.contains(name))
                .collect();
            assert!(missing.is_empty(), "{}: {missing:?}", workload.name);
        };
        listed(&SPSC_THREADS, ONE_TO_ONE);
        listed(&MPSC, &MANY_TO_ONE[..MANY_TO_ONE.len() - 1]);
        listed(&MPMC, MANY_TO_MANY);
    }

    #[test]
    fn knobs_are_those_of_the_axes() {
        for (workload, axes) in [
            (&SPSC_THREADS, &SPSC_AXES[..]),
            (&MPSC, &MPSC_AXES),
            (&MPMC, &MPMC_AXES),
        ] {
            let knobs = workload.knobs.iter().map(|knob| knob.name);
            let axes = axes.iter().map(|axis| axis.knob.name).chain(["full"]);
            assert!(knobs.eq(axes), "{}", workload.name);
        }
    }
}
