//! Values that say how often each of them was dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Keeps the books on values 0 to its size.
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Vec<AtomicU32>>);

/// A value in a [`Ledger`]'s books; the default one is in none.
#[derive(Debug, Default)]
pub struct Entry {
    pub number: usize,
    ledger: Option<Ledger>,
    /// Memory of its own, so that a leak or a second drop is one for the tools that look for such too.
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

    /// How many were dropped.
    pub fn dropped(&self) -> usize {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        counts.filter(|count| *count > 0).count()
    }

    /// All values below `made` were dropped once, and no other.
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
