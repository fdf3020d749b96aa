//! Pipelines: the output and its order, how many items are inside, and the effect of a failing
//! stage.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::SendError;
use thalweg_runtime::patterns::{
    OnFailure, Pipeline, PipelineBuilder, PipelineEnd, PipelineStats, PoolError,
};
use thalweg_runtime::supervisor::Backoff;
use thalweg_runtime::sync::Semaphore;
use thalweg_runtime::{Config, Pid, Runtime, select, sleep, sleep_async, spawn, yield_now};

use crate::kit::{on_both, silence_bad_luck, until};

/// Waits until no stage is processing an item.
fn comes_to_rest<I: Send + 'static, O: Send + 'static>(pipeline: &Pipeline<I, O>) {
    let runs = |stats: PipelineStats| stats.stages.iter().any(|stage| stage.items.running > 0);
    until(|| !runs(pipeline.stats()));
}

/// A pipeline of one worker that returns its input.
fn same(capacity: usize) -> Pipeline<u64, u64> {
    let builder = PipelineBuilder::new().stage("one", 1, capacity, |n| n);
    builder.start().unwrap()
}

/// When the pipeline is empty, `accepted` is the sum of received and lost items.
fn adds_up(stats: &PipelineStats) {
    assert_eq!(stats.accepted, stats.received + stats.lost, "{stats:?}");
}

#[test]
fn accepted_items_come_out_once_before_the_end() {
    const ALL: u64 = if cfg!(miri) { 40 } else { 1_000 };
    on_both(|| {
        let pipeline = PipelineBuilder::new()
            .stage("double", 3, 4, |n: u64| n * 2)
            .stage("text", 2, 1, |n| n.to_string())
            .start()
            .unwrap();
        let feeder = pipeline.feed(0..ALL);
        let all: BTreeSet<u64> = pipeline.iter().map(|text| text.parse().unwrap()).collect();
        assert!(all.into_iter().eq((0..ALL).map(|n| n * 2)));
        assert_eq!(feeder.join().unwrap(), ALL);
        assert!(matches!(pipeline.recv(), Err(PipelineEnd::Drained)));
        assert!(matches!(pipeline.send(1), Err(SendError::Closed(1))));
        let stats = pipeline.stats();
        adds_up(&stats);
        assert_eq!((stats.received, stats.lost), (ALL, 0));
        for stage in &stats.stages {
            assert_eq!((stage.items.accepted, stage.items.handled), (ALL, ALL));
        }
        assert_eq!(
            stats
                .stages
                .iter()
                .map(|stage| &*stage.name)
                .collect::<Vec<_>>(),
            ["double", "text"]
        );
    });
}

#[test]
fn empty_pipeline_ends_after_close() {
    on_both(|| {
        let pipeline = same(1);
        let other = pipeline.clone();
        let waits = spawn(move || other.recv());
        yield_now();
        pipeline.close();
        assert!(matches!(waits.join().unwrap(), Err(PipelineEnd::Drained)));
    });
}

#[test]
fn order_is_kept_despite_slow_and_lost_items() {
    const ALL: u64 = if cfg!(miri) { 40 } else { 400 };
    on_both(|| {
        let pipeline = PipelineBuilder::new()
            .stage("slow", 4, 4, |n: u64| {
                if n.is_multiple_of(7) {
                    sleep(Duration::from_micros(n % 200));
                }
                assert!(n % 10 != 3, "unlucky");
                n
            })
            .stage("again", 3, 2, |n| {
                assert!(n % 10 != 5, "unlucky");
                n
            })
            .in_order()
            .start()
            .unwrap();
        pipeline.feed(0..ALL);
        let all: Vec<_> = pipeline.iter().collect();
        let lucky = |n: &u64| n % 10 != 3 && n % 10 != 5;
        assert!(all.into_iter().eq((0..ALL).filter(lucky)));
        let stats = pipeline.stats();
        adds_up(&stats);
        assert_eq!((stats.received, stats.lost), (ALL / 10 * 8, ALL / 10 * 2));
        let failed: Vec<_> = stats
            .stages
            .iter()
            .map(|stage| stage.items.failed)
            .collect();
        assert_eq!(failed, [ALL / 10; 2]);
        let failure = pipeline.last_failure().unwrap();
        assert_eq!(failure.reason.kind(), "panic");
        assert!(matches!(pipeline.ended(), Some(PipelineEnd::Drained)));
    });
}

#[test]
fn pipeline_never_exceeds_its_capacity() {
    on_both(|| {
        let begun = Arc::new(AtomicU64::new(0));
        let (count, gate) = (Arc::clone(&begun), Arc::new(Semaphore::new(0)));
        let waits = Arc::clone(&gate);
        // Twice: 1 item in progress and 2 that wait.
        let pipeline = PipelineBuilder::new()
            .stage("counts", 1, 2, move |n: u64| {
                count.fetch_add(1, Ordering::SeqCst);
                n
            })
            .stage("waits", 1, 2, move |n| {
                waits.acquire().unwrap().forget();
                n
            })
            .in_order()
            .start()
            .unwrap();
        let mut sent = 0;
        while pipeline
            .send_timeout(sent, Duration::from_millis(5))
            .is_ok()
        {
            sent += 1;
        }
        assert!(sent <= 6, "{sent}");
        assert!(
            begun.load(Ordering::SeqCst) <= 4,
            "the second stage holds up the first"
        );
        // Back pressure also applies when all items are processed and nobody receives them.
        gate.add_permits(1_000);
        while pipeline.stats().stages[1].items.handled < sent {
            yield_now();
        }
        assert!(matches!(
            pipeline
                .send_timeout(9, Duration::from_millis(5))
                .map(|()| sent),
            Err(SendError::TimedOut(9)) | Ok(0..6)
        ));
        assert_eq!(pipeline.recv().unwrap(), 0);
        pipeline.send(7).unwrap();
        pipeline.close();
        assert_eq!(pipeline.iter().last(), Some(7));
        adds_up(&pipeline.stats());
    });
}

#[test]
fn failed_stage_stops_the_pipeline_with_policy_stop() {
    on_both(|| {
        let pipeline = PipelineBuilder::new()
            .stage("parse", 1, 8, |text: &'static str| {
                text.parse::<u32>().expect("a number")
            })
            .stage("same", 1, 8, |n| n)
            .on_failure(OnFailure::Stop)
            .start()
            .unwrap();
        let feeder = pipeline.feed(["1", "2", "x", "3"].into_iter().cycle());
        let got = pipeline.iter().count();
        assert!(got <= 2, "{got}");
        match pipeline.ended() {
            Some(PipelineEnd::Failed(failure)) => {
                assert_eq!((&*failure.stage, failure.reason.kind()), ("parse", "panic"));
                assert!(failure.to_string().contains("a number"), "{failure}");
            }
            other => panic!("{other:?}"),
        }
        feeder.join().unwrap();
        comes_to_rest(&pipeline);
        adds_up(&pipeline.stats());
    });
}

#[test]
fn killed_worker_loses_only_its_running_item() {
    on_both(|| {
        let pipeline = PipelineBuilder::new()
            .stage("dies", 1, 8, |n: u64| {
                if n == 3 {
                    Pid::current().unwrap().kill().unwrap();
                    yield_now();
                }
                n
            })
            .in_order()
            .start()
            .unwrap();
        pipeline.feed(0..6);
        assert_eq!(pipeline.iter().collect::<Vec<_>>(), [0, 1, 2, 4, 5]);
        assert_eq!(pipeline.last_failure().unwrap().reason.kind(), "killed");
        assert_eq!(pipeline.stats().lost, 1);
    });
}

#[test]
fn cancel_ends_the_pipeline_and_wakes_all_waiters() {
    on_both(|| {
        let gate = Arc::new(Semaphore::new(0));
        let waits = Arc::clone(&gate);
        let pipeline = PipelineBuilder::new()
            .stage("waits", 2, 2, move |n: u64| {
                waits.acquire().unwrap().forget();
                n
            })
            .start()
            .unwrap();
        let feeder = pipeline.feed(0..100);
        let other = pipeline.clone();
        let receives = spawn(move || other.recv());
        while pipeline.stats().stages[0].items.running < 2 {
            yield_now();
        }
        pipeline.cancel();
        assert!(matches!(
            receives.join().unwrap(),
            Err(PipelineEnd::Cancelled)
        ));
        assert!(feeder.join().unwrap() <= 4);
        gate.add_permits(10);
        comes_to_rest(&pipeline);
        let stats = pipeline.stats();
        adds_up(&stats);
        assert_eq!(stats.received, 0);
    });
}

#[test]
fn dropping_the_last_clone_cancels_despite_a_feeder() {
    on_both(|| {
        let pipeline = same(1);
        let feeder = pipeline.feed(0..);
        assert!(pipeline.recv().is_ok());
        drop(pipeline);
        feeder.join().unwrap();
    });
}

#[test]
fn pipeline_results_work_in_select() {
    const ALL: u64 = if cfg!(miri) { 20 } else { 200 };
    on_both(|| {
        let pipeline = same(4);
        let (mut sum, mut idle) = (0, 0);
        let feeder = pipeline.feed(0..ALL);
        loop {
            select! {
                result = pipeline.recv_async() => match result {
                    Ok(n) => sum += n,
                    Err(_) => break,
                },
                () = sleep_async(Duration::from_micros(20)) => idle += 1,
            }
        }
        assert_eq!(
            (sum, feeder.join().unwrap()),
            (ALL * (ALL - 1) / 2, ALL),
            "after {idle} waits in vain"
        );
    });
}

#[test]
fn invalid_pipeline_is_refused_and_threads_can_start_one() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let none = PipelineBuilder::<u8, u8>::new().start_on(runtime.handle());
    assert!(matches!(none, Err(PoolError::Invalid(_))));
    for (workers, capacity) in [(0, 1), (1, 0)] {
        let none = PipelineBuilder::new().stage("x", workers, capacity, |n: u8| n);
        assert!(matches!(
            none.start_on(runtime.handle()),
            Err(PoolError::Invalid(_))
        ));
    }
    let pipeline: Pipeline<u32, u32> = PipelineBuilder::new()
        .stage("add", 1, 4, |n| n + 1)
        .start_on(runtime.handle())
        .unwrap();
    pipeline.send(1).unwrap();
    assert_eq!(pipeline.recv().unwrap(), 2);
}

#[test]
fn random_pipelines_count_every_lost_item() {
    const RUNS: u64 = if cfg!(miri) { 2 } else { 100 };
    on_both(|| {
        silence_bad_luck();
        for seed in 0..RUNS {
            let work = move |salt: u64| {
                move |n: u64| {
                    match (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed ^ salt) % 23 {
                        0 => panic!("bad luck"),
                        1 => sleep(Duration::from_micros(5)),
                        2 => {
                            let _ = Pid::current().map(|me| me.kill());
                            yield_now();
                        }
                        3 => yield_now(),
                        _ => {}
                    }
                    n
                }
            };
            let mut builder = PipelineBuilder::new()
                .backoff(Backoff {
                    first: Duration::from_micros(seed % 20),
                    max: Duration::from_micros(50),
                    ..Backoff::default()
                })
                .stage("a", 1 + seed as usize % 3, 1 + seed as usize % 5, work(1))
                .stage(
                    "b",
                    1 + seed as usize % 4,
                    1 + seed as usize % 2,
                    work(1 << 40),
                )
                .stage("c", 1 + seed as usize % 2, 3, work(1 << 50));
            let in_order = seed % 2 == 0;
            if in_order {
                builder = builder.in_order();
            }
            let pipeline = builder.start().unwrap();
            let cancels = seed % 5 == 0;
            let feeder = pipeline.feed(0..100);
            let mut all = Vec::new();
            for n in pipeline.iter() {
                all.push(n);
                if cancels && all.len() == 20 {
                    pipeline.cancel();
                }
            }
            let accepted = feeder.join().unwrap();
            comes_to_rest(&pipeline);
            let stats = pipeline.stats();
            adds_up(&stats);
            assert_eq!(accepted, stats.accepted);
            assert_eq!(all.len() as u64, stats.received, "seed {seed}");
            assert!(cancels || stats.accepted == 100, "seed {seed}: {stats:?}");
            assert!(!in_order || all.is_sorted(), "seed {seed}: {all:?}");
        }
    });
}
