//! Rate limits: the burst, the rate and the waiters. The tests pass the time explicitly and do not
//! sleep.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_patterns::{RateError, RateLimit};
use thalweg_runtime::{run, spawn};

use crate::kit::{LONG, Random, millis, on_both};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn burst_is_available_at_once_then_the_rate_applies() {
    let limit = RateLimit::new(10.0, 3).unwrap();
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(limit.try_acquire_at(start), Ok(()));
    }
    let retry_after = limit.retry_after_at(start);
    assert!(retry_after <= millis(100) && retry_after > millis(99));
    assert_eq!(
        limit.try_acquire_at(start),
        Err(RateError::Exhausted { retry_after })
    );
    let early = start + retry_after - Duration::from_nanos(1);
    assert!(limit.try_acquire_at(early).is_err());
    assert_eq!(limit.try_acquire_at(start + retry_after), Ok(()));
    // A pause restores the full burst, and no more.
    let later = start + 100 * SECOND;
    assert_eq!(limit.retry_after_at(later), Duration::ZERO);
    assert_eq!(
        (0..9)
            .filter(|_| limit.try_acquire_at(later).is_ok())
            .count(),
        3
    );
}

#[test]
fn many_permits_are_all_or_nothing() {
    let limit = RateLimit::new(1.0, 4).unwrap();
    let start = Instant::now();
    assert_eq!(limit.try_acquire_many_at(3, start), Ok(()));
    assert!(limit.try_acquire_many_at(2, start).is_err());
    assert_eq!(limit.try_acquire_at(start), Ok(()), "nothing was taken");
    let too_many = RateError::TooMany { burst: 4 };
    assert_eq!(
        too_many.to_string(),
        "at most 4 permits are available at once"
    );
    assert_eq!(limit.try_acquire_many_at(5, start + LONG), Err(too_many));
    assert_eq!(limit.try_acquire_many_at(4, start + LONG), Ok(()));
    assert_eq!(limit.try_acquire_many_at(0, start + LONG), Ok(()));
}

/// Compares the limit with a leaky bucket that drains at the rate and holds a burst: the other form
/// of the algorithm in ITU-T I.371.
#[test]
fn limit_admits_the_same_as_a_leaky_bucket() {
    let random = Random::new(3);
    for _ in 0..if cfg!(miri) { 2 } else { 200 } {
        // Intervals that are whole numbers of its units, so that both forms are exact.
        let interval = 1 + random.below(1_000_000);
        let burst = 1 + random.below(20);
        let limit = RateLimit::new(1e9 / interval as f64, burst as u32).unwrap();
        let interval = {
            // The interval that the limit computes from the rate, in sixteenths of a nanosecond.
            let exact = 1e9 * 16.0 / (1e9 / interval as f64);
            exact.ceil() as u128
        };
        let start = Instant::now() + SECOND;
        let (mut level, mut last, mut now) = (0u128, 0u128, 0u64);
        for _ in 0..300 {
            now += random.below(2 * interval as u64 / 16 + 2);
            let permits = random.below(burst + 1) as u32;
            let time = u128::from(now) * 16;
            let leaked = level.saturating_sub(time - last);
            let after = leaked + interval * u128::from(permits);
            let fits = after <= interval * u128::from(burst);
            if fits {
                (level, last) = (after, time);
            }
            let at = start + Duration::from_nanos(now);
            assert_eq!(limit.try_acquire_many_at(permits, at).is_ok(), fits);
        }
    }
}

#[test]
fn threads_together_never_exceed_the_burst() {
    let burst = if cfg!(miri) { 50 } else { 1_000 };
    let limit = Arc::new(RateLimit::new(1.0, burst).unwrap());
    let now = Instant::now();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let limit = Arc::clone(&limit);
            std::thread::spawn(move || {
                (0..burst * 9 / 10)
                    .filter(|_| limit.try_acquire_at(now).is_ok())
                    .count()
            })
        })
        .collect();
    let got: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(got, burst as usize);
}

#[test]
fn waiting_caller_has_reserved_its_permit() {
    on_both(|| {
        let limit = Arc::new(RateLimit::new(1_000.0, 1).unwrap());
        let start = Instant::now();
        let waiters: Vec<_> = (0..5)
            .map(|_| {
                let limit = Arc::clone(&limit);
                spawn(move || limit.acquire())
            })
            .collect();
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().unwrap());
        assert!(
            start.elapsed() >= millis(4),
            "the last came after four more"
        );
    });
}

#[test]
fn acquire_beyond_its_timeout_returns_at_once() {
    run(|| {
        let limit = RateLimit::new(0.001, 1).unwrap();
        limit.acquire();
        let before = limit.retry_after();
        for refused in [
            limit.acquire_timeout(SECOND),
            limit.acquire_deadline(Instant::now() + SECOND),
        ] {
            assert!(matches!(
                refused,
                Err(RateError::Exhausted { retry_after }) if retry_after > 500 * SECOND
            ));
        }
        assert!(limit.retry_after() <= before, "no place was taken");
    });
}

#[test]
fn invalid_rate_is_refused() {
    let refused = |rate, burst| RateLimit::new(rate, burst).unwrap_err().to_string();
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
        let positive = "a rate is a positive number of permits per second, at most 10^9";
        assert_eq!(refused(rate, 1), positive, "{rate}");
    }
    assert_eq!(refused(1.0, 0), "a burst is at least 1");
    for (rate, burst) in [(1e-300, 1), (0.001, u32::MAX)] {
        assert_eq!(refused(rate, burst), "a full burst takes at most two years");
    }
    let fastest = RateLimit::new(1e9, u32::MAX).unwrap();
    assert_eq!(fastest.burst(), u32::MAX);
    assert_eq!(fastest.try_acquire_many(u32::MAX), Ok(()));
}
