//! A bounded queue whose slots carry full and empty.
//!
//! After Dmitry Vyukov's bounded MPMC queue (1024cores.net), for any capacity: a position is a lap and an index, and the
//! next one after the last index is the first of the next lap. Each slot has a stamp:
//!
//! 1. stamp `== p`: the slot is empty and the push of position `p` may claim it;
//! 2. stamp `== p + 1`: it holds the value of position `p`, and the pop of `p` may claim it;
//! 3. claiming is a CAS of the shared tail or head from `p` to the next position; until the claimer has stored the next
//!    stamp (`p + 1` after a push, `p` one lap later after a pop) nobody else touches the value;
//! 4. the value travels by Release of the stamp and Acquire of it, never by the head or tail;
//! 5. closing sets the tail's highest bit, so that every later claim fails: what was claimed before is still pushed and popped.
//!
//! ```text
//!   capacity 3, a lap is 4      slot 0   slot 1   slot 2
//!   fresh               stamp     0        1        2
//!   2 pushed                      1 (v)    2 (v)    2       tail 2
//!   1 popped                      4        2 (v)    2       head 1
//!   2 pushed                      5 (v)    2 (v)    3 (v)   tail 5: lap 1, index 1
//! ```

use std::mem::MaybeUninit;

use crate::cache_padded::CachePadded;
use crate::error::CapacityError;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell, spin_loop};

/// In the tail: no claims any more. Positions never get that far.
const CLOSED: usize = 1 << (usize::BITS - 1);

struct Slot<T> {
    stamp: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// The bounded queue of this module. Share it by reference or `Arc`.
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
    /// What a position grows by in a lap: a power of two, more than the capacity.
    lap: usize,
}

// SAFETY: rule 3 gives each value one owner at a time, and rule 4 orders the hand-over, so sharing the ring
// moves values between threads and never shares them: `T: Send` suffices.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// A ring for `capacity` values.
    ///
    /// # Errors
    /// 0, more than 2^30, and what there is no memory for.
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        CapacityError::check(capacity)?;
        let mut places = Vec::new();
        if places.try_reserve_exact(capacity).is_err() {
            return Err(CapacityError(capacity));
        }
        places.extend((0..capacity).map(|i| Slot {
            stamp: AtomicUsize::new(i),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }));
        Ok(Self {
            tail: CachePadded::new(AtomicUsize::new(0)),
            head: CachePadded::new(AtomicUsize::new(0)),
            slots: places.into_boxed_slice(),
            // More than the capacity: else, with one slot, "full" and "empty for the next lap" would be the same stamp.
            lap: (capacity + 1).next_power_of_two(),
        })
    }

    /// How many values fit.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many values are in it, or were a moment ago.
    pub fn len(&self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed) & !CLOSED;
        self.count(tail)
            .saturating_sub(self.count(head))
            .min(self.capacity())
    }

    /// Refuses every later push.
    pub fn close(&self) {
        self.tail.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Whether pushes are refused.
    pub fn is_closed(&self) -> bool {
        self.tail.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether every push that was accepted was popped, those that are still under way included.
    pub fn is_drained(&self) -> bool {
        let tail = self.tail.load(Ordering::Acquire) & !CLOSED;
        self.head.load(Ordering::Acquire) == tail
    }

    /// How many values were popped since the beginning.
    pub(crate) fn popped(&self) -> usize {
        self.count(self.head.load(Ordering::Relaxed))
    }

    /// How many pushes were accepted since the beginning.
    pub(crate) fn pushed(&self) -> usize {
        self.count(self.tail.load(Ordering::Relaxed) & !CLOSED)
    }

    /// Whether a push would find room.
    pub(crate) fn has_capacity(&self) -> bool {
        let tail = self.tail.load(Ordering::Relaxed);
        let stamp = self.slot(tail & !CLOSED).stamp.load(Ordering::Acquire);
        stamp == tail || self.tail.load(Ordering::Relaxed) != tail
    }

    /// Whether a pop would find nothing. A push that is under way may not be seen yet, one that returned
    /// before (happens-before) is.
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        let stamp = self.slot(head).stamp.load(Ordering::Acquire);
        stamp != head.wrapping_add(1) && self.head.load(Ordering::Relaxed) == head
    }

    /// How many positions lie before this one.
    fn count(&self, position: usize) -> usize {
        position / self.lap * self.slots.len() + position % self.lap
    }

    #[inline(always)]
    fn slot(&self, position: usize) -> &Slot<T> {
        let index = position & (self.lap - 1);
        debug_assert!(index < self.slots.len());
        // SAFETY: positions come from the head and the tail, which `after` keeps below the capacity in each lap.
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

    /// Puts a value in.
    ///
    /// # Errors
    /// The value, if the ring is full or closed.
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
                            // SAFETY: rule 3: this push claimed the position, so nobody else
                            // touches the value until the stamp is stored below.
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

    /// Takes the oldest value out; `None` if there is none.
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
                            // SAFETY: rules 2 and 3: the stamp said that the value is there, and
                            // this pop claimed it.
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

/// Many at once.
impl<T> Ring<T> {
    /// Puts in as many values, from the front, as there is room for; how many. They follow each other in the ring.
    pub(crate) fn push_some(&self, values: &mut Vec<T>) -> usize {
        let mut position = self.tail.load(Ordering::Relaxed);
        let (count, next) = loop {
            let (count, next) = self.run(position, 0, values.len());
            if position & CLOSED != 0 || count == 0 {
                // Not even one: `push` knows whether that is for now.
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
                // SAFETY: rule 3: the CAS claimed all of these positions.
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

    /// Takes out what is there, `most` at most; how many. They followed each other in the ring.
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
                // SAFETY: rules 2 and 3: the stamps said that the values are there, and the CAS claimed them.
                unsafe { (*cell).assume_init_read() }
            });
            slot.stamp
                .store(position.wrapping_add(self.lap), Ordering::Release);
            position = self.after(position);
            take(value);
        }
        count
    }

    /// How many slots from `position` on have the stamp `position + ahead` of their own, `most` at most and no more than a lap, and the
    /// position after them.
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
