//! Oneshot channels: blocking, with a deadline, and with either side dropped first.

use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError, oneshot};

use crate::threads::{Crew, scaled, watch};

#[test]
fn value_is_received_once() {
    let (sender, mut receiver) = oneshot::channel();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert!(!sender.is_closed());
    sender.send(5).unwrap();
    assert_eq!(receiver.try_recv(), Ok(5));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(
        receiver.recv_timeout(Duration::from_secs(100)),
        Err(RecvTimeoutError::Closed)
    );
    assert_eq!(receiver.recv(), Err(RecvError));
}

#[test]
fn recv_parks_until_the_value_is_sent() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = oneshot::channel();
    let thread = crew.spawn(move || receiver.recv());
    crew.asleep(1);
    sender.send(1).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(1));
}

#[test]
fn sender_dropped_wakes_the_receiver() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = oneshot::channel::<u64>();
    let thread = crew.spawn(move || receiver.recv());
    let (timed_sender, mut timed) = oneshot::channel::<u64>();
    let timed = crew.spawn(move || timed.recv_timeout(Duration::from_secs(100)));
    crew.asleep(2);
    drop((sender, timed_sender));
    assert_eq!(thread.join().unwrap(), Err(RecvError));
    assert_eq!(timed.join().unwrap(), Err(RecvTimeoutError::Closed));
}

#[test]
fn send_after_receiver_dropped_returns_the_value() {
    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!(sender.send("back"), Err("back"));
}

#[test]
fn recv_timeout_is_not_early_and_can_be_repeated() {
    let (sender, mut receiver) = oneshot::channel();
    for ms in [0, 1, 30] {
        let since = Instant::now();
        let timeout = Duration::from_millis(ms);
        assert_eq!(
            receiver.recv_timeout(timeout),
            Err(RecvTimeoutError::TimedOut)
        );
        assert!(since.elapsed() >= timeout);
    }
    assert_eq!(
        receiver.recv_deadline(Instant::now()),
        Err(RecvTimeoutError::TimedOut)
    );
    sender.send(3).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(3));
}

/// A value sent at the moment of the deadline is received by the call, or is available afterwards.
#[test]
fn value_sent_at_the_deadline_is_not_lost() {
    let _watched = watch();
    for i in 0..scaled(3_000, 10) as u64 {
        let (sender, mut receiver) = oneshot::channel();
        thread::scope(|scope| {
            scope.spawn(move || sender.send(i).unwrap());
            match receiver.recv_timeout(Duration::from_micros(i % 80)) {
                Ok(value) => assert_eq!(value, i),
                Err(RecvTimeoutError::TimedOut) => assert_eq!(receiver.recv(), Ok(i)),
                Err(RecvTimeoutError::Closed) => panic!("the sender sends"),
            }
        });
    }
}

#[test]
fn values_of_every_size_are_received() {
    fn through<T: PartialEq + std::fmt::Debug + Clone>(value: T) {
        let (sender, receiver) = oneshot::channel();
        sender.send(value.clone()).unwrap();
        assert_eq!(receiver.recv(), Ok(value));
    }
    through(());
    through(1u8);
    through([7u64; 61]);
    through(vec![String::from("heap"); 3]);
    through(vec![0u8; 100_000]);
}
