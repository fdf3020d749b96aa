//! Senders of an mpsc channel come and go: lanes are made, drained in their order, and used again.

use std::thread;

use thalweg_queue::mpsc::{self, Sender};

use crate::threads::{scaled, watch};

/// Bounded and not.
fn channels<T>() -> [(Sender<T>, mpsc::Receiver<T>); 2] {
    [mpsc::channel(4_096).unwrap(), mpsc::unbounded()]
}

/// The order of one sender's values holds where it changes from the common path to its lane, whatever the receiver has
/// taken by then.
#[test]
fn the_order_holds_across_the_change_to_a_lane() {
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

/// With batches of any size the change may come in their midst.
#[test]
fn the_order_holds_where_a_batch_makes_the_lane() {
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

/// As above where there is no room for the whole batch.
#[test]
fn the_order_holds_where_a_batch_makes_the_lane_and_is_cut_off() {
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

/// More senders than a channel has lanes: those without one share the common path, and all keep their order.
#[test]
fn three_hundred_senders_keep_their_order() {
    let _watched = watch();
    let count = scaled(300, 20);
    for (sender, receiver) in channels::<(usize, usize)>() {
        let senders: Vec<_> = (0..count).map(|_| sender.clone()).collect();
        drop(sender);
        let each = scaled(200, 70);
        thread::scope(|scope| {
            // Eight threads with many senders each, in turns.
            for some in senders.chunks(count.div_ceil(8)) {
                let place = some.as_ptr_range().start.addr() - senders.as_ptr_range().start.addr();
                let first = place / size_of::<Sender<(usize, usize)>>();
                // A sender is for one thread at a time: each goes to one.
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

/// All 256 lanes hold something, and more senders something on the common path; then all are gone.
#[test]
fn a_receiver_that_comes_late_finds_the_values_of_all_senders_that_are_gone() {
    let _watched = watch();
    let count = scaled(300, 12);
    for (sender, receiver) in channels::<(usize, usize)>() {
        // 13 each fit into the bound; without one the first value makes the lane.
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

/// Many more than there are numbers for lanes, one after the other: each is drained and its number used again.
#[test]
fn lanes_are_used_again_when_their_senders_are_gone() {
    let _watched = watch();
    for (sender, receiver) in channels::<(usize, usize)>() {
        for number in 0..scaled(2_000, 10) {
            let sender = sender.clone();
            (0..70).for_each(|i| sender.try_send((number, i)).unwrap());
            // Now and then the receiver is idle while several senders come and go.
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

/// Lanes of senders that are gone, lanes of senders that are idle, and one that is busy among 40.
#[test]
fn one_busy_sender_among_many_idle_ones_is_heard_at_once() {
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

/// A lane that always has something does not keep the receiver from the others, nor from the common path.
#[test]
fn every_lane_has_its_turn() {
    for lanes in [9, 8, 2, 40].into_iter().take(scaled(4, 1)) {
        let (sender, receiver) = mpsc::unbounded::<usize>();
        let senders: Vec<_> = (0..lanes).map(|_| sender.clone()).collect();
        // Until all have lanes.
        for sender in &senders {
            (0..70).for_each(|_| sender.try_send(0).unwrap());
        }
        assert_eq!(receiver.try_iter().count(), 70 * lanes);
        for (number, sender) in senders.iter().enumerate() {
            (0..scaled(1_000, 200)).for_each(|_| sender.try_send(number).unwrap());
        }
        let mut seen = vec![0; lanes];
        // A turn is 64 values and the rest of their cache line.
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

/// What a sender that is gone had in hand goes back to the others.
#[test]
fn credits_of_senders_that_are_gone_are_given_back() {
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

/// A sender that idles holds credits, but never so many that another waits on an empty channel.
#[test]
fn idle_senders_leave_room_on_an_empty_channel() {
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

/// A sender that waits for room is woken by one that gives its credits back.
#[test]
fn a_sender_that_goes_wakes_one_that_waits_for_its_credits() {
    let _watched = watch();
    let (sender, receiver) = mpsc::channel::<usize>(8).unwrap();
    let holds = sender.clone();
    // Its 64th value makes a lane, and it takes a credit or more in advance.
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
        // It held none: there is room when something is received.
        receiver.recv().unwrap();
    }
    assert_eq!(waits.join().unwrap(), Ok(()));
}
