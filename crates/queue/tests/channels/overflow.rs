//! The overflow policies. Every value is accounted for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{
    CreateError, Options, Overflow, SendError, TrySendError, mpmc as many, mpsc as some,
    spsc as one,
};

use crate::threads::{Crew, scaled, watch};

const PUBLISHED: u64 = scaled(10_000, 100) as u64;
const SLOTS: u64 = 16;

fn options(overflow: Overflow) -> Options {
    Options::new().overflow(overflow)
}

flavours! { each: spsc, mpsc, lane, mpmc;
    fn fail_returns_the_value_when_full(chan) {
        let (sender, receiver) = chan::with(SLOTS as usize, options(Overflow::Fail)).unwrap();
        let mut failed = 0;
        for i in 0..PUBLISHED {
            match sender.send(i) {
                Ok(()) => assert!(i < SLOTS),
                Err(SendError::Full(back)) => {
                    assert_eq!(back, i);
                    failed += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        drop(sender);
        assert!(receiver.iter().eq(0..SLOTS));
        assert_eq!(SLOTS + failed, PUBLISHED);
        assert_eq!(receiver.stats().dropped_newest, 0);
    }

    fn drop_newest_keeps_the_oldest_and_counts_the_rest(chan) {
        let options = options(Overflow::DropNewest);
        let (sender, receiver) = chan::with(SLOTS as usize, options).unwrap();
        (0..PUBLISHED).for_each(|i| sender.send(i).unwrap());
        assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)), "a try is not counted");
        sender.close();
        assert_eq!(sender.send(1), Err(SendError::Closed(1)));
        assert!(receiver.iter().eq(0..SLOTS));
        let stats = receiver.stats();
        assert_eq!(SLOTS + stats.dropped_newest, PUBLISHED);
        assert_eq!(stats.dropped_oldest + stats.conflated, 0);
        assert_eq!(stats.high_water as u64, SLOTS);
    }

    fn block_loses_nothing(chan) {
        let (sender, receiver) = chan::with(SLOTS as usize, options(Overflow::Block)).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || (0..PUBLISHED).for_each(|i| sender.send(i).unwrap()));
            assert!(receiver.iter().eq(0..PUBLISHED));
        });
        let stats = receiver.stats();
        assert_eq!(stats.dropped_newest + stats.dropped_oldest + stats.conflated, 0);
    }

    fn block_for_returns_the_value_after_the_timeout(chan) {
        let time = Duration::from_millis(20);
        let (sender, receiver) = chan::with(1, options(Overflow::BlockFor(time))).unwrap();
        sender.send(1u64).unwrap();
        let since = Instant::now();
        assert_eq!(sender.send(2), Err(SendError::TimedOut(2)));
        assert!(since.elapsed() >= time);
        assert_eq!(receiver.recv(), Ok(1));
        sender.send(3).unwrap();
        sender.close();
        assert_eq!(sender.send(4), Err(SendError::Closed(4)));

        // If there is capacity in time, the send succeeds.
        let long = Overflow::BlockFor(Duration::from_secs(100));
        let (sender, receiver) = chan::with(1, options(long)).unwrap();
        sender.send(1u64).unwrap();
        let crew = Crew::new();
        let thread = crew.spawn(move || sender.send(2));
        crew.asleep(1);
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    /// Delivered values are in order, and the others are counted.
    fn drops_during_receives_are_counted_exactly(chan) {
        let options = options(Overflow::DropNewest);
        let (sender, receiver) = chan::with(SLOTS as usize, options).unwrap();
        thread::scope(|scope| {
            scope.spawn(move || (0..PUBLISHED).for_each(|i| sender.send(i).unwrap()));
            let got: Vec<_> = receiver.iter().collect();
            assert!(got.is_sorted());
            assert_eq!(got.len() as u64 + receiver.stats().dropped_newest, PUBLISHED);
        });
    }
}

flavours! { without_eviction: spsc, mpsc;
    fn eviction_policy_without_eviction_is_an_error(chan) {
        for overflow in [Overflow::DropOldest, Overflow::Latest] {
            let refused = chan::with::<u64>(4, options(overflow)).err();
            assert_eq!(refused, Some(CreateError::Overflow(overflow)));
            assert_eq!(
                refused.unwrap().to_string(),
                format!("only an mpmc channel supports the policy {overflow:?}")
            );
        }
    }
}

#[test]
fn drop_oldest_keeps_the_newest_and_counts_the_rest() {
    let (sender, receiver) = many::with(SLOTS as usize, options(Overflow::DropOldest)).unwrap();
    (0..PUBLISHED).for_each(|i| sender.send(i).unwrap());
    drop(sender);
    assert!(receiver.iter().eq(PUBLISHED - SLOTS..PUBLISHED));
    let stats = receiver.stats();
    assert_eq!(SLOTS + stats.dropped_oldest, PUBLISHED);
    assert_eq!(stats.dropped_newest + stats.conflated, 0);
}

#[test]
fn latest_keeps_the_last_and_counts_the_replaced() {
    for slots in [1, 2, SLOTS as usize] {
        let (sender, receiver) = many::with(slots, options(Overflow::Latest)).unwrap();
        (0..PUBLISHED).for_each(|i| sender.send(i).unwrap());
        drop(sender);
        let got: Vec<_> = receiver.iter().collect();
        assert_eq!(got.last(), Some(&(PUBLISHED - 1)));
        assert!(got.len() <= slots && got.is_sorted());
        let stats = receiver.stats();
        assert_eq!(got.len() as u64 + stats.conflated, PUBLISHED);
        assert_eq!(stats.dropped_newest + stats.dropped_oldest, 0);
    }
}

/// Several senders and a concurrent receiver: delivered + dropped = published, exactly, for each
/// policy that drops.
#[test]
fn every_policy_accounts_for_every_value_of_many_senders() {
    let _watched = watch();
    for overflow in [Overflow::DropNewest, Overflow::DropOldest, Overflow::Latest] {
        for slots in [1, 2, SLOTS as usize] {
            let (sender, receiver) = many::with(slots, options(overflow)).unwrap();
            let delivered = AtomicU64::new(0);
            thread::scope(|scope| {
                for producer in 0..3u64 {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        (0..PUBLISHED).for_each(|i| sender.send((producer, i)).unwrap());
                    });
                }
                drop(sender);
                for _ in 0..2 {
                    let (receiver, delivered) = (receiver.clone(), &delivered);
                    scope.spawn(move || {
                        let mut last = [None; 3];
                        for (producer, i) in receiver.iter() {
                            assert!(last[producer as usize] < Some(i), "out of order");
                            last[producer as usize] = Some(i);
                            delivered.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
            });
            let stats = receiver.stats();
            let dropped = stats.dropped_newest + stats.dropped_oldest + stats.conflated;
            assert_eq!(
                delivered.into_inner() + dropped,
                3 * PUBLISHED,
                "{overflow:?}"
            );
        }
    }
}

#[test]
fn default_options_block_and_wait_adaptively() {
    assert_eq!(Options::new(), Options::default().overflow(Overflow::Block));
    assert!(one::with::<u8>(1, Options::new()).is_ok());
    assert!(some::with::<u8>(1, Options::new()).is_ok());
}
