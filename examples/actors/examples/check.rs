//! A computation that never waits, but lets other actors run by calling `check` between its chunks.
//!
//! The program asserts that another actor on the same worker runs often before the computation
//! ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::runtime::{run, spawn, wait, yield_now};

const NUMBERS: u64 = 40_000_000;
const CHUNK: u64 = 4_096;

fn main() {
    run(|| {
        let rounds = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rounds);
        let other = spawn(move || {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
        });
        let computation = spawn(move || {
            let mut sum = 0u64;
            for chunk in 0..NUMBERS / CHUNK {
                for number in chunk * CHUNK..(chunk + 1) * CHUNK {
                    sum = sum.wrapping_mul(31).wrapping_add(number);
                }
                wait::check();
            }
            (sum, rounds.load(Ordering::Relaxed))
        });
        let (sum, rounds) = computation.join().expect("the computation does not panic");
        // The loop is endless. It ends when the first actor returns.
        drop(other);
        println!("{sum:#x}; meanwhile, the other actor ran {rounds} rounds on the same worker.");
        assert!(rounds > 10);
    });
}
