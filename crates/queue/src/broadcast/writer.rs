//! Sending into the [`ring`](super::ring): rules 4 to 6.

use std::mem;

use super::ring::{Ring, SPILLED, Slot, State};
use crate::sync::{Arc, Ordering, lock};

/// The message that a new one has replaced. Drop it without the lock, because it may run code of the user.
#[must_use]
pub(super) struct Replaced<T> {
    _in_place: Option<T>,
    _spilled: Option<Arc<T>>,
}

/// A sender that holds the lock.
pub(super) struct Writer<'a, T> {
    ring: &'a Ring<T>,
    state: &'a mut State<T>,
}

impl<T> Ring<T> {
    /// Calls `f` under the lock: no other sender writes meanwhile.
    #[inline]
    pub(super) fn write<R>(&self, f: impl FnOnce(&mut Writer<'_, T>) -> R) -> R {
        f(&mut Writer {
            ring: self,
            state: &mut lock(&self.state),
        })
    }
}

impl<T> Writer<'_, T> {
    /// Writes the next message, if that needs no look at the readers (rule 5). Returns the value
    /// that was in the slot.
    ///
    /// # Errors
    /// Returns the message.
    #[inline(always)]
    pub(super) fn write_fast(&mut self, value: T) -> Result<Option<T>, T> {
        if self.state.next < self.state.limit {
            Ok(self.write_in_place(value))
        } else {
            Err(value)
        }
    }

    /// Writes the next message.
    pub(super) fn write(&mut self, value: T) -> Replaced<T> {
        match self.write_fast(value) {
            Ok(in_place) => Replaced {
                _in_place: in_place,
                _spilled: None,
            },
            Err(value) => self.write_slow(value),
        }
    }

    /// Rules 4 to 6.
    #[cold]
    fn write_slow(&mut self, value: T) -> Replaced<T> {
        let Self { ring, state } = self;
        if state.readers.is_empty() {
            // Rule 8. A later reader starts with a later message.
            return Replaced {
                _in_place: Some(value),
                _spilled: None,
            };
        }
        let number = state.next;
        let capacity = ring.capacity() as u64;
        let kept = (number + 1).saturating_sub(capacity);
        let words = state.readers.iter().map(|word| word.pass(kept));
        let lowest = words.min().unwrap_or(u64::MAX);
        let is_lost = |spilled: &mut (u64, Arc<T>)| spilled.0 < kept;
        let lost = state.spilled.pop_front_if(is_lost);
        let in_place = if lowest >= kept {
            state.limit = match state.spilled.is_empty() {
                true => lowest.saturating_add(capacity),
                false => 0,
            };
            self.write_in_place(value)
        } else {
            state.limit = 0;
            state.spilled.push_back((number, Arc::new(value)));
            self.publish(number, SPILLED);
            None
        };
        Replaced {
            _in_place: in_place,
            _spilled: lost.map(|(_, message)| message),
        }
    }

    /// Called under rule 4. Returns the value that was in the slot.
    #[inline(always)]
    fn write_in_place(&mut self, value: T) -> Option<T> {
        let number = self.state.next;
        let slot = self.slot();
        let is_filled = mem::needs_drop::<T>() && slot.stamp.load(Ordering::Relaxed) != 0;
        let old = slot.value.with_mut(|cell| {
            // SAFETY: rule 4: no reader accesses the slot until its stamp is stored. The lock
            // excludes other senders. Rule 2: the slot has a value if its stamp is not 0.
            unsafe {
                let old = is_filled.then(|| (*cell).assume_init_read());
                (*cell).write(value);
                old
            }
        });
        self.publish(number, 0);
        old
    }

    /// Publishes message `number`, which is in its slot or spilled.
    #[inline(always)]
    fn publish(&mut self, number: u64, spilled: u64) {
        let stamp = (number + 1) | spilled;
        let slot = self.slot();
        slot.stamp.store(stamp, Ordering::Release);
        self.state.next = number + 1;
        self.state.index = self.ring.after(self.state.index);
        self.ring.tail.store(number + 1, Ordering::Release);
    }

    #[inline(always)]
    fn slot(&self) -> &Slot<T> {
        debug_assert!(self.state.index < self.ring.slots.len());
        // SAFETY: `after` keeps the index below the capacity.
        unsafe { self.ring.slots.get_unchecked(self.state.index) }
    }
}
