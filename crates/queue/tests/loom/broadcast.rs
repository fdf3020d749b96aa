//! Loom models of `broadcast`. The cells of loom report an access to a message that a sender
//! overwrites.

use std::pin::Pin;
use std::task::Context;

use loom::thread;
use thalweg_queue::broadcast::{self, Lagged, Receiver};
use thalweg_queue::explore::{large_model, model};
use thalweg_queue::{RecvError, TryRecvError};

use crate::counter;

/// Takes what is there. Returns the sum of the messages, and how many were received or missed.
fn take_all(receiver: &Receiver<u64>) -> (u64, u64) {
    let mut sum = 0;
    let mut count = 0;
    for got in receiver.try_iter() {
        match got {
            Ok(message) => {
                sum += message;
                count += 1;
            }
            Err(Lagged(missed)) => count += missed,
        }
    }
    (sum, count)
}

/// Rules 3, 4, 6 and 7: a sender overwrites each message that a receiver may be reading.
#[test]
fn message_is_read_or_missed_while_it_is_overwritten() {
    model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        sender.send(1).unwrap();
        let sending = thread::spawn(move || {
            sender.send(2).unwrap();
            sender.send(4).unwrap();
            sender
        });
        let (mut sum, mut count) = take_all(&receiver);
        let sender = sending.join().unwrap();
        let (more, counted) = take_all(&receiver);
        sum += more;
        count += counted;
        assert_eq!(count, 3);
        assert!(sum & 4 != 0, "the newest message is retained");
        // The slot is used in place again.
        sender.send(8).unwrap();
        assert_eq!(receiver.try_recv(), Ok(Ok(8)));
    });
}

/// Rule 3 for batches: one `READING` protects all messages of the batch.
#[test]
fn batch_is_read_while_its_messages_are_overwritten() {
    model(|| {
        let (sender, receiver) = broadcast::channel(2).unwrap();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        let sending = thread::spawn(move || {
            sender.send(4).unwrap();
            sender.send(8).unwrap();
            sender
        });
        let mut batch = Vec::new();
        receiver.try_recv_batch(&mut batch, 3).unwrap();
        let in_batch = batch
            .iter()
            .map(|got| got.map_or_else(|lagged| lagged.0, |_| 1));
        let mut count: u64 = in_batch.sum();
        drop(sending.join().unwrap());
        count += take_all(&receiver).1;
        assert_eq!(count, 4);
    });
}

/// Rule 5: the receiver that is behind keeps the gate down for the one that is not.
#[test]
fn two_receivers_read_while_a_sender_overwrites() {
    large_model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        let other = receiver.clone();
        sender.send(1).unwrap();
        assert_eq!(other.try_recv(), Ok(Ok(1)));
        let threads = [receiver, other].map(|receiver| {
            thread::spawn(move || {
                let first = take_all(&receiver);
                (receiver, first.1)
            })
        });
        sender.send(2).unwrap();
        sender.send(4).unwrap();
        for (thread, expected) in threads.into_iter().zip([3, 2]) {
            let (receiver, count) = thread.join().unwrap();
            assert_eq!(count + take_all(&receiver).1, expected);
        }
    });
}

/// Rule 1: two senders overwrite each other's messages.
#[test]
fn two_senders_overwrite_while_a_receiver_reads() {
    large_model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        let threads = [1, 2].map(|message| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(message).unwrap())
        });
        let count = take_all(&receiver).1;
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(count + take_all(&receiver).1, 2);
    });
}

/// A lost wake-up would be a deadlock.
#[test]
fn one_send_wakes_both_waiting_receivers() {
    large_model(|| {
        let (sender, receiver) = broadcast::channel(2).unwrap();
        let threads = [receiver.clone(), receiver].map(|receiver| {
            thread::spawn(move || {
                assert_eq!(receiver.recv(), Ok(Ok(1)));
                receiver
            })
        });
        sender.send(1).unwrap();
        for thread in threads {
            drop(thread.join().unwrap());
        }
    });
}

/// A receiver that waits for the second message does not miss its wake-up, and sees the end.
#[test]
fn waiting_receiver_gets_each_message_and_the_end() {
    model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        let receiving = thread::spawn(move || {
            let mut count = 0;
            loop {
                match receiver.recv() {
                    Ok(Ok(_)) => count += 1,
                    Ok(Err(Lagged(missed))) => count += missed,
                    Err(RecvError) => return count,
                }
            }
        });
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        // Dropping the last sender closes the channel.
        drop(sender);
        assert_eq!(receiving.join().unwrap(), 2);
    });
}

/// A send that runs during the close fails or is received.
#[test]
fn close_is_exact() {
    model(|| {
        let (sender, receiver) = broadcast::channel(2).unwrap();
        let closing = thread::spawn({
            let sender = sender.clone();
            move || sender.close()
        });
        let sending = thread::spawn(move || sender.try_send(1).is_ok());
        let mut received = false;
        while receiver.recv().is_ok() {
            received = true;
        }
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(received, sending.join().unwrap());
        closing.join().unwrap();
    });
}

/// A receiver that subscribes during a send gets the message or does not, and loses none later.
#[test]
fn receiver_subscribes_while_messages_are_overwritten() {
    model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        sender.send(1).unwrap();
        let sending = thread::spawn({
            let sender = sender.clone();
            move || {
                sender.send(2).unwrap();
                sender.send(4).unwrap();
            }
        });
        let clone = receiver.clone();
        let late = receiver.resubscribe();
        let cloned = take_all(&clone).1;
        let lately = take_all(&late).1;
        sending.join().unwrap();
        assert_eq!(cloned + take_all(&clone).1, 3);
        assert!(lately + take_all(&late).1 <= 2);
        drop(receiver);
        sender.send(8).unwrap();
        assert_eq!(late.try_recv(), Ok(Ok(8)));
    });
}

#[test]
fn waiting_task_is_woken_or_gets_the_message() {
    model(|| {
        let (sender, receiver) = broadcast::channel(1).unwrap();
        let (count, waker) = counter();
        let sending = thread::spawn(move || {
            sender.send(5).unwrap();
            sender
        });
        let mut future = receiver.recv_async();
        let mut context = Context::from_waker(&waker);
        let polled = std::future::Future::poll(Pin::new(&mut future), &mut context);
        drop(sending.join().unwrap());
        if polled.is_pending() {
            assert_eq!(count.woken(), 1);
            drop(future);
            assert_eq!(receiver.try_recv(), Ok(Ok(5)));
        }
    });
}
