//! Channels without capacity: a send ends when a receiver has the value.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc as std_mpsc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::{Just, Strategy, prop_oneof};
use thalweg_queue::{
    Closed, CreateError, Options, Overflow, RecvError, RecvTimeoutError, Select, SendError,
    SendTimeoutError, TryRecvError, TrySendError, WaitStrategy, rendezvous,
};

use crate::chance::{Random, seed};
use crate::executor::{Task, block_on, poll_once};
use crate::ledger::{Entry, Ledger};
use crate::model::check;
use crate::threads::{Crew, scaled, seconds, until, watch};

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

#[derive(Clone, Debug)]
enum Operation {
    TrySend,
    SendInATask,
    PollSend(usize),
    DropSend(usize),
    TryRecv,
    RecvInATask,
    PollRecv(usize),
    DropRecv(usize),
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    let which = 0..8usize;
    prop_oneof![
        4 => Just(Operation::TrySend),
        6 => Just(Operation::SendInATask),
        4 => which.clone().prop_map(Operation::PollSend),
        3 => which.clone().prop_map(Operation::DropSend),
        4 => Just(Operation::TryRecv),
        6 => Just(Operation::RecvInATask),
        4 => which.clone().prop_map(Operation::PollRecv),
        3 => which.prop_map(Operation::DropRecv),
        1 => Just(Operation::Close),
    ]
}

/// On one thread. The model is the list of values that a receiver can take, in their order.
#[test]
fn tasks_behave_like_a_list_of_offers() {
    let _watched = watch();
    check(operation(), |_, sequence| {
        let (sender, receiver) = rendezvous::channel::<u32>();
        let mut model: Vec<u32> = Vec::new();
        let mut handed: Vec<u32> = Vec::new();
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let mut is_closed = false;
        // Whether a task waits that no value has woken.
        let mut is_awaited = false;
        for (number, operation) in sequence.into_iter().enumerate() {
            let value = number as u32;
            let first = (!model.is_empty()).then(|| model[0]);
            let (all_sends, all_receives) = (sends.len(), receives.len());
            match operation {
                Operation::TrySend => {
                    let result = sender.try_send(value);
                    match result {
                        Ok(()) => {
                            assert!(model.is_empty() && !receives.is_empty() && !is_closed);
                            model.push(value);
                            handed.push(value);
                        }
                        Err(TrySendError::Closed(_)) => assert!(is_closed),
                        Err(TrySendError::Full(_)) => {
                            assert!(!is_closed);
                            assert!(!(model.is_empty() && is_awaited));
                        }
                    }
                    is_awaited &= result.is_err();
                }
                Operation::SendInATask => {
                    let mut send = sender.send_async(value);
                    if is_closed {
                        let refused = Poll::Ready(Err(SendError::Closed(value)));
                        assert_eq!(poll_once(&mut send), refused);
                    } else {
                        assert!(poll_once(&mut send).is_pending());
                        sends.push((value, send));
                        model.push(value);
                        is_awaited = false;
                    }
                }
                Operation::PollSend(which) if all_sends > 0 => {
                    let (value, mut send) = sends.swap_remove(which % all_sends);
                    let result = poll_once(&mut send);
                    if model.contains(&value) {
                        assert!(result.is_pending());
                        sends.push((value, send));
                    } else if is_closed && result != Poll::Ready(Ok(())) {
                        assert_eq!(result, Poll::Ready(Err(SendError::Closed(value))));
                    } else {
                        assert_eq!(result, Poll::Ready(Ok(())));
                    }
                }
                Operation::DropSend(which) if all_sends > 0 => {
                    let (value, send) = sends.swap_remove(which % all_sends);
                    drop(send);
                    model.retain(|one| *one != value);
                }
                Operation::TryRecv => {
                    let nothing = if is_closed {
                        TryRecvError::Closed
                    } else {
                        TryRecvError::Empty
                    };
                    assert_eq!(receiver.try_recv(), first.ok_or(nothing));
                    model.drain(..usize::from(first.is_some()));
                }
                Operation::RecvInATask | Operation::PollRecv(_) => {
                    let mut receive = match operation {
                        Operation::PollRecv(which) if all_receives > 0 => {
                            receives.swap_remove(which % all_receives)
                        }
                        _ => receiver.recv_async(),
                    };
                    match poll_once(&mut receive) {
                        Poll::Ready(Ok(value)) => {
                            assert_eq!(Some(value), first);
                            model.remove(0);
                            // It may have passed its wake-up on.
                            is_awaited &= model.is_empty();
                        }
                        Poll::Ready(Err(RecvError)) => assert!(is_closed && first.is_none()),
                        Poll::Pending => {
                            assert!(first.is_none() && !is_closed);
                            receives.push(receive);
                            is_awaited = true;
                        }
                    }
                }
                Operation::DropRecv(which) if all_receives > 0 => {
                    drop(receives.swap_remove(which % all_receives));
                    is_awaited = false;
                }
                Operation::Close => {
                    sender.close();
                    is_closed = true;
                    // Offers are rejected. Values that were handed over stay.
                    model.retain(|one| handed.contains(one));
                }
                _ => {}
            }
            assert_eq!((sender.len(), receiver.len()), (model.len(), model.len()));
            assert_eq!(receiver.is_empty(), model.is_empty());
        }
        drop((sends, receives));
        drop(sender);
        model.retain(|one| handed.contains(one));
        assert!(receiver.iter().eq(model));
    });
}

/// What became of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Sent,
    NotSent,
    /// The future was dropped. The value was sent if it had been taken before.
    Unknown,
}

fn send_by_chance(sender: &rendezvous::Sender<Entry>, random: &mut Random, value: Entry) -> Fate {
    let time = Duration::from_micros(random.below(60));
    let is_sent = match random.below(7) {
        0 => sender.try_send(value).is_ok(),
        1 | 2 => sender.send(value).is_ok(),
        3 => sender.send_timeout(value, time).is_ok(),
        4 => block_on(sender.send_async(value)).is_ok(),
        5 => sender.send_batch(&mut vec![value]).is_ok(),
        _ => match poll_once(&mut sender.send_async(value)) {
            Poll::Ready(result) => result.is_ok(),
            Poll::Pending => return Fate::Unknown,
        },
    };
    if is_sent { Fate::Sent } else { Fate::NotSent }
}

/// Receives until the channel is closed.
fn receive_by_chance(receiver: &rendezvous::Receiver<Entry>, mut random: Random) -> Vec<usize> {
    let mut got = Vec::new();
    loop {
        let time = Duration::from_micros(random.below(60));
        let received = match random.below(7) {
            0 => receiver.try_recv(),
            1 | 2 => receiver.recv().map_err(|RecvError| TryRecvError::Closed),
            3 => receiver.recv_timeout(time).map_err(|error| match error {
                RecvTimeoutError::TimedOut => TryRecvError::Empty,
                RecvTimeoutError::Closed => TryRecvError::Closed,
            }),
            4 => block_on(receiver.recv_async()).map_err(|RecvError| TryRecvError::Closed),
            5 => match poll_once(&mut receiver.recv_async()) {
                Poll::Ready(result) => result.map_err(|RecvError| TryRecvError::Closed),
                Poll::Pending => Err(TryRecvError::Empty),
            },
            _ => {
                let mut select = Select::new();
                select.recv(receiver);
                select.ready_timeout(time);
                receiver.try_recv()
            }
        };
        match received {
            Ok(value) => got.push(value.number),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Closed) => return got,
        }
    }
}

#[test]
fn each_value_is_received_once_or_comes_back() {
    let _watched = watch();
    let first = seed().unwrap_or(1);
    let began = Instant::now();
    let time = seconds().unwrap_or(Duration::from_millis(scaled(700, 0) as u64));
    for seed in first.. {
        let mut random = Random::new(seed);
        let each = 1 + random.below(scaled(200, 10) as u64) as usize;
        let senders = 1 + random.below(3) as usize;
        let receivers = 1 + random.below(3) as usize;
        let strategy = [WaitStrategy::Adaptive, WaitStrategy::Park][random.below(2) as usize];
        let options = Options::new().wait_strategy(strategy);
        let ledger = Ledger::new(each * senders);
        let (sender, receiver) = rendezvous::with(options).unwrap();
        let closes_at = (random.below(3) == 0).then(|| random.below(each as u64) as usize);
        let (fates, got) = thread::scope(|scope| {
            let mut sending = Vec::new();
            for name in 0..senders {
                let (sender, mut random, ledger) = (sender.clone(), random.another(), &ledger);
                sending.push(scope.spawn(move || {
                    let numbers = (name * each..).take(each).enumerate();
                    let fates = numbers.map(|(at, number)| {
                        if closes_at == Some(at) {
                            sender.close();
                        }
                        send_by_chance(&sender, &mut random, ledger.entry(number))
                    });
                    fates.collect::<Vec<_>>()
                }));
            }
            drop(sender);
            let mut receiving = Vec::new();
            for _ in 0..receivers {
                let (receiver, random) = (receiver.clone(), random.another());
                receiving.push(scope.spawn(move || receive_by_chance(&receiver, random)));
            }
            drop(receiver);
            let fates = sending
                .into_iter()
                .flat_map(|thread| thread.join().unwrap());
            let fates: Vec<_> = fates.collect();
            let got = receiving.into_iter().map(|thread| thread.join().unwrap());
            (fates, got.collect::<Vec<_>>())
        });
        ledger.assert_each_dropped_once(each * senders);
        let mut received = vec![0; fates.len()];
        for got in &got {
            for name in 0..senders {
                let values = name * each..(name + 1) * each;
                let of_sender = got.iter().filter(|number| values.contains(number));
                assert!(of_sender.is_sorted(), "THALWEG_TEST_SEED={seed}");
            }
            got.iter().for_each(|number| received[*number] += 1);
        }
        for (number, (fate, count)) in fates.into_iter().zip(received).enumerate() {
            let is_right = match fate {
                Fate::Sent => count == 1,
                Fate::NotSent => count == 0,
                Fate::Unknown => count <= 1,
            };
            assert!(
                is_right,
                "{number}: {fate:?}, {count} times, THALWEG_TEST_SEED={seed}"
            );
        }
        if began.elapsed() >= time {
            break;
        }
    }
}
