//! The end of a channel while somebody waits.

use loom::thread;
use thalweg_queue::explore::model;
use thalweg_queue::{RecvError, SendError, TryRecvError, mpmc, mpsc, spsc};

/// Runs one model for each flavour: in `body`, `chan` is the flavour.
macro_rules! flavours {
    ($chan:ident: $($flavour:ident),+; $body:block) => {
        $({
            use $flavour as $chan;
            model(|| $body);
        })+
    };
}

#[test]
fn a_close_wakes_a_receiver_that_waits() {
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
fn a_close_wakes_a_sender_that_waits() {
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
fn the_last_receiver_that_goes_wakes_a_sender_that_waits() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        sender.try_send(1).unwrap();
        let going = thread::spawn(move || drop(receiver));
        // The receiver drops what is inside as it goes: a send of that moment may find room, and goes the same way.
        assert!(matches!(sender.send(2), Ok(()) | Err(SendError::Closed(2))));
        going.join().unwrap();
        assert_eq!(sender.send(3), Err(SendError::Closed(3)));
    }}
}

#[test]
fn the_end_comes_after_what_was_sent_before_the_last_sender_went() {
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
fn the_last_sender_that_goes_wakes_a_receiver_that_waits() {
    flavours! { chan: spsc, mpsc, mpmc; {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let going = thread::spawn(move || sender.try_send(1).unwrap());
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Err(RecvError));
        going.join().unwrap();
    }}
}

/// As above with lanes, which senders share nothing of: what the first one sent is seen by the count of those that went.
#[test]
fn the_end_comes_after_what_was_sent_in_lanes() {
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
