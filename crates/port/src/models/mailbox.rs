//! Loom models of the mailbox. Where a push must schedule a turn, its thread runs the turn itself.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use crate::mailbox::{Found, Linked, List, Mailbox, Unpushed};

struct Item(Box<Node>);

struct Node {
    /// Not a loom type: the mailbox orders its accesses, as those of `number`.
    next: AtomicPtr<Node>,
    number: UnsafeCell<u32>,
}

// SAFETY: the mailbox passes the node from thread to thread, which loom checks for `number`.
unsafe impl Send for Item {}

impl Item {
    fn new(number: u32) -> Self {
        Self(Box::new(Node {
            next: AtomicPtr::default(),
            number: UnsafeCell::new(number),
        }))
    }

    fn number(&self) -> u32 {
        // SAFETY: the caller owns the item.
        self.0.number.with(|number| unsafe { *number })
    }
}

// SAFETY: the box becomes a pointer and a box again.
unsafe impl Linked for Item {
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

struct Shared {
    mailbox: Mailbox<Item>,
    /// What the turns took. Loom finds two turns at the same time.
    served: UnsafeCell<Vec<u32>>,
    request: AtomicBool,
    /// Whether a turn has seen `request`.
    has_attended: UnsafeCell<bool>,
    calls_per_take: usize,
}

// SAFETY: as for `Item`.
unsafe impl Send for Shared {}
// SAFETY: as for `Item`.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(calls_per_take: usize) -> Arc<Self> {
        Arc::new(Self {
            mailbox: Mailbox::new(8),
            served: UnsafeCell::default(),
            request: AtomicBool::new(false),
            has_attended: UnsafeCell::new(false),
            calls_per_take,
        })
    }

    fn turn(&self) {
        loop {
            let mut calls = List::default();
            let found = self.mailbox.take(self.calls_per_take, &mut calls);
            // SAFETY: there is one turn at a time.
            self.served.with_mut(|served| unsafe {
                (*served)
                    .extend(std::iter::from_fn(|| calls.pop_front()).map(|call| call.number()));
            });
            if found == Found::Attention && self.request.load(Relaxed) {
                // SAFETY: as above.
                self.has_attended.with_mut(|has| unsafe { *has = true });
            }
            if self.mailbox.end_turn() {
                return;
            }
        }
    }

    fn push(&self, number: u32) {
        assert_eq!(self.mailbox.reserve(1), Ok(1));
        if self.mailbox.push(Item::new(number)) {
            self.turn();
        }
    }

    /// Pushes two calls together.
    fn push_two(&self, first: u32) {
        assert_eq!(self.mailbox.reserve(2), Ok(2));
        let mut calls = Unpushed::default();
        calls.add(Item::new(first));
        calls.add(Item::new(first + 1));
        if self.mailbox.push_all(&mut calls) {
            self.turn();
        }
        assert!(calls.is_empty());
    }

    /// Serves a call without the mailbox if the instance is idle, like the caller of a brief method.
    fn serve_here(&self, number: u32) {
        if !self.mailbox.claim_turn() {
            return self.push(number);
        }
        // SAFETY: there is one turn at a time.
        self.served
            .with_mut(|served| unsafe { (*served).push(number) });
        if !self.mailbox.end_turn() {
            self.turn();
        }
    }

    /// The numbers in the order in which turns took them.
    fn served(&self) -> Vec<u32> {
        assert_eq!(self.mailbox.len(), 0);
        // SAFETY: all threads have ended.
        self.served.with(|served| unsafe { (*served).clone() })
    }
}

/// The numbers of one thread, in their order.
fn of(served: &[u32], thread: u32) -> Vec<u32> {
    let own = served.iter().copied();
    own.filter(|number| number / 10 == thread).collect()
}

#[test]
fn calls_that_are_pushed_together_are_served_once_in_their_order() {
    model(|| {
        let shared = Shared::new(8);
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || other.push_two(10));
        shared.push_two(20);
        thread.join().unwrap();
        let served = shared.served();
        assert_eq!(of(&served, 1), [10, 11]);
        assert_eq!(of(&served, 2), [20, 21]);
        assert_eq!(served.len(), 4);
    });
}

#[test]
fn calls_are_served_once_in_the_order_of_each_thread() {
    for calls_per_take in [1, 8] {
        large_model(move || {
            let shared = Shared::new(calls_per_take);
            let other = thread::spawn({
                let shared = shared.clone();
                move || (10..12).for_each(|number| shared.push(number))
            });
            (20..22).for_each(|number| shared.push(number));
            other.join().unwrap();
            let served = shared.served();
            assert_eq!(served.len(), 4);
            assert_eq!(of(&served, 1), [10, 11]);
            assert_eq!(of(&served, 2), [20, 21]);
        });
    }
}

#[test]
fn sweep_removes_only_unwanted_calls_and_keeps_the_order() {
    large_model(|| {
        let shared = Shared::new(8);
        let sweeper = thread::spawn({
            let shared = shared.clone();
            move || {
                let mut swept = shared.mailbox.extract(|item| item.number() == 11);
                std::iter::from_fn(|| swept.pop_front()).count()
            }
        });
        (10..13).for_each(|number| shared.push(number));
        let swept = sweeper.join().unwrap();
        let served = shared.served();
        if swept == 0 {
            assert_eq!(served, [10, 11, 12]);
        } else {
            assert_eq!((swept, &served[..]), (1, &[10, 12][..]));
        }
    });
}

/// A turn runs in one thread while the other pushes and sweeps.
#[test]
fn sweep_during_a_turn_keeps_the_order() {
    large_model(|| {
        let shared = Shared::new(8);
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                (20..22).for_each(|number| shared.push(number));
                let kept = shared.mailbox.extract(|_| false);
                assert!(kept.is_empty());
                shared.push(22);
            }
        });
        shared.push(10);
        other.join().unwrap();
        let served = shared.served();
        assert_eq!(of(&served, 1), [10]);
        assert_eq!(of(&served, 2), [20, 21, 22]);
    });
}

/// A thread requests attention while `serve` is called for two calls.
fn request_is_seen(serve: fn(&Shared, u32)) {
    large_model(move || {
        let shared = Shared::new(8);
        let requester = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.request.store(true, Relaxed);
                if shared.mailbox.notify() {
                    shared.turn();
                }
            }
        });
        (10..12).for_each(|number| serve(&shared, number));
        requester.join().unwrap();
        assert_eq!(shared.served(), [10, 11]);
        // SAFETY: all threads have ended.
        assert!(shared.has_attended.with(|has| unsafe { *has }));
    });
}

#[test]
fn turn_sees_a_request() {
    request_is_seen(Shared::push);
}

#[test]
fn claimed_turn_excludes_other_turns_and_keeps_the_order() {
    large_model(|| {
        let shared = Shared::new(8);
        let other = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.serve_here(10);
                shared.push(11);
                shared.serve_here(12);
            }
        });
        (20..22).for_each(|number| shared.serve_here(number));
        other.join().unwrap();
        let served = shared.served();
        assert_eq!(of(&served, 1), [10, 11, 12]);
        assert_eq!(of(&served, 2), [20, 21]);
    });
}

#[test]
fn claimed_turn_passes_a_request_on() {
    request_is_seen(Shared::serve_here);
}

#[test]
fn capacity_is_exact() {
    model(|| {
        let mailbox = Arc::new(Mailbox::<Item>::new(1));
        let other = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.reserve(1).is_ok()
        });
        let reserved = mailbox.reserve(1).is_ok();
        let others = other.join().unwrap();
        assert!(reserved != others);
        mailbox.free(1);
        mailbox.finish();
        assert_eq!(mailbox.reserve(1), Err(0));
    });
}
