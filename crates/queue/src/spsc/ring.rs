//! A ring with one writer and one reader.
//!
//! A **position** counts the values before it since the ring was created. It does not wrap.
//!
//! 1. The writer fills slots from `tail` on, and then stores the new `tail` (Release): after each
//!    value, or once for several. The reader loads it (Acquire).
//! 2. The reader moves values out of slots from `head` on, and then stores the new `head` (Release).
//!    The writer loads it (Acquire). The slots of the positions from `head` to `tail` are the
//!    reader's. All others are the writer's.
//! 3. A side loads the other side's position only when it has reached its own **limit**: the
//!    position up to which it may go without a check. A limit never exceeds the end of the lap.
//! 4. A side has the address of the slot of position 0, as if the ring had no end: the slot of a
//!    position is that many slots behind it. At the end of a lap, the side moves this address back
//!    by one capacity. So a value needs neither a division nor a power of two.
//!
//! ```text
//!   capacity 4     slot 0   1   2   3
//!   lap 1               .   b   c   .      head 5, tail 7; writer's limit 8, the end of the lap
//!        ^ first of both sides: slot 0 - 4
//! ```
//!
//! `docs/internals/queue.md` compares this ring with one that has a stamp in each cache line.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::mem::MaybeUninit;

use crate::cache_padded::CachePadded;
use crate::error::CapacityError;
use crate::prefetch::{self, LINE};
use crate::sync::{AtomicU64, Ordering, UnsafeCell};

/// How far ahead a side prefetches, in bytes. At 5 ns per value, a line of eight numbers arrives from
/// a distant processor in time.
const PREFETCH_BYTES: usize = 512;

pub(super) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The part of the ring that both sides share.
pub(crate) struct Ring<T> {
    pub(super) writer_state: CachePadded<WriterState<T>>,
    /// The number of values that have been popped. Only the reader stores it.
    pub(super) head: CachePadded<AtomicU64>,
}

pub(super) struct WriterState<T> {
    /// The number of values that have been pushed. Only the writer stores it.
    pub(super) tail: AtomicU64,
    /// Owned. A slot is accessed by its side only (rule 2).
    slots: *mut Slot<T>,
    capacity: usize,
}

/// The private part of one side.
pub(crate) struct Side<T> {
    /// A copy of the side's own position. Reading it in the shared part would fetch the cache line
    /// again each time that the other side has looked at it.
    pub(super) position: Cell<u64>,
    /// Rule 4.
    first: Cell<*mut Slot<T>>,
    /// Rule 3.
    limit: Cell<u64>,
    pub(super) lap_end: Cell<u64>,
    capacity: usize,
}

// SAFETY: rules 1 and 2 give each value one owner at a time and order the hand-over.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above. The methods that only one side may call are unsafe.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: the pointer refers to the ring's slots. Moving it moves that side to another thread.
unsafe impl<T: Send> Send for Side<T> {}

impl<T> Side<T> {
    /// How many values have one prefetch: a power of two that fits in a cache line, if any does.
    const PER_PREFETCH: usize = match LINE.checked_div(size_of::<T>()) {
        Some(fit) if fit > 0 => 1 << fit.ilog2(),
        _ => 1,
    };

    /// How many slots ahead a side prefetches.
    const PREFETCH_SLOTS: usize = match PREFETCH_BYTES.checked_div(size_of::<T>()) {
        Some(slots) if slots > 0 => slots,
        _ => 1,
    };

    /// Calls `prefetch`, once for each line of values, for a later slot that this side may already
    /// use. Other slots may be in use by the other side, or are outside of the ring.
    #[inline(always)]
    fn prefetch(&self, prefetch: impl FnOnce(*const u8)) {
        let is_due = (self.position.get() as usize).is_multiple_of(Self::PER_PREFETCH);
        if is_due && self.known() > Self::PREFETCH_SLOTS {
            prefetch(self.slot().wrapping_add(Self::PREFETCH_SLOTS).cast());
        }
    }

    /// The slot of the side's position.
    #[inline(always)]
    pub(super) fn slot(&self) -> *mut Slot<T> {
        self.first.get().wrapping_add(self.position.get() as usize)
    }

    /// Starts the next lap at the end of this one.
    pub(super) fn start_lap(&self) {
        if self.position == self.lap_end {
            self.first.set(self.first.get().wrapping_sub(self.capacity));
            self.lap_end.set(self.position.get() + self.capacity as u64);
        }
    }

    /// How many slots there are up to the limit.
    #[inline(always)]
    pub(super) fn known(&self) -> usize {
        (self.limit.get() - self.position.get()) as usize
    }

    /// Whether the position is below the limit.
    #[inline(always)]
    fn is_below_limit(&self) -> bool {
        self.position != self.limit
    }

    /// Raises the limit, at most to the end of the lap. Returns whether the position is below it.
    #[inline(always)]
    fn raise_limit(&self, limit: u64) -> bool {
        self.limit.set(limit.min(self.lap_end.get()));
        self.is_below_limit()
    }

    /// Advances the position and publishes it (rules 1 and 2).
    #[inline(always)]
    pub(super) fn advance(&self, count: usize, shared: &AtomicU64) {
        let next = self.position.get() + count as u64;
        self.position.set(next);
        shared.store(next, Ordering::Release);
    }
}

impl<T> Ring<T> {
    /// Creates a ring for `capacity` values, and its two sides: the writer's and the reader's.
    ///
    /// # Errors
    /// The capacity is 0 or more than 2^30, or there is not enough memory for it.
    pub(crate) fn new(capacity: usize) -> Result<(Self, Side<T>, Side<T>), CapacityError> {
        CapacityError::check(capacity)?;
        let slots = Self::allocate(capacity).ok_or(CapacityError(capacity))?;
        let side = |limit| Side {
            position: Cell::new(0),
            first: Cell::new(slots),
            limit: Cell::new(limit),
            lap_end: Cell::new(capacity as u64),
            capacity,
        };
        let ring = Self {
            writer_state: CachePadded::new(WriterState {
                tail: AtomicU64::new(0),
                slots,
                capacity,
            }),
            head: CachePadded::new(AtomicU64::new(0)),
        };
        Ok((ring, side(capacity as u64), side(0)))
    }

    /// The layout of the slots. They start at a cache line, so that a batch of whole lines does not
    /// share its first and last line with other batches.
    fn layout(capacity: usize) -> Option<Layout> {
        let slots = Layout::array::<Slot<T>>(capacity).ok()?;
        // Values without a size still need an address to free.
        Layout::from_size_align(slots.size().max(1), slots.align().max(LINE)).ok()
    }

    fn allocate(capacity: usize) -> Option<*mut Slot<T>> {
        let layout = Self::layout(capacity)?;
        // SAFETY: the layout is not empty.
        let slots = unsafe { alloc(layout) }.cast::<Slot<T>>();
        if slots.is_null() {
            return None;
        }
        for index in 0..capacity {
            // SAFETY: the slot is in the allocation.
            unsafe {
                slots
                    .add(index)
                    .write(UnsafeCell::new(MaybeUninit::uninit()))
            };
        }
        Some(slots)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.writer_state.capacity
    }

    /// The number of values that have been pushed since the beginning.
    pub(crate) fn pushed(&self) -> u64 {
        self.writer_state.tail.load(Ordering::Relaxed)
    }

    /// The number of values that have been popped since the beginning.
    pub(crate) fn popped(&self) -> u64 {
        self.head.load(Ordering::Relaxed)
    }

    /// The number of values in the ring. It may lag behind other threads.
    pub(crate) fn len(&self) -> usize {
        // The reader may advance between the two loads, so the difference saturates.
        let pushed = self.pushed();
        pushed.saturating_sub(self.popped()) as usize
    }

    /// Whether the writer knows of a free slot.
    #[inline(always)]
    pub(crate) fn has_granted(writer: &Side<T>) -> bool {
        writer.is_below_limit()
    }

    /// Whether there is a free slot.
    pub(crate) fn has_capacity(&self, writer: &Side<T>) -> bool {
        writer.is_below_limit() || self.grant(writer)
    }

    /// Loads the reader's position (rule 3). Returns whether there is a free slot.
    #[inline(always)]
    pub(super) fn grant(&self, writer: &Side<T>) -> bool {
        writer.start_lap();
        let head = self.head.load(Ordering::Acquire);
        writer.raise_limit(head + writer.capacity as u64)
    }

    /// Pushes a value.
    ///
    /// # Safety
    /// `writer` belongs to this ring, the caller is its only user, and [`Ring::has_granted`] or
    /// [`Ring::has_capacity`] has returned true.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, writer: &Side<T>, value: T) {
        writer.prefetch(prefetch::line_for_write);
        // SAFETY: rule 2: the slot is free.
        unsafe { (*writer.slot()).with_mut(|slot| (*slot).write(value)) };
        writer.advance(1, &self.writer_state.tail);
    }

    /// Whether there is a value. It may miss one at the end of a lap.
    #[inline(always)]
    pub(crate) fn has_visible_value(&self, reader: &Side<T>) -> bool {
        reader.is_below_limit() || self.find(reader)
    }

    /// Whether there is a value.
    pub(crate) fn has_value(&self, reader: &Side<T>) -> bool {
        reader.start_lap();
        self.has_visible_value(reader)
    }

    /// Loads the writer's position (rule 3). Returns whether there is a value.
    #[inline(always)]
    pub(super) fn find(&self, reader: &Side<T>) -> bool {
        reader.raise_limit(self.writer_state.tail.load(Ordering::Acquire))
    }

    /// Pops a value.
    ///
    /// # Safety
    /// `reader` belongs to this ring, the caller is its only user, and [`Ring::has_visible_value`]
    /// or [`Ring::has_value`] has returned true.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, reader: &Side<T>) -> T {
        reader.prefetch(prefetch::line);
        // SAFETY: rule 2: the slot is filled.
        let value = unsafe { (*reader.slot()).with_mut(|slot| (*slot).assume_init_read()) };
        reader.advance(1, &self.head);
        value
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (head, tail) = (self.popped(), self.pushed());
        let state = &*self.writer_state;
        for position in head..tail {
            let index = (position % state.capacity as u64) as usize;
            // SAFETY: the slot is filled, and nobody else has the ring.
            unsafe { (*state.slots.add(index)).with_mut(|slot| (*slot).assume_init_drop()) };
        }
        let layout = Self::layout(state.capacity).expect("the slots have this layout");
        // SAFETY: `allocate` created the slots, and the sides are not used any more.
        unsafe {
            #[cfg(loom)]
            for index in 0..state.capacity {
                state.slots.add(index).drop_in_place();
            }
            dealloc(state.slots.cast(), layout);
        }
    }
}
