//! The lane that all senders without their own lane share.

use std::collections::VecDeque;

use crate::error::CapacityError;
use crate::ring::Ring;
use crate::sync::{AtomicUsize, Mutex, Ordering, lock};

/// A ring if the channel is bounded, otherwise a list behind a lock.
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
    /// Changed under the lock, read without it.
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
                list.pushed.fetch_add(1, Ordering::Release);
                Ok(())
            }
        }
    }

    pub(super) fn pop(&self) -> Option<T> {
        match self {
            Self::Ring(ring) => ring.pop(),
            Self::List(_) if self.len() == 0 => None,
            Self::List(list) => {
                let value = lock(&list.values).pop_front();
                if value.is_some() {
                    list.popped.fetch_add(1, Ordering::Relaxed);
                }
                value
            }
        }
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
