//! Loom models of `spsc`: the lane together with both waits.

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, spsc};

/// Both sides sleep: the sender while the channel is full, the receiver while it is empty.
#[test]
fn one_slot_hands_over_all_values_in_order() {
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
fn batch_arrives_complete_and_in_order() {
    model(|| {
        let (sender, receiver) = spsc::channel(2).unwrap();
        let sending = thread::spawn(move || sender.send_batch(&mut vec![0, 1, 2]));
        let mut values = Vec::new();
        while receiver.recv_batch(&mut values, 2).is_ok() {}
        assert_eq!(values, [0, 1, 2]);
        sending.join().unwrap().unwrap();
    });
}

/// Whichever side is dropped first, each remaining value is dropped once.
#[test]
fn both_handles_dropped_drop_each_value_once() {
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
