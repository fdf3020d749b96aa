//! Made-up reports: each rule with a pair that breaks it and a pair that does not.

use super::*;
use crate::judgement::Target;
use crate::report::tests::sample;

/// A report with one row: seven pairs around `ratio`, each off by `noise`.
fn ratios(ratio: f64, noise: f64) -> Report {
    let times: Vec<f64> = [-1.0, -0.6, -0.3, 0.0, 0.3, 0.6, 1.0]
        .iter()
        .map(|off| 100.0 * ratio * (1.0 + noise * off))
        .collect();
    with(Row::new(
        ("spsc_threads", "queue"),
        &[("capacity", "1024")],
        "ns",
        ("thalweg", times),
        Some(("rtrb", vec![100.0; 7])),
    ))
}

fn with(row: Row) -> Report {
    Report {
        peers: [("rtrb".to_owned(), "0.4.1".to_owned())].into(),
        knobs: [("profile".to_owned(), "release".to_owned())].into(),
        results: vec![row],
        ..sample()
    }
}

fn alone(unit: &str, samples: &[f64]) -> Row {
    Row::new(
        ("channel_memory", "queue"),
        &[],
        unit,
        ("thalweg", samples.to_vec()),
        None,
    )
}

fn outcome(before: &Report, now: &Report) -> (Outcome, u8) {
    let lines = compare(std::slice::from_ref(before), now, 10.0);
    (lines[0].outcome.clone(), exit_status(&lines))
}

#[test]
fn a_planted_regression_is_caught() {
    let lines = compare(&[ratios(0.9, 0.02)], &ratios(1.08, 0.02), 10.0);
    assert_eq!(lines[0].outcome, Outcome::Worse);
    assert_eq!(lines[0].figure, "ratio to rtrb");
    assert!((lines[0].worse_by.unwrap() - 20.0).abs() < 1e-9);
    assert_eq!(exit_status(&lines), 1);
    assert!(text(&lines, 10.0, false).starts_with("WORSE"));
}

#[test]
fn the_same_again_is_not_worse() {
    assert_eq!(
        outcome(&ratios(0.9, 0.02), &ratios(0.9, 0.02)),
        (Outcome::Same, 0)
    );
}

#[test]
fn worse_by_less_than_the_threshold_is_not_worse() {
    let (before, now) = (ratios(1.0, 0.001), ratios(1.08, 0.001));
    assert_eq!(outcome(&before, &now), (Outcome::Same, 0));
    let strict = compare(&[before], &now, 5.0);
    assert_eq!(strict[0].outcome, Outcome::Worse);
}

#[test]
fn threshold_below_the_smallest_detectable_change_is_refused() {
    let (before, now) = (ratios(1.0, 0.4), ratios(1.2, 0.4));
    let lines = compare(std::slice::from_ref(&before), &now, 10.0);
    let detectable = lines[0].detectable.unwrap();
    // Both intervals reach from 0.76 to 1.24 times their median, as the inner pairs do at least.
    assert!(detectable > 60.0, "{detectable}");
    let Outcome::NotJudged(why) = &lines[0].outcome else {
        panic!("{lines:?}");
    };
    assert!(why.contains("cannot judge a change of 10 %"), "{why}");
    assert!(why.contains(&format!("{detectable:.1} %")), "{why}");
    assert_eq!(exit_status(&lines), 2);
    assert!(text(&lines, 10.0, false).contains(why));
    // With that threshold it can be judged, and a change far beyond the noise is always seen.
    let judged = compare(std::slice::from_ref(&before), &now, detectable + 0.1);
    assert_eq!(judged[0].outcome, Outcome::Same);
    assert_eq!(outcome(&before, &ratios(9.0, 0.4)), (Outcome::Worse, 1));
}

#[test]
fn smallest_detectable_change_follows_from_both_widths() {
    let figure = |value, low, high, more_is_better| Figure {
        name: String::new(),
        value,
        low,
        high,
        more_is_better,
    };
    for (before, now, expected) in [
        (
            figure(10.0, 10.0, 10.0, false),
            figure(10.0, 10.0, 10.0, false),
            0.0,
        ),
        (
            figure(0.0, 0.0, 0.0, false),
            figure(0.0, 0.0, 0.0, false),
            0.0,
        ),
        (
            figure(10.0, 9.0, 11.0, false),
            figure(20.0, 16.0, 30.0, false),
            37.5,
        ),
        (
            figure(10.0, 8.0, 11.0, true),
            figure(20.0, 18.0, 25.0, true),
            36.0,
        ),
    ] {
        let found = now.detectable(&before);
        assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
    }
}

#[test]
fn better_by_as_much_is_said_and_passes() {
    assert_eq!(
        outcome(&ratios(1.0, 0.02), &ratios(0.8, 0.02)),
        (Outcome::Better, 0)
    );
}

#[test]
fn on_another_host_nothing_is_judged() {
    type Change = fn(&mut Host);
    let changes: [(&str, Change); 6] = [
        ("cpu", |host| host.cpu = "Another".to_owned()),
        ("processors", |host| host.processors = 64),
        ("affinity", |host| host.affinity = "0".to_owned()),
        ("governor", |host| host.governor = "powersave".to_owned()),
        ("kernel", |host| host.uname = "Linux 7.0 x86_64".to_owned()),
        ("virtual", |host| host.r#virtual = "none".to_owned()),
    ];
    for (what, change) in changes {
        let mut now = ratios(9.0, 0.01);
        change(&mut now.host);
        let (outcome, exit) = outcome(&ratios(1.0, 0.01), &now);
        assert!(
            matches!(&outcome, Outcome::NotJudged(why) if why.contains(&format!("another host: {what}"))),
            "{outcome:?}"
        );
        assert_eq!(exit, 2);
    }
    let mut of_the_day = ratios(1.0, 0.01);
    of_the_day.host.load = "0.40".to_owned();
    assert_eq!(outcome(&ratios(1.0, 0.01), &of_the_day), (Outcome::Same, 0));
}

#[test]
fn with_other_knobs_nothing_is_judged() {
    let mut now = ratios(9.0, 0.01);
    now.knobs.insert("duration".to_owned(), "1h".to_owned());
    let (outcome_now, exit) = outcome(&ratios(1.0, 0.01), &now);
    assert_eq!(
        outcome_now,
        Outcome::NotJudged("another knob: duration was not set, is 1h".to_owned())
    );
    assert_eq!(exit, 2);
    // The number of samples and the knobs of other workloads do not make a different measurement.
    let mut now = ratios(1.0, 0.01);
    now.knobs.insert("samples".to_owned(), "50".to_owned());
    now.knobs.insert("idle.seconds".to_owned(), "9".to_owned());
    assert_eq!(outcome(&ratios(1.0, 0.01), &now), (Outcome::Same, 0));
    now.knobs
        .insert("spsc_threads.items".to_owned(), "9".to_owned());
    assert_eq!(outcome(&ratios(1.0, 0.01), &now).1, 2);
}

#[test]
fn against_another_version_of_the_peer_nothing_is_judged() {
    let mut now = ratios(9.0, 0.01);
    now.peers.insert("rtrb".to_owned(), "0.5.0".to_owned());
    let (outcome_now, exit) = outcome(&ratios(1.0, 0.01), &now);
    assert_eq!(
        outcome_now,
        Outcome::NotJudged("another rtrb: was 0.4.1, is 0.5.0".to_owned())
    );
    assert_eq!(exit, 2);
    // A peer that this row does not use may change.
    let mut before = ratios(1.0, 0.01);
    let mut now = ratios(1.0, 0.01);
    before.peers.insert("kanal".to_owned(), "1".to_owned());
    now.peers.insert("kanal".to_owned(), "2".to_owned());
    assert_eq!(outcome(&before, &now), (Outcome::Same, 0));
    // One name may be used for several peers.
    for report in [&mut before, &mut now] {
        report.results[0].peer = Some("kanal_bounded_256".to_owned());
    }
    assert_eq!(outcome(&before, &now).1, 2);
}

#[test]
fn quick_and_debug_runs_judge_nothing_on_either_side() {
    for (knob, value) in [("quick", "true"), ("profile", "debug")] {
        let mut odd = ratios(9.0, 0.01);
        odd.knobs.insert(knob.to_owned(), value.to_owned());
        assert_eq!(outcome(&ratios(1.0, 0.01), &odd).1, 2);
        assert_eq!(outcome(&odd, &ratios(1.0, 0.01)).1, 2);
    }
}

#[test]
fn without_a_baseline_nothing_is_judged() {
    let lines = compare(&[], &ratios(1.0, 0.01), 10.0);
    assert_eq!(lines[0].outcome, Outcome::New);
    assert_eq!(exit_status(&lines), 2);
    assert!(text(&lines, 10.0, false).contains("not a pass"));
    assert_eq!(exit_status(&[]), 2);
}

#[test]
fn a_new_row_beside_a_known_one_does_not_matter_but_a_lost_one_does() {
    let one = ratios(1.0, 0.01);
    let mut two = one.clone();
    let mut other = two.results[0].clone();
    other.params.insert("capacity".to_owned(), "64".to_owned());
    two.results.push(other);
    let lines = compare(std::slice::from_ref(&one), &two, 10.0);
    assert_eq!(lines[1].outcome, Outcome::New);
    assert_eq!(exit_status(&lines), 0);
    let lines = compare(&[two], &one, 10.0);
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[1].outcome,
        Outcome::NotJudged("the run has no such row".to_owned())
    );
    assert_eq!(exit_status(&lines), 2);
}

#[test]
fn one_that_is_worse_counts_more_than_one_that_is_not_judged() {
    let mut before = ratios(1.0, 0.01);
    let mut gone = before.results[0].clone();
    gone.workload = "gone".to_owned();
    before.results.push(gone);
    let lines = compare(&[before], &ratios(2.0, 0.01), 10.0);
    assert_eq!(exit_status(&lines), 1);
}

#[test]
fn a_param_that_was_found_out_while_measuring_does_not_make_another_row() {
    let mut before = ratios(1.0, 0.01);
    let mut now = ratios(2.0, 0.01);
    let params = &mut before.results[0].params;
    params.insert("searches".to_owned(), "27".to_owned());
    let params = &mut now.results[0].params;
    params.insert("searches".to_owned(), "14".to_owned());
    assert_eq!(outcome(&before, &now), (Outcome::Worse, 1));
}

#[test]
fn without_a_peer_instructions_count_before_all_else() {
    let row = |time: f64, instructions: f64| {
        let mut row = alone("ns", &[time; 5]);
        row.metrics.insert("instructions".to_owned(), instructions);
        with(row)
    };
    // Three times as slow on a busy machine, with the same instructions.
    assert_eq!(
        outcome(&row(10.0, 500.0), &row(30.0, 500.0)),
        (Outcome::Same, 0)
    );
    let lines = compare(&[row(10.0, 500.0)], &row(10.0, 560.0), 10.0);
    assert_eq!(
        (lines[0].figure.as_str(), &lines[0].outcome),
        ("instructions", &Outcome::Worse)
    );
}

#[test]
fn without_instructions_the_metric_counts_that_the_target_names() {
    let bytes = |value: f64| {
        let mut row = alone("ns", &[5.0; 5]);
        row.metrics.insert("bytes".to_owned(), value);
        row.metrics.insert("others".to_owned(), 1e9 / value);
        with(row.held_to(&Target::Metric("bytes", 1024.0), None))
    };
    let lines = compare(&[bytes(600.0)], &bytes(700.0), 10.0);
    assert_eq!(
        (lines[0].figure.as_str(), &lines[0].outcome),
        ("bytes", &Outcome::Worse)
    );
    let rate = |value: f64| {
        let mut row = alone("ns", &[5.0; 5]);
        row.metrics.insert("ops_per_s".to_owned(), value);
        let target = Target::All(vec![Target::Worst(1.1), Target::AtLeast("ops_per_s", 1.0)]);
        with(row.held_to(&target, None))
    };
    assert_eq!(outcome(&rate(3e7), &rate(2e7)), (Outcome::Worse, 1));
    assert_eq!(outcome(&rate(2e7), &rate(3e7)), (Outcome::Better, 0));
}

#[test]
fn metric_of_an_old_file_borrows_the_width_of_its_rows_median() {
    let row = |p50: f64, samples: &[f64]| {
        let mut row = alone("ns", samples);
        row.process.clear();
        row.metrics.insert("p50_ns".to_owned(), p50);
        with(row.held_to(&Target::Metric("p50_ns", 1e9), None))
    };
    let (quiet, noisy) = ([10.0; 5], [5.0, 8.0, 10.0, 14.0, 20.0]);
    assert_eq!(
        outcome(&row(10.0, &quiet), &row(12.0, &quiet)),
        (Outcome::Worse, 1)
    );
    assert_eq!(outcome(&row(10.0, &noisy), &row(12.0, &noisy)).1, 2);
}

#[test]
fn without_any_of_these_the_median_counts_in_its_units_direction() {
    let median = |unit: &str, value: f64| with(alone(unit, &[value; 5]));
    assert_eq!(
        outcome(&median("ns", 10.0), &median("ns", 12.0)),
        (Outcome::Worse, 1)
    );
    assert_eq!(
        outcome(&median("MiB/s", 10.0), &median("MiB/s", 12.0)),
        (Outcome::Better, 0)
    );
}

#[test]
fn from_zero_any_rise_is_worse() {
    let switches = |count: f64| with(alone("switches", &[count]));
    assert_eq!(outcome(&switches(0.0), &switches(0.0)), (Outcome::Same, 0));
    let lines = compare(&[switches(0.0)], &switches(1.0), 10.0);
    assert_eq!(lines[0].outcome, Outcome::Worse);
    assert!(text(&lines, 10.0, false).contains("switches: 0 -> 1.000"));
}

#[test]
fn a_row_that_lost_its_ratio_is_not_judged_by_something_else() {
    let before = ratios(1.0, 0.01);
    let mut now = before.clone();
    now.results[0].ratio = None;
    assert_eq!(outcome(&before, &now).1, 2);
}

#[test]
fn each_workload_is_held_against_its_own_baseline() {
    let queue = ratios(1.0, 0.01);
    let memory = with(alone("bytes", &[100.0]));
    let mut run = queue.clone();
    run.results.extend(memory.results.clone());
    run.results[1].subject_median = 200.0;
    run.results[1].subject_interval = None;
    let lines = compare(&[queue, memory], &run, 10.0);
    let outcomes: Vec<&Outcome> = lines.iter().map(|line| &line.outcome).collect();
    assert_eq!(outcomes, [&Outcome::Same, &Outcome::Worse]);
}

#[test]
fn unchanged_rows_are_printed_on_request_only() {
    let lines = compare(&[ratios(1.0, 0.01)], &ratios(1.0, 0.01), 10.0);
    assert!(!text(&lines, 10.0, false).contains("spsc_threads"));
    assert!(text(&lines, 10.0, true).contains("spsc_threads [capacity=1024]"));
}
