//! A pool: a fixed number of workers with one queue. Each job is run by one of them, and the sender
//! waits while the queue is full.
//!
//! The program asserts that each job is run once, even if a worker panics during another job. How
//! many jobs each worker runs varies between runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg::patterns::PoolBuilder;
use thalweg::runtime::{Config, init};

const JOBS: u64 = 2_000;
const WORKERS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let done = init(Config::default())?.run(|| {
        let done = Arc::new(Mutex::new(Vec::new()));
        let results = Arc::clone(&done);
        let pool = PoolBuilder::new("digits")
            .workers(WORKERS)
            .capacity(64)
            .start(move || {
                let results = Arc::clone(&results);
                move |job: u64| {
                    assert!(job < JOBS, "there is no such job");
                    let result = digits(job);
                    results
                        .lock()
                        .expect("no worker panics with the lock")
                        .push(result);
                }
            })?;
        (0..JOBS).try_for_each(|job| pool.cast(job))?;
        // A worker panics during this job and is restarted.
        pool.cast(JOBS)?;
        let drained = pool.drain(Duration::from_secs(60));
        assert_eq!((drained.dropped, drained.running), (0, 0));
        let stats = pool.stats();
        for (worker, counters) in stats.workers.iter().enumerate() {
            println!(
                "worker {worker} ran {:>4} jobs and failed at {}",
                counters.handled, counters.failed
            );
        }
        assert_eq!((stats.handled, stats.failed), (JOBS, 1));
        let done = std::mem::take(&mut *done.lock().expect("no worker panics with the lock"));
        Ok::<_, Box<dyn std::error::Error>>(done)
    });
    let mut all = done?;
    all.sort_unstable();
    assert!(
        all.iter().map(|(job, _)| *job).eq(0..JOBS),
        "each job was run once"
    );
    println!(
        "{JOBS} jobs, each run once; 2^1999 has {} digits.",
        all[1999].1
    );
    Ok(())
}

/// The number of digits of 2^n, by repeated doubling.
fn digits(n: u64) -> (u64, usize) {
    let mut number = vec![1u8];
    for _ in 0..n {
        let mut carry = 0;
        for digit in &mut number {
            let twice = *digit * 2 + carry;
            *digit = twice % 10;
            carry = twice / 10;
        }
        if carry > 0 {
            number.push(carry);
        }
    }
    (n, number.len())
}
