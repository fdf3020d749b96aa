//! Random pools with panics, kills, resizes and floods: each accepted job is handled, or counted as
//! failed or dropped, and nothing hangs. `THALWEG_POOLS` sets the number of pools,
//! `THALWEG_TEST_SEED` the first seed; a failure prints its own seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_runtime::patterns::{Pool, PoolBuilder, PoolOverflow, Routing};
use thalweg_runtime::supervisor::{Backoff, Shutdown};
use thalweg_runtime::{Config, Pid, init, sleep, spawn, yield_now};

use crate::kit::{Random, one_seed, setting, silence_bad_luck};

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    unread: AtomicU64,
}

struct Job {
    counts: Arc<Counts>,
    what: u64,
    begun: bool,
    refused: bool,
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.begun && !self.refused {
            self.counts.unread.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn work(mut job: Job) {
    job.begun = true;
    job.counts.begun.fetch_add(1, Ordering::SeqCst);
    match job.what {
        0 => panic!("bad luck"),
        1 => sleep(Duration::from_micros(10)),
        2 => {
            let me = Pid::current().expect("a worker is an actor");
            let _ = me.kill();
            yield_now();
        }
        3 => yield_now(),
        _ => {}
    }
}

/// Sends, kills and resizes at random. Returns how many jobs were accepted.
fn trouble(random: Random, pool: &Pool<Job>, counts: &Arc<Counts>) -> u64 {
    let mut accepted = 0;
    for _ in 0..random.below(80) {
        match random.below(24) {
            0 | 1 => {
                let workers = pool.which_workers().unwrap_or_default();
                if !workers.is_empty() {
                    let which = random.below(workers.len() as u64) as usize;
                    let _ = workers[which].pid.as_ref().map(Pid::kill);
                }
            }
            2 => {
                let _ = pool.resize(1 + random.below(5) as usize);
            }
            3 => yield_now(),
            4 if random.below(12) == 0 => pool.close(),
            5 if random.below(24) == 0 => {
                let _ = pool.pid().kill();
            }
            _ => {
                let job = Job {
                    counts: Arc::clone(counts),
                    what: random.below(24),
                    begun: false,
                    refused: false,
                };
                match pool.cast_timeout(job, Duration::from_micros(200)) {
                    Ok(()) => accepted += 1,
                    Err(refused) => refused.into_inner().refused = true,
                }
            }
        }
    }
    accepted
}

fn one_pool(seed: u64) {
    let random = Random::new(seed);
    let routing = match random.below(4) {
        0 => Routing::Shared,
        1 => Routing::RoundRobin,
        2 => Routing::LeastLoaded,
        _ => Routing::by_key(|job: &Job| job.what),
    };
    let overflow = [
        PoolOverflow::Block,
        PoolOverflow::Fail,
        PoolOverflow::DropOldest,
    ];
    let shutdown = [
        Shutdown::BrutalKill,
        Shutdown::Timeout(Duration::from_micros(20)),
        Shutdown::Infinity,
    ];
    let pool = PoolBuilder::new("random")
        .workers(1 + random.below(4) as usize)
        .capacity(1 + random.below(20) as usize)
        .overflow(random.of(&overflow))
        .shutdown(random.of(&shutdown))
        .backoff(Backoff {
            first: Duration::from_micros(random.below(30)),
            max: Duration::from_micros(100),
            ..Backoff::default()
        })
        .routing(routing)
        .start(|| work)
        .expect("its workers start");
    let counts = Arc::new(Counts::default());
    let troubles: Vec<_> = (0..2)
        .map(|n| {
            let (pool, counts) = (pool.clone(), Arc::clone(&counts));
            let random = Random::new(seed.wrapping_mul(31) + n);
            spawn(move || trouble(random, &pool, &counts))
        })
        .collect();
    let accepted: u64 = troubles.into_iter().map(|one| one.join().unwrap()).sum();
    if random.below(4) == 0 {
        pool.drain(Duration::ZERO);
    } else {
        let drained = pool.drain(Duration::from_secs(3600));
        assert_eq!(drained.running, 0, "seed {seed}");
    }
    while pool.stats().running > 0 {
        yield_now();
    }
    let stats = pool.stats();
    let (begun, unread) = (&counts.begun, &counts.unread);
    // A job is counted as dropped shortly before it is dropped.
    while unread.load(Ordering::SeqCst) < stats.dropped {
        yield_now();
    }
    let said = (stats.accepted, stats.handled + stats.failed, stats.dropped);
    let seen = (
        accepted,
        begun.load(Ordering::SeqCst),
        unread.load(Ordering::SeqCst),
    );
    assert_eq!(said, seen, "seed {seed}: {stats:?}");
    assert_eq!(
        stats.accepted,
        stats.handled + stats.failed + stats.dropped,
        "seed {seed}"
    );
    assert_eq!(stats.waiting, 0, "seed {seed}");
}

#[test]
fn random_pools_count_every_lost_job() {
    let pools: u64 = setting("THALWEG_POOLS", if cfg!(miri) { 3 } else { 1_000 });
    let seed: u64 = setting("THALWEG_TEST_SEED", 1);
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(move || {
            // The jobs panic often, by design.
            silence_bad_luck();
            for n in 0..pools / 2 {
                one_seed(seed.wrapping_add(n * 2 + workers as u64 - 1), one_pool);
            }
        });
    }
}
