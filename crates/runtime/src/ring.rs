//! A worker's unstarted tasks, which other workers may steal: a ring of fixed size with one writer.
//!
//! 1. `head <= tail <= head + SIZE`, as wrapping numbers. Only the owner writes `tail`, and it
//!    writes a slot before it moves `tail` past that slot (Release).
//! 2. The thread that moves `head` forward by CAS owns the tasks that it passed. A thief copies the
//!    tasks before the CAS. If the CAS succeeds, no other thread had taken them, and the owner
//!    cannot have overwritten them, because it writes only while `head` is less than SIZE behind.
//! 3. A thief takes half, rounded up, into its own ring, which is empty at that time. If the ring is full, its
//!    owner takes half in the same way, for the injector.
//!
//! The algorithm is that of the run queues of Go's scheduler (`runqgrab` in `proc.go`) and of
//! tokio, without the slot that only its owner sees.

use crate::shim::{AtomicPtr, AtomicU32, Ordering};

/// The size in Go and tokio. 4 under loom, where each slot multiplies the number of states.
pub(crate) const SIZE: usize = if cfg!(loom) { 4 } else { 256 };

#[derive(Debug)]
pub(crate) struct Ring<T> {
    head: AtomicU32,
    tail: AtomicU32,
    slots: [AtomicPtr<T>; SIZE],
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    pub(crate) fn len(&self) -> usize {
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        // `head` may be older than `tail`, because it was loaded first. The difference can
        // therefore exceed SIZE, but it is never negative.
        (tail.wrapping_sub(head) as usize).min(SIZE)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, at: u32) -> &AtomicPtr<T> {
        &self.slots[at as usize % SIZE]
    }

    /// Appends a task. Called by the owner. Returns the task if the ring is full.
    pub(crate) fn push(&self, task: *mut T) -> Result<(), *mut T> {
        let tail = self.tail.load(Ordering::Relaxed);
        let head = self.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) as usize >= SIZE {
            return Err(task);
        }
        self.slot(tail).store(task, Ordering::Relaxed);
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the oldest task. Called by the owner.
    pub(crate) fn pop(&self) -> Option<*mut T> {
        let tail = self.tail.load(Ordering::Relaxed);
        let mut head = self.head.load(Ordering::Acquire);
        while head != tail {
            let task = self.slot(head).load(Ordering::Relaxed);
            match self.head.compare_exchange_weak(
                head,
                head.wrapping_add(1),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(task),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes half of the tasks, but no more than `max`. Returns one of them and puts the rest into
    /// `into`. Called by the owner of `into`, which is empty.
    pub(crate) fn steal(&self, into: &Self, max: u32) -> Option<*mut T> {
        let to = into.tail.load(Ordering::Relaxed);
        let mut first = None;
        let count = self.take_half(max, |nth, task| match nth.checked_sub(1) {
            None => first = Some(task),
            Some(after) => into
                .slot(to.wrapping_add(after))
                .store(task, Ordering::Relaxed),
        });
        if count > 1 {
            into.tail
                .store(to.wrapping_add(count - 1), Ordering::Release);
        }
        first.filter(|_| count > 0)
    }

    /// Takes half of the tasks. Called by the owner.
    pub(crate) fn pop_half(&self) -> impl Iterator<Item = *mut T> + use<T> {
        let mut tasks = [std::ptr::null_mut(); SIZE / 2];
        let count = self.take_half(u32::MAX, |nth, task| tasks[nth as usize] = task);
        tasks.into_iter().take(count as usize)
    }

    /// Takes the older half of the tasks, rounded up, but no more than `max`, and returns their number.
    /// Before that, calls `copy` with the index and the address of each; if they are then gone, calls it
    /// again for others.
    fn take_half(&self, max: u32, mut copy: impl FnMut(u32, *mut T)) -> u32 {
        loop {
            let head = self.head.load(Ordering::Acquire);
            let tail = self.tail.load(Ordering::Acquire);
            let there = tail.wrapping_sub(head);
            if there == 0 {
                return 0;
            }
            if there as usize > SIZE {
                // `head` moved between the two loads.
                continue;
            }
            let count = (there - there / 2).min(max);
            for nth in 0..count {
                copy(
                    nth,
                    self.slot(head.wrapping_add(nth)).load(Ordering::Relaxed),
                );
            }
            let taken = self.head.compare_exchange(
                head,
                head.wrapping_add(count),
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                return count;
            }
        }
    }
}
