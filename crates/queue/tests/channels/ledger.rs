//! Values that record how often they were dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts the drops of the values 0 to its size.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Vec<AtomicU32>>);

/// A value that reports its drop to a [`Ledger`]. The default value reports to none.
#[derive(Debug, Default)]
pub struct Entry {
    pub number: usize,
    ledger: Option<Ledger>,
    /// A heap allocation, so that memory checkers also notice a leak or a double drop.
    _heap: Option<Box<usize>>,
}

impl Ledger {
    pub fn new(size: usize) -> Self {
        Self(Arc::new((0..size).map(|_| AtomicU32::new(0)).collect()))
    }

    pub fn entry(&self, number: usize) -> Entry {
        assert!(number < self.0.len());
        Entry {
            number,
            ledger: Some(self.clone()),
            _heap: Some(Box::new(number)),
        }
    }

    /// How many values were dropped.
    pub fn dropped(&self) -> usize {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        counts.filter(|count| *count > 0).count()
    }

    /// Checks that each value below `made` was dropped once, and no other value was dropped.
    pub fn assert_each_dropped_once(&self, made: usize) {
        for (number, count) in self.0.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            assert_eq!(
                count,
                u32::from(number < made),
                "drops of value {number} of {made}"
            );
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            ledger.0[self.number].fetch_add(1, Ordering::Relaxed);
        }
    }
}
