//! The end of a channel: by a close, by handles that go, by threads that die.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use thalweg_queue::{
    RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError,
    mpmc as many, mpsc as some,
};

use crate::threads::{Crew, scaled, watch};

const LONG: Duration = Duration::from_secs(200);

flavours! { each: spsc, mpsc, lane, mpmc;
    fn a_close_wakes_a_receiver_that_waits(chan) {
        for how in 0..4 {
            let crew = Crew::new();
            let (sender, receiver) = chan::channel::<u64>(2).unwrap();
            let thread = crew.spawn(move || match how {
                0 => receiver.recv() == Err(RecvError),
                1 => receiver.recv_timeout(LONG) == Err(RecvTimeoutError::Closed),
                2 => receiver.recv_batch(&mut Vec::new(), 3) == Err(RecvError),
                _ => receiver.iter().next().is_none(),
            });
            crew.asleep(1);
            if how % 2 == 0 { drop(sender) } else { sender.close() }
            assert!(thread.join().unwrap());
        }
    }

    fn a_close_wakes_a_sender_that_waits(chan) {
        for how in 0..4 {
            let crew = Crew::new();
            let (sender, receiver) = chan::channel::<u64>(1).unwrap();
            sender.send(1).unwrap();
            let thread = crew.spawn(move || match how {
                0 | 1 => sender.send(2) == Err(SendError::Closed(2)),
                2 => sender.send_timeout(2, LONG) == Err(SendTimeoutError::Closed(2)),
                _ => sender.send_batch(&mut vec![2, 3]).is_err(),
            });
            crew.asleep(1);
            if how % 2 == 0 { drop(receiver) } else { receiver.close() }
            assert!(thread.join().unwrap());
        }
    }

    fn a_close_by_the_receiver_refuses_and_drains(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        receiver.close();
        receiver.close();
        assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        assert!(sender.is_closed());
    }

    fn a_sender_without_a_receiver_is_told(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        drop(receiver);
        assert_eq!(sender.send(1), Err(SendError::Closed(1)));
        assert_eq!(sender.try_send(1), Err(TrySendError::Closed(1)));
        assert!(sender.is_closed() && sender.is_empty());
    }

    /// Everything that a sender was told is sent is received, whenever its end comes.
    fn what_was_sent_before_the_end_is_received(chan) {
        for count in 0..scaled(300, 10) as u64 {
            let (sender, receiver) = chan::channel::<u64>(8).unwrap();
            thread::scope(|scope| {
                scope.spawn(move || {
                    (0..count).for_each(|i| sender.send(i).unwrap());
                    if count % 2 == 0 {
                        sender.close();
                    }
                });
                assert!(receiver.iter().eq(0..count));
            });
        }
    }

    fn a_producer_that_panics_ends_the_channel_after_what_it_sent(chan) {
        let (sender, receiver) = chan::channel::<u64>(8).unwrap();
        let thread = thread::spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let sender = sender;
                for i in 0..100 {
                    assert!(i < 70, "the producer dies");
                    sender.send(i).unwrap();
                }
            }));
            assert!(result.is_err());
        });
        assert!(receiver.iter().eq(0..70));
        thread.join().unwrap();
    }

    fn a_consumer_that_panics_ends_the_channel_for_the_sender(chan) {
        let (sender, receiver) = chan::channel::<u64>(2).unwrap();
        let thread = thread::spawn(move || {
            catch_unwind(AssertUnwindSafe(|| {
                let receiver = receiver;
                for value in receiver.iter() {
                    assert!(value < 20, "the consumer dies");
                }
            }))
            .is_err()
        });
        let refused = (0..).find_map(|i| sender.send(i).err()).unwrap();
        assert!(matches!(refused, SendError::Closed(i) if i > 20));
        assert!(thread.join().unwrap());
    }

    /// A thread that leaves its handle behind, alive and idle, keeps nobody in a spin.
    fn a_handle_that_is_never_dropped_blocks_only_for_as_long_as_one_asks(chan) {
        let (sender, receiver) = chan::channel::<u64>(2).unwrap();
        sender.send(1).unwrap();
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvTimeoutError::TimedOut));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
    }

    fn a_value_may_hold_the_other_end_of_its_channel(chan) {
        #[derive(Default)]
        struct Holds(Option<chan::Receiver<Holds>>);
        let (sender, receiver) = chan::channel::<Holds>(4).unwrap();
        let (other, inner) = chan::channel::<Holds>(4).unwrap();
        assert!(other.send(Holds(None)).is_ok());
        assert!(sender.send(Holds(Some(inner))).is_ok());
        let value = receiver.recv().unwrap();
        assert!(value.0.unwrap().recv().is_ok());
        assert!(other.is_closed());
    }

    fn a_channel_goes_through_a_channel(chan) {
        let (sender, receiver) = chan::channel::<Option<chan::Sender<u64>>>(1).unwrap();
        let thread = thread::spawn(move || {
            let answer = receiver.recv().unwrap().unwrap();
            (0..100).for_each(|i| answer.send(i).unwrap());
        });
        let (answer, answers) = chan::channel::<u64>(2).unwrap();
        sender.send(Some(answer)).unwrap();
        assert!(answers.iter().eq(0..100));
        thread.join().unwrap();
    }
}

flavours! { with_many_senders: mpsc, lane, mpmc;
    fn the_last_sender_closes(chan) {
        let (sender, receiver) = chan::channel::<u64>(8).unwrap();
        let second = sender.clone();
        sender.send(1).unwrap();
        drop(sender);
        assert!(!receiver.is_closed());
        second.send(2).unwrap();
        let third = second.clone();
        drop(second);
        third.send(3).unwrap();
        drop(third);
        assert!(receiver.is_closed());
        assert!(receiver.iter().eq([1, 2, 3]));
    }

    fn a_close_wakes_all_senders_that_wait(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        sender.send(1).unwrap();
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let sender = sender.clone();
                crew.spawn(move || sender.send(2))
            })
            .collect();
        crew.asleep(20);
        receiver.close();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Err(SendError::Closed(2)));
        }
        assert!(receiver.iter().eq([1]));
    }

    fn the_death_of_one_of_many_producers_leaves_the_others(chan) {
        let each = scaled(2_000, 100) as u64;
        let (sender, receiver) = chan::channel::<u64>(32).unwrap();
        thread::scope(|scope| {
            for producer in 0..4 {
                let sender = sender.clone();
                scope.spawn(move || {
                    let dies = catch_unwind(AssertUnwindSafe(|| {
                        let sender = sender;
                        for i in 0..each {
                            assert!(producer != 2 || i < 50, "one of them dies");
                            sender.send(producer).unwrap();
                        }
                    }));
                    assert_eq!(dies.is_err(), producer == 2);
                });
            }
            drop(sender);
            let mut counts = [0; 4];
            for producer in receiver.iter() {
                counts[producer as usize] += 1;
            }
            assert_eq!(counts, [each, each, 50, each]);
        });
    }
}

#[test]
fn a_close_wakes_all_receivers_that_wait() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = many::channel::<u64>(4).unwrap();
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let receiver = receiver.clone();
            crew.spawn(move || receiver.recv())
        })
        .collect();
    crew.asleep(20);
    drop(sender);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Err(RecvError));
    }
}

#[test]
fn the_last_receiver_closes() {
    let (sender, receiver) = many::channel::<u64>(4).unwrap();
    let second = receiver.clone();
    drop(receiver);
    sender.send(1).unwrap();
    assert_eq!(second.recv(), Ok(1));
    drop(second);
    assert_eq!(sender.send(2), Err(SendError::Closed(2)));
}

/// Closing an mpmc channel is exact: a send fails or is received, also when they meet.
#[test]
fn a_close_amid_sends_loses_nothing_that_was_accepted() {
    let _watched = watch();
    for round in 0..scaled(500, 5) {
        let (sender, receiver) = many::channel::<usize>(4).unwrap();
        let (accepted, received) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    while sender.send(1).is_ok() {
                        accepted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                start.wait();
                received.fetch_add(receiver.iter().sum(), Ordering::Relaxed);
            });
            start.wait();
            (0..round % 100).for_each(|_| thread::yield_now());
            receiver.close();
        });
        received.fetch_add(receiver.try_iter().sum(), Ordering::Relaxed);
        assert_eq!(accepted.into_inner(), received.into_inner());
    }
}

/// Values of an mpsc channel that were sent before its close are received, those of all senders.
#[test]
fn senders_that_end_one_after_the_other_lose_nothing() {
    let _watched = watch();
    for round in 0..scaled(100, 3) {
        let (sender, receiver) = some::channel::<usize>(64).unwrap();
        let each = round * 7 % 200;
        thread::scope(|scope| {
            for _ in 0..5 {
                let sender = sender.clone();
                scope.spawn(move || (0..each).for_each(|_| sender.send(1).unwrap()));
            }
            drop(sender);
            assert_eq!(receiver.iter().sum::<usize>(), 5 * each);
        });
    }
}
