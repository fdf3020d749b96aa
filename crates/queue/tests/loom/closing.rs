//! Loom models of a channel that is closed while a thread waits.

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, SendError, TryRecvError, mpmc, mpsc, spsc};

/// Runs one model for each flavour. In `body`, `chan` is the flavour.
macro_rules! flavours {
    ($chan:ident: $($flavour:ident),+; $body:block) => {
        $({
            use $flavour as $chan;
            model(|| $body);
        })+
    };
}

#[test]
fn close_wakes_a_waiting_receiver() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let closing = thread::spawn(move || {
            sender.close();
            sender
        });
        assert_eq!(receiver.recv(), Err(RecvError));
        closing.join().unwrap();
    }}
}

#[test]
fn close_wakes_a_waiting_sender() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        sender.try_send(1).unwrap();
        let closing = thread::spawn(move || {
            receiver.close();
            receiver
        });
        assert_eq!(sender.send(2), Err(SendError::Closed(2)));
        let receiver = closing.join().unwrap();
        assert!(receiver.iter().eq([1]), "what was accepted is received");
    }}
}

#[test]
fn last_receiver_dropped_wakes_a_waiting_sender() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        sender.try_send(1).unwrap();
        let going = thread::spawn(move || drop(receiver));
        // The receiver drops the values in the channel when it is dropped. A concurrent send may
        // find capacity, and its value is then dropped too.
        assert!(matches!(sender.send(2), Ok(()) | Err(SendError::Closed(2))));
        going.join().unwrap();
        assert_eq!(sender.send(3), Err(SendError::Closed(3)));
    }}
}

#[test]
fn end_follows_the_values_of_the_last_sender() {
    flavours! { chan: mpsc, mpmc; {
        let (first, receiver) = chan::channel::<u64>(2).unwrap();
        let second = first.clone();
        let threads = [first, second].map(|sender| {
            thread::spawn(move || sender.try_send(1).unwrap())
        });
        let mut received = 0;
        for _ in 0..2 {
            match receiver.try_recv() {
                Ok(_) => received += 1,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Closed) => panic!("closed after {received} of 2"),
            }
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(received + receiver.iter().count(), 2);
    }}
}

#[test]
fn last_sender_dropped_wakes_a_waiting_receiver() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let going = thread::spawn(move || sender.try_send(1).unwrap());
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Err(RecvError));
        going.join().unwrap();
    }}
}

/// The same with lanes, which do not share state between senders. The count of dropped senders
/// makes the values of the first sender visible.
#[test]
fn end_follows_the_values_in_lanes() {
    model(|| {
        let (first, receiver) = mpsc::unbounded::<u64>();
        let second = first.clone();
        let first = thread::spawn(move || first.try_send(1).unwrap());
        drop(second);
        match receiver.try_recv() {
            Ok(value) => assert_eq!(value, 1),
            Err(TryRecvError::Empty) => assert_eq!(receiver.recv(), Ok(1)),
            Err(TryRecvError::Closed) => panic!("closed before the value came"),
        }
        assert_eq!(receiver.recv(), Err(RecvError));
        first.join().unwrap();
    });
}
