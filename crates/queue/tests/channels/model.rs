//! Any sequence of operations on one thread has the same result as on a plain queue.

use std::collections::VecDeque;
use std::task::Poll;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use thalweg_queue::{
    Closed, RecvError, SendError, TryRecvError, TrySendError, mpsc as some, spsc as one,
};

use crate::chance::seed;
use crate::executor::poll_once;
use crate::threads::{scaled, seconds, watch};

#[derive(Clone, Debug)]
enum Operation {
    Send,
    SendBatch(usize),
    SendInATask,
    Recv,
    RecvBatch(usize),
    RecvInATask,
    RecvSome(usize),
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => Just(Operation::Send),
        4 => (0..100usize).prop_map(Operation::SendBatch),
        3 => Just(Operation::SendInATask),
        8 => Just(Operation::Recv),
        4 => (0..100usize).prop_map(Operation::RecvBatch),
        3 => Just(Operation::RecvInATask),
        2 => (0..20usize).prop_map(Operation::RecvSome),
        1 => Just(Operation::Close),
    ]
}

/// Mostly small capacities; powers of two and their neighbours.
fn capacity() -> impl Strategy<Value = usize> {
    prop_oneof![1..9usize, 1..70usize, Just(255), Just(256), Just(1_000)]
}

/// Runs `test` with many capacities and sequences, and reports the shortest failing sequence and
/// the seed. `THALWEG_TEST_SECONDS` multiplies their number.
pub fn check<O: Strategy>(operation: O, test: impl Fn(usize, Vec<O::Value>))
where
    O::Value: Clone,
{
    let seed = seed().unwrap_or(1);
    let times = seconds().map_or(1, |seconds| seconds.as_secs() as u32 + 1);
    let config = Config {
        cases: scaled(150, 3) as u32 * times,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    let sequences = (capacity(), vec(operation, 0..scaled(400, 60)));
    let result = TestRunner::new(config).run(&sequences, |(capacity, sequence)| {
        test(capacity, sequence);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("THALWEG_TEST_SEED={seed}: {failure}");
    }
}

flavours! { each: spsc, mpsc, lane, mpmc, unbounded;
    fn channel_behaves_like_a_queue(chan) {
        check(operation(), |capacity, sequence| {
            let (sender, receiver) = chan::channel::<u32>(capacity).unwrap();
            let capacity = receiver.capacity();
            let mut model = VecDeque::new();
            let mut closed = false;
            let mut next = 0;
            for operation in sequence {
                let room = capacity - model.len();
                match operation {
                    Operation::Send => {
                        let expected = match room {
                            _ if closed => Err(TrySendError::Closed(next)),
                            0 => Err(TrySendError::Full(next)),
                            _ => Ok(()),
                        };
                        assert_eq!(sender.try_send(next), expected);
                        if expected.is_ok() {
                            model.push_back(next);
                        }
                        next += 1;
                    }
                    Operation::SendBatch(count) => {
                        let mut batch: Vec<_> = (next..next + count as u32).collect();
                        next += count as u32;
                        let sent = if closed { Err(Closed) } else { Ok(room.min(count)) };
                        let whole = batch.clone();
                        assert_eq!(sender.try_send_batch(&mut batch), sent);
                        let (accepted, left) = whole.split_at(sent.unwrap_or(0));
                        assert_eq!(batch, left);
                        model.extend(accepted);
                    }
                    Operation::SendInATask => {
                        let expected = match room {
                            _ if closed => Poll::Ready(Err(SendError::Closed(next))),
                            0 => Poll::Pending,
                            _ => Poll::Ready(Ok(())),
                        };
                        assert_eq!(poll_once(&mut sender.send_async(next)), expected);
                        if expected == Poll::Ready(Ok(())) {
                            model.push_back(next);
                        }
                        next += 1;
                    }
                    Operation::Recv => {
                        let nothing = if closed { TryRecvError::Closed } else { TryRecvError::Empty };
                        assert_eq!(receiver.try_recv(), model.pop_front().ok_or(nothing));
                    }
                    Operation::RecvBatch(most) => {
                        let mut batch = vec![7];
                        let count = most.min(model.len());
                        let expected = match count {
                            0 if most == 0 => Ok(0),
                            0 if closed => Err(TryRecvError::Closed),
                            0 => Err(TryRecvError::Empty),
                            _ => Ok(count),
                        };
                        assert_eq!(receiver.try_recv_batch(&mut batch, most), expected);
                        assert!(batch.into_iter().skip(1).eq(model.drain(..count)));
                    }
                    Operation::RecvInATask => {
                        let expected = match model.pop_front() {
                            Some(value) => Poll::Ready(Ok(value)),
                            None if closed => Poll::Ready(Err(RecvError)),
                            None => Poll::Pending,
                        };
                        assert_eq!(poll_once(&mut receiver.recv_async()), expected);
                    }
                    Operation::RecvSome(most) => {
                        let count = most.min(model.len());
                        assert!(receiver.try_iter().take(most).eq(model.drain(..count)));
                    }
                    Operation::Close => {
                        sender.close();
                        closed = true;
                    }
                }
                assert_eq!((sender.len(), receiver.len()), (model.len(), model.len()));
                assert_eq!(receiver.is_empty(), model.is_empty());
                assert_eq!((sender.is_closed(), receiver.is_closed()), (closed, closed));
                if !closed {
                    assert_eq!(sender.is_full(), model.len() == capacity);
                }
            }
            drop(sender);
            assert!(receiver.iter().eq(model));
        });
    }
}

#[test]
fn fill_and_drain_in_place_behave_like_a_queue() {
    let _watched = watch();
    // Odd numbers fill, even numbers drain.
    check(0..200usize, |capacity, sequence| {
        let (mut sender, mut receiver) = one::channel::<usize>(capacity).unwrap();
        let mut numbers = 0..usize::MAX;
        let mut model = VecDeque::new();
        for number in sequence {
            let most = number / 2;
            if number % 2 == 0 {
                let count = most.min(model.len());
                let mut seen = Vec::new();
                assert_eq!(receiver.try_drain(most, |value| seen.push(*value)), count);
                assert!(seen.into_iter().eq(model.drain(..count)));
            } else {
                let count = most.min(capacity - model.len());
                // `next` is called at most as often as there are free slots.
                let mut asked = 0;
                let filled = sender.try_fill(most, || {
                    asked += 1;
                    numbers.next().inspect(|number| model.push_back(*number))
                });
                assert_eq!((filled, asked), (Ok(count), count));
            }
            assert_eq!(receiver.len(), model.len());
        }
        assert!(receiver.try_iter().eq(model));
    });
}

/// Several senders of one channel come and go. Each has its own order, and all share one capacity.
#[test]
fn many_senders_behave_like_many_queues() {
    let _watched = watch();
    // The sender, and its operation: 0 drops it, 1 clones it, 2 to 9 receive, other numbers send.
    let operation = (0..20usize, 0..24usize, 1..80usize);
    for bounded in [true, false] {
        check(operation.clone(), |capacity, sequence| {
            let (first, receiver) = if bounded {
                some::channel::<(usize, usize)>(capacity).unwrap()
            } else {
                some::unbounded()
            };
            let mut senders = vec![(0, first, 0)];
            let mut names = 1..;
            let mut models = vec![VecDeque::new()];
            let mut inside = 0;
            for (which, what, count) in sequence {
                let which = which % senders.len();
                match what {
                    0 if senders.len() > 1 => drop(senders.swap_remove(which)),
                    0 | 1 => {
                        let clone = senders[which].1.clone();
                        senders.push((names.next().unwrap(), clone, 0));
                        models.push(VecDeque::new());
                    }
                    2..10 => {
                        let mut got = Vec::new();
                        match receiver.try_recv_batch(&mut got, count) {
                            Ok(received) => assert_eq!(received, count.min(inside)),
                            Err(_) => assert_eq!(inside, 0),
                        }
                        inside -= got.len();
                        for (name, number) in got {
                            assert_eq!(models[name].pop_front(), Some(number));
                        }
                    }
                    _ => {
                        let (name, sender, next) = &mut senders[which];
                        let mut batch: Vec<_> = (0..count).map(|i| (*name, *next + i)).collect();
                        let sent = sender.try_send_batch(&mut batch).unwrap();
                        assert_eq!(sent + batch.len(), count);
                        assert_eq!(sent, count.min(receiver.capacity() - inside));
                        models[*name].extend(*next..*next + sent);
                        *next += sent;
                        inside += sent;
                    }
                }
                assert_eq!(receiver.len(), inside);
                let full = inside == receiver.capacity();
                assert!(
                    senders
                        .iter()
                        .all(|(_, sender, _)| sender.is_full() == full)
                );
            }
            drop(senders);
            for (name, number) in receiver.iter() {
                assert_eq!(models[name].pop_front(), Some(number));
            }
            assert!(models.iter().all(VecDeque::is_empty));
        });
    }
}
