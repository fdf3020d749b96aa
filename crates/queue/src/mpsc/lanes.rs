//! The lanes of a channel: who has one, and which hold something.

use crate::lane::{Lane, OwnedLane, Reader, Writer};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, Padded, lock};

/// Most lanes of a channel. Models are small.
const MOST: usize = if cfg!(loom) { 128 } else { 256 };
const WORDS: usize = MOST / 64;

/// Values in one block of a lane.
const BLOCK: usize = if cfg!(loom) { 2 } else { 224 };

/// A lane and what the receiver has to know of it.
pub(super) struct Slot<T> {
    pub(super) lane: OwnedLane<T>,
    /// No more values will come.
    closed: AtomicBool,
}

/// A sender's end of a lane.
pub(super) struct Outlet<T> {
    pub(super) slot: Arc<Slot<T>>,
    pub(super) writer: Writer,
    word: usize,
    bit: u64,
}

/// The receiver's end of a lane.
pub(super) struct Inlet<T> {
    pub(super) slot: Arc<Slot<T>>,
    reader: Reader,
    pub(super) number: usize,
    /// Rule 2: how much of the common path comes first.
    pub(super) after: usize,
}

struct Registry<T> {
    /// Made since the receiver last looked.
    fresh: Vec<Inlet<T>>,
    /// All that there are, for [`Lanes::len`].
    all: Vec<Option<Arc<Slot<T>>>>,
}

pub(super) struct Lanes<T> {
    /// A bit for each lane that may hold something.
    hint: Padded<[AtomicU64; WORDS]>,
    count: AtomicUsize,
    /// Grows with each lane that is made.
    made: AtomicUsize,
    most: usize,
    block: usize,
    registry: Mutex<Registry<T>>,
}

impl<T> Lanes<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            hint: Padded(std::array::from_fn(|_| AtomicU64::new(0))),
            count: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            most: MOST.min(capacity / 4),
            block: BLOCK.min(capacity),
            registry: Mutex::new(Registry {
                fresh: Vec::new(),
                all: Vec::new(),
            }),
        }
    }

    /// Whether a sender may ever get one.
    pub(super) fn are_possible(&self) -> bool {
        self.most > 0
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many were made since the beginning.
    pub(super) fn made(&self) -> usize {
        self.made.load(Ordering::Acquire)
    }

    /// A lane of the caller's own, unless there are too many. `after`: rule 2.
    pub(super) fn make(&self, after: impl FnOnce() -> usize) -> Option<Outlet<T>> {
        if self.count() >= self.most {
            return None;
        }
        let (lane, writer, reader) = OwnedLane::new(Lane::unbounded(self.block));
        let slot = Arc::new(Slot {
            lane,
            closed: AtomicBool::new(false),
        });
        let mut registry = lock(&self.registry);
        let free = registry.all.iter().position(Option::is_none);
        let number = free.unwrap_or(registry.all.len());
        if number >= self.most {
            drop(registry);
            // SAFETY: it is this lane's.
            unsafe { slot.lane.leave(&reader) };
            return None;
        }
        if free.is_none() {
            registry.all.push(None);
        }
        registry.all[number] = Some(Arc::clone(&slot));
        registry.fresh.push(Inlet {
            slot: Arc::clone(&slot),
            reader,
            number,
            after: after(),
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Release);
        Some(Outlet {
            slot,
            writer,
            word: number / 64,
            bit: 1 << (number % 64),
        })
    }

    /// Those that were made since the last call.
    pub(super) fn fresh(&self) -> Vec<Inlet<T>> {
        std::mem::take(&mut lock(&self.registry).fresh)
    }

    /// Rule 5: the receiver is done with this one.
    pub(super) fn release(&self, number: usize) {
        lock(&self.registry).all[number] = None;
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        let registry = lock(&self.registry);
        let slots = registry.all.iter().flatten();
        slots.map(|slot| slot.lane.len()).sum()
    }

    /// Rule 4: this lane may hold something.
    pub(super) fn set_hint(&self, number: usize) {
        self.hint_bit(number / 64, 1 << (number % 64));
    }

    /// Rule 4, the sender's part.
    #[inline(always)]
    pub(super) fn hint_of(&self, outlet: &Outlet<T>) {
        self.hint_bit(outlet.word, outlet.bit);
    }

    #[inline(always)]
    fn hint_bit(&self, word: usize, bit: u64) {
        let word = &self.hint.0[word % WORDS];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// Rule 4, the receiver's part: the next lane from `from` on, round and round, whose bit is set, and clears the bit.
    pub(super) fn take_hint(&self, from: usize) -> Option<usize> {
        let from = from % MOST;
        for turn in 0..=WORDS {
            let place = (from / 64 + turn) % WORDS;
            let word = &self.hint.0[place];
            let mut set = word.load(Ordering::Relaxed);
            if turn == 0 {
                set &= u64::MAX << (from % 64);
            } else if turn == WORDS {
                set &= !(u64::MAX << (from % 64));
            }
            if set != 0 {
                let bit = set & set.wrapping_neg();
                word.fetch_and(!bit, Ordering::Acquire);
                return Some(place * 64 + bit.trailing_zeros() as usize);
            }
        }
        None
    }
}

impl<T> Outlet<T> {
    #[inline(always)]
    pub(super) fn knows_room(&self) -> bool {
        self.slot.lane.knows_room(&self.writer)
    }

    pub(super) fn find_room(&self, raise: impl FnOnce(usize) -> usize) -> bool {
        self.slot.lane.find_room(&self.writer, raise)
    }

    /// Credits that are not used yet.
    pub(super) fn granted(&self) -> usize {
        self.slot.lane.granted(&self.writer)
    }

    /// Credits ever had.
    pub(super) fn limit(&self) -> usize {
        self.writer.limit()
    }

    pub(super) fn set_limit(&self, limit: usize) {
        self.writer.set_limit(limit);
    }

    /// # Safety
    /// [`Outlet::knows_room`] or [`Outlet::find_room`] said so.
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) {
        // SAFETY: the writer is the lane's, an outlet is one sender's, and the caller knows of room.
        unsafe { self.slot.lane.push(&self.writer, value) };
    }

    pub(super) fn push_some(&self, count: usize, mut values: impl Iterator<Item = T>) {
        let lane = &self.slot.lane;
        // SAFETY: as in `push`.
        let pushed = unsafe { lane.push_some(&self.writer, count, || values.next()) };
        debug_assert_eq!(pushed, count);
    }

    /// The last thing a sender does with it.
    pub(super) fn close(&self) {
        self.slot.closed.store(true, Ordering::Release);
    }
}

impl<T> Inlet<T> {
    #[inline(always)]
    pub(super) fn knows_value(&self) -> bool {
        self.slot.lane.knows_value(&self.reader)
    }

    /// How many values are there for sure; 0: none.
    pub(super) fn known(&self) -> usize {
        self.slot.lane.known(&self.reader)
    }

    pub(super) fn has_value(&self) -> bool {
        self.known() > 0
    }

    /// # Safety
    /// [`Inlet::knows_value`] or [`Inlet::known`] said that there is one.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> T {
        // SAFETY: the reader is the lane's, the inlet is the receiver's, and there is a value.
        unsafe { self.slot.lane.pop(&self.reader) }
    }

    pub(super) fn pop_some(&self, most: usize, take: impl FnMut(T)) -> usize {
        // SAFETY: as in `pop`.
        unsafe { self.slot.lane.pop_some(&self.reader, most, take) }
    }

    /// Rule 5: closed, and after that empty.
    pub(super) fn is_over(&self) -> bool {
        self.slot.closed.load(Ordering::Acquire) && !self.has_value()
    }
}

impl<T> Drop for Inlet<T> {
    fn drop(&mut self) {
        // SAFETY: it is this lane's, and ends here.
        unsafe { self.slot.lane.leave(&self.reader) };
    }
}
