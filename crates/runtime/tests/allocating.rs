//! Preemption by the allocator.
//!
//! A process of its own: the test installs a global allocator and replaces the panic hook.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thalweg_queue::{mpmc, mpsc, oneshot};
use thalweg_runtime::preempt::{NoPark, NoPreempt};
use thalweg_runtime::{
    Builder, Config, JoinError, Run, Runtime, TurnSlot, channel, preempt, runtime, sleep, spawn,
    wait, yield_now,
};

// SAFETY: the actors below hold nothing across an allocation that another actor of their worker
// needs.
thalweg_runtime::preempting_allocator!(unsafe);

/// Long enough for a machine that is busy with other work.
const PATIENCE: Duration = Duration::from_secs(60);

fn allocate(seed: u64) -> u64 {
    let mut map = BTreeMap::new();
    for n in 0..20 {
        map.insert(n ^ seed, format!("{n}:{seed}"));
    }
    map.values().map(|text| text.len() as u64).sum()
}

/// Runs an actor that only allocates until another actor has run or `PATIENCE` has passed. Returns
/// whether the other actor ran.
fn allocates_until_another_runs(config: Config) -> bool {
    runtime::init(config).unwrap().run(move || {
        let other = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&other);
        let busy = spawn(move || {
            let end = Instant::now() + PATIENCE;
            while !seen.load(Ordering::Relaxed) && Instant::now() < end {
                std::hint::black_box(allocate(1));
            }
            seen.load(Ordering::Relaxed)
        });
        // The busy actor is first in the queue; this one goes behind it.
        yield_now();
        other.store(true, Ordering::Relaxed);
        busy.join().unwrap()
    })
}

#[test]
fn a_loop_that_allocates_lets_another_actor_run() {
    assert!(allocates_until_another_runs(Config::with_workers(1)));
    let often = Config::with_workers(1).alloc_interval(1);
    assert!(allocates_until_another_runs(often));
}

#[test]
fn a_long_interval_keeps_the_others_waiting() {
    // The time slice is long over, but some 30,000 allocations are fewer than 1,000,000.
    let config = Config::with_workers(1).alloc_interval(1_000_000);
    runtime::init(config).unwrap().run(|| {
        let other = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&other);
        let busy = spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            for seed in 0..1_000 {
                std::hint::black_box(allocate(seed));
            }
            seen.load(Ordering::Relaxed)
        });
        yield_now();
        other.store(true, Ordering::Relaxed);
        assert!(!busy.join().unwrap());
    });
}

#[test]
fn there_is_no_point_within_a_section() {
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        let counter = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, stopped) = (Arc::clone(&counter), Arc::clone(&stop));
        let other = spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                count.fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
        });
        yield_now();
        let outer = NoPreempt::new();
        for whole in [true, false] {
            let inner = whole.then(NoPark::new);
            let before = counter.load(Ordering::Relaxed);
            let end = Instant::now() + Duration::from_millis(5);
            let (tx, rx) = channel();
            while Instant::now() < end {
                std::hint::black_box(allocate(2));
                thalweg_runtime::check!();
                tx.send(1).unwrap();
                rx.recv().unwrap();
            }
            assert_eq!(counter.load(Ordering::Relaxed), before);
            drop(inner);
        }
        // A voluntary yield is still allowed.
        let before = counter.load(Ordering::Relaxed);
        yield_now();
        assert_ne!(counter.load(Ordering::Relaxed), before);
        for _ in 0..10_000 {
            thalweg_runtime::check!();
        }
        drop(outer);
        let before = counter.load(Ordering::Relaxed);
        let end = Instant::now() + PATIENCE;
        while counter.load(Ordering::Relaxed) == before && Instant::now() < end {
            thalweg_runtime::check!();
        }
        assert_ne!(counter.load(Ordering::Relaxed), before);
        let before = counter.load(Ordering::Relaxed);
        let end = Instant::now() + PATIENCE;
        while counter.load(Ordering::Relaxed) == before && Instant::now() < end {
            std::hint::black_box(allocate(3));
        }
        assert_ne!(counter.load(Ordering::Relaxed), before);
        stop.store(true, Ordering::Relaxed);
        other.join().unwrap();
    });
}

#[test]
fn a_section_is_its_actors_own_and_survives_its_waits() {
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        let held = spawn(|| {
            let _section = NoPreempt::new();
            // While this actor sleeps, another one is preempted.
            sleep(Duration::from_millis(20));
            thalweg_queue::no_preempt::depth()
        });
        yield_now();
        assert_eq!(thalweg_queue::no_preempt::depth(), 0);
        let ran = Arc::new(AtomicBool::new(false));
        let it = Arc::clone(&ran);
        spawn(move || it.store(true, Ordering::Relaxed));
        let end = Instant::now() + PATIENCE;
        while !ran.load(Ordering::Relaxed) && Instant::now() < end {
            std::hint::black_box(allocate(4));
        }
        assert!(ran.load(Ordering::Relaxed));
        assert_eq!(held.join().unwrap(), 1);
        assert_eq!(thalweg_queue::no_preempt::depth(), 0);
    });
}

#[test]
fn a_forgotten_section_ends_with_its_actor() {
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        spawn(|| {
            std::mem::forget(NoPreempt::new());
            std::mem::forget(NoPark::new());
        })
        .join()
        .unwrap();
        spawn(|| {
            assert_eq!(thalweg_queue::no_preempt::depth(), 0);
            sleep(Duration::from_micros(10));
        })
        .join()
        .unwrap();
    });
}

#[test]
fn waiting_in_a_section_without_it_is_a_panic_and_ends_that_actor_only() {
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        type Wait = fn();
        let waits: [Wait; 6] = [
            || sleep(Duration::from_millis(1)),
            || _ = channel::<()>().1.recv_timeout(Duration::from_millis(1)),
            || {
                let (_tx, rx) = mpmc::channel::<u8>(1).unwrap();
                _ = rx.recv();
            },
            || {
                let (_tx, rx) = oneshot::channel::<u8>();
                _ = rx.recv();
            },
            || _ = spawn(|| 1).join(),
            || {
                spawn(|| 1);
                yield_now();
            },
        ];
        for wait in waits {
            let end = spawn(move || {
                let _region = NoPark::new();
                wait();
            })
            .join();
            let Err(JoinError::Panic(panic)) = end else {
                panic!("it waited: {end:?}");
            };
            let message = panic.message().unwrap();
            assert!(message.contains("NoPark"), "{message}");
        }
        // On a plain thread `NoPark` has no effect, and an operation that does not wait is allowed.
        spawn(|| {
            let _region = NoPark::new();
            let (tx, rx) = channel();
            tx.send(1).unwrap();
            rx.recv().unwrap()
        })
        .join()
        .unwrap();
    });
    let _region = NoPark::new();
    assert_eq!(wait::park(Some(0)), wait::WakeReason::TimedOut);
}

#[test]
fn a_wait_while_unwinding_from_such_a_section_gives_up() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            assert_eq!(wait::park(None), wait::WakeReason::Stopping);
        }
    }
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        let end = spawn(|| {
            let _region = NoPark::new();
            let _waits = Waits;
            sleep(Duration::from_millis(1));
        });
        assert!(matches!(end.join(), Err(JoinError::Panic(_))));
    });
}

#[test]
fn a_service_has_no_points_in_its_allocations_but_those_that_it_says() {
    struct Service(
        Arc<AtomicU64>,
        std::sync::mpsc::Sender<(bool, bool)>,
        TurnSlot,
    );
    impl Run for Service {
        fn run(self: Arc<Self>) {
            let end = Instant::now() + Duration::from_millis(20);
            while Instant::now() < end {
                std::hint::black_box(allocate(5));
            }
            let quiet = self.0.load(Ordering::Relaxed) == 0;
            let end = Instant::now() + PATIENCE;
            while self.0.load(Ordering::Relaxed) == 0 && Instant::now() < end {
                thalweg_runtime::check!();
            }
            let told = self.1.send((quiet, self.0.load(Ordering::Relaxed) > 0));
            told.unwrap();
        }

        fn refuse(self: Arc<Self>) {
            unreachable!("there are stacks");
        }

        fn turn_slot(&self) -> &TurnSlot {
            &self.2
        }
    }
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    let others = Arc::new(AtomicU64::new(0));
    let service = Arc::new(Service(Arc::clone(&others), tx, TurnSlot::default()));
    let handle = runtime.handle().clone();
    // One actor schedules both, so that the other one is already queued when the service begins.
    runtime.handle().spawn(move || {
        handle.schedule(service);
        handle.spawn(move || others.fetch_add(1, Ordering::Relaxed));
    });
    assert_eq!(rx.recv_timeout(PATIENCE), Ok((true, true)));
}

/// A lock that an application holds across an allocation, inside a `NoPreempt` section.
fn log(lines: &Mutex<Vec<String>>, line: &str) {
    let _section = NoPreempt::new();
    lines.lock().unwrap().push(line.to_owned());
}

#[test]
fn a_storm_of_actors_that_allocate_send_join_and_panic_comes_to_an_end() {
    std::panic::set_hook(Box::new(|_| {}));
    for workers in [1, 2, 4] {
        for interval in [1, 3, 128] {
            let config = Config::with_workers(workers)
                .alloc_interval(interval)
                .timeslice(Duration::from_micros(1));
            storm(config);
        }
    }
    let _ = std::panic::take_hook();
}

const STORM: u64 = if cfg!(debug_assertions) { 200 } else { 1_000 };

fn storm(config: Config) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&lines);
    let sum = runtime::init(config).unwrap().run(move || {
        let (results, collected) = channel();
        let (bounded, taken) = mpmc::channel::<Vec<u64>>(4).unwrap();
        let (many, received) = mpsc::channel::<String>(16).unwrap();
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let (taken, results) = (taken.clone(), results.clone());
                spawn(move || {
                    while let Ok(values) = taken.recv() {
                        results.send(values.iter().sum::<u64>()).unwrap();
                    }
                })
            })
            .collect();
        drop(taken);
        let reader = spawn(move || {
            let mut batch = Vec::new();
            while received.recv_batch(&mut batch, 7).is_ok() {}
            batch.len()
        });
        let actors: Vec<_> = (0..STORM)
            .map(|n| {
                let (bounded, many, lines) = (bounded.clone(), many.clone(), Arc::clone(&all));
                let name = format!("stormy {n}");
                Builder::new().name(name).spawn(move || {
                    std::hint::black_box(allocate(n));
                    let (answer, question) = oneshot::channel();
                    let child = spawn(move || {
                        let text = format!("{n}");
                        answer.send(text).unwrap();
                        (0..n % 50).collect::<Vec<_>>()
                    });
                    assert_eq!(question.recv().unwrap(), n.to_string());
                    many.send(format!("{n}")).unwrap();
                    bounded.send(child.join().unwrap()).unwrap();
                    if n % 10 == 0 {
                        sleep(Duration::from_micros(n % 300));
                        log(&lines, &format!("slept {n}"));
                    }
                    std::hint::black_box(allocate(n));
                    assert!(n % 3 != 0, "on purpose: {}", allocate(n));
                })
            })
            .collect();
        drop((bounded, many, results));
        let panicked = actors
            .into_iter()
            .map(|actor| match actor.join() {
                Ok(()) => 0,
                Err(JoinError::Panic(panic)) => {
                    assert!(panic.message().is_some_and(|m| m.contains("on purpose")));
                    1
                }
                Err(error) => panic!("{error}"),
            })
            .sum::<u64>();
        assert_eq!(panicked, STORM.div_ceil(3));
        assert_eq!(reader.join().unwrap() as u64, STORM);
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        collected.iter().sum::<u64>()
    });
    assert_eq!(sum, (0..STORM).map(|n| (0..n % 50).sum::<u64>()).sum());
    assert_eq!(lines.lock().unwrap().len() as u64, STORM.div_ceil(10));
}

#[test]
fn a_runtime_that_stops_does_not_unwind_an_actor_in_an_allocation() {
    let runtime =
        Runtime::start(Config::with_workers(2).timeslice(Duration::from_micros(1))).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let actors: Vec<_> = (0..8)
        .map(|n| {
            let stop = Arc::clone(&stop);
            runtime.handle().spawn(move || {
                let mut made = 0;
                while !stop.load(Ordering::Relaxed) {
                    made += allocate(n);
                }
                made
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(20));
    let stopper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        }
    });
    drop(runtime);
    stopper.join().unwrap();
    for actor in actors {
        // An actor that had not begun is cancelled.
        assert!(matches!(actor.join(), Ok(1..) | Err(JoinError::Stopped)));
    }
}

#[test]
fn the_slice_is_whole_while_nobody_waits_and_shrinks_then() {
    assert_eq!(preempt::slice_remaining(), None);
    let slice = Duration::from_secs(1);
    let config = Config::with_workers(1).timeslice(slice);
    runtime::init(config).unwrap().run(move || {
        assert_eq!(preempt::slice_remaining(), Some(slice));
        loop {
            let ran = Arc::new(AtomicBool::new(false));
            let its = Arc::clone(&ran);
            let other = spawn(move || its.store(true, Ordering::Relaxed));
            let end = Instant::now() + Duration::from_millis(20);
            while Instant::now() < end {
                thalweg_runtime::check!();
            }
            let left = preempt::slice_remaining();
            // If the machine paused for a whole slice, the other actor has already run and no
            // longer waits.
            let waits = !ran.load(Ordering::Relaxed);
            other.join().unwrap();
            if waits {
                return assert!(left < Some(slice), "{left:?}");
            }
        }
    });
}

#[test]
fn actors_with_a_mailbox_that_allocate_and_call_each_other_come_to_an_end() {
    use thalweg_runtime::{Actor, ActorRef, Context, Handler, start};

    struct Counter {
        next: Option<ActorRef<Counter>>,
        texts: Vec<String>,
    }
    impl Actor for Counter {}
    impl Handler<u64> for Counter {
        type Reply = u64;
        fn handle(&mut self, n: u64, _: &Context<'_, Self>) -> u64 {
            self.texts.push(format!("{n}: {}", allocate(n)));
            match &self.next {
                Some(next) => next.call(n + 1).unwrap(),
                None => n,
            }
        }
    }
    for workers in [1, 2] {
        let config = Config::with_workers(workers)
            .alloc_interval(1)
            .timeslice(Duration::from_micros(1));
        runtime::init(config).unwrap().run(|| {
            let mut next = None;
            for _ in 0..4 {
                next = Some(start(Counter {
                    next,
                    texts: Vec::new(),
                }));
            }
            let first = next.unwrap();
            let callers: Vec<_> = (0..20)
                .map(|n| {
                    let first = first.clone();
                    spawn(move || {
                        for call in 0..20 {
                            assert_eq!(first.call(n * 100 + call), Ok(n * 100 + call + 3));
                        }
                    })
                })
                .collect();
            callers
                .into_iter()
                .for_each(|caller| caller.join().unwrap());
        });
    }
}
