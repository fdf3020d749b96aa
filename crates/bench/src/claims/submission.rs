//! Claims of nim-ffi's documents about submission.
//!
//! All three are scalings: the submissions per second of several producers, as a multiple of one
//! producer's. With fewer processors than producers, a scaling depends on the scheduler as much as
//! on the queue, so a small machine shows the figures without a verdict. Two processors are enough
//! to show whether a comparison changed one thing or two.

use super::claim::{Claim, Finding, Verdict, rate};
use super::evidence::{Evidence, Missing, Point};
use crate::report::Row;

/// All claims of this module.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "lock-flat",
        whose: "nim-ffi, README of its benchmarks",
        says: "Where one lock is held until the request was accepted, submission is flat: 0.98 to 1.16 of one producer's, with up to 8.",
        made: "K threads of 20,000 no-op requests each, from the start gate to the last return; median of 5, 16 cores.",
        run: "ablation",
        theirs: &[LOCK],
        twin: &[SHARDS],
        rule: "Does not hold where the lock's 8 producers do more than 1.16 of one. Else it holds where the shards, in the same rounds, do more than \
               that, and is confounded where they do not: then the flatness is not the lock's. Not testable with fewer than 8 processors.",
        judge: lock,
    },
    Claim {
        id: "shards-8x",
        whose: "nim-ffi, README of its benchmarks",
        says: "Sharding the ingress gives 8.2 times one producer's submissions with 8 producers (11.4 with 64).",
        made: "As above, 10 cores, 16 shards behind a mutex each, a wake-up only where a shard stops being empty: two changes at once. 11.4 on 10 cores is \
               more than linear, so that the one producer's figure was a low one.",
        run: "ablation",
        theirs: &[SHARDS],
        twin: &[VYUKOV_EDGE, STACK_EDGE, SHARDS_ALWAYS],
        rule: "Holds where 8 producers do 8 times one's and no structure without shards does so under the same rule of waking; confounded where one \
               does. Not testable with fewer than 8 processors.",
        judge: shards,
    },
    Claim {
        id: "lock-free-collapse",
        whose: "nim-ffi, README of its benchmarks",
        says: "A lock-free queue with one hot spot collapses: 0.2 of one producer's submissions with 8 producers, 0.1 from 32 on.",
        made: "A Vyukov queue with a wake-up for each request, against shards with a wake-up on the edge: structure and rule were changed together.",
        run: "ablation",
        theirs: &[VYUKOV_ALWAYS],
        twin: &[VYUKOV_EDGE],
        rule: "Confounded where the queue as they had it is slower than the shards, and the rule of waking alone makes a difference that \
               the intervals tell: with it changed and the queue left as it is, the two intervals do not meet. Else, from 8 processors up, it holds where \
               8 producers do at most 0.2 of one under both rules. Not testable else.",
        judge: collapse,
    },
];

const fn at_8(wake: &'static str) -> Point {
    let params: &[(&str, &str)] = match wake.as_bytes() {
        b"always" => &[("producers", "8"), ("wake", "always")],
        _ => &[("producers", "8"), ("wake", "edge")],
    };
    Point::ours("ablation", params)
}

const LOCK: Point = at_8("edge").of("global_lock");
const SHARDS: Point = at_8("edge").of("mutex_shards");
const SHARDS_ALWAYS: Point = at_8("always").of("mutex_shards");
const VYUKOV_EDGE: Point = at_8("edge").of("vyukov");
const VYUKOV_ALWAYS: Point = at_8("always").of("vyukov");
const STACK_EDGE: Point = at_8("edge").of("take_all");

/// With fewer processors than this, 8 producers cannot run at once.
const PROCESSORS: usize = 8;

fn scaling(evidence: &Evidence<'_>, point: &Point) -> Result<f64, Missing> {
    evidence.metric(point, "scaling_vs_1")
}

/// `0.42 (1.2 M/s)`.
fn said(evidence: &Evidence<'_>, point: &Point) -> Result<String, Missing> {
    let scaling = scaling(evidence, point)?;
    let per_s = 1e9 / evidence.row(point)?.subject_median;
    Ok(format!("{scaling:.2} ({}/s)", rate(per_s)))
}

/// The reason why scalings get no verdict on this machine, if there is one.
fn too_few(evidence: &Evidence<'_>) -> Option<Verdict> {
    let processors = evidence.processors();
    (processors < PROCESSORS)
        .then(|| Verdict::NotTestable(format!("{processors} processors for 8 producers")))
}

fn lock(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const FLAT: f64 = 1.16;
    let (of_lock, of_shards) = (scaling(evidence, &LOCK)?, scaling(evidence, &SHARDS)?);
    let verdict = too_few(evidence).unwrap_or(if of_lock > FLAT {
        Verdict::DoesNotHold
    } else if of_shards > FLAT {
        Verdict::Holds
    } else {
        Verdict::Confounded
    });
    Ok(Finding {
        theirs: format!(
            "8 producers submit {} of one under the lock",
            said(evidence, &LOCK)?
        ),
        twin: format!(
            "mutex shards in the same rounds: {}",
            said(evidence, &SHARDS)?
        ),
        verdict,
    })
}

fn shards(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 8.0;
    let reached = scaling(evidence, &SHARDS)? >= QUOTED;
    let unsharded = scaling(evidence, &VYUKOV_EDGE)?.max(scaling(evidence, &STACK_EDGE)?);
    let completed = evidence.metric(&SHARDS, "completed_per_s")?;
    Ok(Finding {
        theirs: format!(
            "8 producers submit {} of one; {}/s are completed",
            said(evidence, &SHARDS)?,
            rate(completed)
        ),
        twin: format!(
            "without shards, woken on the edge: Vyukov's queue {}, a stack taken whole {}; shards woken for each request {}",
            said(evidence, &VYUKOV_EDGE)?,
            said(evidence, &STACK_EDGE)?,
            said(evidence, &SHARDS_ALWAYS)?
        ),
        verdict: too_few(evidence).unwrap_or_else(|| Verdict::of(reached, unsharded < QUOTED)),
    })
}

fn collapse(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const COLLAPSED: f64 = 0.2;
    let (always, edge) = (evidence.row(&VYUKOV_ALWAYS)?, evidence.row(&VYUKOV_EDGE)?);
    let against_shards = |row: &Row, point: &Point| {
        row.ratio
            .ok_or_else(|| Missing(format!("a ratio of {point}")))
    };
    let as_published = against_shards(always, &VYUKOV_ALWAYS)?;
    let same_rule = against_shards(edge, &VYUKOV_EDGE)?;
    // Both ratios are against the same shards in the same rounds, so the wake-up rule is the only
    // difference between them.
    let slower = as_published.low > 1.0;
    let the_rule = as_published.low > same_rule.high;
    let collapsed = |point| Ok(scaling(evidence, point)? <= COLLAPSED);
    let (by_theirs, by_twin) = (collapsed(&VYUKOV_ALWAYS)?, collapsed(&VYUKOV_EDGE)?);
    let verdict = if slower && the_rule && !by_twin {
        Verdict::Confounded
    } else {
        too_few(evidence).unwrap_or_else(|| Verdict::of(by_theirs, by_twin))
    };
    Ok(Finding {
        theirs: format!(
            "woken for each request, 8 producers submit {} of one, in {:.2} of the shards' time [{:.2}, {:.2}]",
            said(evidence, &VYUKOV_ALWAYS)?,
            as_published.median,
            as_published.low,
            as_published.high
        ),
        twin: format!(
            "woken on the edge, as the shards are: {} of one, in {:.2} of the shards' time [{:.2}, {:.2}]",
            said(evidence, &VYUKOV_EDGE)?,
            same_rule.median,
            same_rule.low,
            same_rule.high
        ),
        verdict,
    })
}
