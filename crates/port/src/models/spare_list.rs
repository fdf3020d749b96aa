//! Loom models of the list of values for reuse.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg_queue::explore::model;

use crate::mailbox::Linked;
use crate::spare_list::SpareList;

struct Value(Box<Node>);

struct Node {
    /// Not a loom type: the list orders its accesses, as those of `used`.
    next: AtomicPtr<Node>,
    used: UnsafeCell<u32>,
    dropped: std::sync::Arc<AtomicUsize>,
}

// SAFETY: the list passes the node from thread to thread, which loom checks for `used`.
unsafe impl Send for Value {}

impl Value {
    fn uses(&self) -> u32 {
        // SAFETY: the caller owns the value.
        self.0.used.with_mut(|used| unsafe {
            *used += 1;
            *used
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Relaxed);
    }
}

// SAFETY: the box becomes a pointer and a box again.
unsafe impl Linked for Value {
    type Node = Node;

    fn into_node(self) -> *mut Node {
        Box::into_raw(self.0)
    }

    unsafe fn from_node(node: *mut Node) -> Self {
        // SAFETY: the caller's contract.
        Self(unsafe { Box::from_raw(node) })
    }

    fn next(node: &Node) -> *mut Node {
        node.next.load(Relaxed)
    }

    fn set_next(node: &Node, next: *mut Node) {
        node.next.store(next, Relaxed);
    }
}

/// The list, and whether its owner is closed.
#[derive(Default)]
struct Shared {
    list: SpareList<Value>,
    is_closed: AtomicBool,
    /// Not a loom type: read when all threads have ended.
    dropped: std::sync::Arc<AtomicUsize>,
}

// SAFETY: as for `Value`.
unsafe impl Send for Shared {}
// SAFETY: as for `Value`.
unsafe impl Sync for Shared {}

impl Shared {
    fn value(&self) -> Value {
        Value(Box::new(Node {
            next: AtomicPtr::default(),
            used: UnsafeCell::new(0),
            dropped: self.dropped.clone(),
        }))
    }

    fn put(&self, value: Value) {
        // A refused value is dropped.
        let _ = self
            .list
            .put(value, 8, || self.is_closed.load(Ordering::Acquire));
    }

    fn take_and_put(&self) {
        let value = self.list.take().unwrap_or_else(|| self.value());
        value.uses();
        self.put(value);
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.list.free_all();
    }
}

#[test]
fn values_that_two_threads_use_are_kept() {
    model(|| {
        let shared = Arc::new(Shared::default());
        shared.put(shared.value());
        let other = thread::spawn({
            let shared = shared.clone();
            move || shared.take_and_put()
        });
        shared.take_and_put();
        other.join().unwrap();
        let kept: Vec<_> = std::iter::from_fn(|| shared.list.take()).collect();
        let uses: u32 = kept.iter().map(|value| value.uses() - 1).sum();
        assert_eq!(uses, 2);
        assert!((1..=2).contains(&kept.len()));
        assert_eq!(shared.dropped.load(Relaxed), 0);
    });
}

#[test]
fn value_that_is_put_during_a_close_is_dropped_once() {
    model(|| {
        let shared = Arc::new(Shared::default());
        shared.put(shared.value());
        let closer = thread::spawn({
            let shared = shared.clone();
            move || shared.close()
        });
        let taken = shared.list.take();
        let made = if taken.is_some() { 1 } else { 2 };
        let value = taken.unwrap_or_else(|| shared.value());
        value.uses();
        shared.put(value);
        closer.join().unwrap();
        assert!(shared.list.take().is_none());
        assert_eq!(shared.dropped.load(Relaxed), made);
    });
}
