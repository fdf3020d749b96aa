//! One sender, one receiver: the lane and both waits together.

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, spsc};

/// Both sides sleep: the sender while it is full, the receiver while it is empty.
#[test]
fn one_place_hands_over_all_values_in_order() {
    model(|| {
        let (sender, receiver) = spsc::channel(1).unwrap();
        let sending = thread::spawn(move || {
            for value in 0..2u64 {
                sender.send(value).unwrap();
            }
            sender
        });
        for value in 0..2 {
            assert_eq!(receiver.recv(), Ok(value));
        }
        let sender = sending.join().unwrap();
        drop(sender);
        assert_eq!(receiver.recv(), Err(RecvError));
    });
}

#[test]
fn a_batch_is_handed_over_whole_and_in_order() {
    model(|| {
        let (sender, receiver) = spsc::channel(2).unwrap();
        let sending = thread::spawn(move || sender.send_batch(&mut vec![0, 1, 2]));
        let mut values = Vec::new();
        while receiver.recv_batch(&mut values, 2).is_ok() {}
        assert_eq!(values, [0, 1, 2]);
        sending.join().unwrap().unwrap();
    });
}

/// Whoever goes first, each value that is left is dropped once.
#[test]
fn values_are_dropped_once_when_both_sides_go() {
    model(|| {
        let token = std::sync::Arc::new(());
        let (sender, receiver) = spsc::channel(2).unwrap();
        sender.send(token.clone()).unwrap();
        let sending = thread::spawn({
            let token = token.clone();
            move || sender.send(token).is_ok()
        });
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
    });
}
