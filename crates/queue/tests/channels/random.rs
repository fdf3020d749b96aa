//! Long random runs. Senders and receivers use every kind of send and receive, and the channel is
//! closed at a random moment. In the end, every accepted value was delivered once, or is left in
//! the channel.
//!
//! `THALWEG_TEST_SECONDS` sets the duration of each test, `THALWEG_TEST_SEED` sets the first seed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{
    Options, RecvTimeoutError, Select, SendTimeoutError, TryRecvError, TrySendError, WaitStrategy,
};

use crate::chance::{Random, seed};
use crate::executor::{block_on, poll_once};
use crate::threads::{scaled, seconds};

/// The sender, and the index of the value.
type Value = (usize, u32);

/// Sends randomly until the channel is closed or enough was sent. Returns the accepted values.
macro_rules! send_by_chance {
    ($sender:expr, $name:expr, $random:expr, $most:expr, $closes:expr) => {{
        let (sender, mut random, name) = ($sender, $random, $name);
        let mut accepted: Vec<u32> = Vec::new();
        let mut next = 0;
        while next < $most {
            let time = Duration::from_micros(random.below(40));
            let value = (name, next);
            let sent = match random.below(8) {
                0 | 1 => match sender.try_send(value) {
                    Ok(()) => Some(1),
                    Err(TrySendError::Full(_)) => Some(0),
                    Err(TrySendError::Closed(_)) => None,
                },
                2 | 3 => sender.send(value).ok().map(|()| 1),
                4 => match sender.send_timeout(value, time) {
                    Ok(()) => Some(1),
                    Err(SendTimeoutError::TimedOut(_)) => Some(0),
                    Err(SendTimeoutError::Closed(_)) => None,
                },
                5 => match poll_once(&mut sender.send_async(value)) {
                    std::task::Poll::Ready(result) => result.ok().map(|()| 1),
                    std::task::Poll::Pending => Some(0),
                },
                6 => block_on(sender.send_async(value)).ok().map(|()| 1),
                _ => {
                    let count = random.below(90) as u32;
                    let mut batch: Vec<_> = (next..next + count).map(|i| (name, i)).collect();
                    let result = if random.below(2) == 0 {
                        sender.try_send_batch(&mut batch).map(drop)
                    } else {
                        sender.send_batch(&mut batch)
                    };
                    let sent = count - batch.len() as u32;
                    accepted.extend(next..next + sent);
                    // The values that were left over are not sent again.
                    next += count;
                    if result.is_err() {
                        break;
                    }
                    continue;
                }
            };
            match sent {
                Some(sent) => accepted.extend(next..next + sent),
                None => break,
            }
            next += 1;
            if $closes == Some(next) {
                sender.close();
            }
        }
        accepted
    }};
}

/// Receives randomly until the channel is closed and drained. Returns the values and the receiver.
macro_rules! receive_by_chance {
    ($receiver:expr, $random:expr, $closes:expr) => {{
        let (receiver, mut random) = ($receiver, $random);
        let mut got: Vec<Value> = Vec::new();
        let mut turns = 0;
        loop {
            turns += 1;
            if $closes == Some(turns) {
                receiver.close();
            }
            let most = random.below(100) as usize + 1;
            let time = Duration::from_micros(random.below(40));
            let received = match random.below(8) {
                0 => receiver.try_recv(),
                1 | 2 => receiver.recv().map_err(|_| TryRecvError::Closed),
                3 => receiver.recv_timeout(time).map_err(|error| match error {
                    RecvTimeoutError::TimedOut => TryRecvError::Empty,
                    RecvTimeoutError::Closed => TryRecvError::Closed,
                }),
                4 => match poll_once(&mut receiver.recv_async()) {
                    std::task::Poll::Ready(result) => result.map_err(|_| TryRecvError::Closed),
                    std::task::Poll::Pending => Err(TryRecvError::Empty),
                },
                5 => block_on(receiver.recv_async()).map_err(|_| TryRecvError::Closed),
                6 => {
                    let mut select = Select::new();
                    select.recv(&receiver);
                    select.ready_timeout(time);
                    receiver.try_recv()
                }
                _ if random.below(2) == 0 => match receiver.try_recv_batch(&mut got, most) {
                    Ok(_) | Err(TryRecvError::Empty) => continue,
                    Err(TryRecvError::Closed) => break,
                },
                _ => match receiver.recv_batch(&mut got, most) {
                    Ok(_) => continue,
                    Err(_) => break,
                },
            };
            match received {
                Ok(value) => got.push(value),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Closed) => break,
            }
        }
        (got, receiver)
    }};
}

/// Runs rounds with successive seeds for a while, and reports the seed of a failure.
fn rounds(mut round: impl FnMut(Random)) {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if thread::panicking() {
                eprintln!("THALWEG_TEST_SEED={}", self.0);
            }
        }
    }
    static SEED: AtomicU64 = AtomicU64::new(1);
    let time = seconds().unwrap_or(Duration::from_millis(scaled(700, 0) as u64));
    let since = Instant::now();
    let mut seed = Seed(seed().unwrap_or_else(|| SEED.fetch_add(1 << 32, Ordering::Relaxed)));
    loop {
        round(Random::new(seed.0));
        seed.0 += 1;
        if since.elapsed() >= time {
            break;
        }
    }
}

/// Checks that the receivers got exactly the values that were accepted from each sender: none lost,
/// none duplicated, none invented.
fn settle(accepted: Vec<Vec<u32>>, delivered: &[Vec<Value>], in_order: bool) {
    let mut by_sender: HashMap<usize, Vec<u32>> = HashMap::new();
    for got in delivered {
        let mut last = HashMap::new();
        for (sender, number) in got {
            by_sender.entry(*sender).or_default().push(*number);
            let before = last.insert(*sender, *number);
            assert!(
                before < Some(*number),
                "{before:?} and then {number} of sender {sender}"
            );
        }
    }
    for (sender, accepted) in accepted.into_iter().enumerate() {
        let mut delivered = by_sender.remove(&sender).unwrap_or_default();
        if !in_order {
            delivered.sort_unstable();
        }
        assert!(
            accepted == delivered,
            "of sender {sender}: {} and {}",
            accepted.len(),
            delivered.len()
        );
    }
    assert!(by_sender.is_empty());
}

flavours! { each: spsc, mpsc, lane, mpmc, unbounded;
    fn accepted_values_are_delivered_once_or_left(chan) {
        rounds(|mut random| {
            let capacity = [1, 2, 3, 5, 16, 64, 500][random.below(7) as usize];
            let strategy = [WaitStrategy::Adaptive, WaitStrategy::Park][random.below(2) as usize];
            let (sender, receiver) =
                chan::with::<Value>(capacity, Options::new().wait_strategy(strategy)).unwrap();
            let mut senders = chan::more_senders(&sender, random.below(4) as usize);
            let mut receivers = chan::more_receivers(&receiver, random.below(3) as usize);
            senders.push(sender);
            receivers.push(receiver);
            let most = [10, 100, 1_000][random.below(3) as usize].min(scaled(1_000, 20) as u32);
            let alone = receivers.len() == 1;
            let (accepted, received) = thread::scope(|scope| {
                let mut who_closes = random.below(6);
                let mut closes = |random: &mut Random| {
                    who_closes = who_closes.wrapping_sub(1);
                    (who_closes == 0).then(|| random.below(u64::from(most)) as u32 + 1)
                };
                let mut threads = Vec::new();
                for (name, sender) in senders.into_iter().enumerate() {
                    let closes = closes(&mut random);
                    let random = random.another();
                    threads.push(scope.spawn(move || send_by_chance!(sender, name, random, most, closes)));
                }
                let mut receiving = Vec::new();
                for receiver in receivers {
                    let closes = closes(&mut random);
                    let random = random.another();
                    receiving.push(scope.spawn(move || receive_by_chance!(receiver, random, closes)));
                }
                let accepted = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
                let received = receiving.into_iter().map(|thread| thread.join().unwrap());
                (accepted, received.collect::<Vec<_>>())
            });
            let mut delivered = Vec::new();
            let mut left = Vec::new();
            for (got, receiver) in received {
                left.extend(receiver.try_iter());
                delivered.push(got);
            }
            if alone {
                // Values that arrived after the receiver's last check follow those that it
                // received.
                delivered[0].extend(left);
            } else {
                assert_eq!(left, [], "closing such a channel is exact");
            }
            settle(accepted, &delivered, alone);
        });
    }
}
