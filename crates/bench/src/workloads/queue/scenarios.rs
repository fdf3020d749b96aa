//! The scenarios of a public suite for channels, each as that suite measured it, on one thread, and
//! as its name says, between threads: `spsc_same_thread`, `burst`, `sizes`, `stress`,
//! `concurrent_access`.
//!
//! On one thread nothing crosses between processors, and the ring contains at most the burst.
//! Between two threads of `burst`, the sender waits after each burst until the receiver confirms
//! it, so the time includes the way there and back.

use crate::cell::Cell;
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes::{self, PROCESSES, times};
use crate::report::{Row, Winner};
use crate::statistics::{Samples, median};
use crate::workloads::Workload;

use thalweg_peers::versions;

use super::grid::{self, Axis, Grid, Point};
use super::numbers::{CHECKED_ONE, CHECKED_SAME_THREAD};
use super::rows::{self, Measured, Rigour};
use super::sides::{self, INLINED};
use super::subjects::THALWEG;

const RINGS: [&str; 2] = ["rtrb", "crossbeam"];

/// One thread, or one on each side.
const THREADS: Axis = Axis::whole("threads", "1,2", "threads: 1 or 2, as a list");

const fn scenario(
    name: &'static str,
    what: &'static str,
    source: &'static str,
    seconds: u32,
) -> Workload {
    Workload {
        name,
        group: "queue",
        what,
        source,
        peers: &RINGS,
        seconds,
        cells: Some(sides::open),
        ..Workload::USUAL
    }
}

/// Push then pop on one thread.
pub const SPSC_SAME_THREAD: Workload = Workload {
    peers: &["rtrb", "rtrb_0_3", "crossbeam", "c11_ring", INLINED],
    run: spsc_same_thread,
    knobs: &[POINT.knob, grid::FULL],
    ..scenario(
        "spsc_same_thread",
        "Push then pop on one thread: the instructions of a hand-off without the hand-off.",
        "nimsync's benchmark_spsc_simple, which counts both halves and quotes 615 M op/s",
        60,
    )
};

/// The points for which other projects quote figures, too.
const POINT: Axis = Axis::whole(
    "point",
    "1024:timed,16:10000000,1024:10000000,1024:100000000",
    "capacity:messages, as a list",
);

/// Messages in bursts; the next burst starts when the previous one has been received.
pub const BURST: Workload = Workload {
    run: burst,
    knobs: &[
        BURST_AXES[0].knob,
        BURST_AXES[1].knob,
        BURST_AXES[2].knob,
        grid::FULL,
    ],
    ..scenario(
        "burst",
        "Bursts of 100 to 500 numbers, on one thread and between two.",
        "nimsync's benchmark_burst: 100 bursts on one thread, 385 M op/s with both halves counted",
        30,
    )
};

const BURST_AXES: [Axis; 3] = [
    Axis::whole("items", "100,250,500", "numbers per burst, as a list"),
    Axis::partly("bursts", "100", "100,10000", "bursts per run, as a list"),
    THREADS,
];

/// The best capacity, and whether the difference is significant.
pub const SIZES: Workload = Workload {
    run: sizes,
    knobs: &[SIZES_AXES[0].knob, SIZES_AXES[1].knob, grid::FULL],
    ..scenario(
        "sizes",
        "Capacities of 8 to 4,096 on one thread and between two: the best, and whether its interval separates it from the next.",
        "nimsync's benchmark_sizes, whose ring never held more than one number, so that its best size was noise",
        60,
    )
};

const SIZES_AXES: [Axis; 2] = [
    Axis::partly(
        "messages",
        "100000",
        "100000,10000000",
        "messages a run, as a list",
    ),
    THREADS,
];
const CAPACITIES: [usize; 10] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Threads that never wait, and how often they find the ring full or empty.
pub const STRESS: Workload = Workload {
    run: stress,
    knobs: &[STRESS_AXES[0].knob, STRESS_AXES[1].knob, grid::FULL],
    ..scenario(
        "stress",
        "Threads that retry without waiting: throughput, and the share of tries that failed.",
        "nimsync's benchmark_stress, whose one thread could never fail and was quoted as 0 % contention",
        90,
    )
};

const STRESS_AXES: [Axis; 2] = [
    Axis::whole(
        "messages",
        "100000,250000,500000,10000000",
        "messages a run, as a list",
    ),
    THREADS,
];

/// Ten channels of capacity 128: one after the other on one thread as in the quoted benchmark, and
/// by ten pairs of threads at once.
pub const CONCURRENT_ACCESS: Workload = Workload {
    run: concurrent_access,
    knobs: &[EACH.knob, grid::FULL],
    ..scenario(
        "concurrent_access",
        "Ten channels at once: on one thread as in the quoted benchmark, and on ten pairs of threads as its name says.",
        "nimsync's spawn_stress_test: ten channels one after another on one thread, 31 M op/s",
        40,
    )
};

const EACH: Axis = Axis::partly(
    "each",
    "1000000",
    "10000000",
    "messages per pair of threads",
);

fn measure<'a>(
    lab: &mut Lab,
    workload: &'a Workload,
    point: &Point,
    rigour: Rigour,
) -> Result<(Measured<'a>, Vec<Row>), Problem> {
    let subjects = grid::with_ours(workload.peers);
    let cell = Cell::new(workload.name, &point.params(), &subjects);
    let measured = rows::measure(lab, workload, cell, rigour)?;
    let mut all = measured.rows("ns", &[checked(point)]);
    if is_alone(point) {
        for row in &mut all {
            // Both halves count, as in the benchmarks that the figures come from.
            let both = 2e9 / row.subject_median;
            row.metrics.insert("both_halves_per_s".to_owned(), both);
        }
    } else {
        rows::note_waiting(&mut all, sides::ONE_TO_ONE);
    }
    Ok((measured, all))
}

fn is_alone(point: &Point) -> bool {
    point.get("threads") == "1" || point.get("twin") == "verbatim"
}

fn checked(point: &Point) -> &'static str {
    if is_alone(point) {
        CHECKED_SAME_THREAD
    } else {
        CHECKED_ONE
    }
}

fn fixed(params: &[(&'static str, &str)]) -> Point {
    params
        .iter()
        .fold(Point::default(), |point, (name, value)| {
            point.with(name, value)
        })
}

/// The quoted figure, in operations: a push is one, a pop is another.
const QUOTED: f64 = 615e6;

fn spsc_same_thread(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let grid = Grid::of(lab)?;
    let mut all = Vec::new();
    for point in grid.words(lab, &POINT.knob, POINT.all) {
        let (capacity, messages) = point.split_once(':').ok_or_else(|| {
            Problem::Usage(format!("a point is capacity:messages, not `{point}`"))
        })?;
        let point = fixed(&[
            ("capacity", capacity),
            ("messages", messages),
            ("threads", "1"),
        ]);
        let barred = messages == "timed";
        let rigour = if barred { Rigour::Bar } else { Rigour::Look };
        let (_, mut rows) = measure(lab, &SPSC_SAME_THREAD, &point, rigour)?;
        for row in &mut rows {
            let vs = row.metrics["both_halves_per_s"] / QUOTED;
            row.metrics.insert("vs_615m_per_s".to_owned(), vs);
            if row.peer.as_deref() == Some(INLINED) {
                let text = "the peer's loop is in C, with the ring inlined";
                row.checks.push(text.to_owned());
            }
        }
        if barred {
            rows::hold(&mut rows, "rtrb", &Target::Ratio(1.1), lab.refusal());
        }
        all.extend(rows);
    }
    Ok(all)
}

fn burst(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &BURST_AXES) {
        let point = point.with("capacity", "1024");
        all.extend(measure(lab, &BURST, &point, Rigour::Look)?.1);
    }
    Ok(all)
}

fn stress(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let tries =
        "failed tries are sums over a sample's runs; a failed try is followed by a spin hint";
    let mut all = Vec::new();
    for point in Grid::of(lab)?.points(lab, &STRESS_AXES) {
        let more = [
            ("capacity", "1024"),
            ("placement", "free"),
            ("calls", "try"),
        ];
        let point = more
            .iter()
            .fold(point, |point, (name, value)| point.with(name, value));
        let rows = measure(lab, &STRESS, &point, Rigour::Look)?.1;
        all.extend(rows.into_iter().map(|row| row.checked(tries)));
    }
    Ok(all)
}

/// The total of all channels of `concurrent_access`; a message is one operation here, not two.
const TOGETHER: Target = Target::AtLeast("ops_per_s", 30e6);

fn concurrent_access(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let each = Grid::of(lab)?.words(lab, &EACH.knob, EACH.all).join(",");
    let mut all = Vec::new();
    for (twin, each) in [("verbatim", "10000"), ("threads", each.as_str())] {
        let point = fixed(&[
            ("twin", twin),
            ("channels", "10"),
            ("capacity", "128"),
            ("each", each),
        ]);
        let (measured, rows) = measure(lab, &CONCURRENT_ACCESS, &point, Rigour::Look)?;
        all.extend(rows);
        let alone = measured.alone("ns", &[checked(&point)]);
        all.push(alone.held_to(&TOGETHER, lab.refusal()));
    }
    Ok(all)
}

/// All capacities take turns in one process. The last row compares the best with the next best.
fn sizes(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    for peer in RINGS {
        lab.peers.insert(peer.to_owned(), versions::of(peer));
    }
    let names = grid::with_ours(&RINGS);
    let with = |capacity| {
        let names = names.iter();
        names.map(move |name| format!("{name}@capacity={capacity}"))
    };
    let subjects: Vec<String> = CAPACITIES.iter().flat_map(with).collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for point in Grid::of(lab)?.points(lab, &SIZES_AXES) {
        let point = point.with("placement", "free");
        let cell = Cell::new(SIZES.name, &point.params(), &subjects);
        let taken = processes::sample(lab, &cell, lab.plan(None), PROCESSES)?;
        let mut ours = Vec::new();
        for (capacity, samples) in CAPACITIES.iter().zip(taken.chunks(names.len())) {
            let of_capacity = point.clone().with("capacity", &capacity.to_string());
            for (peer, of_peer) in RINGS.iter().zip(&samples[1..]) {
                let mut row = Row::new(
                    (SIZES.name, SIZES.group),
                    &of_capacity.params(),
                    "ns",
                    (THALWEG, times(&samples[0])),
                    Some((peer, times(of_peer))),
                )
                .checked(checked(&point));
                row.add_metrics("", processes::metrics(&samples[0]));
                rows.push(row);
            }
            ours.push((*capacity, times(&samples[0])));
        }
        rows.push(best(ours, point));
    }
    Ok(rows)
}

/// The best capacity against the next best. The lists belong to the same rounds.
fn best(mut ours: Vec<(usize, Samples)>, point: Point) -> Row {
    let of = |samples: &[f64]| median(samples).unwrap_or(f64::INFINITY);
    ours.sort_by(|a, b| of(&a.1).total_cmp(&of(&b.1)));
    let mut ours = ours.into_iter();
    let (best, samples) = ours.next().expect("there are ten capacities");
    let (next, of_next) = ours.next().expect("there are ten capacities");
    let (subject, peer) = (format!("{THALWEG}@{best}"), format!("{THALWEG}@{next}"));
    let mut row = Row::new(
        (SIZES.name, SIZES.group),
        &point.with("capacity", "best").params(),
        "ns",
        (&subject, samples),
        Some((&peer, of_next)),
    );
    row.metrics.insert("best_capacity".to_owned(), best as f64);
    row.metrics.insert("next_capacity".to_owned(), next as f64);
    let separated = row.winner == Some(Winner::Subject);
    row.checked(if separated {
        "the interval separates the best size from the next"
    } else {
        "the interval does not separate the best size from the next: no size is better"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_better_if_the_interval_contains_one() {
        let steady = |ns: f64| Samples::from(vec![ns; 5]);
        let row = best(
            vec![(8, steady(9.0)), (16, steady(3.0)), (32, steady(4.0))],
            Point::default(),
        );
        assert_eq!(row.subject, "thalweg@16");
        assert_eq!(row.peer.as_deref(), Some("thalweg@32"));
        assert!(row.checks[0].starts_with("the interval separates"));
        let shaky = vec![2.0, 4.1, 2.0, 4.1, 3.0];
        let row = best(
            vec![(8, shaky.into()), (16, steady(3.1)), (32, steady(9.0))],
            Point::default(),
        );
        assert_eq!(row.metrics["best_capacity"], 8.0);
        assert!(
            row.checks[0].ends_with("no size is better"),
            "{:?}",
            row.ratio
        );
    }

    #[test]
    fn runs_that_were_missing_are_in_the_default_grids() {
        let lab = Lab::new(true, None);
        let grid = Grid::of(&lab).unwrap();
        for axes in [&STRESS_AXES, &SIZES_AXES] {
            let points = grid.points(&lab, axes);
            assert!(points.iter().any(|point| point.get("threads") == "1"));
        }
        assert_eq!(grid.points(&lab, &STRESS_AXES).len(), 8);
        for point in ["16:10000000", "1024:10000000", "1024:100000000"] {
            assert!(POINT.knob.default.contains(point));
        }
    }
}
