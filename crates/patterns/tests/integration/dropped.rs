//! Futures that wait for a bulkhead or a rate limit, and are dropped. In each of their states they
//! lose nothing and retain nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_patterns::{Bulkhead, BulkheadError, RateLimit};
use thalweg_runtime::{select, sleep_async, spawn, yield_now};

use crate::kit::{LONG, on_both};

/// Polls the future once, with a waker that wakes nobody.
fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_place_in_a_bulkhead_and_its_line_comes_back_from_each_state() {
    let bulkhead = Bulkhead::new(1, 1).unwrap();
    drop(bulkhead.enter_async());
    let inside = bulkhead.try_enter().unwrap();
    let counts = || (bulkhead.running(), bulkhead.waiting());

    let mut waits = Box::pin(bulkhead.enter_async());
    assert_eq!(counts(), (1, 0), "it has not been polled");
    assert!(poll(&mut waits).is_pending());
    assert_eq!(counts(), (1, 1));
    let full = poll(&mut Box::pin(bulkhead.enter_async())).map(|entered| entered.unwrap_err());
    assert_eq!(full, Poll::Ready(BulkheadError::Full { waiting: 1 }));
    drop(waits);
    assert_eq!(counts(), (1, 0));

    // The future was granted the permit, but is not polled again.
    let mut waits = Box::pin(bulkhead.enter_async());
    assert!(poll(&mut waits).is_pending());
    drop(inside);
    assert_eq!(counts(), (1, 1));
    drop(waits);
    assert_eq!(counts(), (0, 0));

    let inside = poll(&mut Box::pin(bulkhead.enter_async()));
    assert!(matches!(inside, Poll::Ready(Ok(_))));
    assert_eq!(counts(), (1, 0));
    drop(inside);
    assert_eq!(counts(), (0, 0));
}

#[test]
fn a_bulkhead_is_selected_and_all_come_to_it() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(2, 20).unwrap());
        let all: Vec<_> = (0..20)
            .map(|n| {
                let bulkhead = Arc::clone(&bulkhead);
                spawn(move || {
                    loop {
                        select! {
                            entered = bulkhead.enter_async() => {
                                let _inside = entered.unwrap();
                                assert!(bulkhead.running() <= 2);
                                yield_now();
                                break n;
                            }
                            () = sleep_async(Duration::from_micros(n % 5)) => yield_now(),
                        }
                    }
                })
            })
            .collect();
        for (n, one) in all.into_iter().enumerate() {
            assert_eq!(one.join().unwrap(), n as u64);
        }
        assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
    });
}

#[test]
fn dropped_rate_limit_wait_returns_its_reservation_if_it_is_the_last() {
    // One permit in a thousand seconds.
    let limit = RateLimit::new(0.001, 1).unwrap();
    let now = Instant::now() + Duration::from_secs(1);
    let after = || limit.retry_after_at(now).as_secs();
    drop(limit.acquire_async());
    assert_eq!(after(), 0, "it was not polled");
    assert!(limit.try_acquire_at(now).is_ok());
    assert_eq!(after(), 1_000);

    // The future returns its reservation to the next caller, however often this happens.
    for _ in 0..10 {
        let mut waits = Box::pin(limit.acquire_async());
        assert!(poll(&mut waits).is_pending());
        assert_eq!(after(), 2_000);
    }
    assert_eq!(after(), 1_000);

    let [mut one, mut other] = [(); 2].map(|()| Box::pin(limit.acquire_async()));
    assert!(poll(&mut one).is_pending() && poll(&mut other).is_pending());
    assert_eq!(after(), 3_000);
    drop(one);
    assert_eq!(after(), 3_000, "the second comes no sooner");
    drop(other);
    assert_eq!(after(), 2_000);
}

#[test]
fn a_rate_limit_is_selected_and_keeps_its_rate() {
    on_both(|| {
        let limit = RateLimit::new(10_000.0, 1).unwrap();
        let began = Instant::now();
        let (mut had, mut lost) = (0, 0);
        while had < 50 {
            select! {
                () = limit.acquire_async() => had += 1,
                () = sleep_async(Duration::from_micros(30)) => lost += 1,
            }
        }
        let least = Duration::from_micros(49 * 100);
        assert!(began.elapsed() >= least, "after {lost} that lost");
        select! {
            () = limit.acquire_async() => {}
            () = sleep_async(LONG) => unreachable!("what lost holds none"),
        }
    });
}
