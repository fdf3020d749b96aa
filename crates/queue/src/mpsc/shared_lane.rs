//! The lane that all senders without their own lane share.

use std::collections::VecDeque;
use std::mem;

use crate::error::CapacityError;
use crate::ring::Ring;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// A ring if the channel is bounded, otherwise a list behind a lock. The receiver takes all values of
/// the list at once.
#[expect(
    clippy::large_enum_variant,
    reason = "a channel has one, on the heap with the rest of it"
)]
pub(super) enum SharedLane<T> {
    Ring(Ring<T>),
    List(List<T>),
}

pub(super) struct List<T> {
    values: Mutex<VecDeque<T>>,
    /// Stored under the lock.
    pushed: AtomicUsize,
    popped: AtomicUsize,
}

impl<T> SharedLane<T> {
    pub(super) fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        Ok(Self::Ring(Ring::new(capacity)?))
    }

    pub(super) fn unbounded() -> Self {
        Self::List(List {
            values: Mutex::new(VecDeque::new()),
            pushed: AtomicUsize::new(0),
            popped: AtomicUsize::new(0),
        })
    }

    pub(super) fn push(&self, value: T) -> Result<(), T> {
        match self {
            Self::Ring(ring) => ring.push(value),
            Self::List(list) => {
                let mut values = lock(&list.values);
                values.push_back(value);
                let pushed = list.pushed.load(Ordering::Relaxed) + 1;
                list.pushed.store(pushed, Ordering::Release);
                Ok(())
            }
        }
    }

    /// Called by the receiver. `taken` has the values that it has taken from the list.
    pub(super) fn pop(&self, taken: &mut VecDeque<T>) -> Option<T> {
        let list = match self {
            Self::Ring(ring) => return ring.pop(),
            Self::List(list) => list,
        };
        if taken.is_empty() {
            if self.len() == 0 {
                return None;
            }
            mem::swap(&mut *lock(&list.values), taken);
        }
        let value = taken.pop_front()?;
        // Only the receiver stores it.
        let popped = list.popped.load(Ordering::Relaxed) + 1;
        list.popped.store(popped, Ordering::Relaxed);
        Some(value)
    }

    #[inline]
    pub(super) fn has_value(&self) -> bool {
        match self {
            Self::Ring(ring) => !ring.is_empty(),
            Self::List(_) => self.len() > 0,
        }
    }

    pub(super) fn has_capacity(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.has_capacity(),
            Self::List(_) => true,
        }
    }

    /// Values that were pushed since the beginning, or are being pushed.
    pub(super) fn pushed(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.pushed(),
            Self::List(list) => list.pushed.load(Ordering::Acquire),
        }
    }

    /// Values that were popped since the beginning.
    pub(super) fn popped(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.popped(),
            Self::List(list) => list.popped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.pushed().saturating_sub(self.popped())
    }

    pub(super) fn close(&self) {
        if let Self::Ring(ring) = self {
            ring.close();
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Ring(ring) => ring.is_drained(),
            Self::List(_) => self.len() == 0,
        }
    }
}
