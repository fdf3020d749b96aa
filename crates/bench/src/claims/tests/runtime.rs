//! Tests that the runtime's verdicts are reached both ways, too.

use super::{claim, judge, report, row, verdict};
use crate::claims::claim::{Finding, Verdict};
use crate::report::Row;

const WORKLOADS_SLOWER: [&str; 7] = [
    "chained_spawn",
    "ping_pong_oneshot",
    "spawn_storm_busy",
    "yield_many",
    "yield_in_hot_loop",
    "many_timers",
    "deep_recursion",
];

/// A row with this many workers that takes `ratio` of its peer's 100 ns.
fn against(workload: &str, lifetime: &str, workers: &str, hook: &str, ratio: f64) -> Row {
    let params = [
        ("allocator", "system"),
        ("drivers", "time"),
        ("hook", hook),
        ("lifetime", lifetime),
        ("workers", workers),
    ];
    Row::new(
        (workload, "runtime"),
        &params,
        "ns",
        ("thalweg", vec![100.0 * ratio; 5]),
        Some(("tokio_current_thread", vec![100.0; 5])),
    )
}

fn cold_and_warm(workloads: &[&str], cold: f64, warm: f64) -> Vec<Row> {
    let of = |workload: &&str| {
        [("cold", cold), ("warm", warm)]
            .map(|(lifetime, ratio)| against(workload, lifetime, "1", "silent", ratio))
    };
    workloads.iter().flat_map(of).collect()
}

#[test]
fn actors_are_slower_only_where_all_seven_are_cold_and_warm() {
    let of = |cold, warm| {
        verdict(
            "actors-slower",
            cold_and_warm(&WORKLOADS_SLOWER, cold, warm),
        )
    };
    assert_eq!(of(1.2, 1.1), Verdict::Holds);
    assert_eq!(of(1.2, 0.9), Verdict::DoesNotHold);
    assert_eq!(of(0.4, 1.1), Verdict::DoesNotHold);
    let mut one_faster = cold_and_warm(&WORKLOADS_SLOWER, 1.2, 1.1);
    one_faster[0] = against("chained_spawn", "cold", "1", "silent", 0.5);
    assert_eq!(verdict("actors-slower", one_faster), Verdict::DoesNotHold);
    let six = cold_and_warm(&WORKLOADS_SLOWER[1..], 1.2, 1.1);
    let missing = judge("actors-slower", &report(six)).unwrap_err();
    assert!(missing.0.starts_with("`chained_spawn`"), "{missing:?}");
}

#[test]
fn ratios_are_held_to_the_quoted_ones_cold_and_warm() {
    let channels = ["uncontended_channel", "mpsc_contention"];
    let computing = ["fan_out_compute", "multi_thread_scaling"];
    for (id, workloads, reached, missed) in [
        ("actor-channels", &channels[..], 0.53, 0.54),
        ("actors-even", &computing[..], 1.05, 1.06),
        ("supervision-free", &["supervised_spawn"][..], 1.05, 1.06),
    ] {
        let of = |cold, warm| verdict(id, cold_and_warm(workloads, cold, warm));
        assert_eq!(of(reached, reached), Verdict::Holds, "{id}");
        assert_eq!(of(reached, missed), Verdict::Confounded, "{id}");
        assert_eq!(of(missed, reached), Verdict::DoesNotHold, "{id}");
    }
}

#[test]
fn a_panic_is_held_to_the_same_hook_on_both_sides() {
    let of = |printed, silent| {
        let rows = [("default", printed), ("silent", silent)]
            .map(|(hook, ratio)| against("catch_unwind_panics", "cold", "1", hook, ratio));
        verdict("panics-4.8x", rows.to_vec())
    };
    assert_eq!(of(0.2, 0.2), Verdict::Holds);
    assert_eq!(of(0.2, 0.22), Verdict::Confounded);
    assert_eq!(of(0.9, 0.2), Verdict::DoesNotHold);
}

#[test]
fn a_spawn_is_held_to_one_worker_and_to_two() {
    let of = |one, two| {
        let rows = [("1", one), ("2", two)]
            .map(|(workers, ns)| against("chained_spawn", "warm", workers, "silent", ns / 100.0));
        verdict("spawn-100ns", rows.to_vec())
    };
    assert_eq!(of(99.0, 99.0), Verdict::Holds);
    assert_eq!(of(99.0, 100.0), Verdict::Confounded);
    assert_eq!(of(100.0, 99.0), Verdict::DoesNotHold);
}

/// A sweep of four slices, with the time of each.
fn swept(workload: &str, ns: [f64; 4]) -> Vec<Row> {
    ["50us", "100us", "200us", "400us"]
        .into_iter()
        .zip(ns)
        .map(|(slice, ns)| {
            let params = [("allocator", "preempting"), ("THALWEG_TIMESLICE", slice)];
            row(workload, &params, ns, &[])
        })
        .collect()
}

fn sweeps(others: [f64; 4], storm: [f64; 4]) -> Vec<Row> {
    let mut rows = Vec::new();
    for workload in ["many_timers", "mpsc_contention"] {
        rows.extend(swept(workload, others));
    }
    for workload in ["spawn_storm_busy", "catch_unwind_panics"] {
        rows.extend(swept(workload, storm));
    }
    rows
}

#[test]
fn knobs_move_a_workload_where_its_points_are_five_percent_apart() {
    let (still, moved) = ([100.0, 101.0, 104.9, 102.0], [100.0, 100.0, 105.0, 106.0]);
    let of = |others, storm| verdict("knobs-5-percent", sweeps(others, storm));
    assert_eq!(of(still, still), Verdict::Holds);
    assert_eq!(of(still, moved), Verdict::Confounded);
    assert_eq!(of(moved, still), Verdict::DoesNotHold);
}

#[test]
fn long_slices_are_held_against_short_ones() {
    let (helped, even) = ([96.0, 100.0, 100.0, 100.0], [98.0, 100.0, 100.0, 100.0]);
    let (hurt, little) = ([100.0, 100.0, 110.0, 111.0], [100.0, 100.0, 109.0, 109.0]);
    let of = |timers, storm| verdict("slices-10-percent", sweeps(timers, storm));
    assert_eq!(of(helped, hurt), Verdict::Holds);
    assert_eq!(of(even, hurt), Verdict::Confounded);
    assert_eq!(of(helped, little), Verdict::DoesNotHold);
    let none = judge("slices-10-percent", &report(Vec::new())).unwrap_err();
    assert!(none.0.contains("allocator=preempting"), "{none:?}");
    let Finding { theirs, .. } =
        judge("slices-10-percent", &report(sweeps(helped, hurt))).expect("the rows are there");
    assert!(
        theirs.contains("spawn_storm_busy takes +10.5 %"),
        "{theirs}"
    );
    assert!(claim("slices-10-percent").run.starts_with("sweep "));
}
