//! Every value is dropped exactly once, however its channel ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::thread;

use thalweg_queue::{TryRecvError, TrySendError, oneshot, spsc};

use crate::executor::poll_once;
use crate::ledger::{Entry, Ledger};
use crate::threads::scaled;

/// Capacities, and how many values pass before: also the second lap, and the middle of a line and
/// of a block.
const SHAPES: [(usize, usize); 7] = [
    (1, 0),
    (1, 5),
    (2, 3),
    (7, 0),
    (7, 40),
    (64, 30),
    (300, 500),
];

flavours! { each: spsc, mpsc, lane, mpmc, unbounded;
    fn receiver_dropped_first_drops_each_value_once(chan) {
        for (capacity, before) in SHAPES.into_iter().take(scaled(7, 5)) {
            let ledger = Ledger::new(capacity + 1);
            let (sender, receiver) = chan::channel::<Entry>(capacity).unwrap();
            (0..before).for_each(|_| {
                sender.send(Entry::default()).unwrap();
                receiver.recv().unwrap();
            });
            (0..capacity).for_each(|i| sender.send(ledger.entry(i)).unwrap());
            assert_eq!(ledger.dropped(), 0);
            drop(receiver);
            ledger.assert_each_dropped_once(capacity);
            let refused = sender.send(ledger.entry(capacity)).unwrap_err().into_inner();
            assert_eq!(refused.number, capacity);
            drop(refused);
            drop(sender);
            ledger.assert_each_dropped_once(capacity + 1);
        }
    }

    fn sender_dropped_first_drops_each_value_once(chan) {
        for (capacity, before) in SHAPES.into_iter().take(scaled(7, 5)) {
            let ledger = Ledger::new(capacity);
            let (sender, receiver) = chan::channel::<Entry>(capacity).unwrap();
            (0..before).for_each(|_| {
                sender.send(Entry::default()).unwrap();
                receiver.recv().unwrap();
            });
            (0..capacity).for_each(|i| sender.send(ledger.entry(i)).unwrap());
            drop(sender);
            assert_eq!(ledger.dropped(), 0);
            let half = capacity / 2;
            for i in 0..half {
                assert_eq!(receiver.recv().unwrap().number, i);
            }
            ledger.assert_each_dropped_once(half);
            drop(receiver);
            ledger.assert_each_dropped_once(capacity);
        }
    }

    fn closed_channel_dropped_drops_each_value_once(chan) {
        for (capacity, _) in SHAPES.into_iter().take(scaled(7, 5)) {
            for sender_first in [true, false] {
                let ledger = Ledger::new(capacity);
                let (sender, receiver) = chan::channel::<Entry>(capacity).unwrap();
                (0..capacity).for_each(|i| sender.send(ledger.entry(i)).unwrap());
                receiver.close();
                if sender_first {
                    drop(sender);
                    assert_eq!(ledger.dropped(), 0);
                    drop(receiver);
                } else {
                    drop(receiver);
                    drop(sender);
                }
                ledger.assert_each_dropped_once(capacity);
            }
        }
    }

    fn partial_batches_drop_each_value_once(chan) {
        let ledger = Ledger::new(20);
        let (sender, receiver) = chan::channel::<Entry>(10).unwrap();
        let mut batch: Vec<_> = (0..20).map(|i| ledger.entry(i)).collect();
        let sent = sender.try_send_batch(&mut batch).unwrap();
        let mut got = Vec::new();
        receiver.recv_batch(&mut got, 5).unwrap();
        assert_eq!(ledger.dropped(), 0);
        drop(receiver);
        ledger_has(&ledger, sent - 5);
        drop(batch);
        ledger_has(&ledger, 15);
        drop(got);
        drop(sender);
        ledger.assert_each_dropped_once(20);
    }

    fn panic_in_drop_does_not_leak_other_values(chan) {
        #[derive(Default)]
        struct Panics(Entry);
        impl Drop for Panics {
            fn drop(&mut self) {
                assert!(self.0.number != 3, "the fourth");
            }
        }
        let ledger = Ledger::new(8);
        let (sender, receiver) = chan::channel::<Panics>(8).unwrap();
        (0..8).for_each(|i| assert!(sender.send(Panics(ledger.entry(i))).is_ok()));
        let result = catch_unwind(AssertUnwindSafe(|| drop(receiver)));
        assert!(result.is_err());
        assert!(sender.is_closed());
        drop(sender);
        ledger.assert_each_dropped_once(8);
    }

    fn both_handles_dropped_concurrently_drop_each_value_once(chan) {
        for round in 0..scaled(2_000, 20) {
            let inside = round % 5;
            let ledger = Ledger::new(8);
            let (sender, receiver) = chan::channel::<Entry>(8).unwrap();
            (0..inside).for_each(|i| sender.send(ledger.entry(i)).unwrap());
            let start = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let sender = sender;
                    start.wait();
                    let _ = sender.try_send(ledger.entry(inside));
                    drop(sender);
                });
                scope.spawn(|| {
                    let receiver = receiver;
                    start.wait();
                    if round % 2 == 0 {
                        let _ = receiver.try_recv();
                    }
                    drop(receiver);
                });
            });
            ledger.assert_each_dropped_once(inside + 1);
        }
    }

    fn pending_futures_dropped_drop_each_value_once(chan) {
        let ledger = Ledger::new(6);
        let (sender, receiver) = chan::channel::<Entry>(5).unwrap();
        assert!(poll_once(&mut receiver.recv_async()).is_pending());
        (0..5).for_each(|i| sender.try_send(ledger.entry(i)).unwrap());
        // An unbounded channel accepts it.
        let _ = poll_once(&mut sender.send_async(ledger.entry(5)));
        drop(receiver);
        drop(sender);
        ledger.assert_each_dropped_once(6);
    }
}

fn ledger_has(ledger: &Ledger, dropped: usize) {
    assert_eq!(ledger.dropped(), dropped);
}

#[test]
fn panic_in_try_fill_sends_the_values_before_it() {
    for before in 0..20 {
        for panics_at in 0..12 {
            let ledger = Ledger::new(12);
            let (mut sender, receiver) = spsc::channel::<Entry>(12).unwrap();
            (0..before).for_each(|_| {
                sender.try_send(Entry::default()).unwrap();
                receiver.recv().unwrap();
            });
            let mut next = 0;
            let result = catch_unwind(AssertUnwindSafe(|| {
                sender.try_fill(12, || {
                    assert!(next < panics_at, "no more");
                    next += 1;
                    Some(ledger.entry(next - 1))
                })
            }));
            assert!(result.is_err());
            assert_eq!(receiver.len(), panics_at);
            assert!(
                receiver
                    .try_iter()
                    .map(|entry| entry.number)
                    .eq(0..panics_at)
            );
            assert_eq!(receiver.try_recv().unwrap_err(), TryRecvError::Empty);
            // The channel still works.
            assert_eq!(sender.try_fill(1, || Some(ledger.entry(next))), Ok(1));
            drop((sender, receiver));
            ledger.assert_each_dropped_once(panics_at + 1);
        }
    }
}

#[test]
fn panic_in_try_drain_keeps_the_unseen_values() {
    for before in 0..20 {
        for panics_at in 0..12 {
            let ledger = Ledger::new(13);
            let (sender, mut receiver) = spsc::channel::<Entry>(12).unwrap();
            (0..before).for_each(|_| {
                sender.try_send(Entry::default()).unwrap();
                receiver.recv().unwrap();
            });
            (0..12).for_each(|i| sender.try_send(ledger.entry(i)).unwrap());
            let result = catch_unwind(AssertUnwindSafe(|| {
                receiver.try_drain(12, |entry| assert!(entry.number < panics_at, "enough"))
            }));
            assert!(result.is_err());
            ledger.assert_each_dropped_once(panics_at + 1);
            assert_eq!(receiver.len(), 12 - panics_at - 1);
            // The slots are free again, and the order is kept.
            sender.try_send(ledger.entry(12)).unwrap();
            assert!(
                receiver
                    .try_iter()
                    .map(|entry| entry.number)
                    .eq(panics_at + 1..13)
            );
            ledger.assert_each_dropped_once(13);
        }
    }
}

#[test]
fn try_drain_drops_each_value_after_look() {
    let all = scaled(500, 30);
    let ledger = Ledger::new(all);
    let (mut sender, mut receiver) = spsc::channel::<Entry>(10).unwrap();
    let mut made = 0..all;
    let mut seen = 0;
    while seen < all {
        sender
            .try_fill(4, || Some(ledger.entry(made.next()?)))
            .unwrap();
        receiver.try_drain(3, |entry| {
            assert_eq!(entry.number, seen);
            assert_eq!(ledger.dropped(), seen);
            seen += 1;
        });
        assert_eq!(ledger.dropped(), seen);
    }
    ledger.assert_each_dropped_once(all);
}

#[test]
fn failed_send_returns_the_value_intact() {
    let ledger = Ledger::new(2);
    let (sender, receiver) = spsc::channel::<Entry>(1).unwrap();
    sender.try_send(ledger.entry(0)).unwrap();
    match sender.try_send(ledger.entry(1)) {
        Err(TrySendError::Full(back)) => assert_eq!(back.number, 1),
        other => panic!("{other:?}"),
    }
    ledger_has(&ledger, 1);
    drop((sender, receiver));
    ledger.assert_each_dropped_once(2);
}

#[test]
fn oneshot_value_is_dropped_once_in_every_ending() {
    let ledger = Ledger::new(6);
    // Received.
    let (sender, mut receiver) = oneshot::channel();
    sender.send(ledger.entry(0)).unwrap();
    assert_eq!(receiver.try_recv().unwrap().number, 0);
    assert_eq!(receiver.try_recv().unwrap_err(), TryRecvError::Closed);
    drop(receiver);
    ledger.assert_each_dropped_once(1);
    // Sent but not received.
    let (sender, receiver) = oneshot::channel();
    sender.send(ledger.entry(1)).unwrap();
    drop(receiver);
    ledger.assert_each_dropped_once(2);
    // Not sent, because there is no receiver.
    let (sender, receiver) = oneshot::channel();
    drop(receiver);
    assert!(sender.is_closed());
    let back = sender.send(ledger.entry(2)).unwrap_err();
    ledger.assert_each_dropped_once(2);
    drop(back);
    ledger.assert_each_dropped_once(3);
    // Never sent.
    let (sender, mut receiver) = oneshot::channel::<Entry>();
    drop(sender);
    assert_eq!(receiver.try_recv().unwrap_err(), TryRecvError::Closed);
    // Sent while the receiver is dropped.
    for round in 0..scaled(2_000, 20) {
        let ledger = Ledger::new(1);
        let (sender, receiver) = oneshot::channel();
        let start = Barrier::new(2);
        thread::scope(|scope| {
            let (start, ledger) = (&start, &ledger);
            scope.spawn(move || {
                start.wait();
                let _ = sender.send(ledger.entry(0));
            });
            scope.spawn(move || {
                let mut receiver = receiver;
                start.wait();
                if round % 2 == 0 {
                    let _ = receiver.try_recv();
                }
            });
        });
        ledger.assert_each_dropped_once(1);
    }
    // The future was polled and dropped.
    let (sender, mut receiver) = oneshot::channel();
    assert!(poll_once(&mut receiver).is_pending());
    sender.send(ledger.entry(3)).unwrap();
    drop(receiver);
    ledger.assert_each_dropped_once(4);
}
