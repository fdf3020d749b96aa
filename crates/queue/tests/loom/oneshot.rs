//! One value, and each way in which the two sides can meet.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, TryRecvError, oneshot};

use crate::counter;

#[test]
fn a_receiver_that_waits_gets_the_value() {
    model(|| {
        let (sender, receiver) = oneshot::channel();
        let sending = thread::spawn(move || sender.send(5));
        assert_eq!(receiver.recv(), Ok(5));
        sending.join().unwrap().unwrap();
    });
}

#[test]
fn a_receiver_that_waits_is_told_when_the_sender_goes() {
    model(|| {
        let (sender, receiver) = oneshot::channel::<u32>();
        let going = thread::spawn(move || drop(sender));
        assert_eq!(receiver.recv(), Err(RecvError));
        going.join().unwrap();
    });
}

/// The receiver leaves without having looked, or having looked once.
#[test]
fn a_value_that_meets_a_receiver_that_leaves_is_dropped_once() {
    for looks in [false, true] {
        model(move || {
            let token = Arc::new(());
            let (sender, mut receiver) = oneshot::channel();
            let sending = thread::spawn({
                let token = token.clone();
                move || match sender.send(token) {
                    Ok(()) => true,
                    Err(back) => {
                        assert_eq!(Arc::strong_count(&back), 2, "it came back whole");
                        false
                    }
                }
            });
            let received = looks && receiver.try_recv().is_ok();
            drop(receiver);
            let sent = sending.join().unwrap();
            assert!(sent || !received);
            assert_eq!(Arc::strong_count(&token), 1);
        });
    }
}

#[test]
fn a_task_is_woken_or_has_the_value() {
    model(|| {
        let (sender, mut receiver) = oneshot::channel();
        let (count, waker) = counter();
        let sending = thread::spawn(move || sender.send(5));
        let polled = Pin::new(&mut receiver).poll(&mut Context::from_waker(&waker));
        sending.join().unwrap().unwrap();
        if polled == Poll::Pending {
            assert_eq!(count.woken(), 1);
            assert_eq!(receiver.try_recv(), Ok(5));
        } else {
            assert_eq!(polled, Poll::Ready(Ok(5)));
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    });
}
