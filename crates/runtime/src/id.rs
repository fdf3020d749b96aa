//! Actor IDs, which are unique within a process.

use std::fmt;
use std::hash::Hasher;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// The ID of an actor. IDs are never reused, so a stored ID never refers to another actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(NonZeroU64);

/// The number of IDs that a worker takes at a time.
const BLOCK: u64 = 1 << 12;

static NEXT: AtomicU64 = AtomicU64::new(1);

impl ActorId {
    /// The number; never 0.
    #[inline(always)]
    pub fn number(self) -> u64 {
        self.0.get()
    }

    /// Converts a `number`, which is not 0.
    #[inline(always)]
    pub(crate) fn from_number(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX))
    }

    /// Converts a [`number`](Self::number) without the check of [`from_number`](Self::from_number).
    ///
    /// # Safety
    /// The number is not 0.
    #[inline(always)]
    pub(crate) unsafe fn from_number_unchecked(number: u64) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { NonZeroU64::new_unchecked(number) })
    }

    pub(crate) fn next() -> Self {
        Self::from_number(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The IDs that one worker has in reserve.
#[derive(Debug, Default)]
pub(crate) struct IdBlock {
    next: std::cell::Cell<u64>,
}

impl IdBlock {
    #[inline(always)]
    pub(crate) fn next(&self) -> ActorId {
        let next = self.next.get();
        let next = if next.is_multiple_of(BLOCK) {
            refill()
        } else {
            next
        };
        self.next.set(next + 1);
        // SAFETY: the IDs of a block are above 0 (`refill`).
        unsafe { ActorId::from_number_unchecked(next) }
    }
}

#[cold]
fn refill() -> u64 {
    // A whole block that begins at a multiple of its size. It never begins at 0, which is the value
    // of an empty reserve.
    let after = NEXT.fetch_add(2 * BLOCK, Ordering::Relaxed);
    after.next_multiple_of(BLOCK)
}

/// Hashes actor numbers by Fibonacci multiplication (Knuth, The Art of Computer Programming 3,
/// 6.4). They are not chosen by an attacker and only need to be spread.
#[derive(Debug, Default)]
pub(crate) struct ActorIdHasher(u64);

impl Hasher for ActorIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32);
    }
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorId, BLOCK, IdBlock};

    #[test]
    fn ids_are_unique() {
        let (one, other) = (IdBlock::default(), IdBlock::default());
        let mut all: Vec<_> = (0..if cfg!(miri) { BLOCK + 8 } else { 3 * BLOCK })
            .flat_map(|_| [one.next(), other.next(), ActorId::next()])
            .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
