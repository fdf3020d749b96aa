//! Claims of smarm's document about actors, and of nimsync's documents about tasks.

use super::claim::{Claim, Finding, Verdict};
use super::evidence::{Evidence, Missing, Point};
use crate::report::Row;
use crate::statistics::Ratio;

/// All claims of this module.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "actors-slower",
        whose: "smarm, page on benchmarks and tuning",
        says: "Actors with stacks are slower than tokio's tasks where many are spawned, sleep or yield: 70, 19 and 45 times in the three rows of spawning, \
               2.8 and 1.25 in those of yielding, 10 with 10,000 timers, 3.3 in a recursion.",
        made: TIMED,
        run: "chained_spawn ping_pong_oneshot spawn_storm_busy yield_many yield_in_hot_loop many_timers deep_recursion",
        theirs: &SLOWER_COLD,
        twin: &SLOWER_WARM,
        rule: "Holds where all seven take longer than tokio's with the runtime's start and stop in the time, and without. Does not hold where one is \
               faster: then stacks are not why.",
        judge: slower,
    },
    Claim {
        id: "actors-even",
        whose: "smarm, page on benchmarks and tuning",
        says: "Where actors compute they are even with tokio's tasks: 1.04 times the time.",
        made: TIMED,
        run: "fan_out_compute multi_thread_scaling",
        theirs: &[COMPUTE_COLD, SCALING_COLD],
        twin: &[COMPUTE_WARM, SCALING_WARM],
        rule: "Holds where the high ends of the intervals are at most 1.05, cold and warm; confounded where only the cold ones are.",
        judge: |evidence| {
            let even = |ratio: Ratio| ratio.high <= 1.05;
            both(
                evidence,
                &[COMPUTE_COLD, SCALING_COLD],
                &[COMPUTE_WARM, SCALING_WARM],
                even,
            )
        },
    },
    Claim {
        id: "actor-channels",
        whose: "smarm, page on benchmarks and tuning",
        says: "A channel between actors takes 0.53 of the time of tokio's with one sender, 0.52 with 32.",
        made: TIMED,
        run: "uncontended_channel mpsc_contention",
        theirs: &[ONE_COLD, MANY_COLD],
        twin: &[ONE_WARM, MANY_WARM],
        rule: "Holds where both take at most 0.53 of tokio's time with the runtime's start and stop in it, and without; confounded where only with it.",
        judge: |evidence| {
            let faster = |ratio: Ratio| ratio.median <= 0.53;
            both(
                evidence,
                &[ONE_COLD, MANY_COLD],
                &[ONE_WARM, MANY_WARM],
                faster,
            )
        },
    },
    Claim {
        id: "panics-4.8x",
        whose: "smarm, page on benchmarks and tuning",
        says: "Recovery from a panic is 4.8 times as fast as tokio's.",
        made: "10,000 actors or tasks that panic, one process each, with the start and stop of the runtime. 68 us a panic of tokio's and 14 of theirs, which leaves no room \
               for what the standard hook prints: the two did not print alike.",
        run: "catch_unwind_panics",
        theirs: &[PANICS_PRINTED],
        twin: &[PANICS_SILENT],
        rule: "Holds where a panic takes at most 1 / 4.8 of tokio's time with the same standard hook on both sides, and with one that is silent; \
               confounded where only with the first.",
        judge: |evidence| {
            let faster = |ratio: Ratio| ratio.median <= 1.0 / 4.8;
            both(evidence, &[PANICS_PRINTED], &[PANICS_SILENT], faster)
        },
    },
    Claim {
        id: "supervision-free",
        whose: "smarm, page on benchmarks and tuning",
        says: "A supervised actor costs essentially nothing more than one that nobody watches.",
        made: "No program of theirs compares the two.",
        run: "supervised_spawn",
        theirs: &[SUPERVISED_COLD],
        twin: &[SUPERVISED_WARM],
        rule: "Holds where the high end of the interval against joined actors is at most 1.05, cold and warm; confounded where only cold.",
        judge: |evidence| {
            both(evidence, &[SUPERVISED_COLD], &[SUPERVISED_WARM], |ratio| {
                ratio.high <= 1.05
            })
        },
    },
    Claim {
        id: "knobs-5-percent",
        whose: "smarm, page on benchmarks and tuning",
        says: "Time slice and allocation interval move most workloads by less than 5 % over the whole grid.",
        made: SWEPT,
        run: SWEEP,
        theirs: &[TIMERS_SWEPT, CHANNEL_SWEPT],
        twin: &[STORM_SWEPT, PANICS_SWEPT],
        rule: "Holds where the slowest point's median is less than 5 % above the fastest's, of the workloads that were said not to move, and of those that were; \
               confounded where only of the first.",
        judge: |evidence| {
            let few = |moves: &[f64]| moves.iter().all(|percent| *percent < 5.0);
            let (theirs, quiet) = spread(evidence, &[TIMERS_SWEPT, CHANNEL_SWEPT])?;
            let (twin, other) = spread(evidence, &[STORM_SWEPT, PANICS_SWEPT])?;
            Ok(Finding {
                theirs,
                twin,
                verdict: Verdict::of(few(&quiet), few(&other)),
            })
        },
    },
    Claim {
        id: "slices-10-percent",
        whose: "smarm, page on benchmarks and tuning",
        says: "Time slices of 200 us and more make a storm of spawns 11 to 15 % slower and panics 10 to 12 %; those of 50 us make timers 3 to 4 % faster.",
        made: SWEPT,
        run: SWEEP,
        theirs: &[STORM_SWEPT, PANICS_SWEPT],
        twin: &[TIMERS_SWEPT],
        rule: "Holds where the median of the points of 200 and 400 us is at least 10 % above that of 50 and 100 us in both, and timers are at least 3 % faster with 50 us than \
               with the rest; confounded where only the first is so.",
        judge: slices,
    },
    Claim {
        id: "spawn-100ns",
        whose: "nimsync, README (task groups)",
        says: "A task is started in less than 100 ns.",
        made: "No program of theirs measures it; its spawn does not compile.",
        run: "chained_spawn",
        theirs: &[SPAWN_1],
        twin: &[SPAWN_2],
        rule: "What is held to it is a spawn and its join, the runtime running: on one worker, and on two. Confounded where only the one is below 100 ns.",
        judge: |evidence| {
            const QUOTED: f64 = 100.0;
            let (one, two) = (evidence.row(&SPAWN_1)?, evidence.row(&SPAWN_2)?);
            let said = |row: &Row| format!("{:.0} ns a spawn and its join", row.subject_median);
            Ok(Finding {
                theirs: said(one),
                twin: said(two),
                verdict: Verdict::of(one.subject_median < QUOTED, two.subject_median < QUOTED),
            })
        },
    },
];

const TIMED: &str = "Wall time of a run with the start and stop of the runtime in it, the median of 15, against tokio's current_thread, on one processor.";
const SWEPT: &str = "Ten points of 32 to 512 allocations and 50 to 400 us (in cycles of 3 GHz), on one processor, each measured once.";
const SWEEP: &str = "sweep spawn_storm_busy catch_unwind_panics many_timers mpsc_contention";

/// A point of Thalweg against tokio.
macro_rules! at {
    ($workload:literal, $lifetime:literal, $workers:literal) => {
        at!($workload, $lifetime, $workers, "silent")
    };
    ($workload:literal, $lifetime:literal, $workers:literal, $hook:literal) => {
        Point::ours(
            $workload,
            &[
                ("allocator", "system"),
                ("drivers", "time"),
                ("hook", $hook),
                ("lifetime", $lifetime),
                ("workers", $workers),
            ],
        )
    };
}

/// The rows of a sweep, recognised by their allocator.
macro_rules! swept {
    ($workload:literal) => {
        Point::ours($workload, &[("allocator", "preempting")])
    };
}

const SLOWER_COLD: [Point; 7] = [
    at!("chained_spawn", "cold", "1"),
    at!("ping_pong_oneshot", "cold", "1"),
    at!("spawn_storm_busy", "cold", "1"),
    at!("yield_many", "cold", "1"),
    at!("yield_in_hot_loop", "cold", "1"),
    at!("many_timers", "cold", "1"),
    at!("deep_recursion", "cold", "1"),
];
const SLOWER_WARM: [Point; 7] = [
    at!("chained_spawn", "warm", "1"),
    at!("ping_pong_oneshot", "warm", "1"),
    at!("spawn_storm_busy", "warm", "1"),
    at!("yield_many", "warm", "1"),
    at!("yield_in_hot_loop", "warm", "1"),
    at!("many_timers", "warm", "1"),
    at!("deep_recursion", "warm", "1"),
];
const COMPUTE_COLD: Point = at!("fan_out_compute", "cold", "1");
const COMPUTE_WARM: Point = at!("fan_out_compute", "warm", "1");
const SCALING_COLD: Point = at!("multi_thread_scaling", "cold", "1");
const SCALING_WARM: Point = at!("multi_thread_scaling", "warm", "1");
const ONE_COLD: Point = at!("uncontended_channel", "cold", "1");
const ONE_WARM: Point = at!("uncontended_channel", "warm", "1");
const MANY_COLD: Point = at!("mpsc_contention", "cold", "1");
const MANY_WARM: Point = at!("mpsc_contention", "warm", "1");
const PANICS_PRINTED: Point = at!("catch_unwind_panics", "cold", "1", "default");
const PANICS_SILENT: Point = at!("catch_unwind_panics", "cold", "1");
const SUPERVISED_COLD: Point = at!("supervised_spawn", "cold", "1");
const SUPERVISED_WARM: Point = at!("supervised_spawn", "warm", "1");
const SPAWN_1: Point = at!("chained_spawn", "warm", "1");
const SPAWN_2: Point = at!("chained_spawn", "warm", "2");
const STORM_SWEPT: Point = swept!("spawn_storm_busy");
const PANICS_SWEPT: Point = swept!("catch_unwind_panics");
const TIMERS_SWEPT: Point = swept!("many_timers");
const CHANNEL_SWEPT: Point = swept!("mpsc_contention");

/// The ratio of the first row at `point`, against its first peer.
fn ratio(evidence: &Evidence<'_>, point: &Point) -> Result<Ratio, Missing> {
    let ratio = evidence.row(point)?.ratio;
    ratio.ok_or_else(|| Missing(format!("a ratio of {point}")))
}

/// The ratios at `points`, and their text: `chained_spawn 0.41 [0.40, 0.43], ..`.
fn ratios(evidence: &Evidence<'_>, points: &[Point]) -> Result<(String, Vec<Ratio>), Missing> {
    let found: Vec<Ratio> = points
        .iter()
        .map(|point| ratio(evidence, point))
        .collect::<Result<_, _>>()?;
    let said = points.iter().zip(&found).map(|(point, ratio)| {
        format!(
            "{} {:.2} [{:.2}, {:.2}]",
            point.workload, ratio.median, ratio.low, ratio.high
        )
    });
    Ok((said.collect::<Vec<_>>().join(", "), found))
}

/// Whether all of their rows, and all of the twin's rows, satisfy the condition.
fn both(
    evidence: &Evidence<'_>,
    theirs: &[Point],
    twin: &[Point],
    is_so: impl Fn(Ratio) -> bool,
) -> Result<Finding, Missing> {
    let (theirs, of_theirs) = ratios(evidence, theirs)?;
    let (twin, of_twin) = ratios(evidence, twin)?;
    let all = |ratios: Vec<Ratio>| ratios.into_iter().all(&is_so);
    Ok(Finding {
        theirs,
        twin,
        verdict: Verdict::of(all(of_theirs), all(of_twin)),
    })
}

fn slower(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    let found = both(evidence, &SLOWER_COLD, &SLOWER_WARM, |ratio| {
        ratio.low > 1.0
    })?;
    // A workload that is faster without start and stop refutes the claim just as one that is faster
    // with them.
    let verdict = match found.verdict {
        Verdict::Confounded => Verdict::DoesNotHold,
        other => other,
    };
    Ok(Finding { verdict, ..found })
}

/// The difference in percent between the slowest and the fastest point of each sweep.
fn spread(evidence: &Evidence<'_>, points: &[Point]) -> Result<(String, Vec<f64>), Missing> {
    let mut said = Vec::new();
    let mut moves = Vec::new();
    for point in points {
        let medians = || -> Result<_, Missing> {
            let rows = evidence.rows(point)?;
            Ok(rows.into_iter().map(|row| row.subject_median))
        };
        let least = medians()?.fold(f64::INFINITY, f64::min);
        let most = medians()?.fold(0.0, f64::max);
        let percent = 100.0 * (most / least - 1.0);
        said.push(format!("{} {percent:.1} %", point.workload));
        moves.push(percent);
    }
    Ok((
        format!("from the fastest to the slowest: {}", said.join(", ")),
        moves,
    ))
}

/// The mean of the medians at the points with one of these slices.
fn with_slices(evidence: &Evidence<'_>, point: &Point, slices: &[&str]) -> Result<f64, Missing> {
    let rows = evidence.rows(point)?;
    let medians: Vec<f64> = rows
        .into_iter()
        .filter(|row| {
            let slice = row.params.get("THALWEG_TIMESLICE");
            slice.is_some_and(|slice| slices.contains(&slice.as_str()))
        })
        .map(|row| row.subject_median)
        .collect();
    if medians.is_empty() {
        return Err(Missing(format!(
            "{point} THALWEG_TIMESLICE={}",
            slices.join(", ")
        )));
    }
    Ok(medians.iter().sum::<f64>() / medians.len() as f64)
}

fn slices(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const SHORT: [&str; 2] = ["50us", "100us"];
    const LONG: [&str; 2] = ["200us", "400us"];
    let slower = |point| -> Result<f64, Missing> {
        let (long, short) = (
            with_slices(evidence, point, &LONG)?,
            with_slices(evidence, point, &SHORT)?,
        );
        Ok(100.0 * (long / short - 1.0))
    };
    let (storm, panics) = (slower(&STORM_SWEPT)?, slower(&PANICS_SWEPT)?);
    let shortest = with_slices(evidence, &TIMERS_SWEPT, &["50us"])?;
    let rest = with_slices(evidence, &TIMERS_SWEPT, &["100us", "200us", "400us"])?;
    let timers = 100.0 * (1.0 - shortest / rest);
    Ok(Finding {
        theirs: format!(
            "with long slices spawn_storm_busy takes {storm:+.1} %, catch_unwind_panics {panics:+.1} %"
        ),
        twin: format!("with slices of 50 us many_timers takes {:+.1} %", -timers),
        verdict: Verdict::of(storm.min(panics) >= 10.0, timers >= 3.0),
    })
}
