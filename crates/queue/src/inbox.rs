//! An unbounded stack that its one reader takes whole, and reads oldest first.
//!
//! 1. `head` points to the newest node, or is null.
//! 2. A writer links its node to the head it saw and swings the head by CAS (Release).
//! 3. The reader swaps the head for null (Acquire): all that it got is its own, and no node is ever read by two.
//!    So there is no ABA: nobody but the owner of a whole chain follows `next`.
//!
//! It carries wake-ups, of which each actor has at most one under way: what is unbounded here is
//! bounded by the number of actors.

use std::ptr;

use crate::sync::{AtomicPtr, Ordering};

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// The stack of this module.
///
/// ```
/// let inbox = thalweg_queue::Inbox::new();
/// inbox.push(1);
/// inbox.push(2);
/// assert_eq!(inbox.take_all().collect::<Vec<_>>(), [1, 2]);
/// assert!(inbox.is_empty());
/// ```
#[derive(Debug)]
pub struct Inbox<T> {
    head: AtomicPtr<Node<T>>,
}

// SAFETY: rule 3: a value has one owner at a time, handed over by Release and Acquire of the head.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Inbox<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Whether there was nothing in it a moment ago.
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Puts a value in. Allocates a node.
    pub fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node {
            value,
            next: ptr::null_mut(),
        }));
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: rule 2: the node is this writer's until the CAS below succeeds.
            unsafe { (*node).next = head };
            match self
                .head
                .compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes out all that is there, oldest first.
    pub fn take_all(&self) -> TakeAll<T> {
        let mut newest = ptr::null_mut();
        if !self.is_empty() {
            newest = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        }
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: rule 3: the whole chain is ours, and each node is alive until it is
            // boxed again in `TakeAll::next`.
            let next = unsafe { std::mem::replace(&mut (*newest).next, oldest) };
            oldest = newest;
            newest = next;
        }
        TakeAll { oldest }
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// What [`Inbox::take_all`] took; dropping it drops the rest.
#[derive(Debug)]
pub struct TakeAll<T> {
    oldest: *mut Node<T>,
}

// SAFETY: it owns the chain it points to.
unsafe impl<T: Send> Send for TakeAll<T> {}

impl<T> Iterator for TakeAll<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.oldest.is_null() {
            return None;
        }
        // SAFETY: rule 3: the chain is ours; each node came from `Box::into_raw` in `push` and is
        // unlinked here before it is freed.
        let node = unsafe { Box::from_raw(self.oldest) };
        self.oldest = node.next;
        Some(node.value)
    }
}

impl<T> Drop for TakeAll<T> {
    fn drop(&mut self) {
        for value in self.by_ref() {
            drop(value);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Inbox;
    use std::sync::Arc;

    #[test]
    fn each_writers_values_come_in_order_and_once() {
        const EACH: u32 = if cfg!(miri) { 30 } else { 10_000 };
        let inbox = Inbox::new();
        let mut last = [None; 3];
        let mut seen = 0;
        std::thread::scope(|scope| {
            for w in 0..3usize {
                let inbox = &inbox;
                scope.spawn(move || (0..EACH).for_each(|i| inbox.push((w, i))));
            }
            while seen < 3 * EACH {
                for (w, i) in inbox.take_all() {
                    assert!(last[w] < Some(i));
                    last[w] = Some(i);
                    seen += 1;
                }
                std::thread::yield_now();
            }
        });
        assert!(inbox.is_empty());
    }

    #[test]
    fn what_nobody_took_is_dropped() {
        let token = Arc::new(());
        let inbox = Inbox::new();
        inbox.push(Arc::clone(&token));
        inbox.push(Arc::clone(&token));
        let mut taken = inbox.take_all();
        drop(taken.next());
        drop(taken);
        inbox.push(Arc::clone(&token));
        drop(inbox);
        assert_eq!(Arc::strong_count(&token), 1);
    }
}
