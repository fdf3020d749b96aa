//! Circuit breakers: the states and the transitions between them. The tests pass the time
//! explicitly and do not sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_patterns::{
    BreakerConfig, BreakerError, BreakerState, CircuitBreaker, CircuitOpen, Trip,
};
use thalweg_runtime::cancel::{cancel_scope, with_timeout};
use thalweg_runtime::supervisor::Backoff;
use thalweg_runtime::{run, sleep, spawn, yield_now};

use crate::kit::{LONG, Random, millis, on_both};

const SECOND: Duration = Duration::from_secs(1);

const OPEN: Backoff = Backoff {
    first: SECOND,
    max: Duration::from_secs(8),
    jitter: 0.0,
    reset_after: Duration::from_secs(100),
};

fn in_a_row(failures: u32) -> BreakerConfig {
    BreakerConfig {
        trip: Trip::Consecutive {
            failures,
            within: Duration::from_secs(10),
        },
        open: OPEN,
        probes: 1,
    }
}

/// Returns a breaker and a start time. The breaker's own time base is earlier than that.
fn breaker(config: BreakerConfig) -> (CircuitBreaker, Instant) {
    (CircuitBreaker::new(config).unwrap(), Instant::now())
}

fn fail(breaker: &CircuitBreaker, now: Instant) {
    breaker.enter_at(now).unwrap().failed_at(now);
}

fn succeed(breaker: &CircuitBreaker, now: Instant) {
    breaker.enter_at(now).unwrap().succeeded_at(now);
}

#[test]
fn consecutive_failures_open_the_breaker() {
    let (breaker, now) = breaker(in_a_row(3));
    fail(&breaker, now);
    fail(&breaker, now);
    succeed(&breaker, now);
    fail(&breaker, now);
    fail(&breaker, now);
    assert_eq!(breaker.state_at(now), BreakerState::Closed);
    fail(&breaker, now + millis(1));
    let left = SECOND - millis(1);
    assert_eq!(
        breaker.state_at(now + millis(2)),
        BreakerState::Open { left }
    );
    assert_eq!(
        breaker.enter_at(now + millis(2)).unwrap_err(),
        CircuitOpen { left }
    );
}

#[test]
fn old_failures_do_not_open_the_breaker() {
    let (breaker, now) = breaker(in_a_row(3));
    for seconds in [0, 6, 12, 18, 24] {
        fail(&breaker, now + seconds * SECOND);
    }
    assert_eq!(breaker.state_at(now + 24 * SECOND), BreakerState::Closed);
    fail(&breaker, now + 25 * SECOND);
    assert_ne!(breaker.state_at(now + 25 * SECOND), BreakerState::Closed);
}

#[test]
fn failure_rate_opens_the_breaker_after_enough_calls() {
    let (breaker, now) = breaker(BreakerConfig {
        trip: Trip::Rate {
            rate: 0.5,
            min_calls: 10,
            within: Duration::from_secs(10),
        },
        ..in_a_row(1)
    });
    for _ in 0..5 {
        fail(&breaker, now);
    }
    for _ in 0..4 {
        succeed(&breaker, now);
    }
    assert_eq!(breaker.state_at(now), BreakerState::Closed, "too few");
    // By now those calls have left the window.
    let later = now + 12 * SECOND;
    for _ in 0..6 {
        succeed(&breaker, later);
    }
    for _ in 0..5 {
        fail(&breaker, later);
    }
    assert_eq!(breaker.state_at(later), BreakerState::Closed, "5 of 11");
    fail(&breaker, later);
    assert_ne!(breaker.state_at(later), BreakerState::Closed, "6 of 12");
}

#[test]
fn successful_probe_closes_the_breaker() {
    let (breaker, now) = breaker(in_a_row(1));
    fail(&breaker, now);
    let later = now + SECOND;
    assert_eq!(breaker.state_at(later), BreakerState::HalfOpen);
    let probe = breaker.enter_at(later).unwrap();
    let refused = breaker.enter_at(later).unwrap_err();
    assert_eq!(refused.left, Duration::ZERO, "one probe is on its way");
    probe.succeeded_at(later);
    assert_eq!(breaker.state_at(later), BreakerState::Closed);
    succeed(&breaker, later);
}

#[test]
fn consecutive_openings_grow_until_a_long_closed_state() {
    let (breaker, mut now) = breaker(in_a_row(1));
    fail(&breaker, now);
    for seconds in [1, 2, 4, 8, 8] {
        let left = seconds * SECOND;
        assert_eq!(breaker.state_at(now), BreakerState::Open { left });
        now += left;
        // The probe fails.
        fail(&breaker, now);
    }
    now += 8 * SECOND;
    succeed(&breaker, now);
    fail(&breaker, now + 99 * SECOND);
    let left = 8 * SECOND;
    assert_eq!(
        breaker.state_at(now + 99 * SECOND),
        BreakerState::Open { left }
    );
    now += 107 * SECOND;
    succeed(&breaker, now);
    fail(&breaker, now + 100 * SECOND);
    assert_eq!(
        breaker.state_at(now + 100 * SECOND),
        BreakerState::Open { left: SECOND }
    );
}

#[test]
fn one_failed_probe_opens_the_breaker_again() {
    let (breaker, now) = breaker(BreakerConfig {
        probes: 3,
        ..in_a_row(1)
    });
    fail(&breaker, now);
    let now = now + SECOND;
    let probes: Vec<_> = (0..3).map(|_| breaker.enter_at(now).unwrap()).collect();
    assert!(breaker.enter_at(now).is_err());
    let mut probes = probes.into_iter();
    probes.next().unwrap().succeeded_at(now);
    assert!(breaker.enter_at(now).is_err(), "those that went well count");
    probes.next().unwrap().failed_at(now);
    assert!(matches!(breaker.state_at(now), BreakerState::Open { .. }));
    // The last probe reports on a half-open state that has ended, so its result is ignored.
    probes.next().unwrap().succeeded_at(now);
    assert!(matches!(breaker.state_at(now), BreakerState::Open { .. }));
    let now = now + 2 * SECOND;
    for _ in 0..3 {
        assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
        succeed(&breaker, now);
    }
    assert_eq!(breaker.state_at(now), BreakerState::Closed);
}

#[test]
fn verdict_of_an_earlier_state_is_ignored() {
    let (breaker, now) = breaker(in_a_row(1));
    let (slow, slower) = (
        breaker.enter_at(now).unwrap(),
        breaker.enter_at(now).unwrap(),
    );
    fail(&breaker, now);
    let now = now + SECOND;
    let probe = breaker.enter_at(now).unwrap();
    slow.failed_at(now);
    slower.succeeded_at(now);
    assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
    probe.succeeded_at(now);
    assert_eq!(breaker.state_at(now), BreakerState::Closed);
}

#[test]
fn probe_without_a_verdict_can_be_repeated() {
    let (breaker, now) = breaker(in_a_row(1));
    drop(breaker.enter_at(now).unwrap());
    assert_eq!(breaker.state_at(now), BreakerState::Closed);
    fail(&breaker, now);
    let now = now + SECOND;
    drop(breaker.enter_at(now).unwrap());
    assert_eq!(breaker.state_at(now), BreakerState::HalfOpen);
    succeed(&breaker, now);
    assert_eq!(breaker.state_at(now), BreakerState::Closed);
}

#[test]
fn jitter_only_shortens_the_opening() {
    let (breaker, mut now) = breaker(BreakerConfig {
        open: Backoff {
            jitter: 0.5,
            max: SECOND,
            ..OPEN
        },
        ..in_a_row(1)
    });
    fail(&breaker, now);
    let mut times = Vec::new();
    for _ in 0..50 {
        let BreakerState::Open { left } = breaker.state_at(now) else {
            panic!("it is open");
        };
        assert!((SECOND / 2..=SECOND).contains(&left), "{left:?}");
        times.push(left);
        now += left;
        fail(&breaker, now);
    }
    times.dedup();
    assert!(times.len() > 1);
}

/// In any order of events, an open breaker admits no call, and a half-open one admits at most its
/// number of probes.
#[test]
fn random_events_never_admit_too_many_calls() {
    for seed in 0..if cfg!(miri) { 2 } else { 300 } {
        let random = Random::new(seed);
        let probes = 1 + random.below(3) as u32;
        let (breaker, mut now) = breaker(BreakerConfig {
            probes,
            ..in_a_row(1 + random.below(3) as u32)
        });
        let mut running = Vec::new();
        let mut inside = 0;
        for _ in 0..300 {
            let before = breaker.state_at(now);
            match random.below(6) {
                0 => now += millis(random.below(1_500)),
                1..=3 => match (breaker.enter_at(now), before) {
                    (Ok(permit), BreakerState::Closed) => running.push((permit, false)),
                    (Ok(permit), BreakerState::HalfOpen) => {
                        inside += 1;
                        assert!(inside <= probes);
                        running.push((permit, true));
                    }
                    (Ok(_), BreakerState::Open { .. }) => panic!("it is open"),
                    (Err(CircuitOpen { left }), state) => match state {
                        BreakerState::Closed => panic!("it is closed"),
                        BreakerState::Open { left: said } => assert_eq!(left, said),
                        BreakerState::HalfOpen => assert!(left.is_zero()),
                    },
                },
                _ if running.is_empty() => {}
                how => {
                    let at = random.below(running.len() as u64) as usize;
                    let (permit, is_probe) = running.swap_remove(at);
                    match (how, random.below(2)) {
                        (4, 0) => permit.failed_at(now),
                        (4, _) => permit.succeeded_at(now),
                        _ => {
                            drop(permit);
                            // If it is a current probe, its permit is free again. A late probe has
                            // no effect.
                            inside -= u32::from(is_probe && inside > 0);
                        }
                    }
                }
            }
            if breaker.state_at(now) != BreakerState::HalfOpen {
                inside = 0;
                running
                    .iter_mut()
                    .for_each(|(_, is_probe)| *is_probe = false);
            }
        }
    }
}

#[test]
fn call_reports_its_own_result() {
    run(|| {
        let breaker = CircuitBreaker::new(in_a_row(1)).unwrap();
        let not_found = breaker.call_unless(|error| *error == 404, || Err::<(), _>(404));
        assert_eq!(not_found, Err(BreakerError::Failed(404)));
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert_eq!(breaker.call(|| Ok::<_, u32>(1)), Ok(1));
        let failed = breaker.call(|| Err::<(), _>(500));
        assert_eq!(failed, Err(BreakerError::Failed(500)));
        let called = AtomicBool::new(false);
        let refused = breaker.call(|| {
            called.store(true, Ordering::Relaxed);
            Ok::<_, u32>(())
        });
        assert!(matches!(refused, Err(BreakerError::Open(open)) if open.left > millis(500)));
        assert!(!called.load(Ordering::Relaxed));
    });
}

#[test]
fn panic_is_a_failure_and_a_kill_is_not() {
    on_both(|| {
        let breaker = Arc::new(CircuitBreaker::new(in_a_row(1)).unwrap());
        let inside = Arc::new(AtomicBool::new(false));
        let killed = spawn({
            let (breaker, inside) = (Arc::clone(&breaker), Arc::clone(&inside));
            move || {
                breaker.call(|| {
                    inside.store(true, Ordering::Relaxed);
                    loop {
                        yield_now();
                    }
                    #[expect(unreachable_code, reason = "the type of the call")]
                    Ok::<(), u32>(())
                })
            }
        });
        while !inside.load(Ordering::Relaxed) {
            yield_now();
        }
        killed.pid().kill().unwrap();
        assert!(killed.join().is_err());
        assert_eq!(breaker.state(), BreakerState::Closed);
        let panics = spawn({
            let breaker = Arc::clone(&breaker);
            move || breaker.call(|| -> Result<(), u32> { panic!("it was told to") })
        });
        let error = panics.join().unwrap_err().to_string();
        assert!(error.contains("it was told to"), "{error}");
        assert!(matches!(breaker.state(), BreakerState::Open { .. }));
    });
}

#[test]
fn cancelled_outer_scope_is_no_failure_and_an_inner_one_is() {
    run(|| {
        let breaker = CircuitBreaker::new(in_a_row(1)).unwrap();
        let outside = cancel_scope(|token| {
            breaker.call(|| {
                token.cancel("no more of it");
                yield_now();
                Ok::<_, u32>(())
            })
        });
        assert!(outside.is_err());
        assert_eq!(breaker.state(), BreakerState::Closed);
        let inside = breaker.call(|| with_timeout(Duration::ZERO, || sleep(LONG)));
        assert!(matches!(inside, Err(BreakerError::Failed(_))));
        assert!(matches!(breaker.state(), BreakerState::Open { .. }));
    });
}

#[test]
fn invalid_breaker_settings_are_refused() {
    let good = in_a_row(1);
    assert!(CircuitBreaker::new(good).is_ok());
    assert!(CircuitBreaker::new(BreakerConfig::default()).is_ok());
    let within = SECOND;
    let trips = [
        Trip::Consecutive {
            failures: 0,
            within,
        },
        Trip::Consecutive {
            failures: 65_537,
            within,
        },
        Trip::Consecutive {
            failures: 1,
            within: Duration::ZERO,
        },
        Trip::Rate {
            rate: 0.0,
            min_calls: 1,
            within,
        },
        Trip::Rate {
            rate: 1.1,
            min_calls: 1,
            within,
        },
        Trip::Rate {
            rate: f64::NAN,
            min_calls: 1,
            within,
        },
        Trip::Rate {
            rate: 0.5,
            min_calls: 0,
            within,
        },
        Trip::Rate {
            rate: 0.5,
            min_calls: 1,
            within: Duration::ZERO,
        },
    ];
    for trip in trips {
        assert!(
            CircuitBreaker::new(BreakerConfig { trip, ..good }).is_err(),
            "{trip:?}"
        );
    }
    let opens = [
        Backoff {
            first: Duration::ZERO,
            ..OPEN
        },
        Backoff {
            max: millis(1),
            ..OPEN
        },
        Backoff {
            jitter: f64::NAN,
            ..OPEN
        },
        Backoff {
            jitter: -0.1,
            ..OPEN
        },
        Backoff {
            jitter: 1.5,
            ..OPEN
        },
    ];
    for open in opens {
        assert!(
            CircuitBreaker::new(BreakerConfig { open, ..good }).is_err(),
            "{open:?}"
        );
    }
    let probes = CircuitBreaker::new(BreakerConfig { probes: 0, ..good });
    assert_eq!(
        probes.unwrap_err().to_string(),
        "a breaker has at least 1 probe"
    );
}
