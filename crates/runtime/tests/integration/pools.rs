//! Pools: which worker handles a job, which jobs are accepted, and where each job is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_queue::SendError;
use thalweg_runtime::patterns::{Drained, Pool, PoolBuilder, PoolError, PoolOverflow, Routing};
use thalweg_runtime::sync::Semaphore;
use thalweg_runtime::{CallError, Config, Runtime, run, select, sleep_async, spawn, yield_now};

use crate::kit::on_both;

const LONG: Duration = Duration::from_secs(60);

/// A job that waits for a permit, one that panics, or a number.
enum Job {
    Gate(Arc<Semaphore>),
    Panic,
    Number(u64),
}

fn work(job: Job) -> u64 {
    match job {
        Job::Gate(gate) => {
            gate.acquire().unwrap().forget();
            0
        }
        Job::Panic => panic!("as it was told to"),
        Job::Number(n) => n,
    }
}

/// Submits one waiting job per worker. Returns when all of them are running.
fn keep(pool: &Pool<Job, u64>, workers: usize) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let before = pool.stats().running;
    for _ in 0..workers {
        pool.cast(Job::Gate(Arc::clone(&gate))).unwrap();
    }
    while pool.stats().running < before + workers {
        yield_now();
    }
    gate
}

fn builder(workers: usize) -> PoolBuilder<Job> {
    PoolBuilder::new("test").workers(workers)
}

#[test]
fn shared_queue_gives_the_next_job_to_a_free_worker() {
    on_both(|| {
        let pool = builder(2).start(|| work).unwrap();
        let gate = keep(&pool, 1);
        for n in 0..20 {
            assert_eq!(pool.call(Job::Number(n)), Ok(n));
        }
        let stats = pool.stats();
        assert_eq!((stats.running, stats.handled), (1, 20));
        let by_worker: BTreeSet<_> = stats.workers.iter().map(|one| one.handled).collect();
        assert_eq!(by_worker, BTreeSet::from([0, 20]));
        gate.add_permits(1);
        assert_eq!(
            pool.drain(LONG),
            Drained {
                dropped: 0,
                running: 0
            }
        );
        assert_eq!(pool.stats().handled, 21);
    });
}

#[test]
fn round_robin_alternates_and_least_loaded_gets_the_job() {
    on_both(|| {
        let pool = builder(3)
            .routing(Routing::RoundRobin)
            .start(|| work)
            .unwrap();
        for n in 0..9 {
            pool.cast(Job::Number(n)).unwrap();
        }
        pool.drain(LONG);
        assert!(
            pool.stats()
                .workers
                .iter()
                .all(|worker| worker.handled == 3)
        );

        let pool = builder(3)
            .routing(Routing::LeastLoaded)
            .start(|| work)
            .unwrap();
        let gate = keep(&pool, 3);
        for n in 0..8 {
            pool.cast(Job::Number(n)).unwrap();
        }
        let mut waiting: Vec<_> = pool.stats().workers.iter().map(|one| one.waiting).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, [2, 3, 3]);
        gate.add_permits(3);
        pool.drain(LONG);
        assert_eq!(pool.stats().handled, 11);
    });
}

#[test]
fn jobs_of_a_key_stay_in_order_over_a_resize() {
    on_both(|| {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let seen: Arc<Mutex<Vec<(u64, u64, usize)>>> = Arc::default();
        let log = Arc::clone(&seen);
        let pool = PoolBuilder::new("keys")
            .workers(3)
            .capacity(10_000)
            .routing(Routing::by_key(|job: &(u64, u64)| job.0))
            .start(move || {
                let me = NEXT.fetch_add(1, Ordering::Relaxed);
                let log = Arc::clone(&log);
                move |(key, n): (u64, u64)| log.lock().unwrap().push((key, n, me))
            })
            .unwrap();
        let mut numbers = [0; 16];
        let send = |numbers: &mut [u64; 16]| {
            for key in 0..16 {
                pool.cast((key, numbers[key as usize])).unwrap();
                numbers[key as usize] += 1;
            }
        };
        let quiet = || {
            while pool.stats().waiting + pool.stats().running > 0 {
                yield_now();
            }
        };
        let mut homes: Vec<BTreeMap<u64, BTreeSet<usize>>> = Vec::new();
        for workers in [3, 4, 2] {
            quiet();
            pool.resize(workers).unwrap();
            seen.lock().unwrap().clear();
            (0..10).for_each(|_| send(&mut numbers));
            quiet();
            let mut home = BTreeMap::<_, BTreeSet<_>>::new();
            let mut last = BTreeMap::new();
            for (key, n, worker) in &*seen.lock().unwrap() {
                home.entry(*key).or_default().insert(*worker);
                assert!(last.insert(*key, *n) < Some(*n), "out of order");
            }
            assert!(home.values().all(|workers| workers.len() == 1), "{home:?}");
            homes.push(home);
        }
        // One key in four moves to the new worker, but hashing may vary this.
        let moved = (0..16).filter(|key| homes[0][key] != homes[1][key]).count();
        assert!(moved < 10, "{moved}");
        pool.drain(LONG);
    });
}

#[test]
fn full_pool_applies_its_overflow_policy() {
    on_both(|| {
        let pool = builder(1)
            .capacity(2)
            .overflow(PoolOverflow::Fail)
            .start(|| work)
            .unwrap();
        let gate = keep(&pool, 1);
        pool.cast(Job::Number(1)).unwrap();
        pool.cast(Job::Number(2)).unwrap();
        assert!(matches!(
            pool.cast(Job::Number(3)),
            Err(SendError::Full(Job::Number(3)))
        ));
        assert_eq!(pool.call(Job::Number(3)), Err(CallError::Full));
        assert_eq!(pool.stats().refused, 2);
        gate.add_permits(1);
        pool.drain(LONG);
        assert_eq!((pool.stats().accepted, pool.stats().handled), (3, 3));

        let pool = builder(1)
            .capacity(2)
            .overflow(PoolOverflow::DropOldest)
            .start(|| work)
            .unwrap();
        let gate = keep(&pool, 1);
        let other = pool.clone();
        let oldest = spawn(move || other.call(Job::Number(1)));
        while pool.stats().waiting < 1 {
            yield_now();
        }
        pool.cast(Job::Number(2)).unwrap();
        pool.cast(Job::Number(3)).unwrap();
        assert_eq!(oldest.join().unwrap(), Err(CallError::Ended));
        gate.add_permits(1);
        pool.drain(LONG);
        let stats = pool.stats();
        assert_eq!((stats.accepted, stats.handled, stats.dropped), (4, 3, 1));

        let pool = builder(1).capacity(1).start(|| work).unwrap();
        let gate = keep(&pool, 1);
        pool.cast(Job::Number(1)).unwrap();
        let late = pool.cast_timeout(Job::Number(2), Duration::from_millis(1));
        assert!(matches!(late, Err(SendError::TimedOut(Job::Number(2)))));
        select! {
            biased;
            _ = pool.cast_async(Job::Number(2)) => panic!("it is full"),
            () = sleep_async(Duration::from_micros(100)) => {}
        }
        let other = pool.clone();
        let waits = spawn(move || other.cast(Job::Number(2)).is_ok());
        yield_now();
        gate.add_permits(1);
        assert!(waits.join().unwrap());
        pool.drain(LONG);
        assert_eq!((pool.stats().accepted, pool.stats().handled), (3, 3));
    });
}

#[test]
fn failed_worker_restarts_with_a_new_state_and_its_jobs() {
    on_both(|| {
        let pool = PoolBuilder::new("fails")
            .workers(1)
            .start(|| {
                let mut handled = 0;
                move |job: Job| {
                    handled += 1;
                    work(job) + handled
                }
            })
            .unwrap();
        assert_eq!(pool.call(Job::Number(10)), Ok(11));
        let gate = keep(&pool, 1);
        pool.cast(Job::Panic).unwrap();
        let other = pool.clone();
        let after = spawn(move || other.call(Job::Number(10)));
        while pool.stats().waiting < 2 {
            yield_now();
        }
        gate.add_permits(1);
        assert_eq!(after.join().unwrap(), Ok(11), "it is the new state's first");
        assert_eq!(pool.call(Job::Panic), Err(CallError::Ended));
        assert_eq!(pool.call(Job::Number(10)), Ok(11));
        let stats = pool.stats();
        assert_eq!((stats.handled, stats.failed, stats.dropped), (4, 2, 0));
        let workers = pool.which_workers().unwrap();
        assert_eq!((workers[0].restarts, workers[0].reasons["panic"]), (2, 2));
    });
}

#[test]
fn killed_worker_loses_only_its_running_job() {
    on_both(|| {
        for routing in [Routing::Shared, Routing::RoundRobin] {
            let pool = builder(2).routing(routing).start(|| work).unwrap();
            keep(&pool, 2);
            for n in 0..10 {
                pool.cast(Job::Number(n)).unwrap();
            }
            for worker in pool.which_workers().unwrap() {
                worker.pid.unwrap().kill().unwrap();
            }
            // Kills the workers again, whether or not they are handling a job.
            for worker in pool.which_workers().unwrap() {
                worker.pid.map(|pid| pid.kill());
            }
            let drained = pool.drain(LONG);
            assert_eq!(
                drained,
                Drained {
                    dropped: 0,
                    running: 0
                }
            );
            let stats = pool.stats();
            assert_eq!((stats.handled, stats.failed), (10, 2));
        }
    });
}

#[test]
fn resize_moves_waiting_jobs_without_loss() {
    on_both(|| {
        for routing in [Routing::Shared, Routing::RoundRobin] {
            let pool = builder(2).routing(routing).start(|| work).unwrap();
            let gate = keep(&pool, 2);
            for n in 0..30 {
                pool.cast(Job::Number(n)).unwrap();
            }
            pool.resize(5).unwrap();
            // Three in five of the jobs, or all of them, are assigned to free workers.
            while pool.stats().handled < 18 {
                yield_now();
            }
            assert_eq!(pool.workers(), 5);
            let other = pool.clone();
            let resizes = spawn(move || other.resize(1));
            while pool.workers() > 1 {
                yield_now();
            }
            for n in 0..5 {
                pool.cast(Job::Number(n)).unwrap();
            }
            gate.add_permits(2);
            resizes.join().unwrap().unwrap();
            assert_eq!(pool.which_workers().unwrap().len(), 1);
            pool.drain(LONG);
            let stats = pool.stats();
            assert_eq!((stats.accepted, stats.handled), (37, 37));
        }
    });
}

#[test]
fn drain_reports_its_rest_and_wakes_waiting_senders() {
    on_both(|| {
        let pool = builder(1)
            .capacity(3)
            .shutdown(Duration::ZERO.into())
            .start(|| work)
            .unwrap();
        keep(&pool, 1);
        for n in 0..3 {
            pool.cast(Job::Number(n)).unwrap();
        }
        let other = pool.clone();
        let waits = spawn(move || other.cast(Job::Number(9)));
        let other = pool.clone();
        let calls = spawn(move || other.call_timeout(Job::Number(9), LONG));
        yield_now();
        let drained = pool.drain(Duration::from_millis(1));
        assert_eq!(
            drained,
            Drained {
                dropped: 3,
                running: 1
            }
        );
        assert!(matches!(
            waits.join().unwrap(),
            Err(SendError::Closed(Job::Number(9)))
        ));
        assert_eq!(calls.join().unwrap(), Err(CallError::Ended));
        assert!(matches!(
            pool.cast(Job::Number(1)),
            Err(SendError::Closed(_))
        ));
        while pool.stats().running > 0 {
            yield_now();
        }
        let stats = pool.stats();
        assert_eq!((stats.accepted, stats.dropped, stats.failed), (4, 3, 1));
        assert!(matches!(pool.resize(2), Err(PoolError::Worker(_))));
        assert_eq!(
            pool.drain(LONG),
            Drained {
                dropped: 0,
                running: 0
            }
        );
    });
}

#[test]
fn killing_the_supervisor_ends_the_pool() {
    on_both(|| {
        let pool = builder(2).start(|| work).unwrap();
        keep(&pool, 2);
        for n in 0..5 {
            pool.cast(Job::Number(n)).unwrap();
        }
        pool.pid().kill().unwrap();
        while !pool.is_closed() {
            yield_now();
        }
        // The drain does not wait for workers that have ended.
        pool.drain(LONG);
        let stats = pool.stats();
        assert_eq!((stats.accepted, stats.failed, stats.dropped), (7, 2, 5));
    });
}

#[test]
fn dropping_the_last_clone_ends_the_pool() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    on_both(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let state = Arc::clone(&dropped);
        let gate = Arc::new(Semaphore::new(0));
        let waits = Arc::clone(&gate);
        let pool = PoolBuilder::new("dropped")
            .workers(1)
            .start(move || {
                let (state, waits) = (Counted(Arc::clone(&state)), Arc::clone(&waits));
                move |_: Counted| {
                    let _mine = &state;
                    waits.acquire().unwrap().forget();
                }
            })
            .unwrap();
        for _ in 0..3 {
            pool.cast(Counted(Arc::clone(&dropped))).unwrap();
        }
        while pool.stats().running == 0 {
            yield_now();
        }
        drop(pool);
        gate.add_permits(1);
        // Three jobs and one state are dropped.
        while dropped.load(Ordering::SeqCst) < 4 {
            yield_now();
        }
        while Arc::strong_count(&dropped) > 1 {
            yield_now();
        }
    });
}

#[test]
fn invalid_pool_is_refused_and_threads_can_start_one() {
    run(|| {
        assert!(matches!(
            builder(1).capacity(0).start(|| work),
            Err(PoolError::Invalid(_))
        ));
        let pool = builder(1).start(|| work).unwrap();
        assert!(matches!(pool.resize(0), Err(PoolError::Invalid(_))));
        let fails = PoolBuilder::new("fails").workers(1).start(|| {
            assert!(std::hint::black_box(false), "no state today");
            work
        });
        assert!(matches!(fails, Err(PoolError::Worker(_))));
    });
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let pool = builder(0).start_on(runtime.handle(), || work).unwrap();
    assert_eq!(pool.workers(), 2);
    assert_eq!(pool.call(Job::Number(5)), Ok(5));
    assert_eq!(
        pool.drain(LONG),
        Drained {
            dropped: 0,
            running: 0
        }
    );
}
