//! Shared parts of the tests: runtimes of one and two workers, and random numbers.

use std::cell::Cell;
use std::time::Duration;

use thalweg_runtime::{Config, init, yield_now};

/// A timeout that only a hanging test reaches.
pub const LONG: Duration = Duration::from_secs(600);

pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Runs `test` in an actor of a runtime of one worker, then in one of a runtime of two.
pub fn on_both(test: fn()) {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(test);
    }
}

/// Yields until `condition` is true.
pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        yield_now();
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
pub struct Random(Cell<u64>);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub fn below(&self, end: u64) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let mut mix = state;
        mix = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mix = (mix ^ (mix >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mix ^ (mix >> 31)) % end
    }
}
