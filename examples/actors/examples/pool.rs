//! A pool: a fixed number of workers at one queue. Each job goes to one of them, and who sends waits where they are behind.
//!
//! It claims that each job is done once, also where a worker panics over another one. How many each worker did is up to the moment.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg::runtime::patterns::PoolBuilder;
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
                    results.lock().expect("nobody panics with it").push(result);
                }
            })?;
        (0..JOBS).try_for_each(|job| pool.cast(job))?;
        // One worker fails over it, and is there again.
        pool.cast(JOBS)?;
        let drained = pool.drain(Duration::from_secs(60));
        assert_eq!((drained.dropped, drained.running), (0, 0));
        let stats = pool.stats();
        for (worker, of) in stats.workers.iter().enumerate() {
            println!(
                "worker {worker} did {:>4}, failed over {}",
                of.handled, of.failed
            );
        }
        assert_eq!((stats.handled, stats.failed), (JOBS, 1));
        let done = std::mem::take(&mut *done.lock().expect("nobody panics with it"));
        Ok::<_, Box<dyn std::error::Error>>(done)
    });
    let mut all = done?;
    all.sort_unstable();
    assert!(all.iter().map(|(job, _)| *job).eq(0..JOBS), "each job once");
    println!("{JOBS} jobs, each once; 2^1999 has {} digits.", all[1999].1);
    Ok(())
}

/// How many digits 2^n has, the long way.
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
