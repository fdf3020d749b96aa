//! Join sets: a set of actors whose owner receives each result once.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_runtime::preempt::NoPark;
use thalweg_runtime::{
    Builder, Config, Elapsed, JoinError, JoinSet, Receiver, Runtime, Sender, channel, exit, init,
    run, select, sleep, sleep_async, spawn, yield_now,
};

fn on_both(test: fn()) {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(test);
    }
}

/// Increments a counter when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// An actor that waits until its sender is dropped.
fn held() -> (Sender<()>, impl FnOnce() + Send + 'static) {
    let (release, hold): (Sender<()>, Receiver<()>) = channel();
    (release, move || assert!(hold.recv().is_err()))
}

/// How many actors exist at once. Under Miri each one is a thread.
const MANY: usize = if cfg!(miri) { 40 } else { 1_000 };

#[test]
fn each_end_comes_once() {
    on_both(|| {
        let mut set = JoinSet::new();
        let mut spawned: HashSet<_> = (0..MANY)
            .map(|n| {
                set.spawn(move || {
                    match n % 4 {
                        0 => yield_now(),
                        1 => panic!("{n}"),
                        2 => exit(thalweg_runtime::ExitReason::from("enough")),
                        _ => {}
                    }
                    n % 4
                })
            })
            .collect();
        let (mut values, mut panics, mut exits) = (0, 0, 0);
        while let Some(ended) = set.join_next() {
            assert!(spawned.remove(&ended.id));
            match ended.result {
                Ok(value) => values += usize::from(value == 0 || value == 3),
                Err(JoinError::Panic(_)) => panics += 1,
                Err(JoinError::Exit(_)) => exits += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!((values, panics, exits), (MANY / 2, MANY / 4, MANY / 4));
        assert!(spawned.is_empty() && set.is_empty());
        assert!(set.join_next().is_none(), "nobody is in it");
    });
}

#[test]
fn they_come_as_they_end() {
    on_both(|| {
        let mut set = JoinSet::new();
        let mut releases: Vec<_> = (0..3)
            .map(|n| {
                let (release, wait) = held();
                set.spawn(move || {
                    wait();
                    n
                });
                release
            })
            .collect();
        for n in [2, 1, 0] {
            assert!(set.try_join_next().is_none());
            drop(releases.pop());
            assert_eq!(set.join_next().unwrap().result.unwrap(), n);
            assert_eq!(set.len(), n);
        }
    });
}

#[test]
fn what_had_ended_before_comes_too() {
    on_both(|| {
        let ended = spawn(|| 1);
        while !ended.is_finished() {
            yield_now();
        }
        let (release, wait) = held();
        let polled = spawn(move || {
            wait();
            2
        });
        let mut polled = Box::pin(polled);
        let mut context = Context::from_waker(Waker::noop());
        assert!(polled.as_mut().poll(&mut context).is_pending());
        let polled = *std::pin::Pin::into_inner(polled);
        let named = Builder::new().name("three").spawn(|| 3);
        let mut set: JoinSet<_> = [ended, polled, named].into_iter().collect();
        drop(release);
        let mut values: Vec<_> = std::iter::from_fn(|| set.join_next())
            .map(|ended| ended.result.unwrap())
            .collect();
        values.sort_unstable();
        assert_eq!(values, [1, 2, 3]);
    });
}

#[test]
fn those_that_live_are_killed_with_it() {
    on_both(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut set = JoinSet::new();
        let monitors: Vec<_> = (0..10)
            .map(|n| {
                let counted = Counted(dropped.clone());
                let child = spawn(move || {
                    let _counted = counted;
                    if n > 4 {
                        sleep(Duration::from_secs(3600));
                    }
                });
                let monitor = child.pid().monitor();
                set.insert(child);
                monitor
            })
            .collect();
        // Some have ended and are unjoined, some are asleep, and some may not have begun.
        set.join_next().unwrap().result.unwrap();
        drop(set);
        monitors
            .into_iter()
            .for_each(|monitor| drop(monitor.wait()));
        assert_eq!(dropped.load(Ordering::Relaxed), 10);
    });
}

#[test]
fn killed_ones_are_joined() {
    on_both(|| {
        let mut set = JoinSet::new();
        for _ in 0..10 {
            set.spawn(|| sleep(Duration::from_secs(3600)));
        }
        let one = set.pids().next().unwrap();
        one.kill().unwrap();
        assert_eq!(set.join_next().unwrap().id, one.id());
        set.kill_all();
        while let Some(ended) = set.join_next() {
            assert!(matches!(ended.result, Err(JoinError::Exit(_))));
        }
    });
}

#[test]
fn detached_ones_go_on() {
    on_both(|| {
        let mut set = JoinSet::new();
        let (release, wait) = held();
        let (said, hears) = channel();
        set.spawn(move || {
            wait();
            said.send(()).unwrap();
        });
        set.spawn(|| {});
        yield_now();
        set.detach_all();
        assert!(set.join_next().is_none());
        set.spawn(|| {});
        assert!(set.join_next().is_some());
        drop(set);
        drop(release);
        hears.recv().expect("it lives");
    });
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    on_both(|| {
        let mut set = JoinSet::new();
        let (release, wait) = held();
        set.spawn(wait);
        for _ in 0..3 {
            let waited = set.join_next_timeout(Duration::from_millis(1));
            assert!(matches!(waited, Err(Elapsed)));
            let mut context = Context::from_waker(Waker::noop());
            assert!(pin!(set.join_next_async()).poll(&mut context).is_pending());
        }
        let timed = select! {
            biased;
            _ = set.join_next_async() => false,
            () = sleep_async(Duration::from_millis(1)) => true,
        };
        assert!(timed);
        drop(release);
        let ended = select! {
            ended = set.join_next_async() => ended,
            () = sleep_async(Duration::from_secs(60)) => panic!("it has ended"),
        };
        ended.unwrap().result.unwrap();
        assert!(matches!(set.join_next_timeout(Duration::ZERO), Ok(None)));
    });
}

#[test]
fn a_thread_joins_those_of_a_runtime() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let mut set = JoinSet::new();
    set.extend((0..MANY).map(|n| runtime.handle().spawn(move || n)));
    let mut sum = 0;
    while let Some(ended) = set.join_next() {
        sum += ended.result.unwrap();
    }
    assert_eq!(sum, MANY * (MANY - 1) / 2);
}

#[test]
fn where_the_runtime_stops_each_end_comes() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let mut set = JoinSet::new();
    for _ in 0..MANY {
        let job = || sleep(Duration::from_secs(3600));
        set.insert(runtime.handle().spawn(job));
    }
    drop(runtime);
    let ends = std::iter::from_fn(|| set.join_next());
    assert_eq!(
        ends.filter(|ended| matches!(ended.result, Err(JoinError::Stopped)))
            .count(),
        MANY
    );
}

#[test]
fn who_is_unwound_may_join() {
    struct Joins(JoinSet<u32>);
    impl Drop for Joins {
        fn drop(&mut self) {
            // An actor cannot be suspended here, so its worker's thread waits. The awaited actor
            // runs on the other runtime.
            assert_eq!(self.0.join_next().unwrap().result.unwrap(), 1);
        }
    }
    let other = Runtime::start(Config::with_workers(1)).unwrap();
    let mut set = JoinSet::new();
    set.insert(other.handle().spawn(|| {
        std::thread::sleep(Duration::from_millis(5));
        1
    }));
    run(|| {
        let failed = spawn(move || {
            let _joins = Joins(set);
            panic!("as it should");
        });
        assert!(matches!(failed.join(), Err(JoinError::Panic(_))));
    });
}

#[test]
fn where_it_may_not_wait_it_panics_and_nobody_is_woken_later() {
    on_both(|| {
        let (release, wait) = held();
        let failed = spawn(move || {
            let mut set = JoinSet::new();
            set.spawn(wait);
            let _no = NoPark::new();
            set.join_next();
        });
        assert!(matches!(failed.join(), Err(JoinError::Panic(_))));
        drop(release);
        yield_now();
    });
}

#[test]
fn a_set_goes_from_one_to_the_other() {
    on_both(|| {
        let mut set = JoinSet::new();
        set.spawn(|| 1);
        let mut context = Context::from_waker(Waker::noop());
        let first = set.poll_join_next(&mut context);
        let other = spawn(move || {
            set.spawn(|| 2);
            std::iter::from_fn(|| set.join_next())
                .map(|ended| ended.result.unwrap())
                .sum::<i32>()
        });
        let first = match first {
            Poll::Ready(Some(ended)) => ended.result.unwrap(),
            _ => 0,
        };
        assert_eq!(first + other.join().unwrap(), 3);
    });
}

/// Spawns members on one worker. Returns, for each join, how many members had ended by then.
fn ended_at_joins(members: usize, member: fn()) -> Vec<usize> {
    init(Config::with_workers(1)).unwrap().run(move || {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut set = JoinSet::new();
        for _ in 0..members {
            let ended = ended.clone();
            set.spawn(move || {
                member();
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        std::iter::from_fn(|| set.join_next())
            .map(|_| ended.load(Ordering::Relaxed))
            .collect()
    })
}

/// The owner may want to kill the others.
#[test]
fn owner_of_members_that_take_long_runs_after_each_of_them() {
    let ended = ended_at_joins(10, || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1) {}
    });
    assert_eq!(ended, (1..=10).collect::<Vec<_>>());
}

/// A slow machine may take long for a short member, so that the owner runs at once.
#[test]
#[cfg_attr(any(miri, thalweg_threads), ignore = "each member takes long")]
fn owner_of_short_members_runs_after_several_of_them() {
    let is_seen = (0..1_000).any(|_| {
        let ended = ended_at_joins(100, || ());
        ended
            .iter()
            .enumerate()
            .any(|(joined, &ended)| ended > joined + 10)
    });
    assert!(is_seen, "the owner always ran after one member");
}
