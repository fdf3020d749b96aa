//! Counts the resources of the process, to find leaks of an operation.

use std::fs;
use std::time::{Duration, Instant};

use crate::allocator;

/// Counts at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Live allocations.
    pub allocations: i64,
    /// Open file descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Lines of `/proc/self/maps`.
    pub mappings: usize,
}

impl Census {
    /// Counts now.
    pub fn take() -> Self {
        let entries = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        let maps = fs::read("/proc/self/maps").unwrap_or_default();
        Self {
            mappings: maps.iter().filter(|byte| **byte == b'\n').count(),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            allocations: allocator::live(),
        }
    }

    /// Repeats the count until `rounds` further rounds have left behind less than one item each, or
    /// two seconds have passed, because actors and threads may still be ending.
    ///
    /// # Errors
    /// The items left behind.
    pub fn compare(before: &Self, rounds: usize) -> Result<(), String> {
        let bound = Instant::now() + Duration::from_secs(2);
        loop {
            let now = Self::take();
            let Err(leak) = now.grown(before, rounds) else {
                return Ok(());
            };
            if Instant::now() > bound {
                return Err(leak);
            }
            std::thread::yield_now();
        }
    }

    fn grown(&self, before: &Self, rounds: usize) -> Result<(), String> {
        // A cache grows to its limit in a few rounds; a leak grows in each round.
        let slack = rounds / 2;
        let leaks = self.descriptors > before.descriptors
            || self.threads > before.threads
            || self.mappings > before.mappings + slack
            || self.allocations > before.allocations + slack as i64;
        if leaks {
            return Err(format!("after {rounds} rounds {self:?}, before {before:?}"));
        }
        Ok(())
    }
}
