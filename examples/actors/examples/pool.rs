//! A fixed number of workers at one channel: the receiving end is cloned, and each job goes to one of them.
//!
//! It claims that each job is done once. How many each worker did is up to the moment.

use thalweg::runtime::{Config, channel, init, spawn};

const JOBS: u64 = 2_000;
const WORKERS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let done = init(Config::default())?.run(|| {
        let (jobs, queue) = channel();
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let queue = queue.clone();
                spawn(move || queue.iter().map(digits).collect::<Vec<_>>())
            })
            .collect();
        drop(queue);
        (0..JOBS).for_each(|job| jobs.send(job).expect("the workers read to the end"));
        drop(jobs);
        let results = workers.into_iter().map(|worker| worker.join());
        results.collect::<Result<Vec<_>, _>>()
    })?;
    for (worker, results) in done.iter().enumerate() {
        println!("worker {worker} did {:>4}", results.len());
    }
    let mut all: Vec<_> = done.concat();
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
