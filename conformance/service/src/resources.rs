//! The resources.

use crate::conformance::{Counter, Even, Lease, Scale};
use crate::made::pause;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use thalweg::{Call, StreamReader, Task};

/// A counter. `living` counts the existing counters.
#[derive(Debug)]
pub struct KeptNumber {
    value: Arc<AtomicU64>,
    living: Arc<AtomicU32>,
}

impl KeptNumber {
    /// Makes a counter that begins at `start`, and increments `living`.
    pub fn new(start: u64, living: &Arc<AtomicU32>) -> Self {
        living.fetch_add(1, Ordering::Relaxed);
        KeptNumber {
            value: Arc::new(AtomicU64::new(start)),
            living: Arc::clone(living),
        }
    }

    /// The current value.
    pub fn now(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

impl Drop for KeptNumber {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counter for KeptNumber {
    fn add(&self, _: &Call, amount: u64) -> u64 {
        self.value
            .fetch_add(amount, Ordering::Relaxed)
            .wrapping_add(amount)
    }

    fn value(&self, _: &Call) -> u64 {
        self.now()
    }

    fn value_later(self: Arc<Self>, _: &Call) -> Task<u64> {
        Task::new(move |_| self.now())
    }

    fn steps(&self, call: &Call, count: u32) -> StreamReader<u64> {
        let (writer, reader) = call.stream();
        let value = Arc::clone(&self.value);
        call.spawn(move |_| {
            for _ in 0..count {
                let now = value.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                if writer.send(&now).is_err() {
                    return;
                }
            }
            let _ = writer.finish();
        });
        reader
    }
}

/// An even number.
#[derive(Debug)]
pub struct EvenNumber {
    /// Half of the number.
    pub half: u32,
}

impl Even for EvenNumber {
    fn half(&self, _: &Call) -> u32 {
        self.half
    }
}

/// A factor.
#[derive(Debug)]
pub struct Factor {
    /// The factor.
    pub by: u64,
    /// The number of existing counters.
    pub counters: Arc<AtomicU32>,
}

impl Scale for Factor {
    type Counter = KeptNumber;

    fn apply(&self, _: &Call, counter: Arc<KeptNumber>) -> KeptNumber {
        KeptNumber::new(counter.now() * self.by, &self.counters)
    }
}

/// Counts of leases.
#[derive(Debug, Default)]
pub struct Leases {
    /// Leases that exist or are being destroyed.
    pub living: AtomicU32,
    /// Leases whose async destructor has finished.
    pub ended: AtomicU32,
}

/// A resource with an async constructor and destructor.
#[derive(Debug)]
pub struct TimedLease {
    ms: u32,
    leases: Arc<Leases>,
}

impl TimedLease {
    /// Adds a lease.
    pub fn new(ms: u32, leases: Arc<Leases>) -> Self {
        leases.living.fetch_add(1, Ordering::Relaxed);
        Self { ms, leases }
    }
}

impl Drop for TimedLease {
    fn drop(&mut self) {
        self.leases.living.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lease for TimedLease {
    fn ms(&self, _: &Call) -> u32 {
        self.ms
    }

    fn destroy(self: Arc<Self>, _: &Call) -> Task<()> {
        Task::new(move |call| {
            pause(call, self.ms);
            self.leases.ended.fetch_add(1, Ordering::Relaxed);
        })
    }
}
