//! A computation that does not wait for anything, and lets others run all the same: it says `check` between its chunks.
//!
//! It claims that on one worker the others get their turns long before the computation is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg::runtime::{run, spawn, wait, yield_now};

const NUMBERS: u64 = 40_000_000;
const CHUNK: u64 = 4_096;

fn main() {
    run(|| {
        let turns = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&turns);
        let other = spawn(move || {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                yield_now();
            }
        });
        let computing = spawn(move || {
            let mut sum = 0u64;
            for chunk in 0..NUMBERS / CHUNK {
                for number in chunk * CHUNK..(chunk + 1) * CHUNK {
                    sum = sum.wrapping_mul(31).wrapping_add(number);
                }
                wait::check();
            }
            (sum, turns.load(Ordering::Relaxed))
        });
        let (sum, turns) = computing.join().expect("it does not panic");
        // The loop has no end; it ends with the first actor.
        drop(other);
        println!("{sum:#x}; meanwhile the other one had {turns} turns on the same worker.");
        assert!(turns > 10);
    });
}
