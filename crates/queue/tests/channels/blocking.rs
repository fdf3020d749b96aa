//! Blocking and non-blocking sends and receives on channels that are empty, full, closed, or
//! neither.

use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{
    Closed, Options, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
    TrySendError, WaitStrategy,
};

use crate::threads::{Crew, scaled};

const CAPACITIES: [usize; 5] = [1, 2, 3, 10, 100];
const WAITS: [WaitStrategy; 3] = [
    WaitStrategy::Adaptive,
    WaitStrategy::Park,
    WaitStrategy::Spin,
];

flavours! { each: spsc, mpsc, lane, mpmc;
    fn try_recv_on_empty_channel_fails(chan) {
        for capacity in CAPACITIES {
            let (_sender, receiver) = chan::channel::<u64>(capacity).unwrap();
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            assert_eq!(receiver.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::TimedOut));
            assert_eq!(receiver.recv_deadline(Instant::now()), Err(RecvTimeoutError::TimedOut));
            assert_eq!(receiver.try_iter().count(), 0);
            let mut values = Vec::new();
            assert_eq!(receiver.try_recv_batch(&mut values, 8), Err(TryRecvError::Empty));
            assert_eq!(receiver.try_recv_batch(&mut values, 0), Ok(0));
            assert!(values.is_empty() && receiver.is_empty() && !receiver.is_closed());
        }
    }

    fn try_send_on_full_channel_returns_the_value(chan) {
        for capacity in CAPACITIES {
            let (sender, receiver) = chan::channel(capacity).unwrap();
            for i in 0..capacity as u64 {
                assert!(!sender.is_full());
                sender.try_send(i).unwrap();
            }
            assert!(sender.is_full());
            assert_eq!((sender.len(), receiver.len()), (capacity, capacity));
            assert_eq!(sender.try_send(77), Err(TrySendError::Full(77)));
            assert_eq!(sender.send_timeout(78, Duration::ZERO), Err(SendTimeoutError::TimedOut(78)));
            assert_eq!(sender.send_deadline(79, Instant::now()), Err(SendTimeoutError::TimedOut(79)));
            let mut more = vec![80, 81];
            assert_eq!(sender.try_send_batch(&mut more), Ok(0));
            assert_eq!(more, [80, 81]);
            assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..capacity as u64).collect::<Vec<_>>());
        }
    }

    fn recv_on_empty_channel_waits_for_a_value(chan) {
        let crew = Crew::new();
        for strategy in WAITS {
            let (sender, receiver) = chan::with::<u64>(2, Options::new().wait_strategy(strategy)).unwrap();
            let thread = crew.spawn(move || {
                (receiver.recv(), receiver.recv(), receiver.recv())
            });
            if strategy != WaitStrategy::Spin {
                crew.asleep(1);
            }
            assert!(!thread.is_finished());
            sender.send(1).unwrap();
            if strategy != WaitStrategy::Spin {
                crew.asleep(1);
            }
            sender.send(2).unwrap();
            drop(sender);
            assert_eq!(thread.join().unwrap(), (Ok(1), Ok(2), Err(RecvError)));
        }
    }

    fn send_on_full_channel_waits_for_capacity(chan) {
        let crew = Crew::new();
        for strategy in WAITS {
            let options = Options::new().wait_strategy(strategy);
            let (sender, receiver) = chan::with::<u64>(1, options).unwrap();
            sender.send(1).unwrap();
            let thread = crew.spawn(move || {
                sender.send(2).unwrap();
                sender.send(3).unwrap();
            });
            if strategy != WaitStrategy::Spin {
                crew.asleep(1);
            }
            assert!(!thread.is_finished());
            assert_eq!(receiver.recv(), Ok(1));
            assert_eq!(receiver.recv(), Ok(2));
            assert_eq!(receiver.recv(), Ok(3));
            thread.join().unwrap();
            assert_eq!(receiver.recv(), Err(RecvError));
        }
    }

    fn recv_after_close_drains_then_fails(chan) {
        for capacity in CAPACITIES {
            let (sender, receiver) = chan::channel(capacity).unwrap();
            for i in 0..capacity as u64 {
                sender.send(i).unwrap();
            }
            sender.close();
            assert!(sender.is_closed() && receiver.is_closed());
            assert_eq!(sender.try_send(7), Err(TrySendError::Closed(7)));
            assert_eq!(sender.send(7), Err(SendError::Closed(7)));
            assert_eq!(
                sender.send_timeout(7, Duration::from_secs(60)),
                Err(SendTimeoutError::Closed(7))
            );
            let mut batch = vec![7, 8];
            assert_eq!(sender.try_send_batch(&mut batch), Err(Closed));
            assert_eq!(sender.send_batch(&mut batch), Err(Closed));
            assert_eq!(batch, [7, 8]);
            for i in 0..capacity as u64 {
                assert_eq!(receiver.recv(), Ok(i));
            }
            // The result is the same every time.
            for _ in 0..3 {
                assert_eq!(receiver.recv(), Err(RecvError));
                assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
                assert_eq!(
                    receiver.recv_timeout(Duration::from_secs(60)),
                    Err(RecvTimeoutError::Closed)
                );
                assert_eq!(receiver.recv_batch(&mut batch, 5), Err(RecvError));
                assert_eq!(receiver.iter().next(), None);
            }
        }
    }

    fn blocking_send_and_recv_between_threads_keep_order(chan) {
        for capacity in CAPACITIES {
            let count = scaled(5_000, 100) as u64;
            let (sender, receiver) = chan::channel(capacity).unwrap();
            thread::scope(|scope| {
                scope.spawn(move || (0..count).for_each(|i| sender.send(i).unwrap()));
                for i in 0..count {
                    assert_eq!(receiver.recv(), Ok(i));
                }
                assert_eq!(receiver.recv(), Err(RecvError));
            });
        }
    }

    fn try_send_and_try_recv_between_threads_keep_order(chan) {
        for capacity in CAPACITIES {
            let count = scaled(5_000, 50) as u64;
            let (sender, receiver) = chan::channel(capacity).unwrap();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for i in 0..count {
                        let mut value = i;
                        while let Err(back) = sender.try_send(value) {
                            assert_eq!(back, TrySendError::Full(i));
                            value = back.into_inner();
                            thread::yield_now();
                        }
                    }
                });
                let mut next = 0;
                loop {
                    match receiver.try_recv() {
                        Ok(value) => {
                            assert_eq!(value, next);
                            next += 1;
                        }
                        Err(TryRecvError::Empty) => thread::yield_now(),
                        Err(TryRecvError::Closed) => break,
                    }
                }
                assert_eq!(next, count);
            });
        }
    }

    fn send_batch_keeps_order_and_waits_for_capacity(chan) {
        for (capacity, size) in [(1, 3), (7, 3), (10, 64), (64, 64), (100, 7)] {
            let count = scaled(6_000, 200) as u64;
            let (sender, receiver) = chan::channel(capacity).unwrap();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let numbers: Vec<u64> = (0..count).collect();
                    for some in numbers.chunks(size) {
                        let mut some = some.to_vec();
                        sender.send_batch(&mut some).unwrap();
                        assert!(some.is_empty());
                    }
                });
                let mut values = Vec::new();
                while let Ok(got) = receiver.recv_batch(&mut values, 50) {
                    assert!((1..=50).contains(&got));
                }
                assert!(values.into_iter().eq(0..count), "out of order");
            });
        }
    }

    fn try_send_batch_on_nearly_full_channel_leaves_the_rest(chan) {
        let (sender, receiver) = chan::channel(5).unwrap();
        let mut values: Vec<u64> = (0..8).collect();
        assert_eq!(sender.try_send_batch(&mut values), Ok(5));
        assert_eq!(values, [5, 6, 7]);
        let mut got = vec![99];
        assert_eq!(receiver.try_recv_batch(&mut got, 2), Ok(2));
        assert_eq!(got, [99, 0, 1]);
        assert_eq!(sender.try_send_batch(&mut values), Ok(2));
        assert_eq!(sender.try_send_batch(&mut values), Ok(0));
        assert_eq!(values, [7]);
        assert_eq!(receiver.recv_batch(&mut got, 100), Ok(5));
        assert_eq!(got, [99, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(sender.send_batch(&mut Vec::new()), Ok(()));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    }

    fn send_batch_interrupted_by_close_keeps_unsent_values(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel(4).unwrap();
        let thread = crew.spawn(move || {
            let mut values: Vec<u64> = (0..10).collect();
            let result = sender.send_batch(&mut values);
            (result, values)
        });
        crew.asleep(1);
        receiver.close();
        let (result, left) = thread.join().unwrap();
        assert_eq!(result, Err(Closed));
        let mut all: Vec<u64> = receiver.iter().collect();
        assert_eq!(all, [0, 1, 2, 3]);
        all.extend(left);
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    fn ping_pong_between_two_threads_delivers_every_value(chan) {
        let (sender, there) = chan::channel(1).unwrap();
        let (back, receiver) = chan::channel(1).unwrap();
        let rounds = scaled(20_000, 100) as u64;
        thread::scope(|scope| {
            scope.spawn(move || there.iter().for_each(|value: u64| back.send(value + 1).unwrap()));
            for i in 0..rounds {
                sender.send(i).unwrap();
                assert_eq!(receiver.recv(), Ok(i + 1));
            }
            drop(sender);
            assert_eq!(receiver.recv(), Err(RecvError));
        });
    }
}

flavours! { without_a_bound: unbounded;
    fn send_on_unbounded_channel_never_waits(chan) {
        let (sender, receiver) = chan::channel(0).unwrap();
        assert_eq!(sender.capacity(), usize::MAX);
        let count = scaled(100_000, 1_000) as u64;
        for i in 0..count {
            sender.try_send(i).unwrap();
        }
        assert!(!sender.is_full());
        assert_eq!(sender.len() as u64, count);
        let mut more = (count..2 * count).collect();
        sender.send_batch(&mut more).unwrap();
        drop(sender);
        assert!(receiver.iter().eq(0..2 * count));
    }
}
