//! Loom models of `rendezvous`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use loom::thread;
use thalweg_queue::explore::{large_model, model};
use thalweg_queue::{RecvError, Select, SendError, TryRecvError, rendezvous};

use crate::counter;

/// Rules 1 to 3, in each order in which the two sides can meet.
#[test]
fn send_and_receive_meet() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let receiving = thread::spawn(move || {
            assert_eq!(receiver.recv(), Ok(1));
            assert_eq!(receiver.recv(), Ok(2));
            assert_eq!(receiver.recv(), Err(RecvError));
        });
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        drop(sender);
        receiving.join().unwrap();
    });
}

/// Rule 3: no value is handed over for a commitment that another value uses.
#[test]
fn two_senders_meet_two_receives() {
    large_model(|| {
        let (sender, receiver) = rendezvous::channel();
        let threads = [1, 2].map(|value| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(value).unwrap())
        });
        let sum = receiver.recv().unwrap() + receiver.recv().unwrap();
        assert_eq!(sum, 3);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    });
}

/// Rules 2 and 3: one receive lets one send complete.
#[test]
fn one_receive_completes_one_of_two_sends() {
    large_model(|| {
        let (sender, receiver) = rendezvous::channel();
        let threads = [1, 2].map(|value| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(value).is_ok())
        });
        receiver.recv().unwrap();
        // The last receiver.
        drop(receiver);
        let sent = threads.map(|thread| thread.join().unwrap());
        assert!(sent[0] != sent[1]);
    });
}

/// The same at a deadline: what is sent is received, also by a receive that is about to give up.
#[test]
fn value_is_not_handed_to_a_receive_that_has_left() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let sending = thread::spawn(move || sender.try_send(1).is_ok());
        let received = receiver.recv_timeout(Duration::ZERO).is_ok();
        assert_eq!(received, sending.join().unwrap());
        assert!(receiver.is_empty());
    });
}

/// Two blocked receivers: each value wakes one, or the first wakes the second.
#[test]
fn two_values_wake_both_receivers() {
    large_model(|| {
        let (sender, receiver) = rendezvous::channel();
        let threads = [(); 2].map(|()| {
            let receiver = receiver.clone();
            thread::spawn(move || receiver.recv().unwrap())
        });
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        let sum: u32 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert_eq!(sum, 3);
    });
}

/// Rule 1: an offer is taken, or withdrawn.
#[test]
fn dropped_send_is_received_or_not_but_never_both() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let receiving = thread::spawn(move || (receiver.try_recv(), receiver));
        let (count, waker) = counter();
        let mut context = Context::from_waker(&waker);
        let mut send = sender.send_async(7);
        let first = Pin::new(&mut send).poll(&mut context);
        assert!(first.is_pending(), "no receiver has committed");
        let is_taken = Pin::new(&mut send).poll(&mut context) == Poll::Ready(Ok(()));
        drop(send);
        let (received, receiver) = receiving.join().unwrap();
        if is_taken {
            assert_eq!(received, Ok(7));
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(count.woken(), usize::from(received.is_ok()));
    });
}

/// A send that runs during the close is received, or returns its value.
#[test]
fn close_returns_the_value_or_it_is_received() {
    large_model(|| {
        let (sender, receiver) = rendezvous::channel();
        let closing = thread::spawn({
            let receiver = receiver.clone();
            move || receiver.close()
        });
        let receiving = thread::spawn(move || receiver.recv());
        match sender.send(1) {
            Ok(()) => assert_eq!(receiving.join().unwrap(), Ok(1)),
            Err(back) => {
                assert_eq!(back, SendError::Closed(1));
                assert_eq!(receiving.join().unwrap(), Err(RecvError));
            }
        }
        closing.join().unwrap();
    });
}

/// Rule 4: a value that was handed over for a task stays if the task is dropped.
#[test]
fn value_for_a_dropped_task_is_received_by_the_next() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let sending = thread::spawn(move || (sender.try_send(1).is_ok(), sender));
        let (_, waker) = counter();
        let mut receive = receiver.recv_async();
        let polled = Pin::new(&mut receive).poll(&mut Context::from_waker(&waker));
        drop(receive);
        let (is_sent, sender) = sending.join().unwrap();
        let received = usize::from(polled.is_ready()) + receiver.try_iter().count();
        assert_eq!(received, usize::from(is_sent));
        assert!(sender.try_send(2).is_err(), "nobody waits");
    });
}

#[test]
fn select_that_sends_meets_a_blocked_receiver() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let receiving = thread::spawn(move || receiver.recv());
        let mut select = Select::new();
        select.send(&sender);
        loop {
            select.ready();
            if sender.try_send(1).is_ok() {
                break;
            }
        }
        assert_eq!(receiving.join().unwrap(), Ok(1));
    });
}

#[test]
fn select_that_receives_meets_a_blocked_sender() {
    model(|| {
        let (sender, receiver) = rendezvous::channel();
        let sending = thread::spawn(move || sender.send(1));
        let mut select = Select::new();
        select.recv(&receiver);
        select.ready();
        assert_eq!(receiver.try_recv(), Ok(1));
        assert_eq!(sending.join().unwrap(), Ok(()));
    });
}
