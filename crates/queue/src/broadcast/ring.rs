//! The ring of a broadcast channel: every reader sees every message, and no sender waits for a
//! reader.
//!
//! Message `n` is in slot `n % capacity`. Senders overwrite the oldest message. The rules keep them
//! off the messages that a reader is cloning:
//!
//! 1. The lock protects the next number, the list of readers, and the messages that were stored
//!    elsewhere (rule 6). A sender holds it while it writes. No code of the user runs under it.
//! 2. A slot's stamp is one more than the number of its message; 0: the slot was never filled. The
//!    stamp hands over the message (Release and Acquire).
//! 3. Each reader has a word on its own cache lines: the number of its next message, or `EVICTED`.
//!    Before the reader accesses a slot, it adds `READING` by a CAS. Afterwards it stores the next
//!    number (Release). While `READING` is set, only the reader changes its word, and it may read
//!    any later message too.
//! 4. A sender overwrites message `n` in place only after it saw every word above `n` or `EVICTED`
//!    (Acquire). If a word without `READING` is not above `n`, the sender evicts the reader: it
//!    changes the word to `EVICTED` by a CAS. The CAS of rule 3 then fails.
//! 5. Senders write messages below `limit` in place without reading any word. It is at most the
//!    capacity above any word that is not `EVICTED`; words only grow. It is 0 while there is no
//!    reader or a spilled message, and whenever a reader starts at an older message.
//! 6. If a reader is `READING` message `n` or an earlier one, the sender does not wait. It stores
//!    the new message in `spilled` instead, and marks the stamp with `SPILLED`. The slot keeps its
//!    old value until it is overwritten in place.
//! 7. An evicted reader takes the lock, continues with the oldest message, and resets the limit.
//! 8. Messages are written only while there is a reader, and the last reader removes them. The ring
//!    is therefore empty when it is dropped.
//!
//! ```text
//!   capacity 4, message 6 is next      slot 0   slot 1   slot 2   slot 3
//!                              stamp     5        6        3        4
//!   reader a: 6            has every message
//!   reader b: 3 READING    clones the message in slot 3, so message 7 will be spilled
//!   reader c: EVICTED      was at 1; when it receives, it learns that it missed message 1
//! ```

use std::collections::VecDeque;
use std::mem::{self, MaybeUninit};

use super::word::{EVICTED, Word};
use crate::cache_padded::CachePadded;
use crate::error::CapacityError;
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, UnsafeCell, lock};

/// In a stamp: the message is in [`State::spilled`].
pub(super) const SPILLED: u64 = 1 << 63;

pub(super) struct Ring<T> {
    pub(super) slots: Box<[Slot<T>]>,
    /// The number of the next message, for [`sent`](Self::sent). Written under the lock.
    pub(super) tail: CachePadded<AtomicU64>,
    pub(super) state: CachePadded<Mutex<State<T>>>,
}

pub(super) struct Slot<T> {
    pub(super) stamp: AtomicU64,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

pub(super) struct State<T> {
    /// The number and the slot of the next message.
    pub(super) next: u64,
    pub(super) index: usize,
    pub(super) readers: Vec<Arc<Word>>,
    pub(super) limit: u64,
    /// In the order of their numbers; the oldest that are retained at most.
    pub(super) spilled: VecDeque<(u64, Arc<T>)>,
}

/// One reader's place. Only one thread uses it at a time.
pub(super) struct Place {
    word: Arc<Word>,
    next: std::cell::Cell<u64>,
    index: std::cell::Cell<usize>,
}

/// A message, or the number of messages that the reader missed before it.
pub(super) enum Read<T> {
    Message(T),
    Missed(u64),
}

// SAFETY: rules 3 and 4 separate the writes of a value from its reads. Values move between threads,
// and several readers clone one value at the same time, so `T` must be `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Ring<T> {}

impl<T> Slot<T> {
    /// Called under the lock.
    fn take_stamp(&self) -> u64 {
        let stamp = self.stamp.load(Ordering::Relaxed);
        self.stamp.store(0, Ordering::Relaxed);
        stamp
    }
}

impl<T> State<T> {
    fn add_reader(&mut self, word: u64) -> Arc<Word> {
        let word_of_reader = Arc::new(Word::new(word));
        self.readers.push(Arc::clone(&word_of_reader));
        self.limit = 0;
        word_of_reader
    }
}

impl<T> Ring<T> {
    pub(super) fn new(capacity: usize) -> Result<Self, CapacityError> {
        CapacityError::check(capacity)?;
        let mut slots = Vec::new();
        if slots.try_reserve_exact(capacity).is_err() {
            return Err(CapacityError(capacity));
        }
        slots.extend((0..capacity).map(|_| Slot {
            stamp: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }));
        Ok(Self {
            slots: slots.into_boxed_slice(),
            tail: CachePadded::new(AtomicU64::new(0)),
            state: CachePadded::new(Mutex::new(State {
                next: 0,
                index: 0,
                readers: Vec::new(),
                limit: 0,
                spilled: VecDeque::new(),
            })),
        })
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The number of messages sent so far. It may lag behind other threads.
    #[inline]
    pub(super) fn sent(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }

    pub(super) fn reader_count(&self) -> usize {
        lock(&self.state).readers.len()
    }

    /// The number of retained messages that at least one reader has not read.
    pub(super) fn unread(&self) -> usize {
        let state = lock(&self.state);
        let oldest = state.next.saturating_sub(self.capacity() as u64);
        // An evicted reader has missed messages.
        let words = state.readers.iter();
        let words = words.map(|word| word.next().map_or(oldest, |next| next.max(oldest)));
        words.min().map_or(0, |first| (state.next - first) as usize)
    }

    #[inline(always)]
    pub(super) fn after(&self, index: usize) -> usize {
        if index + 1 < self.slots.len() {
            index + 1
        } else {
            0
        }
    }
}

/// The operations of readers.
impl<T> Ring<T> {
    /// Adds a reader of the messages that are sent from now on.
    pub(super) fn subscribe(&self) -> Place {
        let mut state = lock(&self.state);
        let next = state.next;
        Place {
            word: state.add_reader(next),
            next: next.into(),
            index: state.index.into(),
        }
    }

    /// Adds a reader that has read the same messages as `place`.
    pub(super) fn duplicate(&self, place: &Place) -> Place {
        let mut state = lock(&self.state);
        let next = place.next.get();
        let oldest = state.next.saturating_sub(self.capacity() as u64);
        Place {
            word: state.add_reader(if next < oldest { EVICTED } else { next }),
            next: place.next.clone(),
            index: place.index.clone(),
        }
    }

    /// Removes a reader. The last one drops the retained messages (rule 8).
    pub(super) fn remove(&self, place: &Place) {
        let mut state = lock(&self.state);
        state.readers.retain(|word| !Arc::ptr_eq(word, &place.word));
        if !state.readers.is_empty() {
            return;
        }
        state.limit = 0;
        let spilled = mem::take(&mut state.spilled);
        let mut unused = Vec::new();
        if mem::needs_drop::<T>() {
            let filled = self.slots.iter().filter(|slot| slot.take_stamp() != 0);
            unused.extend(filled.map(|slot| {
                slot.value.with_mut(|cell| {
                    // SAFETY: rule 2: the slot has a value, and its stamp is 0 from now on. Nobody
                    // reads it: there is no reader, and the lock excludes senders.
                    unsafe { (*cell).assume_init_read() }
                })
            }));
        }
        drop(state);
        // They may run code of the user.
        drop((unused, spilled));
    }

    #[inline(always)]
    fn slot(&self, place: &Place) -> &Slot<T> {
        let index = place.index.get();
        debug_assert!(index < self.slots.len());
        // SAFETY: `after` keeps the index of a place below the capacity, and so does the remainder
        // in `move_to`.
        unsafe { self.slots.get_unchecked(index) }
    }

    /// Whether there is a message for the reader, or a number of missed ones.
    #[inline]
    pub(super) fn is_ready(&self, place: &Place) -> bool {
        self.slot(place).stamp.load(Ordering::Acquire) & !SPILLED > place.next.get()
    }

    /// Clones up to `most` messages that are in their slots. Returns their number. It returns 0 for
    /// any reason for which [`read`](Self::read) has to be called.
    #[inline]
    pub(super) fn read_in_place(&self, place: &Place, most: usize, mut take: impl FnMut(T)) -> usize
    where
        T: Clone,
    {
        let mut slot = self.slot(place);
        let next = place.next.get();
        if slot.stamp.load(Ordering::Acquire) != next + 1 {
            return 0;
        }
        let reading = if place.word.begin(next) {
            // Ends the reading also if a clone panics. The reader then skips this message.
            Some(Reading(place))
        } else if place.word.is_reading() {
            // The clone of a message receives from the same receiver: rule 3 still applies.
            None
        } else {
            return 0;
        };
        let mut count = 0;
        loop {
            place.next.set(place.next.get() + 1);
            place.index.set(self.after(place.index.get()));
            count += 1;
            take(slot.value.with(|cell| {
                // SAFETY: rule 2: the stamp shows that the message is in the slot. Rules 3 and 4:
                // no sender overwrites it while `READING` is set.
                unsafe { (*cell).assume_init_ref() }.clone()
            }));
            if count == most {
                break;
            }
            slot = self.slot(place);
            if slot.stamp.load(Ordering::Acquire) != place.next.get() + 1 {
                break;
            }
        }
        drop(reading);
        count
    }

    /// Returns the reader's next message, or the number that it missed. `None`: there is none yet.
    pub(super) fn read(&self, place: &Place) -> Option<Read<T>>
    where
        T: Clone,
    {
        loop {
            let mut message = None;
            self.read_in_place(place, 1, |value| message = Some(value));
            if let Some(message) = message {
                return Some(Read::Message(message));
            }
            if !self.is_ready(place) {
                return None;
            }
            let mut state = lock(&self.state);
            let next = place.next.get();
            let oldest = state.next.saturating_sub(self.capacity() as u64);
            if next < oldest {
                // Rule 7.
                self.move_to(place, oldest);
                state.limit = 0;
                return Some(Read::Missed(oldest - next));
            }
            let spilled = state
                .spilled
                .binary_search_by_key(&next, |(number, _)| *number);
            if let Ok(at) = spilled {
                let message = Arc::clone(&state.spilled[at].1);
                self.move_to(place, next + 1);
                drop(state);
                return Some(Read::Message(T::clone(&message)));
            }
            // The message was sent in place meanwhile. It is read, or overwritten again.
        }
    }

    /// Called under the lock.
    fn move_to(&self, place: &Place, next: u64) {
        place.next.set(next);
        place.index.set((next % self.slots.len() as u64) as usize);
        // Otherwise the end of the reading stores it.
        if !place.word.is_reading() {
            place.word.end(next);
        }
    }

    /// The number of retained messages that the reader has not read.
    pub(super) fn left(&self, place: &Place) -> usize {
        let left = self.sent().saturating_sub(place.next.get());
        left.min(self.capacity() as u64) as usize
    }

    /// Whether the reader has read every message, or knows that it missed it.
    pub(super) fn is_drained(&self, place: &Place) -> bool {
        self.sent() == place.next.get()
    }
}

struct Reading<'a>(&'a Place);

impl Drop for Reading<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.word.end(self.0.next.get());
    }
}
