//! Loom models of `mpsc`: lanes that are created while the receiver scans, credits, closing.

use loom::thread::{self, JoinHandle};
use thalweg_queue::barrier::model::use_both;
use thalweg_queue::explore::{explore, model};
use thalweg_queue::mpsc;

/// A sender and a number.
type Value = (usize, usize);
type Sender = mpsc::Sender<Value>;

/// The next value expected from each sender.
struct Expected<const SENDERS: usize>([usize; SENDERS]);

impl<const SENDERS: usize> Expected<SENDERS> {
    fn is(&mut self, (sender, number): Value) {
        assert_eq!(number, self.0[sender], "of sender {sender}");
        self.0[sender] += 1;
    }

    fn try_some(&mut self, receiver: &mpsc::Receiver<Value>, turns: usize) {
        for _ in 0..turns {
            if let Ok(value) = receiver.try_recv() {
                self.is(value);
            }
        }
    }

    fn the_rest(mut self, receiver: &mpsc::Receiver<Value>, sent: [usize; SENDERS]) {
        for value in receiver.try_iter() {
            self.is(value);
        }
        assert_eq!(self.0, sent);
    }
}

/// Sends in a thread that returns the sender, because other models cover the drop.
fn sends(sender: Sender, name: usize, numbers: std::ops::Range<usize>) -> JoinHandle<Sender> {
    thread::spawn(move || {
        numbers.for_each(|number| sender.try_send((name, number)).unwrap());
        sender
    })
}

/// Rule 2: the first value is in the shared lane, and the second one creates the lane, while the
/// receiver reads both.
#[test]
fn lane_created_while_the_receiver_scans_is_seen() {
    model(|| {
        let (sender, receiver) = mpsc::channel::<Value>(4).unwrap();
        let sending = sends(sender, 0, 0..3);
        let mut expected = Expected([0]);
        expected.try_some(&receiver, 3);
        sending.join().unwrap();
        expected.the_rest(&receiver, [3]);
    });
}

#[test]
fn lane_created_while_the_receiver_parks_is_seen() {
    model(|| {
        let (sender, receiver) = mpsc::channel::<Value>(4).unwrap();
        let sending = sends(sender, 0, 0..2);
        assert_eq!(receiver.recv(), Ok((0, 0)));
        assert_eq!(receiver.recv(), Ok((0, 1)));
        sending.join().unwrap();
    });
}

/// The same with values of another sender in the shared lane.
#[test]
fn order_is_kept_while_one_sender_gets_its_lane() {
    model(|| {
        let (first, receiver) = mpsc::channel::<Value>(8).unwrap();
        let second = first.clone();
        let (first, second) = (sends(first, 0, 0..2), sends(second, 1, 0..1));
        let mut expected = Expected([0, 0]);
        expected.try_some(&receiver, 1);
        let senders = (first.join().unwrap(), second.join().unwrap());
        expected.the_rest(&receiver, [2, 1]);
        drop(senders);
    });
}

/// Rule 4: with more than a few lanes, the receiver follows the hint, and sleeps only after it has
/// checked all lanes.
#[test]
fn value_in_either_lane_wakes_the_receiver() {
    for busy in 0..2 {
        model(move || {
            let (first, receiver) = mpsc::unbounded::<Value>();
            let mut senders = [first.clone(), first];
            for (name, sender) in senders.iter().enumerate() {
                sender.try_send((name, 0)).unwrap();
            }
            assert!(receiver.recv().is_ok() && receiver.recv().is_ok());
            let sending = thread::spawn(move || {
                senders[busy].try_send((busy, 1)).unwrap();
                senders
            });
            assert_eq!(receiver.recv(), Ok((busy, 1)));
            senders = sending.join().unwrap();
            drop(senders);
        });
    }
}

/// Rule 4: a bit is set while the receiver clears others.
#[test]
fn hint_finds_the_values_of_two_lanes() {
    model(|| {
        let (first, receiver) = mpsc::unbounded::<Value>();
        let second = first.clone();
        first.try_send((0, 0)).unwrap();
        second.try_send((1, 0)).unwrap();
        let mut expected = Expected([0, 0]);
        expected.try_some(&receiver, 2);
        let (first, second) = (sends(first, 0, 1..2), sends(second, 1, 1..2));
        expected.try_some(&receiver, 1);
        let senders = (first.join().unwrap(), second.join().unwrap());
        expected.the_rest(&receiver, [2, 2]);
        drop(senders);
    });
}

/// In an unbounded channel, the first value creates the lane. Its blocks are linked while the
/// receiver reads.
#[test]
fn unbounded_lane_grows_while_the_receiver_scans() {
    model(|| {
        let (sender, receiver) = mpsc::unbounded::<Value>();
        let sending = sends(sender, 0, 0..4);
        let mut expected = Expected([0]);
        expected.try_some(&receiver, 3);
        sending.join().unwrap();
        expected.the_rest(&receiver, [4]);
    });
}

/// Rule 5: one sender is dropped, and another one may get the number of its lane.
#[test]
fn lane_of_a_dropped_sender_is_drained() {
    model(|| {
        let (first, receiver) = mpsc::unbounded::<Value>();
        let second = first.clone();
        first.try_send((0, 0)).unwrap();
        let mut expected = Expected([0, 0]);
        expected.try_some(&receiver, 1);
        let first = thread::spawn(move || first.try_send((0, 1)).unwrap());
        expected.try_some(&receiver, 1);
        second.try_send((1, 0)).unwrap();
        expected.try_some(&receiver, 1);
        first.join().unwrap();
        expected.the_rest(&receiver, [2, 1]);
    });
}

/// Rule 3: in every interleaving, the channel holds its capacity and no more.
fn holds_no_more_than(capacity: usize, lanes: bool) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    explore(builder, move || {
        let (first, receiver) = mpsc::channel::<Value>(capacity).unwrap();
        let second = first.clone();
        let mut inside = 0;
        if lanes {
            for sender in [&first, &second] {
                while sender.try_send((0, 0)).is_ok() && inside < 2 {
                    inside += 1;
                    receiver.try_recv().unwrap();
                }
            }
            inside = 0;
            receiver.try_iter().for_each(drop);
        }
        while inside + 1 < capacity {
            first.try_send((0, 0)).unwrap();
            inside += 1;
        }
        let threads = [first, second].map(|sender| {
            thread::spawn(move || {
                let sent = usize::from(sender.try_send((0, 0)).is_ok());
                (sender, sent)
            })
        });
        let received = usize::from(receiver.try_recv().is_ok());
        let mut senders = Vec::new();
        for thread in threads {
            let (sender, sent) = thread.join().unwrap();
            inside += sent;
            senders.push(sender);
        }
        inside -= received;
        assert!(inside <= capacity);
        assert!(inside + received >= capacity, "there was room for one");
        // The remaining capacity is available to any sender.
        for sender in senders.iter().rev() {
            while sender.try_send((0, 0)).is_ok() {
                inside += 1;
            }
        }
        assert_eq!(inside, capacity);
        assert_eq!(receiver.try_iter().count(), capacity);
    });
}

#[test]
fn credits_are_exact_in_the_shared_lane() {
    holds_no_more_than(2, false);
}

#[test]
fn credits_are_exact_in_lanes() {
    holds_no_more_than(8, true);
}

/// Rule 3: one receive from a full channel frees one slot, not two.
#[test]
fn one_recv_frees_one_slot() {
    model(|| {
        let (first, receiver) = mpsc::channel::<Value>(4).unwrap();
        let second = first.clone();
        for i in 0..4 {
            first.try_send((0, i)).unwrap();
        }
        let other = thread::spawn(move || first.try_send((0, 4)).is_ok());
        receiver.try_recv().unwrap();
        let mine = second.try_send((1, 0)).is_ok();
        let others = other.join().unwrap();
        assert!(mine != others, "one of them had the room");
    });
}

/// Creates a channel for 16 values with `values` inside, and two senders. The first sender has a
/// lane and, if the barriers are asymmetric, one unused credit.
fn beside_an_idle_credit(values: usize) -> (Sender, Sender, mpsc::Receiver<Value>) {
    let (first, receiver) = mpsc::channel::<Value>(16).unwrap();
    let second = first.clone();
    first.try_send((0, 0)).unwrap();
    first.try_send((0, 1)).unwrap();
    (0..values - 2).for_each(|number| second.try_send((1, number)).unwrap());
    assert_eq!(receiver.len(), values);
    (first, second, receiver)
}

/// Runs a model with both barriers, in which senders claim credits in advance.
fn with_blocks_of_credits(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    explore(builder, move || use_both(model));
}

/// Unused credits of a dropped sender are returned, and wake a sender that waits for one.
#[test]
fn credits_of_a_dropped_sender_wake_another() {
    with_blocks_of_credits(|| {
        let (first, second, receiver) = beside_an_idle_credit(15);
        let going = thread::spawn(move || drop(first));
        second.send((1, 15)).unwrap();
        going.join().unwrap();
        assert_eq!(receiver.len(), 16);
    });
}

/// Rule 6: one sender reclaims the unused credit of another while the other is about to use it.
/// Exactly one of them gets it.
#[test]
fn reclaim_during_a_send_gives_the_credit_to_one_sender() {
    with_blocks_of_credits(|| {
        let (first, second, receiver) = beside_an_idle_credit(15);
        let sending = thread::spawn(move || {
            let sent = first.try_send((0, 2)).is_ok();
            (first, sent)
        });
        let mine = second.try_send((1, 15)).is_ok();
        let (first, others) = sending.join().unwrap();
        assert!(mine != others, "{mine} and {others}");
        assert!(first.is_full() && second.is_full());
        assert_eq!(receiver.try_iter().count(), 16);
    });
}

/// Rule 6, for a batch.
#[test]
fn reclaim_during_a_batch_keeps_the_capacity() {
    with_blocks_of_credits(|| {
        let (first, second, receiver) = beside_an_idle_credit(14);
        let sending = thread::spawn(move || {
            let sent = first.try_send_batch(&mut vec![(0, 2), (0, 3)]).unwrap();
            (first, sent)
        });
        let mut inside = 14 + usize::from(second.try_send((1, 14)).is_ok());
        let (first, others) = sending.join().unwrap();
        inside += others;
        assert!(inside <= 16);
        while first.try_send((0, 4)).is_ok() {
            inside += 1;
        }
        assert_eq!(inside, 16);
        assert_eq!(receiver.try_iter().count(), 16);
    });
}

/// Rule 6: two senders reclaim the credit of a third at the same time.
#[test]
fn reclaim_by_two_senders_gives_the_credit_to_one() {
    with_blocks_of_credits(|| {
        let (first, second, receiver) = beside_an_idle_credit(15);
        let third = second.clone();
        let sending = thread::spawn(move || {
            let sent = second.try_send((1, 15)).is_ok();
            (second, sent)
        });
        let mine = third.try_send((2, 0)).is_ok();
        let (second, others) = sending.join().unwrap();
        assert!(mine != others, "{mine} and {others}");
        assert!(first.try_send((0, 2)).is_err());
        drop((second, third));
        assert_eq!(receiver.try_iter().count(), 16);
    });
}

/// Rule 6: a sender with a lane claims a block while another sender goes to sleep. Its unused
/// credits wake the other.
#[test]
fn send_that_waits_for_a_block_of_credits_is_woken() {
    with_blocks_of_credits(|| {
        let (first, receiver) = mpsc::channel::<Value>(16).unwrap();
        let second = first.clone();
        (0..16).for_each(|number| first.try_send((0, number)).unwrap());
        // The capacity is four. While there is one lane, its sender claims two credits and uses
        // one.
        let mut values = Vec::new();
        assert_eq!(receiver.try_recv_batch(&mut values, 4), Ok(4));
        let waiting = thread::spawn(move || {
            (0..3).for_each(|number| second.send((1, number)).unwrap());
            second
        });
        first.send((0, 16)).unwrap();
        drop(waiting.join().unwrap());
        assert_eq!(receiver.len(), 16);
    });
}

/// Rule 3: a sender that sleeps for capacity gets it as soon as one value is received.
#[test]
fn recv_wakes_a_sender_that_waits_for_credits() {
    model(|| {
        let (sender, receiver) = mpsc::channel::<Value>(4).unwrap();
        for number in 0..4 {
            sender.try_send((0, number)).unwrap();
        }
        let sending = thread::spawn(move || {
            sender.send((0, 4)).unwrap();
            sender
        });
        assert_eq!(receiver.try_recv(), Ok((0, 0)));
        sending.join().unwrap();
        assert!(receiver.try_iter().map(|(_, number)| number).eq(1..5));
    });
}

/// The receiver closes the channel while a sender sends in its lane. An accepted value is received,
/// or dropped with the channel, once.
#[test]
fn close_during_sends_drops_each_value_once() {
    model(|| {
        let token = std::sync::Arc::new(());
        let (sender, receiver) = mpsc::channel(4).unwrap();
        sender.try_send(token.clone()).unwrap();
        let sending = thread::spawn({
            let token = token.clone();
            move || {
                let accepted = usize::from(sender.try_send(token.clone()).is_ok());
                accepted + usize::from(sender.try_send(token).is_ok())
            }
        });
        receiver.close();
        let received = receiver.iter().count();
        let accepted = 1 + sending.join().unwrap();
        assert!((1..=accepted).contains(&received));
        drop(receiver);
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
    });
}
