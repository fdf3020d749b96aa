//! Loom models of a select over two channels.

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{Select, mpmc, spsc};

#[test]
fn value_in_either_channel_wakes_select() {
    model(|| {
        let (first, from_first) = spsc::channel(1).unwrap();
        let (second, from_second) = spsc::channel(1).unwrap();
        let first = thread::spawn(move || {
            first.send(1).unwrap();
            first
        });
        let second = thread::spawn(move || {
            second.send(2).unwrap();
            second
        });
        let mut select = Select::new();
        let one = select.recv(&from_first);
        select.recv(&from_second);
        let mut sum = 0;
        for _ in 0..2 {
            let receiver = if select.ready() == one {
                &from_first
            } else {
                &from_second
            };
            sum += receiver.try_recv().unwrap();
        }
        assert_eq!(sum, 3);
        first.join().unwrap();
        second.join().unwrap();
    });
}

#[test]
fn capacity_value_or_close_wakes_select() {
    model(|| {
        let (asks, asked) = spsc::channel(1).unwrap();
        let (answers, answered) = spsc::channel(1).unwrap();
        asks.try_send(1).unwrap();
        let other = thread::spawn(move || {
            assert_eq!(asked.recv(), Ok(1));
            answers.send(2).unwrap();
        });
        let mut select = Select::new();
        let room = select.send(&asks);
        let answer = select.recv(&answered);
        let mut got = 0;
        while got == 0 {
            let ready = select.ready();
            if ready == answer {
                got = answered.try_recv().unwrap();
            } else {
                assert_eq!(ready, room);
                if let Err(thalweg_queue::TrySendError::Full(_)) = asks.try_send(3) {
                    panic!("there was room, and nobody else sends");
                }
            }
            if ready == room && got == 0 {
                got = answered.recv().unwrap();
            }
        }
        assert_eq!(got, 2);
        other.join().unwrap();
    });
}

/// A select that takes another value passes its wake-up on to the thread behind it.
#[test]
fn thread_behind_a_select_gets_the_remaining_value() {
    model(|| {
        let (sender, receiver) = mpmc::channel(1).unwrap();
        let (ends, end) = mpmc::channel::<u32>(1).unwrap();
        let waits = thread::spawn({
            let receiver = receiver.clone();
            move || receiver.recv()
        });
        let sends = thread::spawn(move || {
            // Both are ready: the select takes the first that it sees.
            ends.try_send(1).unwrap();
            sender.try_send(7).unwrap();
            (ends, sender)
        });
        let mut select = Select::new();
        let ended = select.recv(&end);
        select.recv(&receiver);
        let ready = select.ready();
        if ready != ended && receiver.try_recv() == Ok(7) {
            // After this, the thread waits only for the close.
            receiver.close();
            assert!(waits.join().unwrap().is_err());
        } else {
            assert_eq!(waits.join().unwrap(), Ok(7));
        }
        sends.join().unwrap();
    });
}
