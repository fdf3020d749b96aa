//! The lanes of a channel: who has one, and which hold something.

use std::ops::Deref;

use crate::barrier;
use crate::cache_padded::CachePadded;
use crate::lane::{Lane, OwnedLane, Reader, Writer};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

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
    /// Rule 6: the sender takes the lock before its next value.
    revoked: AtomicBool,
    /// Credits that the sender ever claimed. Stored by the sender alone.
    claimed: AtomicUsize,
    /// Values that the sender put in, or is about to put in as a batch. Stored by the sender alone; the lane knows of other values.
    announced: AtomicUsize,
    /// Claimed credits that are not the sender's any more. Stored under the registry's lock.
    taken_back: AtomicUsize,
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

/// All lanes of a channel.
pub(super) struct Registry<T> {
    /// Made since the receiver last looked.
    fresh: Vec<Inlet<T>>,
    /// By number.
    all: Vec<Option<Arc<Slot<T>>>>,
    /// Values that were put into lanes that are gone.
    put: usize,
    /// The channel is closed: each lane is revoked for good.
    is_closed: bool,
}

pub(super) struct Lanes<T> {
    /// A bit for each lane that may hold something.
    hint: CachePadded<[AtomicU64; WORDS]>,
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
            hint: CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0))),
            count: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            most: MOST.min(capacity / 4),
            block: BLOCK.min(capacity),
            registry: Mutex::new(Registry {
                fresh: Vec::new(),
                all: Vec::new(),
                put: 0,
                is_closed: false,
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
        let mut registry = lock(&self.registry);
        let slot = Arc::new(Slot {
            lane,
            closed: AtomicBool::new(false),
            revoked: AtomicBool::new(registry.is_closed),
            claimed: AtomicUsize::new(0),
            announced: AtomicUsize::new(0),
            taken_back: AtomicUsize::new(0),
        });
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
        let mut registry = lock(&self.registry);
        if let Some(slot) = registry.all[number].take() {
            registry.put += slot.put();
        }
        drop(registry);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        let registry = lock(&self.registry);
        registry.slots().map(|slot| slot.lane.len()).sum()
    }

    /// Rules 6 and 7.
    pub(super) fn lock(&self) -> impl Deref<Target = Registry<T>> {
        lock(&self.registry)
    }

    /// Rule 7: no sender puts in a value any more without asking whether the channel is closed.
    pub(super) fn close(&self) {
        let mut registry = lock(&self.registry);
        registry.is_closed = true;
        registry.revoke_all();
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
        let word = &self.hint[word % WORDS];
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// Rule 4, the receiver's part: the next lane from `from` on, round and round, whose bit is set, and clears the bit.
    pub(super) fn take_hint(&self, from: usize) -> Option<usize> {
        let from = from % MOST;
        for turn in 0..=WORDS {
            let place = (from / 64 + turn) % WORDS;
            let word = &self.hint[place];
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

impl<T> Registry<T> {
    fn slots(&self) -> impl Iterator<Item = &Slot<T>> {
        self.all.iter().flatten().map(|slot| &**slot)
    }

    /// Values ever put into a lane.
    pub(super) fn put(&self) -> usize {
        self.put + self.slots().map(Slot::put).sum::<usize>()
    }

    /// Rule 6: from the next heavy barrier on no sender uses a credit that it claimed before.
    pub(super) fn revoke_all(&self) {
        for slot in self.slots() {
            slot.revoked.store(true, Ordering::Relaxed);
        }
    }

    /// Rule 6, after the heavy barrier: takes all credits back that are not used, but for those of `mine`; how many.
    pub(super) fn take_back(&self, mine: Option<&Outlet<T>>) -> usize {
        let mine = mine.map(|outlet| Arc::as_ptr(&outlet.slot));
        let others = self.slots().filter(|slot| mine != Some(&raw const **slot));
        others.map(Slot::take_back).sum()
    }
}

impl<T> Slot<T> {
    /// Values put in, or about to be.
    fn put(&self) -> usize {
        let announced = self.announced.load(Ordering::Relaxed);
        announced.max(self.lane.put())
    }

    /// Under the lock.
    fn take_back(&self) -> usize {
        let claimed = self.claimed.load(Ordering::Relaxed);
        let taken_back = self.taken_back.load(Ordering::Relaxed);
        let unused = (claimed - taken_back).saturating_sub(self.put());
        let taken_back = taken_back + unused;
        self.taken_back.store(taken_back, Ordering::Relaxed);
        unused
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

    /// Credits that are not used yet. They may have been taken back.
    pub(super) fn granted(&self) -> usize {
        self.slot.lane.granted(&self.writer)
    }

    /// Rule 6: whether the sender has to take the lock before its next value.
    #[inline(always)]
    pub(super) fn is_revoked(&self) -> bool {
        self.slot.revoked.load(Ordering::Relaxed)
    }

    /// Counts `credits` as the lane's, which the sender claimed; how many values may be put in now, since the beginning.
    pub(super) fn add(&self, credits: usize) -> usize {
        let claimed = self.slot.claimed.load(Ordering::Relaxed) + credits;
        self.slot.claimed.store(claimed, Ordering::Relaxed);
        self.writer.limit() + credits
    }

    /// The same, and puts in no more than that.
    pub(super) fn grant(&self, credits: usize) {
        self.writer.set_limit(self.add(credits));
    }

    /// Without a bound there are no credits.
    pub(super) fn set_unbounded(&self) {
        self.writer.set_limit(usize::MAX);
    }

    /// Rule 6: learns which credits were taken back.
    pub(super) fn settle(&self, _locked: &Registry<T>) {
        let claimed = self.slot.claimed.load(Ordering::Relaxed);
        let taken_back = self.slot.taken_back.load(Ordering::Relaxed);
        let lane = &self.slot.lane;
        lane.replace_limit(&self.writer, claimed - taken_back);
    }

    /// Rule 6: gives up what is not used; how many credits.
    pub(super) fn give_up(&self, locked: &Registry<T>) -> usize {
        let unused = self.slot.take_back();
        self.settle(locked);
        let is_revoked = locked.is_closed;
        self.slot.revoked.store(is_revoked, Ordering::Relaxed);
        unused
    }

    /// Puts a value in, unless the lane is revoked: then it comes back.
    ///
    /// # Safety
    /// [`Outlet::knows_room`] or [`Outlet::find_room`] said that there is room.
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) -> Result<(), T> {
        let lane = &self.slot.lane;
        // SAFETY: the writer is the lane's, an outlet is one sender's, and the caller knows of room.
        unsafe { lane.push_unless(&self.writer, value, || self.is_revoked()) }
    }

    /// Announces `count` values, which [`push_some`](Self::push_some) then puts in; `false`: the lane is revoked.
    pub(super) fn announce(&self, count: usize) -> bool {
        let put = self.slot.lane.put();
        self.slot.announced.store(put + count, Ordering::Relaxed);
        barrier::light();
        let is_revoked = self.is_revoked();
        if is_revoked {
            self.slot.announced.store(put, Ordering::Relaxed);
        }
        !is_revoked
    }

    /// Puts in `count` values, for which there are credits: announced ones, or under the lock.
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
