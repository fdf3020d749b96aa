//! The gate at which all threads and actors of a run start, and the clock that starts there.
//!
//! 1. A member of a run arrives at the gate and waits until all members have arrived. It polls and
//!    yields, so that a member that is an actor does not keep its worker from the others.
//! 2. The last member to arrive draws the run's mark, a random number. Every value of the run
//!    carries the mark in its number. A value that was made before the gate opened has another
//!    mark, and fails its check.
//! 3. Each member reads the clock after the gate and before its first operation. The run began at
//!    the earliest of these times. No other thread reads the clock, so no member can have begun
//!    before the run.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::queue::clock;

/// The bits of a number that contain the index in its producer's sequence; the bits above contain
/// the producer, and the mark is added.
pub const SEQUENCE_BITS: u32 = 40;

/// See the module.
#[derive(Debug)]
pub struct Gate {
    /// Members that have not arrived.
    missing: AtomicUsize,
    /// The mark; 0 while the gate is closed.
    mark: AtomicU64,
    /// When the first member began, in ns of the monotonic clock; `u64::MAX` before.
    began: AtomicU64,
}

impl Gate {
    /// A closed gate for this many members, at least one.
    #[must_use]
    pub fn new(members: usize) -> Arc<Self> {
        Arc::new(Self {
            missing: AtomicUsize::new(members),
            mark: AtomicU64::new(0),
            began: AtomicU64::new(u64::MAX),
        })
    }

    /// Arrives, waits, and returns the mark. `yield_now` lets other members run.
    pub fn pass(&self, yield_now: impl Fn()) -> u64 {
        self.arrive();
        loop {
            if let Some(mark) = self.begin() {
                return mark;
            }
            yield_now();
        }
    }

    /// One member has arrived. The last one opens the gate.
    pub fn arrive(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open();
        }
    }

    /// The mark, if the gate is open. The caller begins now.
    #[must_use]
    pub fn begin(&self) -> Option<u64> {
        let mark = self.mark.load(Ordering::Acquire);
        if mark == 0 {
            return None;
        }
        self.began.fetch_min(clock::now(), Ordering::AcqRel);
        Some(mark)
    }

    /// When the first member began, in ns of the monotonic clock; `None` if none has.
    #[must_use]
    pub fn began(&self) -> Option<u64> {
        let began = self.began.load(Ordering::Acquire);
        (began != u64::MAX).then_some(began)
    }

    /// Opens the gate although members are missing: the run has failed, and the others must end.
    pub fn open(&self) {
        // Two bits remain for the sums of mark, producer and index.
        let random = RandomState::new().build_hasher().finish() >> 2;
        let _ = self
            .mark
            .compare_exchange(0, random.max(1), Ordering::AcqRel, Ordering::Acquire);
    }
}

/// The gate of the next stream of one instance of the service. If it contains none, the writers
/// start at once, and their mark is 0.
#[derive(Clone, Debug, Default)]
pub struct NextGate(Arc<Mutex<Option<Arc<Gate>>>>);

impl NextGate {
    /// Sets the gate of the next stream.
    pub fn set(&self, gate: Option<Arc<Gate>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = gate;
    }

    /// The gate of the stream that is being opened.
    pub(crate) fn get(&self) -> Option<Arc<Gate>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Number `index` of producer number `producer`.
#[must_use]
#[inline]
pub fn number(mark: u64, producer: u64, index: u64) -> u64 {
    mark.wrapping_add(producer << SEQUENCE_BITS)
        .wrapping_add(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gate_opens_with_its_last_member_and_began_with_its_first() {
        let gate = Gate::new(2);
        gate.arrive();
        assert_eq!((gate.begin(), gate.began()), (None, None));
        let before = clock::now();
        let mark = gate.pass(|| panic!("it is open"));
        let began = gate.began().unwrap();
        assert!(before <= began && began <= clock::now());
        assert_eq!(gate.begin(), Some(mark));
        assert_eq!(gate.began(), Some(began), "a later member changes nothing");
    }

    #[test]
    fn two_runs_have_different_marks() {
        let mark = || Gate::new(1).pass(|| ());
        assert_ne!(mark(), mark());
        assert!(mark() > 0 && mark() < 1 << 62);
    }
}
