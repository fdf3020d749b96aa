//! Claims of nimsync's documents about channels.

use super::claim::{Claim, Finding, Verdict, rate};
use super::evidence::{Evidence, Missing, Point};
use crate::report::{Row, Winner};

/// All claims of this module.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "spsc-615m",
        whose: "nimsync, README of its benchmarks",
        says: "A one-to-one channel does 615 M operations a second.",
        made: SAME_THREAD_MADE,
        run: "spsc_same_thread spsc_threads",
        theirs: &[SAME_THREAD],
        twin: &[TWO_THREADS],
        rule: SPSC_RULE,
        judge: |evidence| spsc(evidence, 615e6),
    },
    Claim {
        id: "spsc-558m",
        whose: "nimsync, README",
        says: "The same, with 558 M. Other places in the repository have 190 M, 213 M, 217 M, 593 M and 600 M.",
        made: SAME_THREAD_MADE,
        run: "spsc_same_thread spsc_threads",
        theirs: &[SAME_THREAD],
        twin: &[TWO_THREADS],
        rule: SPSC_RULE,
        judge: |evidence| spsc(evidence, 558e6),
    },
    Claim {
        id: "latency-30ns",
        whose: "nimsync, README of its benchmarks",
        says: "Half of all messages take 30 ns or less (20 ns in another place).",
        made: "One thread reads the clock, pushes, pops and reads the clock, 10,000 times: what is timed is a reading of the clock and a pair of calls.",
        run: "spsc_same_thread spsc_latency",
        theirs: &[SAME_THREAD],
        twin: &[ROUND_TRIP],
        rule: "Holds where their sum and half a round trip between two threads that spin are both 30 ns at most; confounded where only \
               the sum is.",
        judge: latency,
    },
    Claim {
        id: "burst-300m",
        whose: "nimsync, README of its benchmarks",
        says: "Bursts go through at 300 M operations a second (385 M and 408 M in other places).",
        made: "One thread pushes 500 and then pops 500, 100 times; a push is one operation, a pop another. That is 100,000 operations, a fraction \
               of a millisecond, timed once.",
        run: "burst",
        theirs: &[BURST_ALONE],
        twin: &[BURST_THREADS],
        rule: "Holds where one thread and two threads both reach 300 M with both halves counted; confounded where only the one does.",
        judge: burst,
    },
    Claim {
        id: "best-size",
        whose: "nimsync, README of its benchmarks",
        says: "A channel is fastest with 2,048 slots (4,096 in another place).",
        made: "The largest of ten figures, one a capacity, each taken once on one thread. The ring never held more than one message, so its capacity \
               could not matter.",
        run: "sizes",
        theirs: &[BEST_SIZE],
        twin: &[BEST_SIZE],
        rule: "Holds where 2,048 or 4,096 is the best of the same ten between two threads, and the interval separates it from the next; \
               confounded where it is the best and the interval does not.",
        judge: best_size,
    },
    Claim {
        id: "contention-0",
        whose: "nimsync, README of its benchmarks",
        says: "At the greatest load there is 0 % contention.",
        made: "The share of pushes and pops that failed, of one thread that pushes and pops in turns. None can fail, whatever the queue.",
        run: "stress",
        theirs: &[],
        twin: &[STRESS],
        rule: "Theirs is 0 by construction, so it is never more than confounded, unless two threads that try as fast as they can fail \
               in less than 0.005 % of their tries, too.",
        judge: contention,
    },
    Claim {
        id: "async-512k",
        whose: "nimsync, README of its benchmarks",
        says: "Between asynchronous tasks a channel does 512 K messages a second at its peak.",
        made: "Two coroutines on one thread, capacity 1,024: what has to wait looks again after a sleep of 1 ms and more, but with a buffer this \
               large it rarely waits. A message is one operation.",
        run: "async_channel",
        theirs: &[TASKS],
        twin: &[TASKS_16, TASKS_THREADS],
        rule: "Holds where 1,024 slots on one thread reach 512 K, and 16 slots do, on one thread and on two; confounded where only the first does.",
        judge: tasks,
    },
    Claim {
        id: "together-30m",
        whose: "nimsync, README of its benchmarks (stress tests)",
        says: "Ten channels that are used at once do more than 30 M operations a second together.",
        made: "One thread pushes and pops 10,000 times through a channel of 128, then through the next, ten in all: nothing is used at once.",
        run: "concurrent_access",
        theirs: &[TEN_ALONE],
        twin: &[TEN_PAIRS],
        rule: "Holds where one thread and ten pairs of threads both move more than 30 M messages a second; confounded where only the one does.",
        judge: together,
    },
    Claim {
        id: "memory-1kb",
        whose: "nimsync, README of its benchmarks (baseline results)",
        says: "A channel takes less than 1 KB.",
        made: "No program of theirs measures it.",
        run: "channel_memory",
        theirs: &[CHANNEL_BYTES],
        twin: &[STRINGS_LEFT],
        rule: "Holds where every kind of channel takes less than 1,024 bytes for 16 numbers, and less than 1 % is left in an empty one of 1,000 \
               strings of 100 KB; confounded where only the first is so.",
        judge: memory,
    },
    Claim {
        id: "overflow-100",
        whose: "nimsync, its backpressure test",
        says: "10,000 messages into 16 slots: a success rate of 100 %, and fair scheduling.",
        made: "Received in per cent of what the ring took, on one thread. What was refused does not count: 8,400 of the 10,000.",
        run: "overflow",
        theirs: &[REFUSING],
        twin: &[REFUSING, SHARING],
        rule: "Theirs is 100 % of what was taken, in any run whose check holds. Holds where as many were delivered as published, and of four senders \
               the smallest share is at least half the largest; else confounded.",
        judge: overflow,
    },
    Claim {
        id: "suite-30s",
        whose: "nimsync, README of its benchmarks",
        says: "All seven benchmarks are done in less than 30 seconds.",
        made: "By the clock. The seven take a few samples each, and of seconds at most.",
        run: "--quick spsc_same_thread spsc_latency burst sizes stress sustained async_channel",
        theirs: &[],
        twin: &[],
        rule: "Time the command. A result file does not say how long its run took.",
        judge: |_| {
            Ok(Finding {
                theirs: NONE.to_owned(),
                twin: NONE.to_owned(),
                verdict: Verdict::NotTestable(
                    "result files do not say how long a run took".to_owned(),
                ),
            })
        },
    },
];

/// The text for a missing figure.
pub const NONE: &str = "none";

const SAME_THREAD_MADE: &str = "One thread pushes and pops in turns, so that the ring never holds more than one message; a push is one operation, a pop another. The best of three.";
const SPSC_RULE: &str = "Holds where one thread and two threads both reach it with both halves counted; confounded where only the one does: then it is \
     a figure of instructions, and not of a hand-over.";

const SAME_THREAD: Point = Point::ours(
    "spsc_same_thread",
    &[("capacity", "1024"), ("messages", "timed")],
);
const TWO_THREADS: Point = Point::ours(
    "spsc_threads",
    &[("capacity", "1024"), ("batch", "1"), ("placement", "free")],
);
const ROUND_TRIP: Point = Point::ours("spsc_latency", &[("mode", "spin"), ("placement", "free")]);
const BURST_ALONE: Point = Point::ours(
    "burst",
    &[("items", "500"), ("bursts", "100"), ("threads", "1")],
);
const BURST_THREADS: Point = Point::ours(
    "burst",
    &[("items", "500"), ("bursts", "100"), ("threads", "2")],
);
const BEST_SIZE: Point = Point {
    workload: "sizes",
    params: &[("capacity", "best"), ("messages", "100000")],
    subject: None,
};
const STRESS: Point = Point::ours("stress", &[("messages", "500000")]);
const TASKS: Point = Point::ours(
    "async_channel",
    &[
        ("capacity", "1024"),
        ("messages", "timed"),
        ("runtime", "current_thread"),
        ("placement", "free"),
    ],
);
const TASKS_16: Point = Point::ours(
    "async_channel",
    &[
        ("capacity", "16"),
        ("messages", "timed"),
        ("runtime", "current_thread"),
        ("placement", "free"),
    ],
);
const TASKS_THREADS: Point = Point::ours(
    "async_channel",
    &[
        ("capacity", "16"),
        ("messages", "timed"),
        ("runtime", "multi_thread"),
        ("placement", "free"),
    ],
);
const TEN_ALONE: Point = Point::ours("concurrent_access", &[("twin", "verbatim")]);
const TEN_PAIRS: Point = Point::ours("concurrent_access", &[("twin", "threads")]);
const CHANNEL_BYTES: Point = Point::ours("channel_memory", &[("payload", "u64")]);
const STRINGS_LEFT: Point = Point::ours("channel_memory", &[("payload", "strings of 100 KB")]);
const REFUSING: Point = Point::ours(
    "overflow",
    &[("channel", "spsc"), ("policy", "fail"), ("producers", "1")],
);
const SHARING: Point = Point::ours(
    "overflow",
    &[("channel", "mpsc"), ("policy", "block"), ("producers", "4")],
);

/// Messages per second of a row whose medians are nanoseconds per message.
fn per_s(row: &Row) -> f64 {
    1e9 / row.subject_median
}

/// The peers of these rows, with `times` operations per message: `; rtrb 412 M, crossbeam 80 M`.
fn peers(rows: &[&Row], times: f64) -> String {
    let of = |row: &&Row| {
        let per_s = times * 1e9 / row.peer_median?;
        Some(format!("{} {}", row.peer.as_ref()?, rate(per_s)))
    };
    let said: Vec<String> = rows.iter().filter_map(of).collect();
    if said.is_empty() {
        String::new()
    } else {
        format!("; {}", said.join(", "))
    }
}

fn spsc(evidence: &Evidence<'_>, quoted: f64) -> Result<Finding, Missing> {
    let (alone, two) = (evidence.rows(&SAME_THREAD)?, evidence.rows(&TWO_THREADS)?);
    let (by_theirs, messages) = (2.0 * per_s(alone[0]), per_s(two[0]));
    Ok(Finding {
        theirs: format!(
            "{} op/s on one thread, both halves counted{}",
            rate(by_theirs),
            peers(&alone, 2.0)
        ),
        twin: format!(
            "{} messages/s between two threads, {} op/s with both halves counted (messages/s{})",
            rate(messages),
            rate(2.0 * messages),
            peers(&two, 1.0)
        ),
        verdict: Verdict::of(by_theirs >= quoted, 2.0 * messages >= quoted),
    })
}

fn latency(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 30.0;
    let pair = evidence.row(&SAME_THREAD)?.subject_median;
    let clock = evidence
        .clock_ns()
        .ok_or_else(|| Missing("what a reading of the clock costs".to_owned()))?;
    let trip = evidence.metric(&ROUND_TRIP, "p50_ns")?;
    let rows = evidence.rows(&ROUND_TRIP)?;
    let floor = rows
        .iter()
        .find(|row| row.peer.as_deref() == Some("atomics"))
        .and_then(|row| row.metrics.get("peer_p50_ns"));
    let floor = floor.map_or(String::new(), |ns| {
        format!("; two words in memory, the floor: {:.0} ns", ns / 2.0)
    });
    Ok(Finding {
        theirs: format!(
            "{:.1} ns: {pair:.1} for a push and a pop on one thread, {clock:.0} for the clock; added up, not timed as one",
            pair + clock
        ),
        twin: format!(
            "{:.0} ns, half a round trip of {trip:.0} at the median, spinning{floor}",
            trip / 2.0
        ),
        verdict: Verdict::of(pair + clock <= QUOTED, trip / 2.0 <= QUOTED),
    })
}

fn burst(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 300e6;
    let (alone, two) = (evidence.rows(&BURST_ALONE)?, evidence.rows(&BURST_THREADS)?);
    let (by_theirs, by_twin) = (2.0 * per_s(alone[0]), 2.0 * per_s(two[0]));
    Ok(Finding {
        theirs: format!(
            "{} op/s on one thread, both halves counted{}",
            rate(by_theirs),
            peers(&alone, 2.0)
        ),
        twin: format!(
            "{} messages/s between two threads, {} op/s with both halves counted (messages/s{})",
            rate(by_twin / 2.0),
            rate(by_twin),
            peers(&two, 1.0)
        ),
        verdict: Verdict::of(by_theirs >= QUOTED, by_twin >= QUOTED),
    })
}

fn best_size(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    let best = evidence.metric(&BEST_SIZE, "best_capacity")?;
    let next = evidence.metric(&BEST_SIZE, "next_capacity")?;
    let row = evidence.row(&BEST_SIZE)?;
    let separated = row.winner == Some(Winner::Subject);
    let interval = row.ratio.map_or(String::new(), |ratio| {
        format!(
            " {:.3} of its time [{:.3}, {:.3}]",
            ratio.median, ratio.low, ratio.high
        )
    });
    Ok(Finding {
        theirs: format!("{best:.0} slots have the best median between two threads"),
        twin: format!(
            "against the next, {next:.0}:{interval}, {}",
            if separated {
                "which separates them"
            } else {
                "which does not separate them: no size is better"
            }
        ),
        verdict: Verdict::of([2048.0, 4096.0].contains(&best), separated),
    })
}

fn contention(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    let failed = evidence.metric(&STRESS, "failed_percent")?;
    let rows = evidence.rows(&STRESS)?;
    let of_peer = |row: &&Row| {
        let percent = row.metrics.get("peer_failed_percent")?;
        Some(format!("; {} {percent:.2} %", row.peer.as_ref()?))
    };
    let peers: String = rows.iter().filter_map(of_peer).collect();
    Ok(Finding {
        theirs: "0.00 %, by construction, of any queue".to_owned(),
        twin: format!("{failed:.2} % of the tries of two threads failed{peers}"),
        verdict: Verdict::of(true, failed < 0.005),
    })
}

fn tasks(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 512_000.0;
    let rows = evidence.rows(&TASKS)?;
    let by_theirs = per_s(rows[0]);
    let small = per_s(evidence.row(&TASKS_16)?);
    let threads = per_s(evidence.row(&TASKS_THREADS)?);
    Ok(Finding {
        theirs: format!(
            "{} messages/s, 1,024 slots, one thread{}",
            rate(by_theirs),
            peers(&rows, 1.0)
        ),
        twin: format!(
            "with 16 slots {} messages/s on one thread, {} on two",
            rate(small),
            rate(threads)
        ),
        verdict: Verdict::of(by_theirs >= QUOTED, small.min(threads) >= QUOTED),
    })
}

fn together(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const QUOTED: f64 = 30e6;
    let (alone, pairs) = (evidence.rows(&TEN_ALONE)?, evidence.rows(&TEN_PAIRS)?);
    let (by_theirs, by_twin) = (per_s(alone[0]), per_s(pairs[0]));
    Ok(Finding {
        theirs: format!(
            "{} messages/s on one thread{}",
            rate(by_theirs),
            peers(&alone, 1.0)
        ),
        twin: format!(
            "{} messages/s of ten pairs of threads together{}",
            rate(by_twin),
            peers(&pairs, 1.0)
        ),
        verdict: Verdict::of(by_theirs > QUOTED, by_twin > QUOTED),
    })
}

fn memory(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    let mut kinds: Vec<(String, f64)> = Vec::new();
    for row in evidence.rows(&CHANNEL_BYTES)? {
        let param = |name: &str| row.params.get(name).map_or("", String::as_str);
        let mut kind = param("channel").to_owned();
        if kind == "mpsc" {
            kind = format!("mpsc of {} senders", param("senders"));
        }
        if kinds.iter().all(|(known, _)| *known != kind) {
            kinds.push((kind, row.subject_median));
        }
    }
    let left = evidence.metric(&STRINGS_LEFT, "left_percent")?;
    let most = kinds.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let said: Vec<String> = kinds
        .iter()
        .map(|(kind, bytes)| format!("{kind} {bytes:.0}"))
        .collect();
    Ok(Finding {
        theirs: format!("bytes: {}", said.join(", ")),
        twin: format!("{left:.3} % of the strings is left in an empty channel"),
        verdict: Verdict::of(most < 1024.0, left < 1.0),
    })
}

fn overflow(evidence: &Evidence<'_>) -> Result<Finding, Missing> {
    const PUBLISHED: f64 = 10_000.0;
    let delivered = evidence.metric(&REFUSING, "delivered")?;
    let share = evidence.metric(&SHARING, "smallest_share_of_largest")?;
    Ok(Finding {
        theirs: format!("100 % of the {delivered:.0} that were taken"),
        twin: format!(
            "{:.1} % of what was published, by the policy that refuses; of four senders that wait, the smallest share is {share:.2} of the largest",
            100.0 * delivered / PUBLISHED
        ),
        verdict: Verdict::of(true, delivered >= PUBLISHED && share >= 0.5),
    })
}
