//! A bounded queue whose slots carry full and empty.
//!
//! After Dmitry Vyukov's bounded MPMC queue (1024cores.net). Each slot has a stamp; a position
//! `p` counts pushes or pops since the beginning and belongs to slot `p % capacity`:
//!
//! 1. stamp `== p`: the slot is empty and the push of position `p` may claim it;
//! 2. stamp `== p + 1`: it holds the value of position `p`, and the pop of `p` may claim it;
//! 3. claiming is a CAS of the shared tail or head from `p` to `p + 1`; until the claimer has stored the next
//!    stamp (`p + 1` after a push, `p + capacity` after a pop) nobody else touches the value;
//! 4. the value travels by Release of the stamp and Acquire of it, never by the head or tail.
//!
//! ```text
//!   capacity 4        slot 0   slot 1   slot 2   slot 3
//!   fresh      stamp    0        1        2        3
//!   2 pushed            1 (v)    2 (v)    2        3        tail 2
//!   1 popped            4        2 (v)    2        3        head 1
//! ```

use std::mem::MaybeUninit;

use crate::sync::{AtomicUsize, Ordering, Padded, UnsafeCell, spin_loop};

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
    tail: Padded<AtomicUsize>,
    head: Padded<AtomicUsize>,
    slots: Box<[Slot<T>]>,
}

// SAFETY: rule 3 gives each value one owner at a time, and rule 4 orders the hand-over, so sharing the ring
// moves values between threads and never shares them: `T: Send` suffices.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

/// A capacity that no ring can have: 0, or beyond 2^30.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCapacity(pub usize);

impl std::fmt::Display for BadCapacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a queue of {} is not possible: 1 to 2^30", self.0)
    }
}

impl std::error::Error for BadCapacity {}

impl<T> Ring<T> {
    /// A ring for `capacity` values, which is rounded up to a power of two, and to 2 at least.
    ///
    /// # Errors
    /// 0, and more than 2^30.
    pub fn new(capacity: usize) -> Result<Self, BadCapacity> {
        if capacity == 0 || capacity > 1 << 30 {
            return Err(BadCapacity(capacity));
        }
        // With one slot, "full" (stamp p + 1) and "empty for the next lap" (p + capacity) would be
        // the same stamp.
        let capacity = capacity.next_power_of_two().max(2);
        Ok(Self {
            tail: Padded(AtomicUsize::new(0)),
            head: Padded(AtomicUsize::new(0)),
            slots: (0..capacity)
                .map(|i| Slot {
                    stamp: AtomicUsize::new(i),
                    value: UnsafeCell::new(MaybeUninit::uninit()),
                })
                .collect(),
        })
    }

    /// How many values fit.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many values are in it, or were a moment ago.
    pub fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Relaxed);
        let tail = self.tail.0.load(Ordering::Relaxed);
        tail.wrapping_sub(head).min(self.capacity())
    }

    /// Whether a pop would find nothing. A push that is under way may not be seen yet, one that returned
    /// before (happens-before) is.
    pub fn is_empty(&self) -> bool {
        let head = self.head.0.load(Ordering::Relaxed);
        let stamp = self.slot(head).stamp.load(Ordering::Acquire);
        stamp != head.wrapping_add(1) && self.head.0.load(Ordering::Relaxed) == head
    }

    fn slot(&self, position: usize) -> &Slot<T> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Puts a value in.
    ///
    /// # Errors
    /// The value, if the ring is full.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut position = self.tail.0.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(position);
            let stamp = slot.stamp.load(Ordering::Acquire);
            let ahead = stamp.wrapping_sub(position) as isize;
            if ahead == 0 {
                match self.tail.0.compare_exchange_weak(
                    position,
                    position.wrapping_add(1),
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
                position = self.tail.0.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest value out; `None` if there is none.
    pub fn pop(&self) -> Option<T> {
        let mut position = self.head.0.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(position);
            let stamp = slot.stamp.load(Ordering::Acquire);
            let ahead = stamp.wrapping_sub(position.wrapping_add(1)) as isize;
            if ahead == 0 {
                match self.head.0.compare_exchange_weak(
                    position,
                    position.wrapping_add(1),
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
                            .store(position.wrapping_add(self.slots.len()), Ordering::Release);
                        return Some(value);
                    }
                    Err(now) => position = now,
                }
            } else if ahead < 0 {
                return None;
            } else {
                spin_loop();
                position = self.head.0.load(Ordering::Relaxed);
            }
        }
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
