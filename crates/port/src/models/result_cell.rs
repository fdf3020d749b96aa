//! Loom models of the cell in which a caller receives the completion of its call.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::thread;
use thalweg_queue::explore::model;

use crate::call::result_cell::ResultCell;
use crate::completion::Completion;

/// Not a loom type: it is read when all threads have ended.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn waker() -> (std::sync::Arc<Woken>, Waker) {
    let woken = std::sync::Arc::new(Woken::default());
    (woken.clone(), Waker::from(woken))
}

/// The cell, and the thread that completes it.
fn completing() -> (Arc<ResultCell>, thread::JoinHandle<()>) {
    let cell = Arc::new(ResultCell::default());
    let thread = thread::spawn({
        let cell = cell.clone();
        move || cell.complete(Completion::ready(7, 0))
    });
    (cell, thread)
}

#[test]
fn armed_caller_is_woken_once() {
    model(|| {
        let (cell, thread) = completing();
        let (woken, waker) = waker();
        let armed = cell.arm(waker);
        if !armed {
            assert_eq!(cell.take().unwrap().token, 7);
        }
        thread.join().unwrap();
        assert_eq!(woken.0.load(Relaxed), usize::from(armed));
        assert_eq!(cell.take().is_some(), armed);
    });
}

#[test]
fn waker_that_was_replaced_is_not_needed() {
    model(|| {
        let (cell, thread) = completing();
        let [(first, one), (second, other)] = [waker(), waker()];
        let armed = [cell.arm(one), cell.arm(other)];
        thread.join().unwrap();
        let woken = [first, second].map(|woken| woken.0.load(Relaxed));
        match armed {
            [true, true] => assert_eq!(woken, [0, 1]),
            [true, false] => assert_eq!(woken[1], 0),
            [false, _] => assert_eq!(woken, [0, 0]),
        }
        assert_eq!(cell.take().unwrap().token, 7);
    });
}

#[test]
fn completion_is_freed_although_the_caller_is_gone() {
    for arms in [false, true] {
        model(move || {
            let (cell, thread) = completing();
            let (woken, waker) = waker();
            if arms {
                cell.arm(waker);
            }
            cell.abandon();
            thread.join().unwrap();
            assert!(cell.take().is_none());
            assert!(arms || woken.0.load(Relaxed) == 0);
        });
    }
}
