//! Futures that wait for a condition variable and are dropped. In each of their states they lose
//! nothing and retain nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thalweg_runtime::sync::{Condvar, Mutex};
use thalweg_runtime::{run, select, sleep_async, spawn, yield_now};

use crate::kit::on_both;

/// Polls the future once, with a waker that wakes nobody.
fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_wait_at_a_condvar_that_is_never_polled_unlocks_and_no_more() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    let wait = changed.wait_async(mutex.lock());
    assert!(mutex.is_locked());
    drop(wait);
    assert!(!mutex.is_locked());
    // The dropped future is not in the wait list either.
    let mut other = Box::pin(changed.wait_async(mutex.lock()));
    assert!(poll(&mut other).is_pending());
    changed.notify_one();
    assert!(poll(&mut other).is_ready());
}

/// The state of one of two waiting futures when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    InLine,
    Woken,
    WaitsForTheLock,
}

#[test]
fn a_wake_up_of_one_that_is_dropped_before_it_has_the_lock_goes_to_the_next() {
    for state in [State::InLine, State::Woken, State::WaitsForTheLock] {
        let (mutex, changed) = (Mutex::new(()), Condvar::new());
        let [mut one, mut other] = [(); 2].map(|()| {
            let mut wait = Box::pin(changed.wait_async(mutex.lock()));
            assert!(poll(&mut wait).is_pending() && !mutex.is_locked());
            wait
        });
        if state != State::InLine {
            changed.notify_one();
        }
        let held = (state == State::WaitsForTheLock).then(|| mutex.lock());
        if held.is_some() {
            assert!(poll(&mut one).is_pending());
        }
        drop((one, held));
        if state == State::InLine {
            assert!(poll(&mut other).is_pending());
            changed.notify_one();
        }
        assert!(poll(&mut other).is_ready(), "{state:?}");
    }
}

#[test]
fn who_has_the_lock_again_has_seen_it_and_nobody_else_is_woken() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    let wait = || {
        let mut wait = Box::pin(changed.wait_async(mutex.lock()));
        assert!(poll(&mut wait).is_pending());
        wait
    };
    let (mut one, mut other) = (wait(), wait());
    changed.notify_one();
    assert!(poll(&mut one).is_ready());
    drop(one);
    assert!(poll(&mut other).is_pending());
    // A wake-up from `notify_all` is not passed on.
    changed.notify_all();
    let mut later = wait();
    let held = mutex.lock();
    assert!(poll(&mut other).is_pending());
    drop((other, held));
    assert!(poll(&mut later).is_pending() && !mutex.is_locked());
}

#[test]
fn an_actor_that_is_killed_while_it_locks_again_passes_its_wake_up_on() {
    run(|| {
        let shared = Arc::new((Mutex::new(()), Condvar::new()));
        let [first, second] = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            let waits = spawn(move || {
                let (mutex, changed) = &*shared;
                let (_guard, woken) = changed.wait_timeout(mutex.lock(), Duration::from_secs(20));
                woken
            });
            yield_now();
            waits
        });
        let held = shared.0.lock();
        shared.1.notify_one();
        (0..3).for_each(|_| yield_now());
        first.pid().kill().unwrap();
        assert!(first.join().is_err());
        drop(held);
        assert_eq!(second.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_condvar_is_selected_and_what_changed_is_seen() {
    on_both(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let other = Arc::clone(&shared);
        let counts = spawn(move || {
            for _ in 0..100 {
                *other.0.lock() += 1;
                other.1.notify_one();
                yield_now();
            }
        });
        let (mutex, changed) = &*shared;
        let mut lost = 0;
        loop {
            select! {
                value = async { changed.wait_while_async(mutex.lock_async().await, |n| *n < 100).await } => {
                    assert_eq!(*value, 100);
                    break;
                }
                () = sleep_async(Duration::from_micros(20)) => lost += 1,
            }
        }
        counts.join().unwrap();
        assert!(!mutex.is_locked(), "after {lost} that lost");
    });
}
