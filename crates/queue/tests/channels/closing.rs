//! The end of a channel: by `close`, by dropping handles, by panics.

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
    fn close_wakes_a_waiting_receiver(chan) {
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

    fn close_wakes_a_waiting_sender(chan) {
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

    fn close_by_receiver_fails_sends_and_drains(chan) {
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

    fn send_without_receiver_fails(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        drop(receiver);
        assert_eq!(sender.send(1), Err(SendError::Closed(1)));
        assert_eq!(sender.try_send(1), Err(TrySendError::Closed(1)));
        assert!(sender.is_closed() && sender.is_empty());
    }

    /// Every value that a send accepted is received, whenever the channel is closed.
    fn values_sent_before_the_close_are_received(chan) {
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

    fn panic_of_the_sender_closes_after_its_values(chan) {
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

    fn panic_of_the_receiver_closes_the_channel(chan) {
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

    /// A thread that keeps its handle and is idle does not make others spin.
    fn recv_timeout_with_idle_sender_times_out(chan) {
        let (sender, receiver) = chan::channel::<u64>(2).unwrap();
        sender.send(1).unwrap();
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv_timeout(Duration::from_millis(10)), Err(RecvTimeoutError::TimedOut));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        drop(sender);
    }

    fn value_may_contain_a_receiver(chan) {
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

    fn channel_sent_through_a_channel_works(chan) {
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
    fn last_sender_dropped_closes_the_channel(chan) {
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

    fn close_wakes_all_waiting_senders(chan) {
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

    fn panic_of_one_sender_does_not_affect_the_others(chan) {
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
fn close_wakes_all_waiting_receivers() {
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
fn last_receiver_dropped_closes_the_channel() {
    let (sender, receiver) = many::channel::<u64>(4).unwrap();
    let second = receiver.clone();
    drop(receiver);
    sender.send(1).unwrap();
    assert_eq!(second.recv(), Ok(1));
    drop(second);
    assert_eq!(sender.send(2), Err(SendError::Closed(2)));
}

/// Closing an mpmc channel is exact: a concurrent send either fails or is received.
#[test]
fn close_during_sends_loses_no_accepted_value() {
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

/// Values of all senders of an mpsc channel that were sent before the close are received.
#[test]
fn senders_dropped_one_by_one_lose_nothing() {
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
