//! The word of one reader: rules 3 and 4 of the [`ring`](super::ring).

use crate::cache_padded::CachePadded;
use crate::sync::{AtomicU64, Ordering};

/// In a reader's word: the reader accesses slots. Message numbers never become this large.
const READING: u64 = 1 << 63;
/// A reader's word: the reader may not access any slot.
pub(super) const EVICTED: u64 = u64::MAX;

pub(super) struct Word(CachePadded<AtomicU64>);

impl Word {
    pub(super) fn new(word: u64) -> Self {
        Self(CachePadded::new(AtomicU64::new(word)))
    }

    /// Rule 3, for the reader: fails if it was evicted.
    #[inline(always)]
    pub(super) fn begin(&self, next: u64) -> bool {
        self.0
            .compare_exchange(next, next | READING, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Rule 4, for a sender that overwrites the messages below `kept`. Returns a number that the
    /// word is not below, unless it is `EVICTED`.
    pub(super) fn pass(&self, kept: u64) -> u64 {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word == EVICTED {
                return u64::MAX;
            }
            let next = word & !READING;
            if next >= kept || word != next {
                return next;
            }
            match self
                .0
                .compare_exchange(word, EVICTED, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return u64::MAX,
                Err(now) => word = now,
            }
        }
    }

    /// Rule 3, for the reader: the number of its next message.
    #[inline(always)]
    pub(super) fn end(&self, next: u64) {
        self.0.store(next, Ordering::Release);
    }

    /// The number of the reader's next message, or of the one it is reading. `None`: `EVICTED`.
    pub(super) fn next(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Relaxed);
        (word != EVICTED).then_some(word & !READING)
    }

    /// For the reader: whether it is reading.
    pub(super) fn is_reading(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word != EVICTED && word & READING != 0
    }
}
