//! Tests that every verdict is reached both ways, on made-up rows.

use super::claim::{Claim, Finding, Verdict};
use super::evidence::{Evidence, Missing};
use super::page::markdown;
use super::*;
use crate::report::tests::sample;
use crate::report::{Report, Row};
use crate::workloads;

mod runtime;

/// A row of `workload` whose samples are all `ns`, with these metrics.
fn row(workload: &str, params: &[(&str, &str)], ns: f64, metrics: &[(&str, f64)]) -> Row {
    let mut row = Row::new(
        (workload, "queue"),
        params,
        "ns",
        ("thalweg", vec![ns; 5]),
        None,
    );
    for (name, value) in metrics {
        row.metrics.insert((*name).to_owned(), *value);
    }
    row
}

/// The same row with another subject.
fn of(subject: &str, mut row: Row) -> Row {
    row.subject = subject.to_owned();
    row
}

fn report(rows: Vec<Row>) -> Report {
    Report {
        results: rows,
        ..sample()
    }
}

fn on(processors: &str, rows: Vec<Row>) -> Report {
    let mut report = report(rows);
    report.host.affinity = processors.to_owned();
    report
}

fn claim(id: &str) -> &'static Claim {
    all().find(|claim| claim.id == id).expect("a claim's name")
}

fn judge(id: &str, report: &Report) -> Result<Finding, Missing> {
    (claim(id).judge)(&Evidence::new(vec![report]))
}

fn verdict(id: &str, rows: Vec<Row>) -> Verdict {
    judge(id, &report(rows))
        .expect("the rows are there")
        .verdict
}

fn spsc(alone: f64, two: f64) -> Vec<Row> {
    let at = [("capacity", "1024"), ("messages", "timed")];
    let free = [("capacity", "1024"), ("batch", "1"), ("placement", "free")];
    vec![
        row("spsc_same_thread", &at, alone, &[]),
        row("spsc_threads", &free, two, &[]),
    ]
}

#[test]
fn a_rate_that_one_thread_reaches_and_two_do_not_is_confounded() {
    // 2 / 3.25 ns is 615.4 M, 2 / 3.5 ns is 571 M.
    assert_eq!(verdict("spsc-615m", spsc(3.25, 3.25)), Verdict::Holds);
    assert_eq!(verdict("spsc-615m", spsc(3.25, 30.0)), Verdict::Confounded);
    assert_eq!(verdict("spsc-615m", spsc(3.5, 3.25)), Verdict::DoesNotHold);
    assert_eq!(verdict("spsc-558m", spsc(3.5, 30.0)), Verdict::Confounded);
    assert_eq!(verdict("spsc-558m", spsc(3.6, 30.0)), Verdict::DoesNotHold);
    let finding = judge("spsc-615m", &report(spsc(2.0, 20.0))).unwrap();
    assert!(finding.theirs.starts_with("1000 M op/s"), "{finding:?}");
    assert!(finding.twin.starts_with("50.0 M messages/s"), "{finding:?}");
}

#[test]
fn thirty_nanoseconds_are_a_clock_reading_and_no_way_to_another_thread() {
    let with = |trip: f64, pair: f64| {
        let spin = [("mode", "spin"), ("placement", "free")];
        let mut rows = spsc(pair, 9.0);
        rows.push(row("spsc_latency", &spin, trip, &[("p50_ns", trip)]));
        rows
    };
    // The clock of the sample takes 25 ns.
    assert_eq!(verdict("latency-30ns", with(60.0, 5.0)), Verdict::Holds);
    assert_eq!(
        verdict("latency-30ns", with(61.0, 5.0)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("latency-30ns", with(61.0, 5.1)),
        Verdict::DoesNotHold
    );
    let mut silent = report(with(60.0, 5.0));
    silent.host.clock = "unknown".to_owned();
    assert!(judge("latency-30ns", &silent).is_err());
}

#[test]
fn bursts_are_held_to_both_numbers_of_threads() {
    let with = |alone: f64, two: f64| {
        let at = |threads| [("items", "500"), ("bursts", "100"), ("threads", threads)];
        vec![
            row("burst", &at("1"), alone, &[]),
            row("burst", &at("2"), two, &[]),
        ]
    };
    assert_eq!(verdict("burst-300m", with(6.0, 6.0)), Verdict::Holds);
    assert_eq!(verdict("burst-300m", with(6.0, 7.0)), Verdict::Confounded);
    assert_eq!(verdict("burst-300m", with(7.0, 6.0)), Verdict::DoesNotHold);
}

#[test]
fn a_best_size_must_be_theirs_and_told_from_the_next() {
    let with = |best: f64, next: [f64; 5]| {
        let params = [("capacity", "best"), ("messages", "100000")];
        let mut row = Row::new(
            ("sizes", "queue"),
            &params,
            "ns",
            ("thalweg@best", vec![3.0; 5]),
            Some(("thalweg@next", next.to_vec())),
        );
        row.metrics.insert("best_capacity".to_owned(), best);
        row.metrics.insert("next_capacity".to_owned(), 512.0);
        vec![row]
    };
    let (apart, together) = ([4.0; 5], [2.0, 4.0, 3.1, 2.0, 4.0]);
    assert_eq!(verdict("best-size", with(2048.0, apart)), Verdict::Holds);
    assert_eq!(verdict("best-size", with(4096.0, apart)), Verdict::Holds);
    assert_eq!(
        verdict("best-size", with(2048.0, together)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("best-size", with(64.0, apart)),
        Verdict::DoesNotHold
    );
}

#[test]
fn no_contention_is_what_one_thread_always_has() {
    let with = |percent: f64| {
        let params = [("messages", "500000")];
        vec![row("stress", &params, 9.0, &[("failed_percent", percent)])]
    };
    assert_eq!(verdict("contention-0", with(0.004)), Verdict::Holds);
    assert_eq!(verdict("contention-0", with(0.3)), Verdict::Confounded);
}

#[test]
fn tasks_are_held_to_a_small_buffer_and_to_two_threads() {
    let with = |large: f64, small: f64, threads: f64| {
        let of = |capacity, runtime, ns| {
            let params = [
                ("capacity", capacity),
                ("messages", "timed"),
                ("runtime", runtime),
                ("placement", "free"),
            ];
            row("async_channel", &params, ns, &[])
        };
        vec![
            of("1024", "current_thread", large),
            of("16", "current_thread", small),
            of("16", "multi_thread", threads),
        ]
    };
    // 512 K per second are 1,953 ns each.
    assert_eq!(
        verdict("async-512k", with(1900.0, 1900.0, 1900.0)),
        Verdict::Holds
    );
    assert_eq!(
        verdict("async-512k", with(1900.0, 66_000.0, 9.0)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("async-512k", with(1900.0, 9.0, 2000.0)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("async-512k", with(2000.0, 9.0, 9.0)),
        Verdict::DoesNotHold
    );
}

#[test]
fn ten_channels_together_are_ten_pairs_of_threads() {
    let with = |alone: f64, pairs: f64| {
        vec![
            row("concurrent_access", &[("twin", "verbatim")], alone, &[]),
            row("concurrent_access", &[("twin", "threads")], pairs, &[]),
        ]
    };
    assert_eq!(verdict("together-30m", with(33.0, 33.0)), Verdict::Holds);
    assert_eq!(
        verdict("together-30m", with(33.0, 34.0)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("together-30m", with(34.0, 33.0)),
        Verdict::DoesNotHold
    );
}

#[test]
fn a_channel_is_every_kind_of_channel_and_empty_when_it_is() {
    let with = |eight: f64, left: f64| {
        let of = |channel, senders, payload, bytes, left| {
            let params = [
                ("channel", channel),
                ("senders", senders),
                ("payload", payload),
            ];
            row("channel_memory", &params, bytes, &[("left_percent", left)])
        };
        vec![
            of("spsc", "1", "u64", 500.0, 0.0),
            of("mpsc", "8", "u64", eight, 0.0),
            of("spsc", "1", "strings of 100 KB", 9.0, left),
        ]
    };
    assert_eq!(verdict("memory-1kb", with(1023.0, 0.9)), Verdict::Holds);
    assert_eq!(
        verdict("memory-1kb", with(1023.0, 1.0)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("memory-1kb", with(1024.0, 0.9)),
        Verdict::DoesNotHold
    );
    let finding = judge("memory-1kb", &report(with(700.0, 0.1))).unwrap();
    assert_eq!(finding.theirs, "bytes: spsc 500, mpsc of 8 senders 700");
}

#[test]
fn success_is_what_was_published_and_a_fair_share() {
    let with = |delivered: f64, share: f64| {
        let of = |channel, policy, producers, metrics: &[_]| {
            let params = [
                ("channel", channel),
                ("policy", policy),
                ("producers", producers),
            ];
            row("overflow", &params, 9.0, metrics)
        };
        vec![
            of("spsc", "fail", "1", &[("delivered", delivered)]),
            of(
                "mpsc",
                "block",
                "4",
                &[("smallest_share_of_largest", share)],
            ),
        ]
    };
    assert_eq!(verdict("overflow-100", with(10_000.0, 0.5)), Verdict::Holds);
    assert_eq!(
        verdict("overflow-100", with(1_600.0, 0.9)),
        Verdict::Confounded
    );
    assert_eq!(
        verdict("overflow-100", with(10_000.0, 0.4)),
        Verdict::Confounded
    );
}

fn hours(seconds: f64, slope: f64, fds: f64, worst: f64) -> Vec<Row> {
    let metrics = [
        ("seconds", seconds),
        ("rss_slope_kib_per_h", slope),
        ("fds_more", fds),
        ("mappings_more", 0.0),
        ("worst_hour_percent", worst),
    ];
    // A shorter run, newer or older, is not the longest.
    vec![
        row("sustained_hours", &[], 9.0, &metrics),
        row("sustained", &[], 9.0, &[("seconds", 10.0)]),
    ]
}

#[test]
fn a_day_is_a_day_and_half_of_it_can_only_refute() {
    const DAY: f64 = 86_400.0;
    let short = Verdict::NotTestable("the longest run so far took 12h".to_owned());
    for (rows, expected) in [
        (hours(DAY, 64.0, 0.0, 9.0), Verdict::Holds),
        (hours(DAY, 65.0, 0.0, 9.0), Verdict::DoesNotHold),
        (hours(DAY, 0.0, 1.0, 9.0), Verdict::DoesNotHold),
        (hours(DAY / 2.0, 64.0, 0.0, 9.0), short),
        (hours(DAY / 2.0, 65.0, 0.0, 9.0), Verdict::DoesNotHold),
    ] {
        assert_eq!(verdict("leaks-24h", rows), expected);
    }
    for (rows, expected) in [
        (hours(DAY / 2.0, 0.0, 0.0, 10.0), Verdict::Holds),
        (hours(DAY / 2.0, 0.0, 0.0, 10.1), Verdict::DoesNotHold),
        (hours(DAY / 4.0, 0.0, 0.0, 10.1), Verdict::DoesNotHold),
        (
            hours(DAY / 4.0, 0.0, 0.0, 9.0),
            Verdict::NotTestable("the longest run so far took 6h".to_owned()),
        ),
    ] {
        assert_eq!(verdict("load-12h", rows), expected);
    }
}

#[test]
fn of_a_run_of_seconds_its_length_is_all_that_is_said() {
    let seconds = || vec![row("sustained", &[], 9.0, &[("seconds", 10.2)])];
    let short = Verdict::NotTestable("the longest run so far took 10s".to_owned());
    assert_eq!(verdict("leaks-24h", seconds()), short);
    assert_eq!(verdict("load-12h", seconds()), short);
    assert!(judge("leaks-24h", &report(vec![])).is_err());
}

/// A cell of the ablation at 8 producers.
fn cell(structure: &str, wake: &str, scaling: f64, shards: [f64; 5], own: f64) -> Row {
    let mut row = Row::new(
        ("ablation", "boundary"),
        &[("producers", "8"), ("wake", wake)],
        "ns",
        (structure, vec![own; 5]),
        Some(("mutex_shards", shards.to_vec())),
    );
    let metrics = [("scaling_vs_1", scaling), ("completed_per_s", 1e6)];
    row.metrics.extend(metrics.map(|(k, v)| (k.to_owned(), v)));
    row
}

#[test]
fn a_lock_is_flat_where_what_has_none_is_not() {
    let with = |processors, lock, shards| {
        let steady = [100.0; 5];
        let rows = vec![
            cell("global_lock", "edge", lock, steady, 900.0),
            of("mutex_shards", cell("", "edge", shards, steady, 100.0)),
        ];
        judge("lock-flat", &on(processors, rows)).unwrap().verdict
    };
    assert_eq!(with("0-15", 1.16, 1.5), Verdict::Holds);
    assert_eq!(with("0-15", 1.17, 1.5), Verdict::DoesNotHold);
    assert_eq!(with("0-15", 1.1, 1.1), Verdict::Confounded);
    let few = Verdict::NotTestable("2 processors for 8 producers".to_owned());
    assert_eq!(with("0-1", 1.17, 1.5), few);
}

#[test]
fn sharding_gives_eightfold_where_nothing_else_does() {
    let with = |processors, shards, vyukov| {
        let steady = [100.0; 5];
        let rows = vec![
            cell("mutex_shards", "edge", shards, steady, 100.0),
            cell("mutex_shards", "always", 3.0, steady, 100.0),
            cell("vyukov", "edge", vyukov, steady, 100.0),
            cell("take_all", "edge", 2.0, steady, 100.0),
        ];
        judge("shards-8x", &on(processors, rows)).unwrap().verdict
    };
    assert_eq!(with("0-9", 8.0, 7.9), Verdict::Holds);
    assert_eq!(with("0-9", 8.0, 8.0), Verdict::Confounded);
    assert_eq!(with("0-9", 7.9, 2.0), Verdict::DoesNotHold);
    let few = Verdict::NotTestable("4 processors for 8 producers".to_owned());
    assert_eq!(with("0-3", 9.0, 2.0), few);
}

#[test]
fn a_collapse_is_the_queues_only_where_the_rule_of_waking_does_not_make_it() {
    let with = |processors, always: (f64, f64), edge: (f64, f64)| {
        let shards = [100.0, 110.0, 90.0, 105.0, 95.0];
        let rows = vec![
            cell("vyukov", "always", always.0, shards, always.1),
            cell("vyukov", "edge", edge.0, shards, edge.1),
        ];
        let judged = judge("lock-free-collapse", &on(processors, rows));
        judged.unwrap().verdict
    };
    let few = Verdict::NotTestable("2 processors for 8 producers".to_owned());
    // Ten times the shards' time with a wake-up for each request, and the same time as the shards
    // without.
    for processors in ["0-1", "0-9"] {
        let judged = with(processors, (0.1, 1000.0), (0.9, 100.0));
        assert_eq!(judged, Verdict::Confounded);
    }
    // The wake-up rule makes no difference.
    assert_eq!(with("0-9", (0.1, 1000.0), (0.1, 1000.0)), Verdict::Holds);
    assert_eq!(
        with("0-9", (0.9, 200.0), (0.9, 200.0)),
        Verdict::DoesNotHold
    );
    assert_eq!(with("0-1", (0.1, 1000.0), (0.1, 1000.0)), few);
    // The rule makes a difference, but the queue also collapses without it.
    assert_eq!(with("0-9", (0.1, 2000.0), (0.2, 500.0)), Verdict::Holds);
    // The rule makes a difference, but nothing is slower than the shards.
    assert_eq!(with("0-9", (0.9, 50.0), (0.9, 20.0)), Verdict::DoesNotHold);
}

#[test]
fn nothing_measured_is_no_figure_anywhere() {
    let page = markdown(&[]);
    assert!(page.contains("Nothing yet."));
    for claim in all().filter(|claim| claim.id != "suite-30s") {
        assert!(
            (claim.judge)(&Evidence::new(vec![])).is_err(),
            "{}",
            claim.id
        );
        let command = match claim.run.strip_prefix("sweep ") {
            Some(names) => format!("sweep {names} --json FILE"),
            None => format!("run {}", claim.run),
        };
        let told = format!("not measured yet: run `thalweg bench {command}`");
        assert!(page.contains(&told), "{told}");
    }
    for word in ["**holds**", "**does not hold**", "**confounded**"] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn a_quick_run_gives_no_verdict() {
    let mut quick = report(spsc(3.25, 30.0));
    assert!(markdown(std::slice::from_ref(&quick)).contains("**confounded**"));
    quick.knobs.insert("quick".to_owned(), "true".to_owned());
    let page = markdown(&[quick]);
    assert!(!page.contains("**confounded**"));
    assert!(page.contains("because it is from a quick run"));
}

#[test]
fn machines_are_not_mixed() {
    let rows = spsc(3.25, 30.0);
    let one = on("0-1", vec![rows[0].clone()]);
    let two = on("0-15", vec![rows[1].clone()]);
    assert!(!markdown(&[one.clone(), two]).contains("**confounded**"));
    let same = on("0-1", vec![rows[1].clone()]);
    assert!(markdown(&[one, same]).contains("**confounded**"));
    let both = [on("0-1", spsc(3.25, 30.0)), on("0-15", spsc(3.25, 3.25))];
    let page = markdown(&both);
    assert!(
        page.contains("**confounded** (") && page.contains("; **holds** ("),
        "{page}"
    );
}

#[test]
fn what_a_claim_names_is_there() {
    for claim in all() {
        assert_eq!(all().filter(|other| other.id == claim.id).count(), 1);
        let mut words = claim.run.split(' ').peekable();
        let mut named = Vec::new();
        while let Some(word) = words.next() {
            match word {
                "--duration" => drop(words.next()),
                "--quick" | "sweep" => {}
                name => named.push(workloads::find(name).expect("a workload").name),
            }
        }
        for point in claim.theirs.iter().chain(claim.twin) {
            assert!(named.contains(&point.workload), "{}: {point}", claim.id);
        }
    }
}

#[test]
fn a_row_of_the_page_has_as_many_cells_as_its_head() {
    let page = markdown(&[report(spsc(3.25, 30.0))]);
    let mut cells = None;
    for line in page.lines() {
        let here = line
            .starts_with('|')
            .then(|| line.replace("\\|", "").matches('|').count());
        if here.is_some() && cells.is_some() {
            assert_eq!(here, cells, "{line}");
        }
        cells = here;
    }
}
