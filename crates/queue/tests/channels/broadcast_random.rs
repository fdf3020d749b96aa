//! Broadcast channels under random operations: on one thread, the results are those of a simple
//! model. With several threads, each receiver gets or misses every message once, in order.

use std::collections::VecDeque;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use proptest::prelude::{Just, Strategy, prop_oneof};
use thalweg_queue::broadcast::{self, Lagged, Receiver};
use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError, TrySendError};

use crate::chance::{Random, seed};
use crate::executor::{block_on, poll_once};
use crate::model::check;
use crate::threads::{scaled, seconds, watch};

#[derive(Clone, Debug)]
enum Operation {
    Send,
    SendBatch(usize),
    Recv(usize),
    RecvInATask(usize),
    RecvBatch(usize, usize),
    Subscribe,
    Resubscribe(usize),
    Clone(usize),
    Drop(usize),
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    let which = 0..8usize;
    prop_oneof![
        12 => Just(Operation::Send),
        3 => (0..12usize).prop_map(Operation::SendBatch),
        16 => which.clone().prop_map(Operation::Recv),
        4 => which.clone().prop_map(Operation::RecvInATask),
        6 => (which.clone(), 0..12usize).prop_map(|(which, most)| Operation::RecvBatch(which, most)),
        1 => Just(Operation::Subscribe),
        1 => which.clone().prop_map(Operation::Resubscribe),
        1 => which.clone().prop_map(Operation::Clone),
        2 => which.prop_map(Operation::Drop),
        1 => Just(Operation::Close),
    ]
}

/// The model of one receiver: what it will receive.
#[derive(Clone, Default)]
struct Model {
    missed: u64,
    messages: VecDeque<String>,
}

impl Model {
    fn send(&mut self, message: &str, capacity: usize) {
        if self.messages.len() == capacity {
            self.messages.pop_front();
            self.missed += 1;
        }
        self.messages.push_back(message.to_owned());
    }

    fn recv(&mut self) -> Option<Result<String, Lagged>> {
        match std::mem::take(&mut self.missed) {
            0 => self.messages.pop_front().map(Ok),
            missed => Some(Err(Lagged(missed))),
        }
    }
}

#[test]
fn channel_behaves_like_one_queue_for_each_receiver() {
    let _watched = watch();
    check(operation(), |capacity, sequence| {
        let (sender, receiver) = broadcast::channel::<String>(capacity).unwrap();
        let mut receivers = vec![(receiver, Model::default())];
        let mut closed = false;
        let mut numbers = 0..;
        let mut next = || format!("message {}", numbers.next().unwrap());
        for operation in sequence {
            let count = receivers.len();
            match operation {
                Operation::Send => {
                    let message = next();
                    if closed {
                        let refused = Err(TrySendError::Closed(message.clone()));
                        assert_eq!(sender.try_send(message), refused);
                    } else {
                        receivers
                            .iter_mut()
                            .for_each(|(_, model)| model.send(&message, capacity));
                        sender.send(message).unwrap();
                    }
                }
                Operation::SendBatch(count) => {
                    let mut batch: Vec<_> = (0..count).map(|_| next()).collect();
                    for message in batch.iter().filter(|_| !closed) {
                        receivers
                            .iter_mut()
                            .for_each(|(_, model)| model.send(message, capacity));
                    }
                    assert_eq!(sender.send_batch(&mut batch).is_err(), closed);
                    assert_eq!(batch.len(), if closed { count } else { 0 });
                }
                Operation::Subscribe => receivers.push((sender.subscribe(), Model::default())),
                Operation::Close => {
                    sender.close();
                    closed = true;
                }
                _ if count == 0 => {}
                Operation::Recv(which) => {
                    let (receiver, model) = &mut receivers[which % count];
                    let nothing = if closed {
                        TryRecvError::Closed
                    } else {
                        TryRecvError::Empty
                    };
                    assert_eq!(receiver.try_recv(), model.recv().ok_or(nothing));
                }
                Operation::RecvInATask(which) => {
                    let (receiver, model) = &mut receivers[which % count];
                    let expected = match model.recv() {
                        Some(message) => Poll::Ready(Ok(message)),
                        None if closed => Poll::Ready(Err(RecvError)),
                        None => Poll::Pending,
                    };
                    assert_eq!(poll_once(&mut receiver.recv_async()), expected);
                }
                Operation::RecvBatch(which, most) => {
                    let (receiver, model) = &mut receivers[which % count];
                    let mut batch = Vec::new();
                    let _ = receiver.try_recv_batch(&mut batch, most);
                    let most = if model.missed > 0 { most.min(1) } else { most };
                    let expected: Vec<_> = (0..most).map_while(|_| model.recv()).collect();
                    assert_eq!(batch, expected);
                }
                Operation::Resubscribe(which) => {
                    let receiver = receivers[which % count].0.resubscribe();
                    receivers.push((receiver, Model::default()));
                }
                Operation::Clone(which) => {
                    let (receiver, model) = &receivers[which % count];
                    let clone = (receiver.clone(), model.clone());
                    receivers.push(clone);
                }
                Operation::Drop(which) => drop(receivers.swap_remove(which % count)),
            }
            assert_eq!(sender.receiver_count(), receivers.len());
            let lengths = receivers.iter().map(|(_, model)| model.messages.len());
            assert_eq!(sender.len(), lengths.max().unwrap_or(0));
            for (receiver, model) in &receivers {
                assert_eq!(receiver.len(), model.messages.len());
                assert_eq!(receiver.is_empty(), model.messages.is_empty());
            }
        }
        drop(sender);
        for (receiver, mut model) in receivers {
            assert!(receiver.iter().eq(std::iter::from_fn(|| model.recv())));
        }
    });
}

/// The sender's name and the number of the message, on the heap: memory checkers notice a message
/// that is read while it is overwritten.
type Message = Box<(usize, u64)>;

/// Receives in every possible way until the channel is closed. Returns how many messages it got and
/// how many it missed.
fn receive_by_chance(receiver: &Receiver<Message>, mut random: Random, senders: usize) -> u64 {
    let mut last = vec![None; senders];
    let mut total = 0;
    let mut batch = Vec::new();
    loop {
        let most = 1 + random.below(20) as usize;
        let time = Duration::from_micros(random.below(40));
        let is_open = match random.below(6) {
            0 => receiver.try_recv().map(|got| batch.push(got)) != Err(TryRecvError::Closed),
            1 => receiver.recv().map(|got| batch.push(got)).is_ok(),
            2 => receiver.recv_batch(&mut batch, most).is_ok(),
            3 => {
                let got = receiver.recv_timeout(time).map(|got| batch.push(got));
                got != Err(RecvTimeoutError::Closed)
            }
            4 => block_on(receiver.recv_async())
                .map(|got| batch.push(got))
                .is_ok(),
            _ => {
                batch.extend(receiver.try_iter().take(most));
                true
            }
        };
        for got in batch.drain(..) {
            match got {
                Ok(message) => {
                    let (name, number) = *message;
                    assert!(last[name] < Some(number), "in the order of each sender");
                    last[name] = Some(number);
                    total += 1;
                }
                Err(Lagged(missed)) => total += missed,
            }
        }
        if !is_open {
            return total;
        }
    }
}

#[test]
fn each_receiver_gets_or_misses_every_message_once() {
    let _watched = watch();
    let first = seed().unwrap_or(1);
    let began = std::time::Instant::now();
    let runs = scaled(40, 2) as u64;
    let is_enough = |run| match seconds() {
        Some(time) => began.elapsed() > time,
        None => run == runs,
    };
    for run in (0..).take_while(|run| !is_enough(*run)) {
        let seed = first + run;
        let mut random = Random::new(seed);
        let capacity = 1 + random.below(if run % 2 == 0 { 4 } else { 200 }) as usize;
        let each = scaled(4_000, 40) as u64;
        let (sender, receiver) = broadcast::channel::<Message>(capacity).unwrap();
        let senders = 1 + random.below(3) as usize;
        thread::scope(|scope| {
            let mut all = Vec::new();
            for _ in 0..3 {
                let (receiver, random) = (receiver.clone(), random.another());
                all.push(scope.spawn(move || receive_by_chance(&receiver, random, senders)));
            }
            for name in 0..senders {
                let (sender, mut random) = (sender.clone(), random.another());
                scope.spawn(move || {
                    let mut numbers = 0..each;
                    while !numbers.is_empty() {
                        let count = 1 + random.below(8) as usize;
                        let part = numbers.by_ref().take(count);
                        let mut batch: Vec<_> = part.map(|i| Box::new((name, i))).collect();
                        match random.below(3) {
                            0 => sender.send_batch(&mut batch).unwrap(),
                            _ => batch.drain(..).for_each(|one| sender.send(one).unwrap()),
                        }
                        if random.below(16) == 0 {
                            thread::yield_now();
                        }
                    }
                });
            }
            drop(sender);
            for one in all {
                let total = one.join().unwrap();
                assert_eq!(total, each * senders as u64, "THALWEG_TEST_SEED={seed}");
            }
        });
    }
}
