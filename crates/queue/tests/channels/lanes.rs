//! Senders of an mpsc channel come and go: lanes are created, drained in order, and reused.

use std::thread;

use thalweg_queue::mpsc::{self, Sender};

use crate::threads::{scaled, watch};

/// A bounded and an unbounded channel.
fn channels<T>() -> [(Sender<T>, mpsc::Receiver<T>); 2] {
    [mpsc::channel(4_096).unwrap(), mpsc::unbounded()]
}

/// A sender's values stay in order when it changes from the shared lane to its own lane, however
/// much the receiver has taken by then.
#[test]
fn order_is_kept_when_a_sender_gets_its_lane() {
    for taken_before in (0..130).step_by(scaled(1, 43)) {
        for (sender, receiver) in channels::<usize>() {
            let others = sender.clone();
            let (mut sent, mut received) = (0, 0);
            for _ in 0..130 {
                others.try_send(usize::MAX).unwrap();
                sender.try_send(sent).unwrap();
                sent += 1;
                if sent > taken_before {
                    continue;
                }
                while received < sent {
                    let value = receiver.recv().unwrap();
                    if value != usize::MAX {
                        assert_eq!(value, received);
                        received += 1;
                    }
                }
            }
            drop((sender, others));
            let rest = receiver.iter().filter(|value| *value != usize::MAX);
            assert!(rest.eq(received..130), "after {taken_before} were taken");
        }
    }
}

/// With batches of any size, the change may happen in the middle of a batch.
#[test]
fn order_is_kept_when_a_batch_creates_the_lane() {
    for first in (0..70).step_by(scaled(1, 31)) {
        for size in [200, 65, 64, 10, 2, 1].into_iter().take(scaled(6, 2)) {
            for (sender, receiver) in channels::<usize>() {
                (0..first).for_each(|i| sender.try_send(i).unwrap());
                let mut next = first;
                while next < 300 {
                    let mut batch: Vec<_> = (next..next + size).collect();
                    next += sender.try_send_batch(&mut batch).unwrap();
                    assert!(batch.is_empty());
                }
                assert!(receiver.try_iter().eq(0..next));
            }
        }
    }
}

/// Like the previous test, when the whole batch does not fit.
#[test]
fn order_is_kept_when_a_partial_batch_creates_the_lane() {
    for capacity in [4, 7, 16, 40, 64, 100] {
        let (sender, receiver) = mpsc::channel::<usize>(capacity).unwrap();
        let mut left: Vec<_> = (0..500).collect();
        let mut got = Vec::new();
        let mut turn = 0;
        while !left.is_empty() {
            sender.try_send_batch(&mut left).unwrap();
            turn += 1;
            let _ = receiver.try_recv_batch(&mut got, turn % 7 + 1);
        }
        got.extend(receiver.try_iter());
        assert!(got.into_iter().eq(0..500), "capacity {capacity}");
    }
}

/// More senders than lanes: senders without a lane use the shared lane, and every sender's values
/// stay in order.
#[test]
fn order_is_kept_for_each_of_three_hundred_senders() {
    let _watched = watch();
    let count = scaled(300, 20);
    for (sender, receiver) in channels::<(usize, usize)>() {
        let senders: Vec<_> = (0..count).map(|_| sender.clone()).collect();
        drop(sender);
        let each = scaled(200, 70);
        thread::scope(|scope| {
            // Eight threads with many senders each, which take turns.
            for some in senders.chunks(count.div_ceil(8)) {
                let place = some.as_ptr_range().start.addr() - senders.as_ptr_range().start.addr();
                let first = place / size_of::<Sender<(usize, usize)>>();
                // A sender is not Sync, so each clone moves to one thread.
                let some: Vec<_> = some.iter().map(Sender::clone).collect();
                scope.spawn(move || {
                    for i in 0..each {
                        for (place, sender) in some.iter().enumerate() {
                            sender.send((first + place, i)).unwrap();
                        }
                    }
                });
            }
            drop(senders);
            let mut next = vec![0; count];
            for (sender, i) in receiver.iter() {
                assert_eq!(i, next[sender], "of sender {sender}");
                next[sender] += 1;
            }
            assert!(next.iter().all(|next| *next == each));
        });
    }
}

/// All 256 lanes have values, and more senders have values in the shared lane. Then all senders are
/// dropped.
#[test]
fn late_receiver_finds_values_of_dropped_senders() {
    let _watched = watch();
    let count = scaled(300, 12);
    for (sender, receiver) in channels::<(usize, usize)>() {
        // 13 values of each sender fit into the bounded channel. In the unbounded one, the first
        // value creates the lane.
        for number in 0..count {
            let sender = sender.clone();
            (0..13).for_each(|i| sender.try_send((number, i)).unwrap());
        }
        drop(sender);
        let mut next = vec![0; count];
        for (sender, i) in receiver.iter() {
            assert_eq!(i, next[sender]);
            next[sender] += 1;
        }
        assert!(next.iter().all(|next| *next == 13));
    }
}

/// Many more lanes than lane numbers, one after the other: each lane is drained and its number is
/// reused.
#[test]
fn lanes_of_dropped_senders_are_reused() {
    let _watched = watch();
    for (sender, receiver) in channels::<(usize, usize)>() {
        for number in 0..scaled(2_000, 10) {
            let sender = sender.clone();
            (0..70).for_each(|i| sender.try_send((number, i)).unwrap());
            // Sometimes the receiver is idle while several senders come and go.
            if number % 11 == 0 {
                let mut count = 0;
                let mut next = std::collections::HashMap::new();
                for (number, i) in receiver.try_iter() {
                    let expected = next.entry(number).or_insert(0);
                    assert_eq!(i, *expected);
                    *expected += 1;
                    count += 1;
                }
                assert_eq!(count, 70 * if number == 0 { 1 } else { 11 });
            }
        }
    }
}

/// Lanes of dropped senders, lanes of idle senders, and one busy lane among 40.
#[test]
fn busy_sender_among_many_idle_ones_is_received_at_once() {
    let _watched = watch();
    for (sender, receiver) in channels::<usize>() {
        let idle: Vec<_> = (0..scaled(40, 10)).map(|_| sender.clone()).collect();
        for sender in &idle {
            (0..70).for_each(|_| sender.try_send(0).unwrap());
            assert_eq!(receiver.try_iter().count(), 70);
        }
        for i in 0..scaled(10_000, 100) {
            let sender = &idle[i * 7 % idle.len()];
            sender.try_send(i).unwrap();
            assert_eq!(receiver.try_recv(), Ok(i));
            assert!(receiver.try_recv().is_err());
            assert!(receiver.is_empty());
        }
    }
}

/// A lane that always has values does not starve the other lanes or the shared lane.
#[test]
fn every_lane_gets_its_turn() {
    for lanes in [9, 8, 2, 40].into_iter().take(scaled(4, 1)) {
        let (sender, receiver) = mpsc::unbounded::<usize>();
        let senders: Vec<_> = (0..lanes).map(|_| sender.clone()).collect();
        // Repeats until every sender has a lane.
        for sender in &senders {
            (0..70).for_each(|_| sender.try_send(0).unwrap());
        }
        assert_eq!(receiver.try_iter().count(), 70 * lanes);
        for (number, sender) in senders.iter().enumerate() {
            (0..scaled(1_000, 200)).for_each(|_| sender.try_send(number).unwrap());
        }
        let mut seen = vec![0; lanes];
        // A turn is 64 values, plus the rest of their cache line.
        for _ in 0..lanes * 128 {
            seen[receiver.recv().unwrap()] += 1;
        }
        assert!(seen.iter().all(|seen| *seen >= 64), "{seen:?}");
    }
    let (sender, receiver) = mpsc::channel::<usize>(4_096).unwrap();
    let busy = sender.clone();
    (0..2_000).for_each(|_| busy.try_send(1).unwrap());
    let idle = sender.clone();
    idle.try_send(2).unwrap();
    let place = receiver.try_iter().position(|value| value == 2);
    assert!(place.is_some_and(|place| place <= 128), "{place:?}");
}

/// Unused credits of a dropped sender are available to the others.
#[test]
fn credits_of_dropped_senders_are_released() {
    for capacity in [8, 64, 1_000] {
        let (sender, receiver) = mpsc::channel::<usize>(capacity).unwrap();
        for _ in 0..scaled(500, 5) {
            let once = sender.clone();
            for i in 0..70 {
                once.try_send(i).unwrap();
                receiver.recv().unwrap();
            }
        }
        let mut sent = 0;
        while sender.try_send(sent).is_ok() {
            sent += 1;
        }
        assert_eq!(sent, capacity);
    }
}

/// An idle sender keeps credits, but never so many that a send on an empty channel waits.
#[test]
fn idle_senders_do_not_block_sends_on_an_empty_channel() {
    for capacity in [16, 5, 8, 4, 64, 300, 1_024].into_iter().take(scaled(7, 2)) {
        let (sender, receiver) = mpsc::channel::<usize>(capacity).unwrap();
        let mut all = Vec::new();
        for _ in 0..scaled(300, 20) {
            let one = sender.clone();
            for i in 0..65 {
                assert!(
                    one.try_send(i).is_ok(),
                    "capacity {capacity}, {} senders",
                    all.len()
                );
                assert_eq!(receiver.recv(), Ok(i));
            }
            all.push(one);
            for one in &all {
                assert!(!one.is_full());
            }
        }
    }
}

/// A sender that waits for capacity is woken when another sender returns its credits.
#[test]
fn sender_dropped_wakes_a_sender_that_waits_for_its_credits() {
    let _watched = watch();
    let (sender, receiver) = mpsc::channel::<usize>(8).unwrap();
    let holds = sender.clone();
    // The 64th value creates a lane and claims one or more credits in advance.
    for i in 0..64 {
        holds.try_send(i).unwrap();
        receiver.recv().unwrap();
    }
    let mut inside = 0;
    while sender.try_send(inside).is_ok() {
        inside += 1;
    }
    let crew = crate::threads::Crew::new();
    let waits = crew.spawn(move || sender.send(100));
    crew.asleep(1);
    drop(holds);
    if inside == 8 {
        // The dropped sender had no credits, so a receive must free a slot.
        receiver.recv().unwrap();
    }
    assert_eq!(waits.join().unwrap(), Ok(()));
}
