//! The timers of one worker: a hierarchical wheel of intrusive entries, after Varghese and Lauck,
//! "Hashed and Hierarchical Timing Wheels" (SOSP 1987). Setting and cancelling are O(1) and do not
//! allocate. A timer that never fires costs only these two operations.
//!
//! ```text
//!           64 slots, one bit each in `occupied`
//! level 0   [..#.....#......]   a slot is one tick, 1/16 ms; its entries fire in insertion order
//! level 1   [...#...........]   a slot is all of level 0, 4 ms; it cascades into level 0 when its time begins
//! level 2   [...............]   256 ms
//! ...
//! level 8   [...............]   and so on, until every `u64` of nanoseconds has a slot
//! late      [..]                entries that were late when they were set; all fire at the next `advance`
//! ```
//!
//! `position` is the tick that the wheel has reached. In base 64, the first digit in which an
//! entry's tick differs from `position` is the entry's level, and the tick's digit there is its
//! slot. Each entry on a level therefore comes before all entries on the levels above, the slots of
//! a level never wrap around, and **the first bit of the lowest non-empty level is the next slot to
//! fire**.
//!
//! A deadline is rounded up to a tick and the clock is rounded down, so no timer fires early. A
//! timer fires at the first [`advance`](Wheel::advance) after the end of its tick, so it is at most
//! one tick late.
//!
//! Rules that make the unsafe code sound:
//!
//! 1. From `insert` until it fires or is cancelled, an entry is **pending**: it is not moved, and
//!    no `&mut` to it exists.
//! 2. An entry is pending in one wheel at a time, and is cancelled in that wheel.
//! 3. An entry is pending if and only if it is linked into the list that its `list` field names.
//!    All entries to which the ends of a list and the links of a pending entry point are therefore
//!    pending and alive (rule 1). This holds between calls and while `fire` runs.
//! 4. An entry is unlinked before `fire` is called with it, and the wheel does not access it
//!    afterwards, so `fire` may free it or insert it again. The head of a list is read again after
//!    each `fire`, so `fire` may insert and cancel other entries.
//! 5. A wheel and its entries stay on one thread (neither is `Send` or `Sync`). No reference to a
//!    field leaves the module; all fields are cells.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::ptr::NonNull;

use crate::prefetch;

/// The length of a tick in nanoseconds: 1/16 ms. The kernel already lets a sleeping thread wake up
/// 50 us late (timer slack), so a finer tick has no visible effect. The tick is 16 times finer than
/// the millisecond of other wheels. `docs/internals/wheel.md` lists the cost of finer ticks.
const TICK_NS: u64 = 62_500;

/// The slots of a level are the bits of one word.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;

/// The number of levels that covers the last tick of the clock.
const LEVELS: usize = (u64::MAX.div_ceil(TICK_NS).ilog2() / BITS) as usize + 1;

/// The index of the late lists, which follow the levels like a level with two slots. They contain
/// timers that were late when they were set: one list fires, the other collects timers for the next
/// `advance`.
const LATE: usize = LEVELS * SLOTS;
const LISTS: usize = LATE + 2;

/// The `list` of an entry that is in no list.
const UNLINKED: usize = usize::MAX;

/// A timer. It is in a frame or allocation of the waiting actor.
#[derive(Debug)]
pub(crate) struct TimerEntry {
    prev: Link,
    next: Link,
    tick: Cell<u64>,
    list: Cell<usize>,
    /// Identifies the waiter for the owner of the wheel.
    pub(crate) data: Cell<*const ()>,
    _pinned: PhantomPinned,
}

type Link = Cell<Option<NonNull<TimerEntry>>>;

impl TimerEntry {
    pub(crate) const fn new(data: *const ()) -> Self {
        Self {
            prev: Cell::new(None),
            next: Cell::new(None),
            tick: Cell::new(0),
            list: Cell::new(UNLINKED),
            data: Cell::new(data),
            _pinned: PhantomPinned,
        }
    }

    /// The time at which the entry fires, rounded to a tick. `None` if it is not pending.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.is_pending()
            .then(|| self.tick.get().saturating_mul(TICK_NS))
    }

    /// Whether the timer is set and has neither fired nor been cancelled.
    pub(crate) fn is_pending(&self) -> bool {
        self.list.get() != UNLINKED
    }
}

impl Drop for TimerEntry {
    fn drop(&mut self) {
        debug_assert!(
            !self.is_pending(),
            "rule 1: an entry was dropped while pending"
        );
    }
}

#[derive(Debug)]
struct EntryList {
    first: Link,
    last: Link,
}

impl EntryList {
    const fn new() -> Self {
        Self {
            first: Cell::new(None),
            last: Cell::new(None),
        }
    }
}

/// The timers of one worker.
///
/// The owner must cancel or fire all pending entries before it drops the wheel. A debug build
/// asserts this. In a release build the wheel forgets them, which is sound as long as they are not
/// cancelled in another wheel.
#[derive(Debug)]
pub(crate) struct Wheel {
    lists: Box<[EntryList; LISTS]>,
    /// The non-empty slots of each level, and the non-empty late lists.
    occupied: [Cell<u64>; LEVELS + 1],
    /// No entry on a level has an earlier tick. Within `advance`, the entries of this tick fire.
    position: Cell<u64>,
    /// The tick of the last `advance`, set at its beginning. A timer for this tick or an earlier
    /// one is late.
    now: Cell<u64>,
    /// Until this time, in nanoseconds, no entry on the levels is due. A busy worker checks many
    /// times per tick; this field reduces the check from 15 to 6 ns.
    settled: Cell<u64>,
    /// The late list that collects new entries.
    collecting: Cell<usize>,
    len: Cell<usize>,
}

impl Wheel {
    /// Creates a wheel that begins at `now`. All times are times of `thalweg_queue::clock`.
    pub(crate) fn new(now: u64) -> Self {
        Self {
            lists: Box::new([const { EntryList::new() }; LISTS]),
            occupied: [const { Cell::new(0) }; LEVELS + 1],
            position: Cell::new(now / TICK_NS),
            now: Cell::new(now / TICK_NS),
            settled: Cell::new(0),
            collecting: Cell::new(LATE),
            len: Cell::new(0),
        }
    }

    /// Sets a timer. `entry` fires at the first [`advance`](Self::advance) after the end of the
    /// tick that contains `deadline`. If that tick was over at the last `advance`, it fires at the
    /// next one.
    ///
    /// # Safety
    /// Rules 1 and 2: `entry` is not pending, and it is not moved, dropped or borrowed mutably
    /// until it has fired or was cancelled in this wheel.
    // Not inlined: a wait without a deadline would save registers for it.
    #[inline(never)]
    pub(crate) unsafe fn insert(&self, entry: NonNull<TimerEntry>, deadline: u64) {
        // SAFETY: the caller's contract. The borrow ends within this call.
        let entry_ref = unsafe { entry.as_ref() };
        debug_assert!(!entry_ref.is_pending(), "rule 2: set twice");
        // Rounded up. `div_ceil` would need the remainder, too.
        let tick = deadline
            .checked_sub(1)
            .map_or(0, |before| before / TICK_NS + 1);
        entry_ref.tick.set(tick);
        self.len.set(self.len.get() + 1);
        if tick <= self.now.get() {
            // SAFETY: the entry is in no list.
            unsafe { self.append(self.collecting.get(), entry) };
        } else {
            // SAFETY: the entry is in no list.
            unsafe { self.link_by_tick(entry) };
        }
    }

    /// Cancels a timer. Returns whether it was pending; it is not if it has fired or was never set.
    ///
    /// # Safety
    /// The pointer is valid, and the entry is not pending in another wheel (rule 2).
    pub(crate) unsafe fn cancel(&self, entry: NonNull<TimerEntry>) -> bool {
        // SAFETY: the caller's contract.
        let pending = unsafe { entry.as_ref() }.is_pending();
        if pending {
            // SAFETY: the entry is pending, by rule 2 in this wheel.
            unsafe { self.unlink(entry) };
        }
        pending
    }

    /// Fires all timers that are due at `now`. Timers that were late when they were set fire first;
    /// the others fire in the order of their ticks, and within a tick in insertion order. Returns
    /// the number of fired timers.
    ///
    /// `fire` may insert and cancel entries, including the one that it is called with, and may free
    /// that one. It must not call `advance`. A timer that `fire` inserts fires at the next
    /// `advance` at the earliest, so a timer that sets itself again cannot cause an endless loop.
    /// If `fire` panics, the timers that have not fired stay pending. They fire at the next
    /// `advance`, or, if they were late when they were set, at the one after it.
    pub(crate) fn advance(&self, now: u64, mut fire: impl FnMut(NonNull<TimerEntry>)) -> usize {
        if now < self.settled.get() && !self.has_late() {
            return 0;
        }
        // If the clock went back, `now` would be before `position`.
        let now = self.now.get().max(now / TICK_NS);
        self.now.set(now);
        let late = self.collecting.get();
        self.collecting
            .set(if late == LATE { LATE + 1 } else { LATE });
        let mut fired = self.fire_list(late, &mut fire);
        while let Some((level, slot)) = self.first_occupied() {
            let begin = self.begin_of(level, slot);
            if begin > now {
                break;
            }
            self.position.set(begin);
            let list = level * SLOTS + slot;
            if level == 0 {
                fired += self.fire_list(list, &mut fire);
            } else {
                self.cascade(list);
            }
        }
        self.position.set(now);
        self.settled.set((now + 1).saturating_mul(TICK_NS));
        fired
    }

    /// Returns the time at which to call [`advance`](Self::advance) next, which is never after the
    /// first timer fires. It is earlier if a slot has to cascade first, which happens at most once
    /// per level. If a timer is alone in its slot, its own time is returned. `None` if there are no
    /// timers.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.first_deadline()
    }

    fn first_deadline(&self) -> Option<u64> {
        if self.has_late() {
            return Some(self.now.get() * TICK_NS);
        }
        let (level, slot) = self.first_occupied()?;
        let list = &self.lists[level * SLOTS + slot];
        let tick = match list.first.get() {
            // SAFETY: the entry is linked, so it is alive (rule 3).
            Some(only) if list.last.get() == Some(only) => unsafe { only.as_ref() }.tick.get(),
            _ => self.begin_of(level, slot),
        };
        // The clock ends before its last tick does.
        Some(tick.saturating_mul(TICK_NS))
    }

    /// Returns the number of pending timers.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether no timer is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn has_late(&self) -> bool {
        self.occupied[LEVELS].get() != 0
    }

    /// Returns the next non-empty slot.
    fn first_occupied(&self) -> Option<(usize, usize)> {
        let level = self.occupied[..LEVELS]
            .iter()
            .position(|slots| slots.get() != 0)?;
        Some((level, self.occupied[level].get().trailing_zeros() as usize))
    }

    /// Returns the first tick of a slot: `position` with this digit, followed by zeros.
    fn begin_of(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * BITS;
        let above = !(SLOTS as u64 - 1) & (self.position.get() >> shift);
        (above | slot as u64) << shift
    }

    /// Fires the entries of a list one by one until it is empty. `insert` does not add entries to
    /// this list meanwhile.
    fn fire_list(&self, list: usize, fire: &mut impl FnMut(NonNull<TimerEntry>)) -> usize {
        let mut fired = 0;
        while let Some(first) = self.lists[list].first.get() {
            // SAFETY: the entry is in that list.
            unsafe { self.unlink(first) };
            fired += 1;
            if let Some(next) = self.lists[list].first.get() {
                // SAFETY: the entry is in that list, so it is alive (rule 3).
                let next = unsafe { next.as_ref() };
                prefetch::fetch(next.data.get().cast());
                fetch_link(&next.next);
            }
            fire(first);
        }
        fired
    }

    /// Moves the entries of a slot, whose first tick is `position`, to their slots on the levels
    /// below, in the same order.
    fn cascade(&self, list: usize) {
        let mut rest = self.lists[list].first.take();
        self.lists[list].last.set(None);
        self.mark_empty(list);
        while let Some(entry) = rest {
            // SAFETY: the entry was linked, so it is alive (rule 3).
            rest = unsafe { entry.as_ref() }.next.get();
            if let Some(next) = rest {
                // SAFETY: as above.
                fetch_link(&unsafe { next.as_ref() }.next);
            }
            // SAFETY: the entry is in no list: the slot's list was emptied, and this function owns
            // the rest of the chain.
            unsafe { self.link_by_tick(entry) };
        }
    }

    /// Links an entry into the slot of its tick.
    ///
    /// # Safety
    /// As for [`append`](Self::append).
    unsafe fn link_by_tick(&self, entry: NonNull<TimerEntry>) {
        // SAFETY: the caller's contract.
        let tick = unsafe { entry.as_ref() }.tick.get();
        let apart = tick ^ self.position.get();
        let level = (apart | (SLOTS as u64 - 1)).ilog2() / BITS;
        let slot = (tick >> (level * BITS)) as usize % SLOTS;
        // SAFETY: the caller's contract.
        unsafe { self.append(level as usize * SLOTS + slot, entry) };
    }

    /// Appends an entry to a list.
    ///
    /// # Safety
    /// The entry is alive, as in rule 1, and in no list.
    unsafe fn append(&self, list: usize, entry: NonNull<TimerEntry>) {
        let ends = &self.lists[list];
        let last = ends.last.replace(Some(entry));
        match last {
            // SAFETY: the entry is linked, so it is alive (rule 3).
            Some(last) => unsafe { last.as_ref() }.next.set(Some(entry)),
            None => {
                ends.first.set(Some(entry));
                let occupied = &self.occupied[list / SLOTS];
                occupied.set(occupied.get() | 1 << (list % SLOTS));
            }
        }
        // SAFETY: the caller's contract.
        let entry = unsafe { entry.as_ref() };
        entry.prev.set(last);
        entry.next.set(None);
        entry.list.set(list);
    }

    /// # Safety
    /// The entry is pending in this wheel.
    unsafe fn unlink(&self, entry: NonNull<TimerEntry>) {
        // SAFETY: the entry is pending, so it is alive (rule 1).
        let entry = unsafe { entry.as_ref() };
        let list = entry.list.replace(UNLINKED);
        let (prev, next) = (entry.prev.get(), entry.next.get());
        let ends = &self.lists[list];
        match prev {
            // SAFETY: the neighbour of a linked entry is alive (rule 3).
            Some(prev) => unsafe { prev.as_ref() }.next.set(next),
            None => ends.first.set(next),
        }
        match next {
            // SAFETY: the neighbour of a linked entry is alive (rule 3).
            Some(next) => unsafe { next.as_ref() }.prev.set(prev),
            None => ends.last.set(prev),
        }
        if prev.is_none() && next.is_none() {
            self.mark_empty(list);
        }
        self.len.set(self.len.get() - 1);
    }

    fn mark_empty(&self, list: usize) {
        let occupied = &self.occupied[list / SLOTS];
        occupied.set(occupied.get() & !(1 << (list % SLOTS)));
    }
}

fn fetch_link(link: &Link) {
    if let Some(entry) = link.get() {
        prefetch::fetch(entry.as_ptr().cast());
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        debug_assert!(
            self.is_empty() || std::thread::panicking(),
            "{} timers are pending when their wheel is dropped",
            self.len()
        );
    }
}

#[cfg(test)]
mod tests;
