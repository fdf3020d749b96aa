//! The timers of one worker: a hierarchical wheel of intrusive entries, after Varghese and Lauck, "Hashed and Hierarchical Timing
//! Wheels" (SOSP 1987). Setting and cancelling are O(1) and allocate nothing; a timer that never fires costs those two and no more.
//!
//! ```text
//!           64 slots, one bit each in `occupied`
//! level 0   [..#.....#......]   a slot is one tick, 1/16 ms: what is in it fires in the order of insertion
//! level 1   [...#...........]   a slot is all of level 0, 4 ms: it is spread over it when its time begins
//! level 2   [...............]   256 ms
//! ...
//! level 8   [...............]   and so on, until every `u64` of nanoseconds has its slot
//! past      [..]                what was late when it was set: all of it fires at the next `advance`
//! ```
//!
//! `position` is the tick that the wheel has reached. In base 64 the first digit in which an entry's tick differs from it is the
//! entry's level, and the tick's digit there its slot. So a level holds only what comes before everything on the levels above, its slots
//! never wrap around, and **the first bit of the lowest level that has one is what comes next**.
//!
//! Times: a deadline is rounded up to a tick and the clock down, so nothing fires early, and what is due fires at the first
//! [`advance`](Wheel::advance) from the end of its tick: one tick late at most.
//!
//! Rules that make the unsafe code sound:
//!
//! 1. From `insert` until it fires or is cancelled, an entry is **pending**: it stays where it is, and nobody holds a `&mut` to it.
//! 2. It is pending in one wheel at a time, and cancelled in that one.
//! 3. An entry is pending if and only if it is linked into the one list that its `list` names. So whatever a list's ends and a
//!    pending entry's neighbours point to is pending, and lives (rule 1). Between two calls, and while `fire` runs, all of this holds.
//! 4. An entry that fires is off its list before `fire` is called, and the wheel does not touch it again: it may be freed, or inserted
//!    anew. What a list's first is, is read afresh after every `fire`, so that it may insert and cancel what it likes.
//! 5. Wheel and entries stay on one thread (neither is `Send` or `Sync`), and no reference to a field leaves them: all are cells.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::ptr::NonNull;

use crate::ahead;

/// A tick, in nanoseconds: 1/16 ms. The kernel lets a sleeper oversleep by 50 us as it is (timerslack), and 16 times finer than the
/// millisecond of other wheels no longer shows behind that. `docs/internals/wheel.md` has what a finer one costs.
const GRAIN: u64 = 62_500;

/// A level's slots are the bits of one word.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;

/// As many as it takes for the last tick of the clock.
const LEVELS: usize = (u64::MAX.div_ceil(GRAIN).ilog2() / BITS) as usize + 1;

/// Behind the levels, as if it were one with two slots: what was late when it was set. One list fires, and one collects for the next time.
const PAST: usize = LEVELS * SLOTS;
const LISTS: usize = PAST + 2;

/// Of an entry that is in no list.
const NOWHERE: usize = usize::MAX;

/// A timer. It lies in the waiter's own frame or allocation.
#[derive(Debug)]
pub(crate) struct Entry {
    prev: Link,
    next: Link,
    tick: Cell<u64>,
    list: Cell<usize>,
    /// Whatever tells the owner what to do when it fires.
    pub(crate) data: Cell<*const ()>,
    _pinned: PhantomPinned,
}

type Link = Cell<Option<NonNull<Entry>>>;

impl Entry {
    pub(crate) const fn new(data: *const ()) -> Self {
        Self {
            prev: Cell::new(None),
            next: Cell::new(None),
            tick: Cell::new(0),
            list: Cell::new(NOWHERE),
            data: Cell::new(data),
            _pinned: PhantomPinned,
        }
    }

    /// When it fires, if it is to; the clock's time, to a tick.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.is_pending()
            .then(|| self.tick.get().saturating_mul(GRAIN))
    }

    /// Whether it is set and has neither fired nor been cancelled.
    pub(crate) fn is_pending(&self) -> bool {
        self.list.get() != NOWHERE
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        debug_assert!(
            !self.is_pending(),
            "rule 1: an entry was dropped while pending"
        );
    }
}

#[derive(Debug)]
struct List {
    first: Link,
    last: Link,
}

impl List {
    const fn new() -> Self {
        Self {
            first: Cell::new(None),
            last: Cell::new(None),
        }
    }
}

/// The timers of one worker.
///
/// Before it is dropped its owner cancels or fires all that is pending. A debug build checks that; otherwise the wheel forgets
/// them, which is sound as long as nobody cancels them in another.
#[derive(Debug)]
pub(crate) struct Wheel {
    lists: Box<[List; LISTS]>,
    /// Of each level, and of the past, the slots that are not empty.
    occupied: [Cell<u64>; LEVELS + 1],
    /// No entry on a level has an earlier tick, and within `advance` those of this tick fire.
    position: Cell<u64>,
    /// The tick of the last `advance`, from its beginning: what is set for it or before it is past.
    now: Cell<u64>,
    /// In nanoseconds: until then nothing on the levels is due. A busy owner looks many times a tick: 6 ns each time instead of 15.
    settled: Cell<u64>,
    /// Which of the two lists of the past collects.
    collecting: Cell<usize>,
    len: Cell<usize>,
}

impl Wheel {
    /// A wheel that begins at `now` (`thalweg_queue::clock`, as all times here).
    pub(crate) fn new(now: u64) -> Self {
        Self {
            lists: Box::new([const { List::new() }; LISTS]),
            occupied: [const { Cell::new(0) }; LEVELS + 1],
            position: Cell::new(now / GRAIN),
            now: Cell::new(now / GRAIN),
            settled: Cell::new(0),
            collecting: Cell::new(PAST),
            len: Cell::new(0),
        }
    }

    /// Sets a timer: `entry` fires at the first [`advance`](Self::advance) from the end of the tick that `deadline` is in. If that tick was
    /// over at the last one, it fires at the next.
    ///
    /// # Safety
    /// Rules 1 and 2: it points to an entry that is pending nowhere, and which is not moved, dropped or borrowed mutably until it has
    /// fired or was cancelled here.
    pub(crate) unsafe fn insert(&self, entry: NonNull<Entry>, deadline: u64) {
        // SAFETY: the caller's promise; the borrow ends within this call.
        let entry_ref = unsafe { entry.as_ref() };
        debug_assert!(!entry_ref.is_pending(), "rule 2: set twice");
        let tick = deadline.div_ceil(GRAIN);
        entry_ref.tick.set(tick);
        self.len.set(self.len.get() + 1);
        if tick <= self.now.get() {
            // SAFETY: it is in no list.
            unsafe { self.append(self.collecting.get(), entry) };
        } else {
            // SAFETY: it is in no list.
            unsafe { self.place(entry) };
        }
    }

    /// Takes a timer back. Says whether it was pending: not if it has fired, or was never set.
    ///
    /// # Safety
    /// It points to an entry, which is pending in no other wheel (rule 2).
    pub(crate) unsafe fn cancel(&self, entry: NonNull<Entry>) -> bool {
        // SAFETY: the caller's promise.
        let pending = unsafe { entry.as_ref() }.is_pending();
        if pending {
            // SAFETY: pending, and by rule 2 here.
            unsafe { self.unlink(entry) };
        }
        pending
    }

    /// Fires all that is due at `now`, in the order of their ticks and within a tick of their insertion, those first that were late when
    /// they were set. Returns how many.
    ///
    /// `fire` may insert and cancel, also what it is called with, and may free that one; it may not call `advance`. What it
    /// inserts fires at the next `advance` at the earliest: a timer that sets itself again and again holds nobody up. If it panics,
    /// all that has not fired is still pending, and fires at the next or, if it was late when it was set, the one after.
    pub(crate) fn advance(&self, now: u64, mut fire: impl FnMut(NonNull<Entry>)) -> usize {
        if now < self.settled.get() && !self.has_late() {
            return 0;
        }
        // A clock that went back would leave `now` behind `position`.
        let now = self.now.get().max(now / GRAIN);
        self.now.set(now);
        let late = self.collecting.get();
        self.collecting
            .set(if late == PAST { PAST + 1 } else { PAST });
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
                self.spread(list);
            }
        }
        self.position.set(now);
        self.settled.set((now + 1).saturating_mul(GRAIN));
        fired
    }

    /// When to call [`advance`](Self::advance) next: never later than the first timer fires. It is earlier if a slot has to be spread
    /// first, which is so at most once a level; a timer that is alone in its slot is not waited for in steps. None without timers.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        if self.has_late() {
            return Some(self.now.get() * GRAIN);
        }
        let (level, slot) = self.first_occupied()?;
        let list = &self.lists[level * SLOTS + slot];
        let tick = match list.first.get() {
            // SAFETY: linked, so it lives (rule 3).
            Some(only) if list.last.get() == Some(only) => unsafe { only.as_ref() }.tick.get(),
            _ => self.begin_of(level, slot),
        };
        // The clock ends before its last tick does.
        Some(tick.saturating_mul(GRAIN))
    }

    /// How many are pending.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Whether none is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn has_late(&self) -> bool {
        self.occupied[LEVELS].get() != 0
    }

    /// The slot that comes next.
    fn first_occupied(&self) -> Option<(usize, usize)> {
        let level = self.occupied[..LEVELS]
            .iter()
            .position(|slots| slots.get() != 0)?;
        Some((level, self.occupied[level].get().trailing_zeros() as usize))
    }

    /// The first tick of a slot: `position` with that digit, and zeros behind it.
    fn begin_of(&self, level: usize, slot: usize) -> u64 {
        let shift = level as u32 * BITS;
        let above = !(SLOTS as u64 - 1) & (self.position.get() >> shift);
        (above | slot as u64) << shift
    }

    /// Takes one after the other off the list and fires it, until the list is empty: `insert` adds nothing to it meanwhile.
    fn fire_list(&self, list: usize, fire: &mut impl FnMut(NonNull<Entry>)) -> usize {
        let mut fired = 0;
        while let Some(first) = self.lists[list].first.get() {
            // SAFETY: it is in that list.
            unsafe { self.unlink(first) };
            fired += 1;
            if let Some(next) = self.lists[list].first.get() {
                // SAFETY: it is in that list, so it lives (rule 3).
                let next = unsafe { next.as_ref() };
                ahead::fetch(next.data.get().cast());
                fetch_link(&next.next);
            }
            fire(first);
        }
        fired
    }

    /// Gives the entries of a slot, whose first tick is `position`, their slots on the levels below, in the same order.
    fn spread(&self, list: usize) {
        let mut rest = self.lists[list].first.take();
        self.lists[list].last.set(None);
        self.mark_empty(list);
        while let Some(entry) = rest {
            // SAFETY: what was linked lives (rule 3).
            rest = unsafe { entry.as_ref() }.next.get();
            if let Some(next) = rest {
                // SAFETY: as above.
                fetch_link(&unsafe { next.as_ref() }.next);
            }
            // SAFETY: no list has it any more: this one was emptied, and we hold the rest of the chain.
            unsafe { self.place(entry) };
        }
    }

    /// Links an entry into the slot of its tick.
    ///
    /// # Safety
    /// As for [`append`](Self::append).
    unsafe fn place(&self, entry: NonNull<Entry>) {
        // SAFETY: the caller's promise.
        let tick = unsafe { entry.as_ref() }.tick.get();
        let apart = tick ^ self.position.get();
        let level = (apart | (SLOTS as u64 - 1)).ilog2() / BITS;
        let slot = (tick >> (level * BITS)) as usize % SLOTS;
        // SAFETY: the caller's promise.
        unsafe { self.append(level as usize * SLOTS + slot, entry) };
    }

    /// Links an entry in behind the others.
    ///
    /// # Safety
    /// It lives, as rule 1 has it, and no list has it.
    unsafe fn append(&self, list: usize, entry: NonNull<Entry>) {
        let ends = &self.lists[list];
        let last = ends.last.replace(Some(entry));
        match last {
            // SAFETY: linked, so it lives (rule 3).
            Some(last) => unsafe { last.as_ref() }.next.set(Some(entry)),
            None => {
                ends.first.set(Some(entry));
                let occupied = &self.occupied[list / SLOTS];
                occupied.set(occupied.get() | 1 << (list % SLOTS));
            }
        }
        // SAFETY: the caller's promise.
        let entry = unsafe { entry.as_ref() };
        entry.prev.set(last);
        entry.next.set(None);
        entry.list.set(list);
    }

    /// # Safety
    /// It is pending here.
    unsafe fn unlink(&self, entry: NonNull<Entry>) {
        // SAFETY: pending, so it lives (rule 1).
        let entry = unsafe { entry.as_ref() };
        let list = entry.list.replace(NOWHERE);
        let (prev, next) = (entry.prev.get(), entry.next.get());
        let ends = &self.lists[list];
        match prev {
            // SAFETY: a neighbour of what is linked lives (rule 3).
            Some(prev) => unsafe { prev.as_ref() }.next.set(next),
            None => ends.first.set(next),
        }
        match next {
            // SAFETY: a neighbour of what is linked lives (rule 3).
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
        ahead::fetch(entry.as_ptr().cast());
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        debug_assert!(
            self.is_empty() || std::thread::panicking(),
            "{} timers are pending where their wheel ends",
            self.len()
        );
    }
}

#[cfg(test)]
mod tests;
