//! Each waiter is woken: not too early, not twice, not instead of another waiter, and without
//! polling.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{
    Options, Overflow, RecvError, RecvTimeoutError, SendTimeoutError, WaitStrategy, mpmc, mpsc,
    spsc,
};

use crate::executor::Task;
use crate::threads::{Crew, scaled, seconds, until, watch};

/// Longer than this is a failure, whatever else runs on the machine.
const LATE: Duration = Duration::from_secs(30);

flavours! { each: spsc, mpsc, lane, mpmc;
    fn recv_timeout_is_neither_early_nor_very_late(chan) {
        for strategy in [WaitStrategy::Adaptive, WaitStrategy::Park, WaitStrategy::Spin] {
            let (sender, receiver) = chan::with(1, Options::new().wait_strategy(strategy)).unwrap();
            for ms in [0, 1, 20] {
                let timeout = Duration::from_millis(ms);
                let since = Instant::now();
                assert_eq!(receiver.recv_timeout(timeout), Err(RecvTimeoutError::TimedOut));
                assert!(since.elapsed() >= timeout && since.elapsed() < LATE);
                let since = Instant::now();
                assert_eq!(receiver.recv_deadline(since + timeout), Err(RecvTimeoutError::TimedOut));
                assert!(since.elapsed() >= timeout && since.elapsed() < LATE);
            }
            sender.send(1u64).unwrap();
            for ms in [0, 1, 20] {
                let timeout = Duration::from_millis(ms);
                let since = Instant::now();
                assert_eq!(sender.send_timeout(2, timeout), Err(SendTimeoutError::TimedOut(2)));
                assert!(since.elapsed() >= timeout && since.elapsed() < LATE);
                let since = Instant::now();
                assert_eq!(sender.send_deadline(2, since + timeout), Err(SendTimeoutError::TimedOut(2)));
                assert!(since.elapsed() >= timeout && since.elapsed() < LATE);
            }
        }
    }

    fn available_value_beats_a_passed_deadline(chan) {
        let (sender, receiver) = chan::channel(2).unwrap();
        let past = Instant::now();
        sender.send_deadline(1u64, past).unwrap();
        sender.send_timeout(2, Duration::ZERO).unwrap();
        assert_eq!(receiver.recv_deadline(past), Ok(1));
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(2));
    }

    fn longest_timeout_never_expires(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel(1).unwrap();
        let thread = crew.spawn(move || {
            receiver.recv_timeout(Duration::MAX)
        });
        crew.asleep(1);
        sender.send_timeout(1u64, Duration::MAX).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(1));
    }

    fn parked_receiver_is_woken_once_per_value(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::with(8, Options::new().wait_strategy(WaitStrategy::Park)).unwrap();
        let rounds = scaled(100, 5) as u64;
        let (done, next) = std::sync::mpsc::channel();
        let thread = crew.spawn(move || {
            for i in 0..rounds {
                assert_eq!(receiver.recv(), Ok(i));
                done.send(()).unwrap();
            }
            receiver.stats()
        });
        for i in 0..rounds {
            crew.asleep(1);
            sender.send(i).unwrap();
            next.recv().unwrap();
        }
        let stats = thread.join().unwrap();
        assert_eq!(stats.receiver_wakes, rounds);
        assert!(stats.receiver_parks >= rounds);
        assert!(stats.receiver_parked_ns > 0);
        assert_eq!(stats.sender_parks, 0);
    }

    fn values_sent_at_deadlines_are_not_lost(chan) {
        let count = scaled(2_000, 20) as u64;
        let (sender, receiver) = chan::with(1, Options::new().wait_strategy(WaitStrategy::Park)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..count {
                    while sender.send_timeout(i, Duration::from_micros(i % 60)).is_err() {}
                }
            });
            let mut next = 0;
            loop {
                match receiver.recv_timeout(Duration::from_micros(next % 70)) {
                    Ok(value) => {
                        assert_eq!(value, next);
                        next += 1;
                    }
                    Err(RecvTimeoutError::TimedOut) => {}
                    Err(RecvTimeoutError::Closed) => break,
                }
            }
            assert_eq!(next, count);
        });
    }
}

/// Waiting does not poll: the waiters do not run at all for 1 second (`THALWEG_TEST_SECONDS` for
/// longer).
#[test]
#[cfg_attr(miri, ignore = "Miri has no files of the kernel")]
fn thousand_waiting_receivers_use_no_processor() {
    let _watched = watch();
    let waits = seconds().unwrap_or(Duration::from_secs(1));
    let crew = Crew::new();
    let (all, one_of_many) = mpmc::channel::<u64>(16).unwrap();
    let mut senders: Vec<Box<dyn std::any::Any>> = Vec::new();
    let mut threads = Vec::new();
    for i in 0..1_000 {
        threads.push(match i % 4 {
            0 => {
                let (sender, receiver) = spsc::channel::<u64>(16).unwrap();
                senders.push(Box::new(sender));
                crew.spawn(move || receiver.recv())
            }
            1 => {
                let (sender, receiver) = mpsc::channel::<u64>(16).unwrap();
                senders.push(Box::new(sender));
                crew.spawn(move || receiver.recv())
            }
            _ => {
                let receiver = one_of_many.clone();
                crew.spawn(move || receiver.recv())
            }
        });
    }
    crew.asleep(1_000);
    let before = crew.switches();
    thread::sleep(waits);
    assert_eq!(crew.switches() - before, 0);
    drop((senders, all));
    for thread in threads {
        assert_eq!(thread.join().unwrap(), Err(RecvError));
    }
}

/// One value and many sleeping receivers: one is woken, and the others stay asleep.
#[test]
fn one_value_wakes_one_of_many_receivers() {
    let _watched = watch();
    let crew = Crew::new();
    let count = scaled(32, 4);
    let (sender, receiver) =
        mpmc::with::<u64>(64, Options::new().wait_strategy(WaitStrategy::Park)).unwrap();
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                crew.join();
                receiver.recv().unwrap();
            });
        }
        for i in 0..count {
            crew.asleep(count - i);
            sender.send(1).unwrap();
            until("a value that is received", || receiver.is_empty());
            if !cfg!(miri) {
                until("a thread that ends", || crew.count() == count - i - 1);
                assert_eq!(receiver.stats().receiver_wakes, i as u64 + 1);
            }
        }
    });
}

/// Values that arrive before the woken thread runs are for the other waiters.
#[test]
fn batch_wakes_one_thread_per_value() {
    let _watched = watch();
    let crew = Crew::new();
    for _ in 0..scaled(50, 2) {
        let (sender, receiver) = mpmc::channel::<u64>(64).unwrap();
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    crew.join();
                    receiver.recv().unwrap();
                });
            }
            crew.asleep(6);
            sender.send_batch(&mut (0..6).collect()).unwrap();
        });
        let (sender, receiver) = mpmc::channel::<u64>(6).unwrap();
        sender.send_batch(&mut (0..6).collect()).unwrap();
        thread::scope(|scope| {
            for i in 0..6 {
                let sender = &sender;
                let crew = &crew;
                scope.spawn(move || {
                    crew.join();
                    sender.send(i).unwrap();
                });
            }
            crew.asleep(6);
            assert_eq!(receiver.try_recv_batch(&mut Vec::new(), 6), Ok(6));
        });
    }
}

/// A thread and tasks wait for the same values. The thread is woken first and must pass the
/// remaining wake-ups on to the tasks.
#[test]
fn tasks_behind_a_thread_get_the_remaining_values() {
    let _watched = watch();
    let crew = Crew::new();
    for one_by_one in [true, false] {
        let (sender, receiver) = mpmc::channel::<u64>(8).unwrap();
        let thread = crew.spawn({
            let receiver = receiver.clone();
            move || receiver.recv()
        });
        crew.asleep(1);
        let tasks = [Task::default(), Task::default(), Task::default()];
        let mut receivers = [receiver.clone(), receiver.clone(), receiver.clone()];
        let mut futures: Vec<_> = receivers.iter_mut().map(|r| r.recv_async()).collect();
        for (task, future) in tasks.iter().zip(&mut futures) {
            assert!(task.poll(future).is_pending());
        }
        if one_by_one {
            (0..4).for_each(|i| sender.try_send(i).unwrap());
        } else {
            sender.send_batch(&mut (0..4).collect()).unwrap();
        }
        thread.join().unwrap().unwrap();
        // All three values are for the waiting tasks. Each woken task is polled, as an executor
        // does.
        let mut received = 0;
        until("three tasks with a value each", || {
            for (task, future) in tasks.iter().zip(&mut futures) {
                if task.take_wake() {
                    received += usize::from(task.poll(future).is_ready());
                }
            }
            received == 3
        });
    }
}

/// Like the previous test, for senders.
#[test]
fn tasks_behind_a_thread_get_the_remaining_capacity() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
    sender.send_batch(&mut (0..4).collect()).unwrap();
    let thread = crew.spawn({
        let sender = sender.clone();
        move || sender.send(4)
    });
    crew.asleep(1);
    let tasks = [Task::default(), Task::default(), Task::default()];
    let mut senders = [sender.clone(), sender.clone(), sender.clone()];
    let mut futures: Vec<_> = senders.iter_mut().map(|s| s.send_async(5)).collect();
    for (task, future) in tasks.iter().zip(&mut futures) {
        assert!(task.poll(future).is_pending());
    }
    assert_eq!(receiver.try_recv_batch(&mut Vec::new(), 4), Ok(4));
    thread.join().unwrap().unwrap();
    let mut sent = 0;
    until("three tasks that sent", || {
        for (task, future) in tasks.iter().zip(&mut futures) {
            if task.take_wake() {
                sent += usize::from(task.poll(future).is_ready());
            }
        }
        sent == 3
    });
}

/// The sleeping side is notified of values that were pushed or popped before a panic.
#[test]
fn panic_in_fill_or_drain_still_wakes_waiters() {
    let _watched = watch();
    let crew = Crew::new();
    let (mut sender, receiver) = spsc::channel::<u64>(8).unwrap();
    let (said, heard) = std::sync::mpsc::channel();
    let thread = crew.spawn(move || {
        said.send(receiver.recv()).unwrap();
        receiver
    });
    crew.asleep(1);
    let mut next = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        sender.try_fill(8, || {
            next += 1;
            assert!(next < 3, "enough");
            Some(next)
        })
    }));
    assert!(result.is_err());
    assert_eq!(heard.recv_timeout(LATE), Ok(Ok(1)));
    let mut receiver = thread.join().unwrap();
    assert_eq!(receiver.recv(), Ok(2));

    sender.send_batch(&mut (0..8).collect()).unwrap();
    let (said, heard) = std::sync::mpsc::channel();
    let thread = crew.spawn(move || {
        said.send(sender.send(8)).unwrap();
        sender
    });
    crew.asleep(1);
    let result = catch_unwind(AssertUnwindSafe(|| {
        receiver.try_drain(8, |value| assert!(*value < 2))
    }));
    assert!(result.is_err());
    assert_eq!(heard.recv_timeout(LATE), Ok(Ok(())));
    thread.join().unwrap();
    assert!(receiver.try_iter().eq(3..9));
}

/// A sender that evicts all values frees capacity for other waiting senders.
#[test]
fn capacity_freed_by_a_policy_wakes_waiting_senders() {
    let _watched = watch();
    let crew = Crew::new();
    let options = Options::new().overflow(Overflow::Latest);
    let (sender, receiver) = mpmc::with::<u64>(4, options).unwrap();
    sender.send_batch(&mut (0..4).collect()).unwrap();
    let waits = crew.spawn({
        let sender = sender.clone();
        move || {
            let since = Instant::now();
            (sender.send_timeout(7, LATE), since.elapsed())
        }
    });
    crew.asleep(1);
    sender.send(5).unwrap();
    let (result, took) = waits.join().unwrap();
    assert_eq!(result, Ok(()));
    assert!(took < LATE, "it was woken by its deadline");
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [5, 7]);
    assert_eq!(receiver.stats().conflated, 4);
}

/// Some receivers time out at the moment of their wake-up, others wait longer. Every value is
/// received.
#[test]
fn wake_up_at_a_deadline_reaches_another_receiver() {
    let _watched = watch();
    let count = scaled(2_000, 20);
    let (sender, receiver) =
        mpmc::with::<u64>(4, Options::new().wait_strategy(WaitStrategy::Park)).unwrap();
    let received = AtomicUsize::new(0);
    thread::scope(|scope| {
        for late in 0..2u64 {
            let (receiver, received) = (receiver.clone(), &received);
            scope.spawn(move || {
                let mut turn = 0;
                loop {
                    turn = (turn + 7 + late) % 90;
                    match receiver.recv_timeout(Duration::from_micros(turn)) {
                        Ok(_) => received.fetch_add(1, Ordering::Relaxed),
                        Err(RecvTimeoutError::TimedOut) => continue,
                        Err(RecvTimeoutError::Closed) => break,
                    };
                }
            });
        }
        // This receiver waits without a deadline, and is woken for values that the others missed.
        let waits = receiver.clone();
        let received = &received;
        scope.spawn(move || {
            for _ in waits.iter() {
                received.fetch_add(1, Ordering::Relaxed);
            }
        });
        drop(receiver);
        for i in 0..count {
            sender.send(i as u64).unwrap();
            if i % 64 == 0 {
                until("a value that is received", || {
                    received.load(Ordering::Relaxed) == i + 1
                });
            }
        }
        drop(sender);
    });
    assert_eq!(received.into_inner(), count);
}
