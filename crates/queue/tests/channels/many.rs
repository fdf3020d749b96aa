//! Many threads on one channel: sums, order, progress of every thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use thalweg_queue::{Options, WaitStrategy, mpmc as many, mpsc as some};

use crate::chance::Random;
use crate::threads::{scaled, watch};

/// Sends `each` numbers from every producer, and checks their order at every consumer.
macro_rules! order_holds {
    ($sender:expr, $producers:expr, $each:expr, $receivers:expr) => {{
        let (sender, receivers) = ($sender, $receivers);
        let total = AtomicU64::new(0);
        thread::scope(|scope| {
            for producer in 0..$producers {
                let sender = sender.clone();
                scope.spawn(move || (0..$each).for_each(|i| sender.send((producer, i)).unwrap()));
            }
            drop(sender);
            for receiver in receivers {
                let total = &total;
                scope.spawn(move || {
                    let mut last = vec![None; $producers as usize];
                    for (producer, i) in receiver.iter() {
                        assert!(
                            last[producer as usize] < Some(i),
                            "{producer}: {i} out of order"
                        );
                        last[producer as usize] = Some(i);
                        total.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), $producers * $each);
    }};
}

flavours! { each: mpsc, lane, mpmc;
    fn order_of_each_producer_is_kept(chan) {
        for capacity in [1, 2, 7, 16, 300, 1_000] {
            for producers in [1, 2, 5, 12] {
                let each = scaled(2_000, 10) as u64;
                let (sender, receiver) = chan::channel::<(u64, u64)>(capacity).unwrap();
                order_holds!(sender, producers, each, [receiver]);
            }
        }
    }

    fn order_of_each_producer_is_kept_with_batches(chan) {
        for capacity in [1, 7, 64, 500] {
            let each = scaled(3_000, 30) as u64;
            let (sender, receiver) = chan::channel::<(usize, u64)>(capacity).unwrap();
            thread::scope(|scope| {
                for producer in 0..3 {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let mut random = Random::new(producer as u64 + 1);
                        let mut next = 0;
                        while next < each {
                            let count = (random.next() % 100).min(each - next);
                            let mut batch = (next..next + count).map(|i| (producer, i)).collect();
                            next += count;
                            if count.is_multiple_of(3) {
                                for value in batch {
                                    sender.send(value).unwrap();
                                }
                            } else {
                                sender.send_batch(&mut batch).unwrap();
                            }
                        }
                    });
                }
                drop(sender);
                let mut next = [0; 3];
                let mut batch = Vec::new();
                let mut random = Random::new(99);
                while receiver.recv_batch(&mut batch, random.next() as usize % 70 + 1).is_ok() {
                    for (producer, i) in batch.drain(..) {
                        assert_eq!(i, next[producer]);
                        next[producer] += 1;
                    }
                }
                assert_eq!(next, [each; 3]);
            });
        }
    }

    /// Four threads send pseudo-random values. All arrive, in order per thread.
    fn pseudo_random_values_arrive_in_order(chan) {
        let each = scaled(5_000, 20);
        let (sender, receiver) = chan::channel::<(usize, u64)>(10).unwrap();
        thread::scope(|scope| {
            for producer in 0..4 {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut random = Random::new(producer as u64 + 7);
                    for _ in 0..each {
                        sender.send((producer, random.next())).unwrap();
                    }
                });
            }
            drop(sender);
            let mut expected = [7, 8, 9, 10].map(Random::new);
            let mut counts = [0; 4];
            for (producer, value) in &receiver {
                assert_eq!(value, expected[producer].next());
                counts[producer] += 1;
            }
            assert_eq!(counts, [each; 4]);
        });
    }

    /// No sender is starved: for each 10,000 values of the others, every sender makes progress.
    /// (The lab measures the shares on a dedicated machine.)
    fn each_of_many_senders_makes_progress(chan) {
        let turn = scaled(10_000, 50);
        let (sender, receiver) = chan::channel::<usize>(64).unwrap();
        thread::scope(|scope| {
            for producer in 0..4 {
                let sender = sender.clone();
                scope.spawn(move || while sender.send(producer).is_ok() {});
            }
            let mut shares = [0; 4];
            for _ in 0..4 {
                let before = shares;
                let mut received = 0;
                // On a busy machine a thread may not run for a while, so the test continues until
                // every sender has made progress.
                while received < turn || (0..4).any(|i| shares[i] == before[i]) {
                    shares[receiver.recv().unwrap()] += 1;
                    received += 1;
                }
            }
            receiver.close();
            receiver.try_iter().for_each(drop);
        });
    }
}

#[test]
fn many_producers_and_consumers_keep_order() {
    let _watched = watch();
    let each = scaled(2_000, 10) as u64;
    for (producers, consumers) in [(2, 2), (5, 3), (1, 4), (4, 1), (4, 4)] {
        for capacity in [1, 3, 64, 1_024] {
            let (sender, receiver) = many::channel::<(u64, u64)>(capacity).unwrap();
            let receivers = vec![receiver; consumers];
            order_holds!(sender, producers as u64, each, receivers);
        }
    }
}

#[test]
fn many_producers_and_consumers_that_park_at_once_keep_order() {
    let _watched = watch();
    let each = scaled(2_000, 10) as u64;
    for capacity in [1, 2, 10] {
        let options = Options::new().wait_strategy(WaitStrategy::Park);
        let (sender, receiver) = many::with::<(u64, u64)>(capacity, options).unwrap();
        order_holds!(sender, 4u64, each, vec![receiver; 4]);
        let (sender, receiver) = some::with::<(u64, u64)>(capacity, options).unwrap();
        order_holds!(sender, 4u64, each, [receiver]);
    }
}

/// Four threads forward values to four other threads, which sum them up: nothing is lost.
#[test]
fn many_to_many_forwarding_loses_nothing() {
    let _watched = watch();
    let each = scaled(2_000, 20) as u64;
    let (first, from_first) = many::channel::<u64>(3).unwrap();
    let (second, from_second) = many::channel::<u64>(1).unwrap();
    let total: u64 = thread::scope(|scope| {
        for _ in 0..4 {
            let first = first.clone();
            scope.spawn(move || (1..=each).for_each(|i| first.send(i).unwrap()));
            let (from_first, second) = (from_first.clone(), second.clone());
            scope.spawn(move || from_first.iter().for_each(|i| second.send(2 * i).unwrap()));
        }
        drop((first, second, from_first));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let from_second = from_second.clone();
                scope.spawn(move || from_second.iter().sum::<u64>())
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(total, 4 * each * (each + 1));
}

/// One source, several workers, one sink.
#[test]
fn fan_out_and_fan_in_deliver_every_value() {
    let _watched = watch();
    let count = scaled(5_000, 50) as u64;
    let (work, jobs) = many::channel::<u64>(16).unwrap();
    let (done, results) = some::channel::<u64>(16).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || (0..count).for_each(|i| work.send(i).unwrap()));
        for _ in 0..4 {
            let (jobs, done) = (jobs.clone(), done.clone());
            scope.spawn(move || jobs.iter().for_each(|job| done.send(job * job).unwrap()));
        }
        drop((jobs, done));
        let mut squares: Vec<_> = results.iter().collect();
        squares.sort_unstable();
        assert!(squares.into_iter().eq((0..count).map(|i| i * i)));
    });
}

/// Primes from a chain of filters. Each filter is a thread that the previous one feeds.
#[test]
fn prime_sieve_through_a_chain_of_threads_is_correct() {
    let _watched = watch();
    let count = scaled(60, 5);
    let (sender, mut numbers) = thalweg_queue::spsc::channel::<u64>(1).unwrap();
    let mut threads = vec![thread::spawn(move || {
        let mut number = 2;
        while sender.send(number).is_ok() {
            number += 1;
        }
    })];
    let mut primes = Vec::new();
    for _ in 0..count {
        let prime = numbers.recv().unwrap();
        primes.push(prime);
        let (sender, next) = thalweg_queue::spsc::channel::<u64>(1).unwrap();
        let input = std::mem::replace(&mut numbers, next);
        threads.push(thread::spawn(move || {
            for number in input.iter().filter(|number| number % prime != 0) {
                if sender.send(number).is_err() {
                    break;
                }
            }
        }));
    }
    drop(numbers);
    for thread in threads {
        thread.join().unwrap();
    }
    let is_prime = |n: &u64| (2..*n).all(|d| !n.is_multiple_of(d));
    assert!(primes.into_iter().eq((2..).filter(is_prime).take(count)));
}
