//! The lanes of a channel: their registry and the hint that tells which of them may have values.

use std::ops::Deref;

use crate::barrier;
use crate::cache_padded::CachePadded;
use crate::lane::{Lane, OwnedLane, Reader, Writer};
use crate::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// The maximum number of lanes of a channel. It is smaller in models.
const MAX_LANES: usize = if cfg!(loom) { 128 } else { 256 };
const WORDS: usize = MAX_LANES / 64;

/// Values per block of a lane.
const BLOCK: usize = if cfg!(loom) { 2 } else { 224 };

/// A lane and the flags and counters that its two ends share.
pub(super) struct LaneEntry<T> {
    pub(super) lane: OwnedLane<T>,
    /// The sender is gone: no more values follow.
    closed: AtomicBool,
    /// Rule 6: the sender must take the lock before its next value.
    revoked: AtomicBool,
    /// Credits that the sender has ever claimed. Only the sender stores it.
    claimed: AtomicUsize,
    /// Values that the sender has pushed, or has announced as a batch. Only the sender stores it.
    /// The lane itself counts single values.
    announced: AtomicUsize,
    /// Claimed credits that were reclaimed from the sender. Stored under the lock of the registry.
    reclaimed: AtomicUsize,
}

/// The sender's end of a lane.
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
    /// Rule 2: how many values of the shared lane must be received first.
    pub(super) after: usize,
}

/// All lanes of a channel.
pub(super) struct Registry<T> {
    /// Lanes that were created since the receiver last checked.
    new_lanes: Vec<LaneRx<T>>,
    /// Indexed by the number of the lane.
    entries: Vec<Option<Arc<LaneEntry<T>>>>,
    /// Values that were pushed into lanes that have been released.
    pushed_to_released: usize,
    /// Whether the channel is closed. Then every lane stays revoked.
    is_closed: bool,
}

pub(super) struct Lanes<T> {
    /// One bit per lane that may have a value.
    hint: CachePadded<[AtomicU64; WORDS]>,
    count: AtomicUsize,
    /// The number of lanes ever created.
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

    /// Whether senders of this channel can get lanes at all.
    pub(super) fn are_allowed(&self) -> bool {
        self.max_lanes > 0
    }

    /// The current number of lanes.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The number of lanes ever created.
    pub(super) fn created(&self) -> usize {
        self.created.load(Ordering::Acquire)
    }

    /// Creates a lane for the caller, unless the limit is reached. `after`: rule 2.
    pub(super) fn create(&self, after: impl FnOnce() -> usize) -> Option<LaneTx<T>> {
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
            reclaimed: AtomicUsize::new(0),
        });
        let free = registry.entries.iter().position(Option::is_none);
        let number = free.unwrap_or(registry.entries.len());
        if number >= self.max_lanes {
            drop(registry);
            // SAFETY: the reader belongs to this lane.
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

    /// Takes the lanes that were created since the last call.
    pub(super) fn take_new(&self) -> Vec<LaneRx<T>> {
        std::mem::take(&mut lock(&self.registry).new_lanes)
    }

    /// Rule 5: releases a lane that the receiver has finished with.
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

    /// Rule 7: from now on, every sender checks whether the channel is closed before it pushes.
    pub(super) fn close(&self) {
        let mut registry = lock(&self.registry);
        registry.is_closed = true;
        registry.revoke_all();
    }

    /// Rule 4: marks a lane that may have a value.
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

    /// Rule 4, the receiver's part: finds the next lane whose bit is set, starting at `from` and
    /// wrapping around, and clears the bit.
    pub(super) fn take_hint(&self, from: usize) -> Option<usize> {
        let from = from % MAX_LANES;
        for turn in 0..=WORDS {
            let index = (from / 64 + turn) % WORDS;
            let word = &self.hint[index];
            let mut set = word.load(Ordering::Relaxed);
            if turn == 0 {
                set &= u64::MAX << (from % 64);
            } else if turn == WORDS {
                set &= !(u64::MAX << (from % 64));
            }
            if set != 0 {
                let bit = set & set.wrapping_neg();
                word.fetch_and(!bit, Ordering::Acquire);
                return Some(index * 64 + bit.trailing_zeros() as usize);
            }
        }
        None
    }
}

impl<T> Registry<T> {
    fn entries(&self) -> impl Iterator<Item = &LaneEntry<T>> {
        self.entries.iter().flatten().map(|entry| &**entry)
    }

    /// Values that were ever pushed into a lane.
    pub(super) fn pushed(&self) -> usize {
        self.pushed_to_released + self.entries().map(LaneEntry::pushed).sum::<usize>()
    }

    /// Rule 6: after the next heavy barrier, no sender uses a credit that it claimed before.
    pub(super) fn revoke_all(&self) {
        for entry in self.entries() {
            entry.revoked.store(true, Ordering::Relaxed);
        }
    }

    /// Rule 6, after the heavy barrier: reclaims all unused credits except those of `own`. Returns
    /// their number.
    pub(super) fn reclaim_unused(&self, own: Option<&LaneTx<T>>) -> usize {
        let own = own.map(|lane_tx| Arc::as_ptr(&lane_tx.entry));
        let others = self
            .entries()
            .filter(|entry| own != Some(&raw const **entry));
        others.map(LaneEntry::reclaim_unused).sum()
    }
}

impl<T> LaneEntry<T> {
    /// Values that have been pushed or are about to be.
    fn pushed(&self) -> usize {
        let announced = self.announced.load(Ordering::Relaxed);
        announced.max(self.lane.pushed())
    }

    /// Call it under the lock.
    fn reclaim_unused(&self) -> usize {
        let claimed = self.claimed.load(Ordering::Relaxed);
        let reclaimed = self.reclaimed.load(Ordering::Relaxed);
        let unused = (claimed - reclaimed).saturating_sub(self.pushed());
        let reclaimed = reclaimed + unused;
        self.reclaimed.store(reclaimed, Ordering::Relaxed);
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

    /// Credits that are not used yet. They may have been reclaimed.
    pub(super) fn granted(&self) -> usize {
        self.entry.lane.granted(&self.writer)
    }

    /// Rule 6: whether the sender must take the lock before its next value.
    #[inline(always)]
    pub(super) fn is_revoked(&self) -> bool {
        self.entry.revoked.load(Ordering::Relaxed)
    }

    /// Adds `credits`, which the sender has claimed, to the lane. Returns how many values may be
    /// pushed, counted from the beginning.
    pub(super) fn add(&self, credits: usize) -> usize {
        let claimed = self.entry.claimed.load(Ordering::Relaxed) + credits;
        self.entry.claimed.store(claimed, Ordering::Relaxed);
        self.writer.limit() + credits
    }

    /// Like [`add`](Self::add), and sets the writer's limit.
    pub(super) fn grant(&self, credits: usize) {
        self.writer.set_limit(self.add(credits));
    }

    /// An unbounded channel has no credits.
    pub(super) fn set_unbounded(&self) {
        self.writer.set_limit(usize::MAX);
    }

    /// Rule 6: lowers the limit by the credits that were reclaimed.
    pub(super) fn update_limit(&self, _locked: &Registry<T>) {
        let claimed = self.entry.claimed.load(Ordering::Relaxed);
        let reclaimed = self.entry.reclaimed.load(Ordering::Relaxed);
        let lane = &self.entry.lane;
        lane.replace_limit(&self.writer, claimed - reclaimed);
    }

    /// Rule 6: gives up the unused credits. Returns their number.
    pub(super) fn release_unused(&self, locked: &Registry<T>) -> usize {
        let unused = self.entry.reclaim_unused();
        self.update_limit(locked);
        let is_revoked = locked.is_closed;
        self.entry.revoked.store(is_revoked, Ordering::Relaxed);
        unused
    }

    /// Pushes a value. If the lane is revoked, the value is returned.
    ///
    /// # Safety
    /// [`LaneTx::has_granted`] or [`LaneTx::reserve`] has returned true.
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) -> Result<(), T> {
        let lane = &self.entry.lane;
        // SAFETY: the writer belongs to the lane, one sender owns this end, and the caller has a
        // free slot.
        unsafe { lane.push_unless(&self.writer, value, || self.is_revoked()) }
    }

    /// Announces `count` values for [`push_some`](Self::push_some). Returns `false` if the lane is
    /// revoked.
    pub(super) fn announce(&self, count: usize) -> bool {
        let pushed = self.entry.lane.pushed();
        self.entry
            .announced
            .store(pushed + count, Ordering::Relaxed);
        barrier::light();
        let is_revoked = self.is_revoked();
        if is_revoked {
            self.entry.announced.store(pushed, Ordering::Relaxed);
        }
        !is_revoked
    }

    /// Pushes `count` values for which there are credits: announced values, or values under the
    /// lock.
    pub(super) fn push_some(&self, count: usize, mut values: impl Iterator<Item = T>) {
        let lane = &self.entry.lane;
        // SAFETY: as in `push`.
        let pushed = unsafe { lane.push_some(&self.writer, count, || values.next()) };
        debug_assert_eq!(pushed, count);
    }

    /// The sender calls this last.
    pub(super) fn close(&self) {
        self.entry.closed.store(true, Ordering::Release);
    }
}

impl<T> LaneRx<T> {
    #[inline(always)]
    pub(super) fn has_known_value(&self) -> bool {
        self.entry.lane.has_known_value(&self.reader)
    }

    /// How many values are known to be there. 0 if the lane is empty.
    pub(super) fn known(&self) -> usize {
        self.entry.lane.known(&self.reader)
    }

    pub(super) fn has_value(&self) -> bool {
        self.known() > 0
    }

    /// # Safety
    /// [`LaneRx::has_known_value`] or [`LaneRx::known`] has returned that there is a value.
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> T {
        // SAFETY: the reader belongs to the lane, the receiver owns this end, and there is a value.
        unsafe { self.entry.lane.pop(&self.reader) }
    }

    pub(super) fn pop_some(&self, max: usize, take: impl FnMut(T)) -> usize {
        // SAFETY: as in `pop`.
        unsafe { self.entry.lane.pop_some(&self.reader, max, take) }
    }

    /// Rule 5: closed, and found empty after that.
    pub(super) fn is_finished(&self) -> bool {
        self.entry.closed.load(Ordering::Acquire) && !self.has_value()
    }
}

impl<T> Drop for LaneRx<T> {
    fn drop(&mut self) {
        // SAFETY: the reader belongs to this lane and ends here.
        unsafe { self.entry.lane.return_reader(&self.reader) };
    }
}
