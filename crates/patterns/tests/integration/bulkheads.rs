//! Bulkheads: a limit on running calls, a limit on waiting calls, first-in-first-out order, and no
//! lost permits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_patterns::{Bulkhead, BulkheadError};
use thalweg_runtime::cancel::with_timeout;
use thalweg_runtime::sync::Barrier;
use thalweg_runtime::{Config, Runtime, init, run, spawn, yield_now};

use crate::kit::{LONG, on_both, until};

#[test]
fn bulkhead_admits_its_maximum_and_every_waiter_runs() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(3, 100).unwrap());
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        // Nobody leaves before three actors are inside.
        let three = Arc::new(Barrier::new(3));
        let actors: Vec<_> = (0..if cfg!(miri) { 9 } else { 51 })
            .map(|_| {
                let (bulkhead, three) = (bulkhead.clone(), three.clone());
                let (now, most) = (now.clone(), most.clone());
                spawn(move || {
                    bulkhead.run(LONG, || {
                        let running = now.fetch_add(1, Ordering::Relaxed) + 1;
                        most.fetch_max(running, Ordering::Relaxed);
                        three.wait();
                        now.fetch_sub(1, Ordering::Relaxed);
                    })
                })
            })
            .collect();
        for actor in actors {
            assert_eq!(actor.join().unwrap(), Ok(()));
        }
        assert_eq!(most.load(Ordering::Relaxed), 3);
        assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
    });
}

#[test]
fn full_bulkhead_refuses_at_once() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(1, 1).unwrap());
        let inside = bulkhead.try_enter().unwrap();
        let waiter = spawn({
            let bulkhead = bulkhead.clone();
            move || bulkhead.run(LONG, || 7)
        });
        until(|| bulkhead.waiting() == 1);
        let full = BulkheadError::Full { waiting: 1 };
        assert_eq!(bulkhead.enter().unwrap_err(), full);
        assert_eq!(bulkhead.try_enter().unwrap_err(), full);
        assert_eq!(bulkhead.run(LONG, || ()), Err(full));
        drop(inside);
        assert_eq!(waiter.join().unwrap(), Ok(7));
        assert!(bulkhead.try_enter().is_ok());
    });
}

#[test]
fn waiters_enter_in_order_of_arrival() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(1, 10).unwrap());
        let inside = bulkhead.try_enter().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = (0..5)
            .map(|number| {
                let (shared, order) = (bulkhead.clone(), order.clone());
                let waiter = spawn(move || {
                    shared.run(LONG, || {
                        order.lock().unwrap().push(number);
                        yield_now();
                    })
                });
                until(|| bulkhead.waiting() == number + 1);
                waiter
            })
            .collect();
        drop(inside);
        // The permit belongs to the first waiter, even if it has not run yet.
        if bulkhead.waiting() > 0 {
            assert!(bulkhead.try_enter().is_err());
        }
        for waiter in waiters {
            waiter.join().unwrap().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    });
}

#[test]
fn timed_out_waiter_leaves_the_queue() {
    on_both(|| {
        let bulkhead = Bulkhead::new(1, 1).unwrap();
        let inside = bulkhead.enter().unwrap();
        let timeout = Duration::from_millis(1);
        let late = bulkhead.enter_timeout(timeout).unwrap_err();
        assert_eq!(late, BulkheadError::TimedOut);
        let soon = std::time::Instant::now() + timeout;
        let late = bulkhead.enter_deadline(soon).unwrap_err();
        assert_eq!(late, BulkheadError::TimedOut);
        assert_eq!(bulkhead.waiting(), 0);
        drop(inside);
        assert!(bulkhead.try_enter().is_ok());
    });
}

#[test]
fn panic_and_kill_release_the_permit() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(1, 1).unwrap());
        let panics = spawn({
            let bulkhead = bulkhead.clone();
            move || bulkhead.run(LONG, || panic!("it was told to"))
        });
        assert!(panics.join().is_err());
        assert_eq!(bulkhead.running(), 0);

        let inside = bulkhead.try_enter().unwrap();
        let went_on = Arc::new(AtomicBool::new(false));
        let waits = spawn({
            let (bulkhead, went_on) = (bulkhead.clone(), went_on.clone());
            move || {
                let _ = bulkhead.enter();
                went_on.store(true, Ordering::Relaxed);
            }
        });
        until(|| bulkhead.waiting() == 1);
        waits.pid().kill().unwrap();
        assert!(waits.join().is_err());
        assert!(!went_on.load(Ordering::Relaxed));
        assert_eq!(bulkhead.waiting(), 0);
        drop(inside);
        assert_eq!(bulkhead.running(), 0);
    });
}

#[test]
fn cancelled_scope_leaves_no_waiter_in_the_queue() {
    on_both(|| {
        let bulkhead = Bulkhead::new(1, 1).unwrap();
        let inside = bulkhead.try_enter().unwrap();
        let waited = with_timeout(Duration::from_millis(1), || bulkhead.enter().map(drop));
        assert!(waited.is_err(), "{waited:?}");
        assert_eq!(bulkhead.waiting(), 0);
        drop(inside);
        let left = with_timeout(LONG, || bulkhead.run(LONG, || 1));
        assert_eq!(left.unwrap(), Ok(1));
    });
}

#[test]
fn permit_of_a_killed_waiter_goes_to_the_next() {
    on_both(|| {
        let bulkhead = Arc::new(Bulkhead::new(1, 2).unwrap());
        let inside = bulkhead.try_enter().unwrap();
        let waiters: Vec<_> = (0..2)
            .map(|number| {
                let shared = bulkhead.clone();
                let waiter = spawn(move || shared.run(LONG, || number));
                until(|| bulkhead.waiting() == number + 1);
                waiter
            })
            .collect();
        let pid = waiters[0].pid();
        drop(inside);
        // With one worker the waiter has not run since; with two it may have finished.
        let _ = pid.kill();
        let mut waiters = waiters.into_iter();
        let _ = waiters.next().unwrap().join();
        assert_eq!(waiters.next().unwrap().join().unwrap(), Ok(1));
        assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
    });
}

#[test]
fn permit_granted_at_the_deadline_is_used() {
    run(|| {
        for _ in 0..if cfg!(miri) { 3 } else { 20 } {
            let bulkhead = Arc::new(Bulkhead::new(1, 1).unwrap());
            let inside = bulkhead.try_enter().unwrap();
            let timeout = Duration::from_millis(1);
            let waiter = spawn({
                let bulkhead = bulkhead.clone();
                move || bulkhead.enter_timeout(timeout).map(drop)
            });
            // On a busy machine the timeout may expire before this actor sees the waiter.
            until(|| bulkhead.waiting() == 1 || waiter.is_finished());
            let begun = std::time::Instant::now();
            while begun.elapsed() < 3 * timeout {
                std::hint::spin_loop();
            }
            // The worker sees that the timeout has expired, and this actor runs again before the
            // waiter.
            yield_now();
            drop(inside);
            let _ = waiter.join().unwrap();
            assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
        }
    });
}

/// Kills and short deadlines hit permits that were just granted; afterwards all permits are free.
#[test]
fn no_permit_is_lost_by_kills_and_deadlines() {
    init(Config::with_workers(2)).unwrap().run(|| {
        let bulkhead = Arc::new(Bulkhead::new(2, 64).unwrap());
        for round in 0..if cfg!(miri) { 4 } else { 100 } {
            let actors: Vec<_> = (0..12)
                .map(|number| {
                    let bulkhead = bulkhead.clone();
                    spawn(move || {
                        let timeout = if (round + number) % 3 == 0 {
                            Duration::from_micros(100)
                        } else {
                            LONG
                        };
                        let _ = bulkhead.run(timeout, yield_now);
                    })
                })
                .collect();
            for actor in actors.iter().skip(round % 4).step_by(4) {
                yield_now();
                // It may have finished already.
                let _ = actor.pid().kill();
            }
            for actor in actors {
                let _ = actor.join();
            }
            assert_eq!((bulkhead.running(), bulkhead.waiting()), (0, 0));
        }
        let both = (bulkhead.try_enter(), bulkhead.try_enter());
        assert!(both.0.is_ok() && both.1.is_ok());
    });
}

#[test]
fn threads_can_wait_for_a_bulkhead() {
    let bulkhead = Arc::new(Bulkhead::new(1, 8).unwrap());
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let inside = bulkhead.try_enter().unwrap();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let bulkhead = bulkhead.clone();
            std::thread::spawn(move || bulkhead.run(LONG, || 1).unwrap())
        })
        .collect();
    let actor = runtime.handle().spawn({
        let bulkhead = bulkhead.clone();
        move || bulkhead.run(LONG, || 1).unwrap()
    });
    while bulkhead.waiting() < 4 {
        std::thread::yield_now();
    }
    drop(inside);
    let sum: i32 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(sum + actor.join().unwrap(), 4);
}

#[test]
fn waiter_gets_an_error_when_the_runtime_stops() {
    let bulkhead = Arc::new(Bulkhead::new(1, 1).unwrap());
    let inside = bulkhead.try_enter().unwrap();
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (tx, rx) = std::sync::mpsc::channel();
    runtime.handle().spawn({
        let bulkhead = bulkhead.clone();
        move || tx.send(bulkhead.enter().map(drop)).unwrap()
    });
    while bulkhead.waiting() == 0 {
        std::thread::yield_now();
    }
    drop(runtime);
    assert_eq!(rx.recv().unwrap(), Err(BulkheadError::Stopped));
    assert_eq!(bulkhead.waiting(), 0);
    drop(inside);
}

#[test]
fn bulkhead_without_permits_is_refused() {
    run(|| {
        assert!(Bulkhead::new(0, 5).is_err());
        assert!(Bulkhead::new(1, 0).is_ok());
    });
}
