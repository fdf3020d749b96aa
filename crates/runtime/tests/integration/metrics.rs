//! The metrics of a runtime, compared with the work done, and their text format, read by a
//! third-party parser.
#![cfg(not(miri))]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus_parse::{Scrape, Value};
use thalweg_runtime::metrics::{self, LabelError, Metrics};
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{
    Builder, Config, ExitReason, Mailbox, Runtime, channel, exit, init, run, sleep, spawn, start,
    yield_now,
};

use crate::kit::Echo;

/// Each sample by its name and labels, as parsed.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).expect("it is text");
    let mut all = BTreeMap::new();
    for sample in &scrape.samples {
        let mut labels: Vec<_> = sample.labels.iter().collect();
        labels.sort();
        let labels: Vec<_> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let name = format!("{}{{{}}}", sample.metric, labels.join(","));
        let value = match &sample.value {
            Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
            Value::Histogram(buckets) => {
                assert!(buckets.is_sorted_by(|one, next| one.less_than < next.less_than));
                assert!(
                    buckets.is_sorted_by(|one, next| one.count <= next.count),
                    "it is not cumulative: {buckets:?}"
                );
                let last = buckets.last().expect("it has buckets");
                assert!(last.less_than.is_infinite(), "the last is +Inf");
                last.count
            }
            Value::Summary(_) => panic!("{name} is a summary"),
        };
        let before = all.insert(name.clone(), value);
        assert!(before.is_none(), "{name} comes twice");
    }
    all
}

/// Checks the rules of the text format that the parser does not check.
fn hold_to_the_format(text: &str) {
    assert!(text.ends_with('\n'));
    let mut current = ("", "");
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().expect("it has a name");
            assert!(!seen.contains(&name), "{name} is described once");
            seen.push(name);
            current = (name, "");
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, of) = of.split_once(' ').expect("name and type");
            assert_eq!((name, current.1), (current.0, ""), "HELP, then TYPE");
            assert_eq!(of == "counter", name.ends_with("_total"), "{name}");
            current.1 = of;
        } else {
            let name = line.split(['{', ' ']).next().expect("it has a name");
            let suffixes: &[&str] = match current.1 {
                "histogram" => &["_bucket", "_sum", "_count"],
                "counter" | "gauge" => &[""],
                other => panic!("{line} has no type but {other:?}"),
            };
            let good = suffixes
                .iter()
                .any(|suffix| name == format!("{}{suffix}", current.0));
            assert!(good, "{line} is under {}", current.0);
        }
    }
    assert!(seen.iter().all(|name| name.starts_with("thalweg_")));
}

fn text(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = metrics.to_prometheus();
    hold_to_the_format(&text);
    parsed(&text)
}

#[test]
fn starts_and_ends_are_counted_by_kind_and_reason() {
    run(|| {
        for n in 0..6 {
            let joined = spawn(move || match n {
                0 => panic!("one panics"),
                1 => exit(ExitReason::Shutdown),
                2 => exit(ExitReason::from("an error")),
                _ => n,
            });
            drop(joined.join());
        }
        let sleeper = spawn(|| sleep(Duration::from_secs(600)));
        yield_now();
        sleeper.pid().kill().expect("it sleeps");
        drop(sleeper.join());
        let echo = start(Echo);
        assert_eq!(echo.call(1), Ok(1));
        assert!(echo.call("too much for it").is_err(), "it panics");
        echo.pid().monitor().wait();
        let resting = start(Echo);
        assert_eq!(resting.call(2), Ok(2));

        let now = metrics::metrics();
        let total = now.total();
        // The main actor has one of them.
        assert_eq!(total.started_stacks, 8);
        let by_reason = |ends: &BTreeMap<&'static str, u64>| -> Vec<(&'static str, u64)> {
            ends.iter()
                .filter(|end| *end.1 > 0)
                .map(|(k, v)| (*k, *v))
                .collect()
        };
        assert_eq!(
            by_reason(&total.ended_stacks),
            [
                ("error", 1),
                ("killed", 1),
                ("normal", 3),
                ("panic", 1),
                ("shutdown", 1)
            ]
        );
        assert_eq!(total.started_behaviours, 2);
        assert_eq!(by_reason(&total.ended_behaviours), [("panic", 1)]);
        assert_eq!(total.messages, 3);

        let text = text(&now);
        for (line, value) in [
            ("thalweg_actors_started_total{kind=stack}", 8.0),
            ("thalweg_actors_ended_total{kind=stack,reason=normal}", 3.0),
            ("thalweg_actors_ended_total{kind=stack,reason=killed}", 1.0),
            (
                "thalweg_actors_ended_total{kind=behaviour,reason=panic}",
                1.0,
            ),
            ("thalweg_actors{kind=stack}", 1.0),
            ("thalweg_actors{kind=behaviour}", 1.0),
            ("thalweg_messages_handled_total{worker=0}", 3.0),
            ("thalweg_messages_handled_total{worker=none}", 0.0),
        ] {
            assert_eq!(text.get(line), Some(&value), "{line}");
        }
    });
}

#[test]
fn restarts_and_dropped_messages_are_counted() {
    run(|| {
        let (spec, echo) = ChildSpec::actor("echo", || Echo);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec);
        let _supervisor = supervisor.start().expect("it starts");
        for _ in 0..3 {
            assert!(echo.call("too much for it").is_err());
        }
        assert_eq!(echo.call(1), Ok(1));
        let mailbox = Mailbox {
            capacity: 2,
            overflow: thalweg_queue::Overflow::DropNewest,
        };
        let full = Builder::new().mailbox(mailbox).start(Echo);
        for n in 0..5 {
            full.cast(n).expect("it is dropped in silence");
        }
        let text = text(&metrics::metrics());
        assert_eq!(text["thalweg_restarts_total{worker=0}"], 3.0);
        assert_eq!(text["thalweg_messages_dropped_total{worker=0}"], 3.0);
    });
}

#[test]
fn slices_waits_and_deadlines_are_counted() {
    run(|| {
        let before = metrics::metrics().total();
        let yields = spawn(|| (0..10).for_each(|_| yield_now()));
        (0..10).for_each(|_| yield_now());
        yields.join().expect("it ends");
        let between = metrics::metrics().total();
        assert!(
            between.slices - before.slices >= 20,
            "{before:?} {between:?}"
        );
        // A sleep whose deadline has already passed does not wait.
        let after = loop {
            sleep(Duration::from_millis(1));
            let now = metrics::metrics().total();
            if now.deadlines >= between.deadlines + 3 && now.sleeps > between.sleeps {
                break now;
            }
        };
        assert_eq!(
            after.waits - between.waits,
            after.deadlines - between.deadlines,
            "nothing else waits here"
        );
    });
}

#[test]
fn slice_durations_are_a_cumulative_histogram_with_accounting() {
    let main = || {
        let busy = spawn(|| {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(5) {
                std::hint::spin_loop();
            }
        });
        busy.join().expect("it ends");
        (0..10).for_each(|_| spawn(|| ()).join().expect("it ends"));
        metrics::metrics()
    };
    let off = init(Config::with_workers(1)).expect("in range").run(main);
    assert!(off.slices.is_none() && !off.to_prometheus().contains("thalweg_slice_seconds"));
    let on = init(Config::with_workers(1).inspect(true))
        .expect("in range")
        .run(main);
    let histogram = on.slices.as_ref().expect("books are kept");
    assert!(histogram.count() >= 21 && histogram.sum >= Duration::from_millis(5));
    let below = |bound| histogram.buckets.iter().find(|(at, _)| *at == Some(bound));
    let below = below(Duration::from_nanos(4_096_000)).expect("it is a bound");
    assert!(below.1 < histogram.count(), "one is longer: {histogram:?}");
    let text = text(&on);
    let count = histogram.count() as f64;
    assert_eq!(text["thalweg_slice_seconds{}"], count);
    assert_eq!(text["thalweg_slice_seconds_count{}"], count);
    assert_eq!(
        text["thalweg_slice_seconds_sum{}"],
        histogram.sum.as_secs_f64()
    );
}

#[test]
fn remote_spawns_wakes_and_steals_are_counted() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle();
    let free = Arc::new(AtomicBool::new(false));
    let (says, said) = std::sync::mpsc::channel();
    let kept = Arc::clone(&free);
    let keeper = handle.spawn(move || {
        // The first child stays with this worker; any worker may run the others.
        let children: Vec<_> = (0..3).map(|_| spawn(|| ())).collect();
        let second = children.into_iter().nth(1).expect("there are three");
        says.send(second).expect("the test waits");
        while !kept.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let second = said.recv().expect("it runs");
    second.join().expect("the other worker took it");
    free.store(true, Ordering::Relaxed);
    keeper.join().expect("it ends");
    let (tell, told) = channel::<()>();
    let waiter = handle.spawn(move || told.recv().is_err());
    while handle.metrics().total().waits == 0 {
        std::thread::yield_now();
    }
    drop(tell);
    assert!(waiter.join().expect("it ends"));
    let echo = handle.start(Echo);
    let later = echo.send_after(Duration::from_micros(10), 7_u32);
    while handle.metrics().timers_fired == 0 {
        std::thread::yield_now();
    }
    drop((later, echo));
    let now = handle.metrics();
    assert_eq!(
        (now.outside.started_stacks, now.outside.started_behaviours),
        (2, 1)
    );
    let total = now.total();
    assert!(total.steals >= 1 && total.remote_wakes >= 1, "{total:?}");
    let text = text(&now);
    assert_eq!(text["thalweg_timers_fired_total{}"], 1.0);
    let stacks = text["thalweg_stacks{worker=0}"] + text["thalweg_stacks{worker=1}"];
    assert!(stacks >= 2.0, "each worker ran something");
}

#[test]
fn workers_are_busy_while_they_have_tasks() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let handle = runtime.handle();
    let becomes_busy = |wanted: usize| {
        while handle.busy_workers() != wanted {
            std::thread::yield_now();
        }
    };
    becomes_busy(0);
    let goes_on = Arc::new(AtomicBool::new(true));
    let keep_busy = || {
        let goes_on = Arc::clone(&goes_on);
        handle.spawn(move || while goes_on.load(Ordering::Relaxed) {})
    };
    let first = keep_busy();
    becomes_busy(1);
    let second = keep_busy();
    becomes_busy(2);
    goes_on.store(false, Ordering::Relaxed);
    first.join().unwrap();
    second.join().unwrap();
    becomes_busy(0);
    runtime.shutdown().expect("both have ended");
}

#[test]
fn queued_jobs_are_a_gauge() {
    let runtime = Runtime::start(Config::with_workers(1)).expect("it starts");
    let handle = runtime.handle();
    let (go, goes) = std::sync::mpsc::channel::<()>();
    let (says, said) = std::sync::mpsc::channel();
    let first = handle.spawn(move || {
        says.send(()).expect("the test waits");
        goes.recv().is_ok()
    });
    said.recv().expect("it runs");
    let rest: Vec<_> = (0..5).map(|_| handle.spawn(|| ())).collect();
    assert_eq!(text(&handle.metrics())["thalweg_queued{worker=none}"], 5.0);
    go.send(()).expect("it waits");
    assert!(first.join().expect("it ends"));
    rest.into_iter()
        .for_each(|actor| actor.join().expect("it ends"));
    assert_eq!(text(&handle.metrics())["thalweg_queued{worker=none}"], 0.0);
}

#[test]
fn labels_are_escaped_and_bad_ones_refused() {
    run(|| {
        let metrics = metrics::metrics();
        let odd = "a\\b\"c\nd";
        let text = metrics
            .to_prometheus_with(&[("service", odd)])
            .expect("a good name");
        hold_to_the_format(&text);
        assert!(
            text.contains("thalweg_stacks{service=\"a\\\\b\\\"c\\nd\",worker=\"0\"} "),
            "{text}"
        );
        let lines = |text: &str| text.lines().count();
        assert_eq!(lines(&text), lines(&metrics.to_prometheus()));
        let refused = |labels: &[(&str, &str)]| metrics.to_prometheus_with(labels).unwrap_err();
        assert_eq!(refused(&[("a-b", "")]), LabelError::Name("a-b".into()));
        assert_eq!(refused(&[("kind", "")]), LabelError::Taken("kind".into()));
        assert_eq!(
            refused(&[("a", "1"), ("a", "2")]),
            LabelError::Taken("a".into())
        );
    });
}

#[test]
fn counters_only_grow_while_others_write_them() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle().clone();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let churn = handle.spawn(move || {
        let mut spawned = 1_u64;
        while !ends.load(Ordering::Relaxed) {
            let some: Vec<_> = (0..20).map(|_| spawn(yield_now)).collect();
            spawned += some.len() as u64;
            some.into_iter().for_each(|actor| drop(actor.join()));
        }
        spawned
    });
    let mut last = handle.metrics().total();
    for _ in 0..500 {
        let now = handle.metrics().total();
        assert!(now.slices >= last.slices && now.started_stacks >= last.started_stacks);
        assert!(now.ended_stacks["normal"] >= last.ended_stacks["normal"]);
        last = now;
    }
    over.store(true, Ordering::Relaxed);
    let spawned = churn.join().expect("it ends");
    let total = handle.metrics().total();
    assert_eq!(total.started_stacks, spawned, "none is lost");
    assert_eq!(total.ended_stacks["normal"], spawned);
}
