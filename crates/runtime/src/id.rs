//! Numbers that no two actors of a process ever share.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which actor. Numbers are not used again, so one that is kept after its actor has ended names nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorId(NonZeroU64);

/// Numbers that a worker takes at a time.
const BLOCK: u64 = 1 << 12;

static NEXT: AtomicU64 = AtomicU64::new(1);

impl ActorId {
    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }

    /// Of a `number`, which is not 0.
    #[inline(always)]
    pub(crate) fn of_number(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX))
    }

    pub(crate) fn next() -> Self {
        Self::of_number(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One worker's store of numbers.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    next: std::cell::Cell<u64>,
}

impl Ids {
    #[inline(always)]
    pub(crate) fn next(&self) -> ActorId {
        let next = self.next.get();
        let next = if next.is_multiple_of(BLOCK) {
            refill()
        } else {
            next
        };
        self.next.set(next + 1);
        ActorId::of_number(next)
    }
}

#[cold]
fn refill() -> u64 {
    // A whole block from a multiple of its size, and never the 0 that an empty store has.
    let after = NEXT.fetch_add(2 * BLOCK, Ordering::Relaxed);
    after.next_multiple_of(BLOCK)
}

impl fmt::Display for ActorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ActorId, BLOCK, Ids};

    #[test]
    fn no_number_comes_twice() {
        let (one, other) = (Ids::default(), Ids::default());
        let mut all: Vec<_> = (0..if cfg!(miri) { BLOCK + 8 } else { 3 * BLOCK })
            .flat_map(|_| [one.next(), other.next(), ActorId::next()])
            .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
