//! Actors and threads at once, with waits that give up at any moment: values counted under a lock
//! add up, all permits are back in the end, and no waiter waits forever.
//!
//! `THALWEG_TEST_SEED` selects another run, `THALWEG_TEST_ROUNDS` its length.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use thalweg_runtime::sync::{
    Barrier, ClosableWaitError, Condvar, Mutex, Notify, RwLock, Semaphore, watch,
};
use thalweg_runtime::{Config, Runtime, check, wait, yield_now};

use crate::kit::{Random, setting};

/// The random numbers of participant `of`.
fn numbers(of: u64) -> Random {
    let seed: u64 = setting("THALWEG_TEST_SEED", 1);
    Random::new(seed.wrapping_mul(0x1_0001) ^ (of << 32))
}

/// Zero, or so short that it may expire at any moment.
fn soon(random: &Random) -> Duration {
    Duration::from_micros(random.below(40).saturating_sub(10) * 5)
}

fn rounds() -> u64 {
    setting("THALWEG_TEST_ROUNDS", if cfg!(miri) { 20 } else { 400 })
}

/// Keeps what the caller holds for a while: across a wait, or without one.
fn hold(random: &Random) {
    match random.below(8) {
        0 => yield_now(),
        1 if wait::is_actor() => thalweg_runtime::sleep(Duration::from_micros(70)),
        2 => check!(),
        _ => {}
    }
}

/// Polls the future once or twice, and drops it.
fn begin_and_drop(random: &Random, future: impl Future) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    if future.as_mut().poll(&mut context).is_pending() {
        hold(random);
        if random.below(2) == 0 {
            let _ = future.as_mut().poll(&mut context);
        }
    }
}

/// Runs `each` in `EACH` actors, on one worker and on two, and in as many threads.
fn everywhere<S: Send + Sync + 'static>(
    shared: impl Fn() -> S,
    each: impl Fn(&S, &Random) + Send + Sync + Clone + 'static,
    in_the_end: impl Fn(&S),
) {
    const EACH: u64 = 3;
    for workers in [1, 2] {
        let runtime = Runtime::start(Config::with_workers(workers)).unwrap();
        let shared = Arc::new(shared());
        let body = |of: u64| {
            let (shared, each) = (shared.clone(), each.clone());
            move || each(&shared, &numbers(of))
        };
        let threads: Vec<_> = (0..EACH).map(|n| std::thread::spawn(body(n))).collect();
        let actors: Vec<_> = (EACH..2 * EACH)
            .map(|n| runtime.handle().spawn(body(n)))
            .collect();
        threads.into_iter().for_each(|one| one.join().unwrap());
        actors.into_iter().for_each(|one| one.join().unwrap());
        in_the_end(&shared);
    }
}

#[test]
fn mutex_loses_no_increment() {
    everywhere(
        || (Mutex::new(0_u64), AtomicUsize::new(0)),
        |(mutex, added), random| {
            for _ in 0..rounds() {
                let guard = match random.below(4) {
                    0 => mutex.lock_timeout(soon(random)).ok(),
                    1 => mutex.try_lock(),
                    2 => {
                        begin_and_drop(random, mutex.lock_async());
                        None
                    }
                    _ => Some(mutex.lock()),
                };
                if let Some(mut guard) = guard {
                    let before = *guard;
                    hold(random);
                    *guard = before + 1;
                    added.fetch_add(1, Ordering::Relaxed);
                }
            }
        },
        |(mutex, added)| {
            let sum = mutex.try_lock().map(|guard| *guard);
            assert_eq!(sum, Some(added.load(Ordering::Relaxed) as u64));
        },
    );
}

#[test]
fn rwlock_readers_see_whole_writes() {
    everywhere(
        || RwLock::new([0_u64; 2]),
        |lock, random| {
            for _ in 0..rounds() {
                match random.below(6) {
                    0 => begin_and_drop(random, lock.write_async()),
                    1 => begin_and_drop(random, lock.read_async()),
                    2 => {
                        if let Ok(mut guard) = lock.write_timeout(soon(random)) {
                            guard[0] += 1;
                            hold(random);
                            guard[1] += 1;
                        }
                    }
                    3 => {
                        let mut guard = lock.write();
                        guard[0] += 1;
                        hold(random);
                        guard[1] += 1;
                    }
                    _ => {
                        let guard = lock.read();
                        let before = *guard;
                        hold(random);
                        assert_eq!(*guard, before);
                        assert_eq!(before[0], before[1]);
                    }
                }
            }
        },
        |lock| assert!(lock.try_write().is_some()),
    );
}

#[test]
fn semaphore_has_all_permits_at_the_end() {
    const MOST: usize = 4;
    everywhere(
        || (Semaphore::new(MOST), AtomicUsize::new(0)),
        |(semaphore, out), random| {
            for _ in 0..rounds() {
                let permits = 1 + random.below(MOST as u64) as usize;
                let permit = match random.below(4) {
                    0 => semaphore.acquire_timeout(permits, soon(random)).ok(),
                    1 => semaphore.try_acquire_many(permits).ok(),
                    2 => {
                        begin_and_drop(random, semaphore.acquire_async(permits));
                        None
                    }
                    _ => Some(semaphore.acquire_many(permits).unwrap()),
                };
                if let Some(permit) = permit {
                    assert!(out.fetch_add(permits, Ordering::Relaxed) + permits <= MOST);
                    hold(random);
                    out.fetch_sub(permits, Ordering::Relaxed);
                    drop(permit);
                }
            }
        },
        |(semaphore, _)| assert_eq!(semaphore.available(), MOST),
    );
}

/// A channel with one slot: each change is for one waiter, and some waiters give up.
#[test]
fn condvar_notification_reaches_a_waiter() {
    everywhere(
        || (Mutex::new(None::<u64>), Condvar::new(), Condvar::new()),
        |(place, filled, emptied), random| {
            for round in 0..rounds() {
                let mut value = emptied.wait_while(place.lock(), |value| value.is_some());
                *value = Some(round);
                drop(value);
                filled.notify_one();
                loop {
                    let timeout = soon(random);
                    let (mut value, _) =
                        filled.wait_while_timeout(place.lock(), timeout, |value| value.is_none());
                    if value.take().is_some() {
                        break;
                    }
                }
                emptied.notify_one();
            }
        },
        |(place, ..)| assert_eq!(*place.lock(), None),
    );
}

/// A token that is taken and put back: it stays exactly one, however many waiters give up.
#[test]
fn notify_permit_is_neither_lost_nor_duplicated() {
    everywhere(
        || {
            let token = Notify::new();
            token.notify_one();
            (token, AtomicUsize::new(0))
        },
        |(token, out), random| {
            for _ in 0..rounds() {
                let has_it = match random.below(3) {
                    0 => token.wait_timeout(soon(random)).is_ok(),
                    1 => {
                        let mut notified = pin!(token.notified());
                        let mut context = Context::from_waker(Waker::noop());
                        let begun = notified.as_mut().poll(&mut context).is_ready();
                        hold(random);
                        // A future that is not ready is dropped, and passes on any notification
                        // that it received.
                        begun
                    }
                    _ => {
                        token.wait();
                        true
                    }
                };
                if has_it {
                    assert_eq!(out.fetch_add(1, Ordering::Relaxed), 0);
                    hold(random);
                    out.fetch_sub(1, Ordering::Relaxed);
                    token.notify_one();
                }
            }
        },
        |(token, _)| assert_eq!(token.wait_timeout(Duration::ZERO), Ok(())),
    );
}

#[test]
fn barrier_releases_all_with_one_leader_each_round() {
    everywhere(
        || (Barrier::new(6), AtomicUsize::new(0)),
        |(barrier, led), random| {
            for round in 0..rounds() as usize {
                if random.below(3) == 0 {
                    // Six participants must arrive; this may be the sixth.
                    if let Ok(met) = barrier.wait_timeout(soon(random)) {
                        led.fetch_add(usize::from(met.is_leader()), Ordering::Relaxed);
                        assert!(led.load(Ordering::Relaxed) >= round);
                        continue;
                    }
                }
                let met = barrier.wait();
                led.fetch_add(usize::from(met.is_leader()), Ordering::Relaxed);
            }
        },
        |(_, led)| assert_eq!(led.load(Ordering::Relaxed) as u64, rounds()),
    );
}

#[test]
fn watch_receivers_all_see_the_last_value() {
    for workers in [1, 2] {
        let runtime = Runtime::start(Config::with_workers(workers)).unwrap();
        let (sender, receiver) = watch::channel(0);
        let reads = |of: u64| {
            let mut receiver = receiver.clone();
            move || {
                let random = numbers(of);
                let mut last = 0;
                loop {
                    match random.below(3) {
                        0 => match receiver.changed_timeout(soon(&random)) {
                            Err(ClosableWaitError::Closed) => return last,
                            Err(_) => continue,
                            Ok(()) => {}
                        },
                        1 => begin_and_drop(&random, receiver.changed_async()),
                        _ => {
                            if receiver.changed().is_err() {
                                return last;
                            }
                        }
                    }
                    let value = *receiver.borrow_and_update();
                    assert!(value >= last);
                    last = value;
                }
            }
        };
        let thread = std::thread::spawn(reads(1));
        let actors = [2, 3].map(|of| runtime.handle().spawn(reads(of)));
        for value in 1..=rounds() {
            sender.send(value).unwrap();
        }
        drop(sender);
        assert_eq!(thread.join().unwrap(), rounds());
        assert_eq!(actors.map(|actor| actor.join().unwrap()), [rounds(); 2]);
    }
}
