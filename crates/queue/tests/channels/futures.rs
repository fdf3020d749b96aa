//! Futures on a manual executor: the test decides which task is polled when.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use futures_core::Stream;
use thalweg_queue::{Options, Overflow, RecvError, SendError, mpmc, oneshot};

use crate::executor::{Task, block_on, poll_once};
use crate::threads::{Crew, scaled, watch};

flavours! { each: spsc, mpsc, lane, mpmc;
    fn recv_async_waits_for_a_value_and_send_async_for_capacity(chan) {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let task = Task::default();
        let mut receive = receiver.recv_async();
        assert!(task.poll(&mut receive).is_pending());
        assert_eq!(task.wakes(), 0);
        sender.try_send(1).unwrap();
        assert_eq!(task.wakes(), 1);
        assert_eq!(task.poll(&mut receive), Poll::Ready(Ok(1)));
        drop(receive);
        sender.try_send(2).unwrap();
        assert_eq!(task.wakes(), 1, "nobody waits any more");
        let mut send = sender.send_async(3);
        assert!(task.poll(&mut send).is_pending());
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(task.wakes(), 2);
        assert_eq!(task.poll(&mut send), Poll::Ready(Ok(())));
        drop(send);
        assert_eq!(receiver.try_recv(), Ok(3));
    }

    fn two_recv_futures_of_one_receiver_lose_nothing(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        let tasks = [Task::default(), Task::default()];
        let mut first = Box::pin(receiver.recv_async());
        let mut second = Box::pin(receiver.recv_async());
        assert!(tasks[0].poll(&mut first).is_pending());
        assert!(tasks[1].poll(&mut second).is_pending());
        sender.try_send(1).unwrap();
        assert_eq!((tasks[0].wakes(), tasks[1].wakes()), (1, 0));
        // The woken future is dropped, so the other one gets the value.
        drop(first);
        assert_eq!(tasks[1].wakes(), 1);
        assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(1)));
        let mut futures = [Box::pin(receiver.recv_async()), Box::pin(receiver.recv_async())];
        for (task, future) in tasks.iter().zip(&mut futures) {
            assert!(task.poll(future).is_pending());
        }
        sender.try_send(2).unwrap();
        sender.try_send(3).unwrap();
        for (place, (task, future)) in tasks.iter().zip(&mut futures).enumerate() {
            assert_eq!(task.poll(future), Poll::Ready(Ok(2 + place as u64)));
        }
        // A blocking call is an independent waiter.
        let mut future = Box::pin(receiver.recv_async());
        assert!(tasks[0].poll(&mut future).is_pending());
        sender.try_send(4).unwrap();
        assert_eq!(receiver.recv(), Ok(4));
        assert!(tasks[0].poll(&mut future).is_pending());
        sender.close();
        assert_eq!(tasks[0].poll(&mut future), Poll::Ready(Err(RecvError)));
    }

    fn two_send_futures_of_one_sender_lose_nothing(chan) {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let tasks = [Task::default(), Task::default()];
        sender.try_send(0).unwrap();
        let mut first = Box::pin(sender.send_async(1));
        let mut second = Box::pin(sender.send_async(2));
        assert!(tasks[0].poll(&mut first).is_pending());
        assert!(tasks[1].poll(&mut second).is_pending());
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!((tasks[0].wakes(), tasks[1].wakes()), (1, 0));
        drop(first);
        assert_eq!(tasks[1].wakes(), 1);
        assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(())));
        let mut futures = [3, 4].map(|value| Box::pin(sender.send_async(value)));
        for (task, future) in tasks.iter().zip(&mut futures) {
            assert!(task.poll(future).is_pending());
        }
        assert_eq!(receiver.recv(), Ok(2));
        assert_eq!(tasks[0].poll(&mut futures[0]), Poll::Ready(Ok(())));
        assert!(tasks[1].poll(&mut futures[1]).is_pending());
        assert_eq!(receiver.recv(), Ok(3));
        assert_eq!(tasks[1].poll(&mut futures[1]), Poll::Ready(Ok(())));
        assert_eq!(receiver.recv(), Ok(4));
    }

    fn future_of_ready_operation_completes_at_the_first_poll(chan) {
        let (sender, receiver) = chan::channel::<u64>(2).unwrap();
        assert_eq!(poll_once(&mut sender.send_async(1)), Poll::Ready(Ok(())));
        assert_eq!(poll_once(&mut receiver.recv_async()), Poll::Ready(Ok(1)));
        assert_eq!(receiver.stats().receiver_wakes + sender.stats().sender_wakes, 0);
    }

    fn future_never_polled_does_nothing(chan) {
        let (sender, receiver) = chan::channel::<u64>(2).unwrap();
        drop(sender.send_async(1));
        assert!(receiver.is_empty());
        sender.try_send(2).unwrap();
        drop(receiver.recv_async());
        assert_eq!(receiver.try_recv(), Ok(2));
    }

    fn close_wakes_futures_of_both_sides(chan) {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let task = Task::default();
        let mut receive = receiver.recv_async();
        assert!(task.poll(&mut receive).is_pending());
        sender.close();
        assert_eq!(task.wakes(), 1);
        assert_eq!(task.poll(&mut receive), Poll::Ready(Err(RecvError)));
        drop(receive);
        assert_eq!(task.poll(&mut sender.send_async(4)), Poll::Ready(Err(SendError::Closed(4))));

        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        sender.try_send(1).unwrap();
        let mut send = sender.send_async(5);
        assert!(task.poll(&mut send).is_pending());
        drop(receiver);
        assert_eq!(task.wakes(), 2);
        assert_eq!(task.poll(&mut send), Poll::Ready(Err(SendError::Closed(5))));
    }

    /// kanal lost 200 of 200 values here. A dropped future takes no value, whether or not it was
    /// woken.
    fn recv_futures_dropped_at_any_point_lose_nothing(chan) {
        for polls_before in 0..3 {
            for polls_after in 0..2 {
                for i in 0..scaled(200, 5) as u64 {
                    let (sender, receiver) = chan::channel::<u64>(4).unwrap();
                    let task = Task::default();
                    let mut receive = receiver.recv_async();
                    for _ in 0..polls_before {
                        assert!(task.poll(&mut receive).is_pending());
                    }
                    sender.try_send(i).unwrap();
                    sender.try_send(i + 1).unwrap();
                    let mut next = i;
                    for _ in 0..polls_after {
                        assert_eq!(task.poll(&mut receive), Poll::Ready(Ok(i)));
                        next += 1;
                    }
                    drop(receive);
                    drop(sender);
                    assert!(receiver.try_iter().eq(next..i + 2));
                }
            }
        }
    }

    fn send_futures_dropped_at_any_point_send_nothing(chan) {
        for polls_before in 0..3 {
            for i in 0..scaled(200, 5) as u64 {
                let (sender, receiver) = chan::channel::<u64>(1).unwrap();
                sender.try_send(i).unwrap();
                let task = Task::default();
                let mut send = sender.send_async(1_000);
                for _ in 0..polls_before {
                    assert!(task.poll(&mut send).is_pending());
                }
                assert_eq!(receiver.try_recv(), Ok(i));
                drop(send);
                sender.try_send(i + 1).unwrap();
                drop(sender);
                assert!(receiver.iter().eq([i + 1]));
            }
        }
    }

    /// Like the previous test, with a concurrent sender.
    fn recv_futures_dropped_during_sends_lose_nothing(chan) {
        let count = scaled(10_000, 50) as u64;
        let (sender, receiver) = chan::channel::<u64>(3).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || (0..count).for_each(|i| sender.send(i).unwrap()));
            let task = Task::default();
            let mut next = 0;
            let mut turn = 0;
            while next < count {
                turn += 1;
                let mut receive = receiver.recv_async();
                for _ in 0..turn % 4 {
                    if let Poll::Ready(value) = task.poll(&mut receive) {
                        assert_eq!(value, Ok(next));
                        next += 1;
                        break;
                    }
                    thread::yield_now();
                }
            }
        });
    }

    fn send_futures_dropped_during_receives_send_only_when_completed(chan) {
        let count = scaled(10_000, 50) as u64;
        let (sender, receiver) = chan::channel::<u64>(3).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || assert!(receiver.iter().eq(0..count)));
            let sender = sender;
            let task = Task::default();
            let mut next = 0;
            let mut turn = 0;
            while next < count {
                turn += 1;
                let mut send = sender.send_async(next);
                for _ in 0..turn % 4 {
                    if let Poll::Ready(result) = task.poll(&mut send) {
                        result.unwrap();
                        next += 1;
                        break;
                    }
                    thread::yield_now();
                }
            }
        });
    }

    fn task_and_thread_share_one_channel(chan) {
        let count = scaled(10_000, 50) as u64;
        for task_sends in [true, false] {
            let (sender, receiver) = chan::channel::<u64>(2).unwrap();
            thread::scope(|scope| {
                if task_sends {
                    scope.spawn(move || assert!(receiver.iter().eq(0..count)));
                    block_on(async {
                        for i in 0..count {
                            sender.send_async(i).await.unwrap();
                        }
                    });
                    drop(sender);
                } else {
                    scope.spawn(move || (0..count).for_each(|i| sender.send(i).unwrap()));
                    block_on(async {
                        for i in 0..count {
                            assert_eq!(receiver.recv_async().await, Ok(i));
                        }
                        assert_eq!(receiver.recv_async().await, Err(RecvError));
                    });
                }
            });
        }
    }

    fn stream_of_closed_and_drained_channel_ends(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        let task = Task::default();
        let waker = task.waker();
        let context = &mut Context::from_waker(&waker);
        let mut stream = receiver.stream();
        let mut next = || Pin::new(&mut stream).poll_next(context);
        assert!(next().is_pending());
        assert!(next().is_pending());
        sender.try_send(1).unwrap();
        sender.try_send(2).unwrap();
        assert_eq!(task.wakes(), 1);
        assert_eq!(next(), Poll::Ready(Some(1)));
        assert_eq!(next(), Poll::Ready(Some(2)));
        assert!(next().is_pending());
        sender.try_send(3).unwrap();
        drop(sender);
        assert_eq!(next(), Poll::Ready(Some(3)));
        assert_eq!(next(), Poll::Ready(None));
        assert_eq!(next(), Poll::Ready(None));
    }

    fn poll_with_new_waker_replaces_the_first(chan) {
        let (sender, receiver) = chan::channel::<u64>(4).unwrap();
        let (first, second) = (Task::default(), Task::default());
        let mut receive = receiver.recv_async();
        assert!(first.poll(&mut receive).is_pending());
        assert!(second.poll(&mut receive).is_pending());
        sender.try_send(1).unwrap();
        assert_eq!((first.wakes(), second.wakes()), (0, 1));
    }

    fn send_async_ignores_the_overflow_policy(chan) {
        for overflow in [Overflow::Fail, Overflow::DropNewest] {
            let options = Options::new().overflow(overflow);
            let (sender, receiver) = chan::with::<u64>(1, options).unwrap();
            sender.try_send(1).unwrap();
            let mut send = sender.send_async(2);
            assert!(poll_once(&mut send).is_pending());
            assert_eq!(receiver.try_recv(), Ok(1));
            assert_eq!(poll_once(&mut send), Poll::Ready(Ok(())));
        }
    }
}

/// One value and two waiting futures: the one that was woken and then dropped passes its wake-up
/// on.
#[test]
fn woken_future_dropped_wakes_the_next_task() {
    let (sender, receiver) = mpmc::channel::<u64>(2).unwrap();
    let tasks = [Task::default(), Task::default()];
    let mut receivers = [receiver.clone(), receiver.clone()];
    let [first, second] = &mut receivers;
    let (mut first, mut second) = (first.recv_async(), second.recv_async());
    assert!(tasks[0].poll(&mut first).is_pending());
    assert!(tasks[1].poll(&mut second).is_pending());
    sender.try_send(1).unwrap();
    assert_eq!((tasks[0].wakes(), tasks[1].wakes()), (1, 0));
    drop(first);
    assert_eq!(tasks[1].wakes(), 1);
    assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(1)));

    let (sender, receiver) = mpmc::channel::<u64>(1).unwrap();
    sender.try_send(0).unwrap();
    let tasks = [Task::default(), Task::default()];
    let mut senders = [sender.clone(), sender.clone()];
    let [first, second] = &mut senders;
    let (mut first, mut second) = (first.send_async(1), second.send_async(2));
    assert!(tasks[0].poll(&mut first).is_pending());
    assert!(tasks[1].poll(&mut second).is_pending());
    assert_eq!(receiver.try_recv(), Ok(0));
    assert_eq!((tasks[0].wakes(), tasks[1].wakes()), (1, 0));
    drop(first);
    assert_eq!(tasks[1].wakes(), 1);
    assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(())));
    assert_eq!(receiver.try_recv(), Ok(2));
}

/// Like the previous test, with a thread behind the future, and with a future behind a thread.
#[test]
fn woken_future_dropped_wakes_the_next_thread() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = mpmc::channel::<u64>(2).unwrap();
    let behind = receiver.clone();
    let task = Task::default();
    let mut receive = receiver.recv_async();
    assert!(task.poll(&mut receive).is_pending());
    let thread = crew.spawn(move || behind.recv());
    crew.asleep(1);
    sender.try_send(1).unwrap();
    assert_eq!(task.wakes(), 1);
    drop(receive);
    assert_eq!(thread.join().unwrap(), Ok(1));
}

/// Two tasks wait and two values arrive. The first task is polled for another reason and takes both
/// values one by one. The task that stays asleep has nothing to wait for.
#[test]
fn task_that_takes_a_value_unwoken_leaves_the_wake_up_to_another() {
    let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
    let tasks = [Task::default(), Task::default()];
    let mut receivers = [receiver.clone(), receiver.clone()];
    let [first, second] = &mut receivers;
    let (mut first, mut second) = (first.recv_async(), second.recv_async());
    assert!(tasks[0].poll(&mut first).is_pending());
    assert!(tasks[1].poll(&mut second).is_pending());
    sender.try_send(1).unwrap();
    // The first task has the wake-up, but the second one is faster.
    assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(1)));
    drop(second);
    sender.try_send(2).unwrap();
    assert_eq!(tasks[0].wakes(), 1);
    assert_eq!(tasks[0].poll(&mut first), Poll::Ready(Ok(2)));
}

/// Many tasks on several threads: every value is received although futures are dropped now and
/// then.
#[test]
fn tasks_that_drop_futures_leave_no_value_behind() {
    let _watched = watch();
    let each = scaled(5_000, 20);
    let (sender, receiver) = mpmc::channel::<usize>(3).unwrap();
    let received: usize = thread::scope(|scope| {
        for _ in 0..2 {
            let sender = sender.clone();
            scope.spawn(move || {
                block_on(async {
                    for i in 0..each {
                        while i % 3 == 0
                            && poll_once(&mut sender.send_async(usize::MAX)).is_pending()
                        {
                            // The future was dropped, so nothing was sent.
                        }
                        sender.send_async(i).await.unwrap();
                    }
                });
            });
        }
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move || {
                    let mut count = 0;
                    loop {
                        let timed_out = poll_once(&mut receiver.recv_async());
                        match timed_out {
                            Poll::Ready(Ok(value)) => count += usize::from(value != usize::MAX),
                            Poll::Ready(Err(RecvError)) => return count,
                            Poll::Pending => match block_on(receiver.recv_async()) {
                                Ok(value) => count += usize::from(value != usize::MAX),
                                Err(RecvError) => return count,
                            },
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(received, 2 * each);
}

#[test]
fn oneshot_receiver_is_a_future() {
    let _watched = watch();
    let (sender, mut receiver) = oneshot::channel::<u64>();
    let (first, second) = (Task::default(), Task::default());
    assert!(first.poll(&mut receiver).is_pending());
    assert!(second.poll(&mut receiver).is_pending());
    sender.send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
    assert_eq!(second.poll(&mut receiver), Poll::Ready(Ok(1)));
    assert_eq!(second.poll(&mut receiver), Poll::Ready(Err(RecvError)));

    let (sender, receiver) = oneshot::channel::<u64>();
    let thread = thread::spawn(move || block_on(receiver));
    drop(sender);
    assert_eq!(thread.join().unwrap(), Err(RecvError));

    for i in 0..scaled(1_000, 10) as u64 {
        let (sender, receiver) = oneshot::channel();
        let thread = thread::spawn(move || sender.send(i));
        assert_eq!(block_on(receiver), Ok(i));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}

/// A woken thread may run late. Meanwhile, no other waiter is woken for the same value, and none is
/// forgotten.
#[test]
fn close_during_a_send_leaves_no_receiver_asleep() {
    let _watched = watch();
    for _ in 0..scaled(1_000, 5) {
        let (sender, receiver) = mpmc::channel::<u64>(8).unwrap();
        let sent = thread::scope(|scope| {
            let receivers: Vec<_> = (0..2)
                .map(|_| {
                    let receiver = receiver.clone();
                    scope.spawn(move || receiver.iter().count())
                })
                .collect();
            let sends = scope.spawn(|| (0..20).filter(|i| sender.send(*i).is_ok()).count());
            receiver.close();
            let received: usize = receivers
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum();
            (sends.join().unwrap(), received)
        });
        assert_eq!(sent.0, sent.1, "a send fails or is received");
    }
}
