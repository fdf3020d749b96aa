//! Rendezvous under random operations: on one thread, tasks behave like a list of offers. With
//! several threads, each value is received once, or comes back.

use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::{Just, Strategy, prop_oneof};
use thalweg_queue::{
    Options, RecvError, RecvTimeoutError, Select, SendError, TryRecvError, TrySendError,
    WaitStrategy, rendezvous,
};

use crate::chance::{Random, seed};
use crate::executor::{block_on, poll_once};
use crate::ledger::{Entry, Ledger};
use crate::model::check;
use crate::threads::{scaled, seconds, watch};

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
