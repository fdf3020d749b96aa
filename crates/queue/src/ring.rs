//! A bounded queue whose slots record whether they are full or empty.
//!
//! It is based on Dmitry Vyukov's bounded MPMC queue (1024cores.net), for any capacity.

// A position consists of a lap and an index. The position after the last index is the first index
// of the next lap. Each slot has a stamp:
//
// 1. stamp `== p`: the slot is empty, and the push of position `p` may claim it.
// 2. stamp `== p + 1`: the slot has the value of position `p`, and the pop of `p` may claim it.
// 3. A push or pop claims a position by a CAS of the shared tail or head from `p` to the next
//    position. Until it has stored the next stamp (`p + 1` after a push, `p` one lap later after a
//    pop), nobody else accesses the value.
// 4. The stamp hands over the value (Release and Acquire), never the head or tail.
// 5. Closing sets the highest bit of the tail, so that every later claim fails. Positions that were
//    claimed before are still pushed and popped.
//
// ```text
//   capacity 3, a lap is 4      slot 0   slot 1   slot 2
//   fresh               stamp     0        1        2
//   2 pushed                      1 (v)    2 (v)    2       tail 2
//   1 popped                      4        2 (v)    2       head 1
//   2 pushed                      5 (v)    2 (v)    3 (v)   tail 5: lap 1, index 1
// ```

use std::mem::MaybeUninit;

use crate::cache_padded::CachePadded;
use crate::error::CapacityError;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell, spin_loop};

/// In the tail: no further claims. Positions never become this large.
const CLOSED: usize = 1 << (usize::BITS - 1);

struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A bounded queue for any number of threads. Share it by reference or `Arc`.
///
/// ```
/// let ring = thalweg_queue::Ring::new(2).expect("2 is a capacity");
/// assert_eq!(ring.capacity(), 2);
/// ring.push('a').expect("room for two");
/// ring.push('b').expect("room for two");
/// assert_eq!(ring.push('c'), Err('c'));
/// assert_eq!(ring.pop(), Some('a'));
/// assert_eq!(ring.len(), 1);
/// ```
pub struct Ring<T> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
    /// The distance between the same index of two laps: a power of two that exceeds the capacity.
    lap: usize,
}

// SAFETY: rule 3 gives each value one owner at a time, and rule 4 orders the hand-over. Sharing the
// ring moves values between threads and never shares them, so `T: Send` suffices.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Creates a ring for `capacity` values.
    ///
    /// # Errors
    /// The capacity is 0 or more than 2^30, or there is not enough memory for it.
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        CapacityError::check(capacity)?;
        let mut slots = Vec::new();
        if slots.try_reserve_exact(capacity).is_err() {
            return Err(CapacityError(capacity));
        }
        slots.extend((0..capacity).map(|i| Slot {
            stamp: AtomicUsize::new(i),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }));
        Ok(Self {
            tail: CachePadded::new(AtomicUsize::new(0)),
            head: CachePadded::new(AtomicUsize::new(0)),
            slots: slots.into_boxed_slice(),
            // It must exceed the capacity. Otherwise, with one slot, "full" and "empty for the next
            // lap" would be the same stamp.
            lap: (capacity + 1).next_power_of_two(),
        })
    }

    /// The number of values that fit.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The number of values in the ring. It may lag behind other threads.
    pub fn len(&self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) & !CLOSED;
        self.count(tail)
            .saturating_sub(self.count(head))
            .min(self.capacity())
    }

    /// Closes the ring: every later push fails.
    pub fn close(&self) {
        self.tail.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Whether the ring is closed.
    pub fn is_closed(&self) -> bool {
        self.tail.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether every accepted push has been popped, including pushes in progress.
    pub fn is_drained(&self) -> bool {
        let tail = self.tail.load(Ordering::Acquire) & !CLOSED;
        self.head.load(Ordering::Acquire) == tail
    }

    /// The number of values popped since the beginning.
    pub(crate) fn popped(&self) -> usize {
        self.count(self.head.load(Ordering::Relaxed))
    }

    /// The number of pushes accepted since the beginning.
    pub(crate) fn pushed(&self) -> usize {
        self.count(self.tail.load(Ordering::Relaxed) & !CLOSED)
    }

    /// Whether a push would find a free slot.
    pub(crate) fn has_capacity(&self) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        let stamp = self.slot(tail & !CLOSED).stamp.load(Ordering::Acquire);
        stamp == tail || self.tail.load(Ordering::Relaxed) != tail
    }

    /// Whether a pop would find nothing. It may miss a push in progress, but not a push that
    /// returned before this call (happens-before).
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        let stamp = self.slot(head).stamp.load(Ordering::Acquire);
        stamp != head.wrapping_add(1) && self.head.load(Ordering::Relaxed) == head
    }

    /// The number of positions before this one.
    fn count(&self, position: usize) -> usize {
        position / self.lap * self.slots.len() + position % self.lap
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot<T> {
        let index = position & (self.lap - 1);
        debug_assert!(index < self.slots.len());
        // SAFETY: positions come from the head and the tail. `after` keeps their index below the
        // capacity.
        unsafe { self.slots.get_unchecked(index) }
    }

    #[inline(always)]
    fn after(&self, position: usize) -> usize {
        if (position & (self.lap - 1)) + 1 < self.slots.len() {
            position + 1
        } else {
            (position & !(self.lap - 1)).wrapping_add(self.lap)
        }
    }

    /// Pushes a value.
    ///
    /// # Errors
    /// Returns the value if the ring is full or closed.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut position = self.tail.load(Ordering::Relaxed);
        loop {
            if position & CLOSED != 0 {
                return Err(value);
            }
            let slot = self.slot(position);
            let stamp = slot.stamp.load(Ordering::Acquire);
            let ahead = stamp.wrapping_sub(position) as isize;
            if ahead == 0 {
                match self.tail.compare_exchange_weak(
                    position,
                    self.after(position),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        slot.value.with_mut(|cell| {
                            // SAFETY: rule 3: this push has claimed the position, so nobody else
                            // accesses the value until the stamp is stored below.
                            unsafe { (*cell).write(value) };
                        });
                        slot.stamp
                            .store(position.wrapping_add(1), Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => position = now,
                }
            } else if ahead < 0 {
                return Err(value);
            } else {
                spin_loop();
                position = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// Pops the oldest value. `None` if the ring is empty.
    pub fn pop(&self) -> Option<T> {
        let mut position = self.head.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(position);
            let stamp = slot.stamp.load(Ordering::Acquire);
            let ahead = stamp.wrapping_sub(position.wrapping_add(1)) as isize;
            if ahead == 0 {
                match self.head.compare_exchange_weak(
                    position,
                    self.after(position),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        let value = slot.value.with_mut(|cell| {
                            // SAFETY: rules 2 and 3: the stamp shows that the value is there, and
                            // this pop has claimed it.
                            unsafe { (*cell).assume_init_read() }
                        });
                        slot.stamp
                            .store(position.wrapping_add(self.lap), Ordering::Release);
                        return Some(value);
                    }
                    Err(now) => position = now,
                }
            } else if ahead < 0 {
                return None;
            } else {
                spin_loop();
                position = self.head.load(Ordering::Relaxed);
            }
        }
    }
}

/// Batch operations.
impl<T> Ring<T> {
    /// Pushes as many values as fit, from the front, at consecutive positions. Returns their
    /// number.
    pub(crate) fn push_some(&self, values: &mut Vec<T>) -> usize {
        let mut position = self.tail.load(Ordering::Relaxed);
        let (count, next) = loop {
            let (count, next) = self.run(position, 0, values.len());
            if position & CLOSED != 0 || count == 0 {
                // No slot is free. `push` knows whether this is temporary.
                return self.push_each(values);
            }
            match self.tail.compare_exchange_weak(
                position,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break (count, next),
                Err(now) => position = now,
            }
        };
        for value in values.drain(..count) {
            let slot = self.slot(position);
            slot.value.with_mut(|cell| {
                // SAFETY: rule 3: the CAS has claimed all of these positions.
                unsafe { (*cell).write(value) };
            });
            slot.stamp
                .store(position.wrapping_add(1), Ordering::Release);
            position = self.after(position);
        }
        debug_assert_eq!(position, next);
        count
    }

    fn push_each(&self, values: &mut Vec<T>) -> usize {
        if values.is_empty() {
            return 0;
        }
        match self.push(values.remove(0)) {
            Ok(()) => 1,
            Err(value) => {
                values.insert(0, value);
                0
            }
        }
    }

    /// Pops at most `most` values from consecutive positions. Returns their number.
    pub(crate) fn pop_some(&self, most: usize, mut take: impl FnMut(T)) -> usize {
        let mut position = self.head.load(Ordering::Relaxed);
        let count = loop {
            let (count, next) = self.run(position, 1, most);
            if count == 0 {
                return match self.pop() {
                    Some(value) => {
                        take(value);
                        1
                    }
                    None => 0,
                };
            }
            match self.head.compare_exchange_weak(
                position,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break count,
                Err(now) => position = now,
            }
        };
        for _ in 0..count {
            let slot = self.slot(position);
            let value = slot.value.with_mut(|cell| {
                // SAFETY: rules 2 and 3: the stamps show that the values are there, and the CAS has
                // claimed them.
                unsafe { (*cell).assume_init_read() }
            });
            slot.stamp
                .store(position.wrapping_add(self.lap), Ordering::Release);
            position = self.after(position);
            take(value);
        }
        count
    }

    /// Counts the slots from `position` on whose stamp is their position plus `ahead`, at most
    /// `most` and at most one lap. Returns the count and the position after them.
    fn run(&self, mut position: usize, ahead: usize, most: usize) -> (usize, usize) {
        let most = most.min(self.capacity());
        let mut count = 0;
        while count < most {
            let stamp = self.slot(position & !CLOSED).stamp.load(Ordering::Acquire);
            if stamp != position.wrapping_add(ahead) {
                break;
            }
            position = self.after(position);
            count += 1;
        }
        (count, position)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T> std::fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Ring;
    use std::sync::Arc;

    #[test]
    fn a_capacity_of_zero_or_beyond_memory_is_refused() {
        assert!(Ring::<u8>::new(0).is_err());
        assert!(Ring::<u8>::new((1 << 30) + 1).is_err());
    }

    #[test]
    fn what_is_left_inside_is_dropped_once() {
        let token = Arc::new(());
        let ring = Ring::new(4).unwrap();
        for _ in 0..3 {
            ring.push(Arc::clone(&token)).unwrap();
        }
        drop(ring.pop());
        drop(ring);
        assert_eq!(Arc::strong_count(&token), 1);
    }

    #[test]
    fn it_wraps_many_times_and_keeps_the_order() {
        let ring = Ring::new(4).unwrap();
        let mut next = 0;
        for i in 0..1_000u32 {
            while ring.push(i).is_err() {
                assert_eq!(ring.pop(), Some(next));
                next += 1;
            }
        }
        while let Some(value) = ring.pop() {
            assert_eq!(value, next);
            next += 1;
        }
        assert_eq!(next, 1_000);
        assert!(ring.is_empty());
    }

    #[test]
    fn four_writers_and_four_readers_lose_and_double_nothing() {
        const EACH: usize = if cfg!(miri) { 50 } else { 20_000 };
        let ring = Ring::new(64).unwrap();
        let sum = std::sync::atomic::AtomicUsize::new(0);
        let taken = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for w in 0..4 {
                let ring = &ring;
                scope.spawn(move || {
                    for i in 0..EACH {
                        let mut value = w * EACH + i;
                        while let Err(back) = ring.push(value) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            for _ in 0..4 {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::Relaxed;
                    while taken.load(Relaxed) < 4 * EACH {
                        match ring.pop() {
                            Some(value) => {
                                sum.fetch_add(value, Relaxed);
                                taken.fetch_add(1, Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
        });
        let all = 4 * EACH;
        assert_eq!(sum.into_inner(), all * (all - 1) / 2);
    }
}
