//! Channels without capacity: a send ends when a receiver has the value.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc as std_mpsc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{
    Closed, CreateError, Options, Overflow, RecvError, RecvTimeoutError, Select, SendError,
    SendTimeoutError, TryRecvError, TrySendError, WaitStrategy, rendezvous,
};

use crate::executor::{Task, block_on, poll_once};
use crate::ledger::Ledger;
use crate::threads::{Crew, until, watch};

const SOON: Duration = Duration::from_millis(5);

#[test]
fn send_returns_after_the_value_was_taken() {
    let _watched = watch();
    for strategy in [
        WaitStrategy::Adaptive,
        WaitStrategy::Park,
        WaitStrategy::Spin,
    ] {
        let options = Options::new().wait_strategy(strategy);
        let (sender, receiver) = rendezvous::with(options).unwrap();
        let sent = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..5 {
                    sender.send(i).unwrap();
                    sent.store(i + 1, Ordering::SeqCst);
                }
                sender.close();
            });
            for i in 0..5 {
                until("an offer", || receiver.len() == 1);
                assert_eq!(sent.load(Ordering::SeqCst), i);
                assert_eq!(receiver.try_recv(), Ok(i));
                until("the end of the send", || sent.load(Ordering::SeqCst) > i);
            }
            assert_eq!(receiver.recv(), Err(RecvError));
        });
    }
}

/// Reported of other libraries: an asynchronous send returned before the receiver took the value,
/// and a receive that was dropped at that moment destroyed it.
#[test]
fn async_send_is_pending_until_a_task_has_taken_the_value() {
    let (sender, receiver) = rendezvous::channel();
    let [receives, sends] = [Task::default(), Task::default()];
    let mut receive = receiver.recv_async();
    assert!(receives.poll(&mut receive).is_pending());
    let mut send = sender.send_async(Box::new(1));
    assert!(sends.poll(&mut send).is_pending());
    assert!(receives.take_wake(), "there is an offer");
    // The receiving task is dropped although it was woken for the value.
    drop(receive);
    assert!(sends.poll(&mut send).is_pending());
    assert!(!sends.take_wake());
    let mut receive = receiver.recv_async();
    assert_eq!(receives.poll(&mut receive), Poll::Ready(Ok(Box::new(1))));
    assert!(sends.take_wake());
    assert_eq!(sends.poll(&mut send), Poll::Ready(Ok(())));
}

#[test]
fn dropped_receive_passes_its_wake_to_the_next_task() {
    let (sender, receiver) = rendezvous::channel();
    let [first, second] = [Task::default(), Task::default()];
    let mut receives = [receiver.recv_async(), receiver.recv_async()];
    assert!(first.poll(&mut receives[0]).is_pending());
    assert!(second.poll(&mut receives[1]).is_pending());
    let mut send = sender.send_async(1);
    assert!(poll_once(&mut send).is_pending());
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    let [dropped, mut receive] = receives;
    drop(dropped);
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.poll(&mut receive), Poll::Ready(Ok(1)));
    assert_eq!(poll_once(&mut send), Poll::Ready(Ok(())));
}

#[test]
fn cancelled_send_is_not_received() {
    let ledger = Ledger::new(3);
    let (sender, receiver) = rendezvous::channel();
    let mut first = sender.send_async(ledger.entry(0));
    let mut second = sender.send_async(ledger.entry(1));
    assert!(poll_once(&mut first).is_pending());
    assert!(poll_once(&mut second).is_pending());
    assert_eq!(receiver.len(), 2);
    drop(first);
    assert_eq!((receiver.len(), ledger.dropped()), (1, 1));
    // A send that was never polled has not offered its value.
    drop(sender.send_async(ledger.entry(2)));
    assert_eq!(receiver.try_recv().unwrap().number, 1);
    assert_eq!(receiver.try_recv().map(drop), Err(TryRecvError::Empty));
    assert!(matches!(poll_once(&mut second), Poll::Ready(Ok(()))));
    ledger.assert_each_dropped_once(3);
}

/// Reported of another library: each poll of a future registered it again.
#[test]
fn send_that_is_polled_again_is_one_offer_and_wakes_its_last_task() {
    let (sender, receiver) = rendezvous::channel();
    let [before, now] = [Task::default(), Task::default()];
    let mut send = sender.send_async(1);
    for _ in 0..100 {
        assert!(before.poll(&mut send).is_pending());
        assert!(now.poll(&mut send).is_pending());
    }
    assert_eq!(receiver.len(), 1);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!((before.wakes(), now.wakes()), (0, 1));
    assert_eq!(now.poll(&mut send), Poll::Ready(Ok(())));
    assert!(receiver.is_empty());
}

#[test]
fn send_that_reaches_its_deadline_returns_the_value_and_is_not_received() {
    let (sender, receiver) = rendezvous::channel();
    let began = Instant::now();
    let late = Err(SendTimeoutError::TimedOut(1));
    assert_eq!(sender.send_timeout(1, SOON), late);
    assert_eq!(sender.send_deadline(1, began + 2 * SOON), late);
    assert!(began.elapsed() >= 2 * SOON);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::TimedOut));
    assert_eq!(
        sender.try_send(2),
        Err(TrySendError::Full(2)),
        "nobody waits any more"
    );
}

#[test]
fn try_send_succeeds_once_for_each_receiver_that_is_blocked() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel();
    assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    let crew = Crew::new();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let receiver = receiver.clone();
            crew.spawn(move || receiver.recv().unwrap())
        })
        .collect();
    crew.asleep(2);
    assert!(!sender.is_full());
    assert_eq!(sender.try_send_batch(&mut vec![1, 2, 3]), Ok(2));
    let sum: i32 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(sum, 3);
    assert!(sender.is_full());
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn send_to_a_blocked_receiver_completes_at_once() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel();
    let crew = Crew::new();
    let thread = crew.spawn(move || receiver.recv());
    crew.asleep(1);
    assert_eq!(poll_once(&mut sender.send_async(7)), Poll::Ready(Ok(())));
    assert_eq!(thread.join().unwrap(), Ok(7));
}

#[test]
fn value_for_a_task_that_is_dropped_stays_for_the_next_receiver() {
    let (sender, receiver) = rendezvous::channel();
    let mut receive = receiver.recv_async();
    assert!(poll_once(&mut receive).is_pending());
    assert_eq!(sender.try_send(1), Ok(()));
    assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    drop(receive);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
}

#[test]
fn close_returns_the_values_of_waiting_senders() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel();
    let task = Task::default();
    let mut send = sender.send_async(1);
    assert!(task.poll(&mut send).is_pending());
    let crew = Crew::new();
    let blocked = crew.spawn({
        let sender = sender.clone();
        move || sender.send(2)
    });
    crew.asleep(1);
    // The last receiver.
    drop(receiver);
    assert_eq!(blocked.join().unwrap(), Err(SendError::Closed(2)));
    assert!(task.take_wake());
    assert_eq!(task.poll(&mut send), Poll::Ready(Err(SendError::Closed(1))));
    assert_eq!(sender.send(3), Err(SendError::Closed(3)));
    assert_eq!(sender.try_send(3), Err(TrySendError::Closed(3)));
    assert_eq!(
        poll_once(&mut sender.send_async(3)),
        Poll::Ready(Err(SendError::Closed(3)))
    );
}

#[test]
fn close_ends_blocked_receivers() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel::<u32>();
    let crew = Crew::new();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let receiver = receiver.clone();
            crew.spawn(move || receiver.recv())
        })
        .collect();
    crew.asleep(3);
    sender.try_send(1).unwrap();
    sender.close();
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(results.filter(|result| *result == Ok(1)).count(), 1);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn batch_waits_for_each_value_and_keeps_what_was_not_taken() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel();
    thread::scope(|scope| {
        let sends = scope.spawn(|| {
            let mut batch = vec![1, 2, 3, 4];
            (sender.send_batch(&mut batch), batch)
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            let most = 2 - got.len();
            receiver.recv_batch(&mut got, most).unwrap();
        }
        assert_eq!(got, [1, 2]);
        until("the third offer", || receiver.len() == 1);
        receiver.close();
        assert_eq!(sends.join().unwrap(), (Err(Closed), vec![3, 4]));
    });
}

#[test]
fn overflow_policy_applies_while_no_receiver_waits() {
    let with = |policy| rendezvous::with::<u32>(Options::new().overflow(policy));
    let (sender, receiver) = with(Overflow::Fail).unwrap();
    assert_eq!(sender.send(1), Err(SendError::Full(1)));
    let mut receive = receiver.recv_async();
    assert!(poll_once(&mut receive).is_pending());
    assert_eq!(sender.send(2), Ok(()));
    assert_eq!(poll_once(&mut receive), Poll::Ready(Ok(2)));
    let (sender, _receiver) = with(Overflow::DropNewest).unwrap();
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(sender.stats().dropped_newest, 1);
    let (sender, receiver) = with(Overflow::BlockFor(SOON)).unwrap();
    assert_eq!(sender.send(1), Err(SendError::TimedOut(1)));
    assert!(receiver.is_empty());
    for policy in [Overflow::DropOldest, Overflow::Latest] {
        assert_eq!(with(policy).unwrap_err(), CreateError::Overflow(policy));
    }
}

#[test]
fn select_meets_blocking_calls_tasks_and_another_select() {
    let _watched = watch();
    let (sender, receiver) = rendezvous::channel::<u32>();
    let (done, is_done) = std_mpsc::channel();
    thread::scope(|scope| {
        let sender = &sender;
        scope.spawn(move || {
            let send_selected = |value| {
                let mut select = Select::new();
                let send = select.send(sender);
                loop {
                    assert_eq!(select.ready(), send);
                    if sender.try_send(value).is_ok() {
                        break;
                    }
                }
            };
            send_selected(1); // meets `recv`
            send_selected(2); // meets `recv_async`
            send_selected(3); // meets a select
            sender.send(4).unwrap(); // meets a select
            block_on(sender.send_async(5)).unwrap(); // meets a select
            done.send(()).unwrap();
        });
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(block_on(receiver.recv_async()), Ok(2));
        let mut select = Select::new();
        let receive = select.recv(&receiver);
        for expected in 3..6 {
            assert_eq!(select.ready(), receive);
            assert_eq!(receiver.try_recv(), Ok(expected));
        }
        is_done.recv().unwrap();
    });
}
