//! The lanes of a channel: who has one, and which hold something.

use std::ops::Deref;

use crate::barrier;
use crate::cache_padded::CachePadded;
use crate::lane::{Lane, OwnedLane, Reader, Writer};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// Most lanes of a channel. Models are small.
const MAX_LANES: usize = if cfg!(loom) { 128 } else { 256 };
const WORDS: usize = MAX_LANES / 64;

/// Values in one block of a lane.
const BLOCK: usize = if cfg!(loom) { 2 } else { 224 };

/// A lane and what the receiver has to know of it.
pub(super) struct LaneEntry<T> {
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
pub(super) struct LaneTx<T> {
    pub(super) entry: Arc<LaneEntry<T>>,
    pub(super) writer: Writer,
    word: usize,
    bit: u64,
}

/// The receiver's end of a lane.
pub(super) struct LaneRx<T> {
    pub(super) entry: Arc<LaneEntry<T>>,
    reader: Reader,
    pub(super) number: usize,
    /// Rule 2: how much of the common path comes first.
    pub(super) after: usize,
}

/// All lanes of a channel.
pub(super) struct Registry<T> {
    /// Made since the receiver last looked.
    new_lanes: Vec<LaneRx<T>>,
    /// By number.
    entries: Vec<Option<Arc<LaneEntry<T>>>>,
    /// Values that were put into lanes that are gone.
    pushed_to_released: usize,
    /// The channel is closed: each lane is revoked for good.
    is_closed: bool,
}

pub(super) struct Lanes<T> {
    /// A bit for each lane that may hold something.
    hint: CachePadded<[AtomicU64; WORDS]>,
    count: AtomicUsize,
    /// Grows with each lane that is created.
    created: AtomicUsize,
    max_lanes: usize,
    block: usize,
    registry: Mutex<Registry<T>>,
}

impl<T> Lanes<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            hint: CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0))),
            count: AtomicUsize::new(0),
            created: AtomicUsize::new(0),
            max_lanes: MAX_LANES.min(capacity / 4),
            block: BLOCK.min(capacity),
            registry: Mutex::new(Registry {
                new_lanes: Vec::new(),
                entries: Vec::new(),
                pushed_to_released: 0,
                is_closed: false,
            }),
        }
    }

    /// Whether a sender may ever get one.
    pub(super) fn are_allowed(&self) -> bool {
        self.max_lanes > 0
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many were made since the beginning.
    pub(super) fn created(&self) -> usize {
        self.created.load(Ordering::Acquire)
    }

    /// A lane of the caller's own, unless there are too many. `after`: rule 2.
    pub(super) fn make(&self, after: impl FnOnce() -> usize) -> Option<LaneTx<T>> {
        if self.count() >= self.max_lanes {
            return None;
        }
        let (lane, writer, reader) = OwnedLane::new(Lane::unbounded(self.block));
        let mut registry = lock(&self.registry);
        let entry = Arc::new(LaneEntry {
            lane,
            closed: AtomicBool::new(false),
            revoked: AtomicBool::new(registry.is_closed),
            claimed: AtomicUsize::new(0),
            announced: AtomicUsize::new(0),
            taken_back: AtomicUsize::new(0),
        });
        let free = registry.entries.iter().position(Option::is_none);
        let number = free.unwrap_or(registry.entries.len());
        if number >= self.max_lanes {
            drop(registry);
            // SAFETY: it is this lane's.
            unsafe { entry.lane.return_reader(&reader) };
            return None;
        }
        if free.is_none() {
            registry.entries.push(None);
        }
        registry.entries[number] = Some(Arc::clone(&entry));
        registry.new_lanes.push(LaneRx {
            entry: Arc::clone(&entry),
            reader,
            number,
            after: after(),
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        self.created.fetch_add(1, Ordering::Release);
        Some(LaneTx {
            entry,
            writer,
            word: number / 64,
            bit: 1 << (number % 64),
        })
    }

    /// Those that were made since the last call.
    pub(super) fn new_lanes(&self) -> Vec<LaneRx<T>> {
        std::mem::take(&mut lock(&self.registry).new_lanes)
    }

    /// Rule 5: the receiver is done with this one.
    pub(super) fn release(&self, number: usize) {
        let mut registry = lock(&self.registry);
        if let Some(entry) = registry.entries[number].take() {
            registry.pushed_to_released += entry.pushed();
        }
        drop(registry);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn len(&self) -> usize {
        let registry = lock(&self.registry);
        registry.entries().map(|entry| entry.lane.len()).sum()
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
    pub(super) fn set_hint_of(&self, lane_tx: &LaneTx<T>) {
        self.hint_bit(lane_tx.word, lane_tx.bit);
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
        let from = from % MAX_LANES;
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
    fn entries(&self) -> impl Iterator<Item = &LaneEntry<T>> {
        self.entries.iter().flatten().map(|entry| &**entry)
    }

    /// Values ever put into a lane.
    pub(super) fn pushed(&self) -> usize {
        self.pushed_to_released + self.entries().map(LaneEntry::pushed).sum::<usize>()
    }

    /// Rule 6: from the next heavy barrier on no sender uses a credit that it claimed before.
    pub(super) fn revoke_all(&self) {
        for entry in self.entries() {
            entry.revoked.store(true, Ordering::Relaxed);
        }
    }

    /// Rule 6, after the heavy barrier: takes all credits back that are not used, but for those of `mine`; how many.
    pub(super) fn reclaim_unused(&self, mine: Option<&LaneTx<T>>) -> usize {
        let mine = mine.map(|lane_tx| Arc::as_ptr(&lane_tx.entry));
        let others = self
            .entries()
            .filter(|entry| mine != Some(&raw const **entry));
        others.map(LaneEntry::reclaim_unused).sum()
    }
}

impl<T> LaneEntry<T> {
    /// Values put in, or about to be.
    fn pushed(&self) -> usize {
        let announced = self.announced.load(Ordering::Relaxed);
        announced.max(self.lane.pushed())
    }

    /// Under the lock.
    fn reclaim_unused(&self) -> usize {
        let claimed = self.claimed.load(Ordering::Relaxed);
        let taken_back = self.taken_back.load(Ordering::Relaxed);
        let unused = (claimed - taken_back).saturating_sub(self.pushed());
        let taken_back = taken_back + unused;
        self.taken_back.store(taken_back, Ordering::Relaxed);
        unused
    }
}

impl<T> LaneTx<T> {
    #[inline(always)]
    pub(super) fn has_granted(&self) -> bool {
        self.entry.lane.has_granted(&self.writer)
    }

    pub(super) fn reserve(&self, raise: impl FnOnce(usize) -> usize) -> bool {
        self.entry.lane.reserve(&self.writer, raise)
    }

    /// Credits that are not used yet. They may have been taken back.
    pub(super) fn granted(&self) -> usize {
        self.entry.lane.granted(&self.writer)
    }

    /// Rule 6: whether the sender has to take the lock before its next value.
    #[inline(always)]
    pub(super) fn is_revoked(&self) -> bool {
        self.entry.revoked.load(Ordering::Relaxed)
    }

    /// Counts `credits` as the lane's, which the sender claimed; how many values may be put in now, since the beginning.
    pub(super) fn add(&self, credits: usize) -> usize {
        let claimed = self.entry.claimed.load(Ordering::Relaxed) + credits;
        self.entry.claimed.store(claimed, Ordering::Relaxed);
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
    pub(super) fn update_limit(&self, _locked: &Registry<T>) {
        let claimed = self.entry.claimed.load(Ordering::Relaxed);
        let taken_back = self.entry.taken_back.load(Ordering::Relaxed);
        let lane = &self.entry.lane;
        lane.replace_limit(&self.writer, claimed - taken_back);
    }

    /// Rule 6: gives up what is not used; how many credits.
    pub(super) fn release_unused(&self, locked: &Registry<T>) -> usize {
        let unused = self.entry.reclaim_unused();
        self.update_limit(locked);
        let is_revoked = locked.is_closed;
        self.entry.revoked.store(is_revoked, Ordering::Relaxed);
        unused
    }

    /// Puts a value in, unless the lane is revoked: then it comes back.
    ///
    /// # Safety
    /// [`LaneTx::has_granted`] or [`LaneTx::reserve`] said that there is room.
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) -> Result<(), T> {
        let lane = &self.entry.lane;
        // SAFETY: the writer is the lane's, an lane_tx is one sender's, and the caller knows of room.
        unsafe { lane.push_unless(&self.writer, value, || self.is_revoked()) }
    }

    /// Announces `count` values, which [`push_some`](Self::push_some) then puts in; `false`: the lane is revoked.
    pub(super) fn announce(&self, count: usize) -> bool {
        let put = self.entry.lane.pushed();
        self.entry.announced.store(put + count, Ordering::Relaxed);
        barrier::light();
        let is_revoked = self.is_revoked();
        if is_revoked {
            self.entry.announced.store(put, Ordering::Relaxed);
        }
        !is_revoked
    }

    /// Puts in `count` values, for which there are credits: announced ones, or under the lock.
    pub(super) fn push_some(&self, count: usize, mut values: impl Iterator<Item = T>) {
        let lane = &self.entry.lane;
        // SAFETY: as in `push`.
        let pushed = unsafe { lane.push_some(&self.writer, count, || values.next()) };
        debug_assert_eq!(pushed, count);
    }

    /// The last thing a sender does with it.
    pub(super) fn close(&self) {
        self.entry.closed.store(true, Ordering::Release);
    }
}

impl<T> LaneRx<T> {
    #[inline(always)]
    pub(super) fn has_known_value(&self) -> bool {
        self.entry.lane.has_known_value(&self.reader)
    }

    /// How many values are there for sure; 0: none.
    pub(super) fn known(&self) -> usize {
        self.entry.lane.known(&self.reader)
    }

    pub(super) fn has_value(&self) -> bool {
        self.known() > 0
    }

    /// # Safety
    /// [`LaneRx::has_known_value`] or [`LaneRx::known`] said that there is one.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> T {
        // SAFETY: the reader is the lane's, the lane_rx is the receiver's, and there is a value.
        unsafe { self.entry.lane.pop(&self.reader) }
    }

    pub(super) fn pop_some(&self, max: usize, take: impl FnMut(T)) -> usize {
        // SAFETY: as in `pop`.
        unsafe { self.entry.lane.pop_some(&self.reader, max, take) }
    }

    /// Rule 5: closed, and after that empty.
    pub(super) fn is_finished(&self) -> bool {
        self.entry.closed.load(Ordering::Acquire) && !self.has_value()
    }
}

impl<T> Drop for LaneRx<T> {
    fn drop(&mut self) {
        // SAFETY: it is this lane's, and ends here.
        unsafe { self.entry.lane.return_reader(&self.reader) };
    }
}
