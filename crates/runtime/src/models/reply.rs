//! The reply to a call: it is received or dropped once, and the last owner frees the cell.

use std::sync::atomic::Ordering::Relaxed;

use loom::{model, thread};

use super::{DropCounter, drop_counter};
use crate::behaviour::CallError;
use crate::behaviour::reply::{ReplySender, reply_cell};
use crate::wait;

/// A call without a deadline, whose other side is `end`. Returns whether the reply came, after
/// which it was dropped once.
fn call(end: impl Fn(ReplySender<DropCounter>, DropCounter) + Send + 'static) -> bool {
    let (reply, drops) = drop_counter();
    let (sender, receiver) = reply_cell(wait::waker());
    let actor = thread::spawn(move || end(sender, reply));
    let received = receiver.recv(u64::MAX, false);
    let is_ok = match received {
        Ok(reply) => {
            assert_eq!(drops.load(Relaxed), 0, "the caller has the reply");
            drop(reply);
            true
        }
        Err(error) => {
            assert_eq!(error, CallError::Ended);
            false
        }
    };
    actor.join().unwrap();
    assert_eq!(drops.load(Relaxed), 1);
    is_ok
}

#[test]
fn reply_wakes_the_caller() {
    model(|| assert!(call(|sender, reply| sender.send(reply))));
}

#[test]
fn caller_learns_that_there_is_no_reply() {
    model(|| assert!(!call(|sender, reply| drop((sender, reply)))));
}

#[test]
fn reply_is_dropped_once_if_the_caller_gives_up() {
    model(|| {
        let (reply, drops) = drop_counter();
        let (sender, receiver) = reply_cell(wait::waker());
        let actor = thread::spawn(move || sender.send(reply));
        drop(receiver);
        actor.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn both_ends_are_dropped() {
    model(|| {
        let (sender, receiver) = reply_cell::<DropCounter>(wait::waker());
        let actor = thread::spawn(move || drop(sender));
        drop(receiver);
        actor.join().unwrap();
    });
}
