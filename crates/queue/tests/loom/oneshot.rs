//! Loom models of `oneshot`: every order of the two sides.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, TryRecvError, oneshot};

use crate::counter;

#[test]
fn waiting_receiver_gets_the_value() {
    model(|| {
        let (sender, receiver) = oneshot::channel();
        let sending = thread::spawn(move || sender.send(5));
        assert_eq!(receiver.recv(), Ok(5));
        sending.join().unwrap().unwrap();
    });
}

#[test]
fn sender_dropped_wakes_the_waiting_receiver() {
    model(|| {
        let (sender, receiver) = oneshot::channel::<u32>();
        let going = thread::spawn(move || drop(sender));
        assert_eq!(receiver.recv(), Err(RecvError));
        going.join().unwrap();
    });
}

/// The receiver is dropped without a check, or after one check.
#[test]
fn value_sent_while_the_receiver_is_dropped_is_dropped_once() {
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
fn task_is_woken_or_gets_the_value() {
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
