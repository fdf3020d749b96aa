//! Cancellation and scopes, rule by rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg_runtime::cancel::{
    Cancelled, Cause, OnFailure, Scope, ScopeError, Token, cancel_scope, check_cancelled,
    is_cancelled, scope, shield, with_deadline, with_timeout,
};
use thalweg_runtime::{
    Actor, Config, Context, ExitReason, Handler, JoinError, NoKill, channel, exit, init, run,
    sleep, spawn, start, yield_now,
};

use crate::kit::{LONG, on_both};

const SHORT: Duration = Duration::from_millis(1);

fn asked(words: &str) -> Cancelled {
    Cancelled {
        cause: Cause::Requested(words.into()),
    }
}

const DEADLINE: Cancelled = Cancelled {
    cause: Cause::Deadline,
};

struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn scope_ends_normally_or_at_the_next_wait() {
    on_both(|| {
        assert_eq!(cancel_scope(|_| 5), Ok(5));
        let drops = Arc::new(AtomicU32::new(0));
        let held = Dropped(Arc::clone(&drops));
        let ended = cancel_scope(move |token| {
            let _held = held;
            token.cancel("now");
            token.cancel("the first one counts");
            assert!(is_cancelled() && token.is_cancelled());
            sleep(LONG);
            unreachable!("it waited");
        });
        assert_eq!(ended, Err::<(), _>(asked("now")));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert!(!is_cancelled(), "it is left");
        // A body that finishes anyway returns its value.
        assert_eq!(
            cancel_scope(|token| {
                token.cancel("too late");
                7
            }),
            Ok(7)
        );
    });
}

#[test]
fn token_cancels_a_wait_and_a_computation() {
    on_both(|| {
        let (tokens, given) = channel::<Token>();
        let canceller = spawn(move || {
            for token in &given {
                sleep(SHORT);
                token.cancel("from outside");
            }
        });
        let waits: [fn(); 4] = [
            || sleep(LONG),
            || {
                let (_tx, rx) = channel::<u8>();
                let _ = rx.recv();
            },
            || {
                let _ = spawn(|| sleep(SHORT * 20)).join();
                sleep(LONG);
            },
            || {
                loop {
                    yield_now();
                }
            },
        ];
        for wait in waits {
            let ended = cancel_scope(|token| {
                tokens.send(token.clone()).expect("it is received");
                wait();
            });
            assert_eq!(ended, Err(asked("from outside")));
        }
        drop(tokens);
        canceller.join().expect("it ends");
    });
    init(Config::with_workers(2)).unwrap().run(|| {
        let token = Token::new();
        let theirs = token.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(SHORT);
            theirs.cancel("from a thread");
        });
        let child = token.child();
        let mut looks = 0u64;
        while !child.is_cancelled() {
            looks += 1;
        }
        assert!(looks > 0 && child.cause() == Some(asked("from a thread").cause));
        thread.join().unwrap();
    });
}

/// Neither actor waits. If both counted their checks together, only one of them might ever read the clock.
#[test]
fn actor_that_takes_turns_with_another_one_notices_its_deadline() {
    fn yield_for(time: Duration, until: Duration) -> Result<(), Cancelled> {
        with_timeout(time, || {
            let began = Instant::now();
            while began.elapsed() < until {
                yield_now();
            }
        })
    }
    let second = Duration::from_secs(1);
    for order in [[SHORT, LONG], [LONG, SHORT]] {
        let one_worker = Config::with_workers(1);
        init(one_worker).expect("valid settings").run(move || {
            let actors = order.map(|time| spawn(move || yield_for(time, second)));
            for (actor, time) in actors.into_iter().zip(order) {
                let end = actor.join().expect("it does not panic");
                assert_eq!(end.is_err(), time == SHORT);
            }
        });
    }
}

#[test]
fn deadline_ends_waits_and_inner_deadlines_are_not_later() {
    on_both(|| {
        assert_eq!(with_timeout(SHORT, || sleep(LONG)), Err(DEADLINE));
        assert_eq!(
            with_deadline(Instant::now() + SHORT, || sleep(LONG)),
            Err(DEADLINE)
        );
        assert_eq!(with_timeout(LONG, || 1), Ok(1));
        // The outer deadline still applies: the inner call never returns.
        let outer = with_timeout(SHORT, || {
            let inner = with_timeout(LONG, || sleep(LONG));
            unreachable!("{inner:?}");
        });
        assert_eq!(outer, Err::<(), _>(DEADLINE));
        // The inner deadline is earlier, so the outer scope continues.
        let outer = with_timeout(LONG, || {
            assert_eq!(with_timeout(SHORT, || sleep(LONG)), Err(DEADLINE));
            sleep(SHORT);
            3
        });
        assert_eq!(outer, Ok(3));
        // A wait with its own, earlier deadline ends at that deadline.
        let (_tx, rx) = channel::<u8>();
        assert!(with_timeout(LONG, || rx.recv_timeout(SHORT).is_err()).unwrap());
        // A timeout of zero.
        assert_eq!(with_timeout(Duration::ZERO, || sleep(LONG)), Err(DEADLINE));
        // A computation checks the clock at intervals.
        let computed = with_timeout(SHORT, || {
            loop {
                check_cancelled();
            }
        });
        assert_eq!(computed, Err::<(), _>(DEADLINE));
        let token = Token::new().child_with_timeout(SHORT);
        while !token.is_cancelled() {}
        assert!(
            token
                .deadline()
                .is_some_and(|deadline| deadline <= Instant::now())
        );
        assert!(Token::new().deadline().is_none());
        assert_eq!(token.cause(), Some(Cause::Deadline));
    });
}

#[test]
fn parent_cancels_its_children_and_a_child_only_itself() {
    let root = Token::new();
    let chain: Vec<_> = (0..100).fold(vec![root.clone()], |mut chain, _| {
        chain.push(chain[chain.len() - 1].child());
        chain
    });
    chain[50].cancel("half of it");
    assert!(chain[..50].iter().all(|token| !token.is_cancelled()));
    assert!(chain[50..].iter().all(|token| token.is_cancelled()));
    assert!(chain[70].child().is_cancelled(), "born so");
    root.cancel("all");
    assert_eq!(chain[49].cause(), Some(asked("all").cause));
    assert_eq!(chain[60].cause(), Some(asked("half of it").cause));
    // Children that were dropped leave nothing behind.
    let parent = Token::new();
    for _ in 0..if cfg!(miri) { 20 } else { 1_000 } {
        drop(parent.child());
    }
    parent.cancel("nobody is there");
}

#[test]
fn cancellation_unwinds_inner_scopes_up_to_the_cancelled_one() {
    on_both(|| {
        let outer = cancel_scope(|outer| {
            let inner = cancel_scope(|_| {
                outer.cancel("outside");
                sleep(LONG);
            });
            unreachable!("{inner:?}");
        });
        assert_eq!(outer, Err::<(), _>(asked("outside")));
        let outer = cancel_scope(|_| {
            let inner = cancel_scope(|inner| {
                inner.cancel("inside");
                sleep(LONG);
            });
            assert_eq!(inner, Err(asked("inside")));
            sleep(SHORT);
            4
        });
        assert_eq!(outer, Ok(4));
    });
}

#[test]
fn shield_delays_cancellation() {
    on_both(|| {
        let mut saved = false;
        let ended = cancel_scope(|token| {
            token.cancel("now");
            shield(|| {
                assert!(!is_cancelled());
                sleep(SHORT);
                // A scope inside the shield has its own deadline.
                assert_eq!(with_timeout(SHORT, || sleep(LONG)), Err(DEADLINE));
                saved = true;
            });
            yield_now();
            unreachable!("it yielded");
        });
        assert_eq!(ended, Err::<(), _>(asked("now")));
        assert!(saved);
        let mut whole = false;
        let ended = with_timeout(SHORT, || {
            let _whole = NoKill::new();
            sleep(SHORT * 2);
            whole = true;
            drop(_whole);
            sleep(LONG);
        });
        assert_eq!(ended, Err(DEADLINE));
        assert!(whole);
    });
}

#[test]
fn kill_passes_scopes_and_shields() {
    on_both(|| {
        let victim = spawn(|| {
            let ended = cancel_scope(|_| shield(|| sleep(LONG)));
            unreachable!("{ended:?}");
        });
        yield_now();
        victim.pid().kill().expect("it sleeps");
        assert!(matches!(
            victim.join(),
            Err(JoinError::Exit(ExitReason::Killed))
        ));
    });
}

#[test]
fn panic_passes_a_scope() {
    on_both(|| {
        let panicked = spawn(|| cancel_scope(|_| -> () { panic!("its own") })).join();
        let Err(JoinError::Panic(panic)) = panicked else {
            panic!("{panicked:?}");
        };
        assert_eq!(panic.message(), Some("its own"));
    });
}

#[test]
fn scopes_work_in_a_handler() {
    struct Patient;
    impl Actor for Patient {}
    impl Handler<Duration> for Patient {
        type Reply = Result<(), Cancelled>;
        fn handle(&mut self, time: Duration, _: &Context<'_, Self>) -> Self::Reply {
            with_timeout(time, || sleep(LONG))
        }
    }
    on_both(|| {
        assert_eq!(start(Patient).call(SHORT), Ok(Err(DEADLINE)));
    });
}

#[test]
fn scope_waits_for_its_actors() {
    on_both(|| {
        let many = if cfg!(miri) { 10 } else { 100 };
        let ended = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ended);
        let value = scope(OnFailure::FailFast, |scope| {
            for n in 0..many {
                let held = Dropped(Arc::clone(&count));
                scope.spawn(move || {
                    let _held = held;
                    sleep(Duration::from_micros(u64::from(n) * 10));
                });
            }
            let sum = scope.spawn(|| 20 + 1).join().expect("it ends well");
            sum * 2
        });
        assert_eq!(value.unwrap(), 42);
        assert_eq!(ended.load(Ordering::SeqCst), many);
        assert_eq!(scope(OnFailure::Collect, |_| 1).unwrap(), 1);
    });
}

#[test]
fn fail_fast_cancels_the_rest_and_returns_the_first_failure() {
    on_both(|| {
        let drops = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&drops);
        let mut first = None;
        let failed = scope(OnFailure::FailFast, |scope| {
            for _ in 0..10 {
                let held = Dropped(Arc::clone(&count));
                scope.spawn(move || {
                    let _held = held;
                    sleep(LONG);
                });
            }
            let cancelled = scope.token().clone();
            scope.spawn(move || {
                shield(|| {
                    while !cancelled.is_cancelled() {
                        yield_now();
                    }
                });
                exit(ExitReason::from("it went too"))
            });
            first = Some(scope.spawn(|| exit(ExitReason::from("the disk"))).id());
            sleep(LONG);
        });
        let Err(ScopeError::Failed(failures)) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!(failures.len(), 1);
        assert_eq!(Some(failures[0].id), first);
        assert_eq!(failures[0].reason.to_string(), "the disk");
        assert_eq!(drops.load(Ordering::SeqCst), 10);
    });
}

#[test]
fn collect_returns_all_failures_and_ignore_none() {
    on_both(|| {
        let body = |scope: &Scope| {
            for n in 0..6 {
                scope.spawn(move || {
                    sleep(SHORT);
                    assert_ne!(n % 3, 0, "one of two");
                });
            }
            "body"
        };
        let Err(ScopeError::Failed(failures)) = scope(OnFailure::Collect, body) else {
            panic!("two fail");
        };
        assert_eq!(failures.len(), 2);
        assert!(failures.iter().all(|one| one.reason.kind() == "panic"));
        assert_eq!(scope(OnFailure::Ignore, body).unwrap(), "body");
    });
}

#[test]
fn scopes_nest_and_cancel_through_actors() {
    on_both(|| {
        let drops = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&drops);
        let outer = cancel_scope(|token| {
            let token = token.clone();
            scope(OnFailure::Collect, |outer| {
                let held = Dropped(Arc::clone(&count));
                outer.spawn(move || {
                    let _held = held;
                    let inner = scope(OnFailure::Collect, |inner| {
                        let held = Dropped(count);
                        inner.spawn(move || {
                            let _held = held;
                            token.cancel("from within");
                            sleep(LONG);
                        });
                        // The child may have ended before the scope waits for it.
                        sleep(LONG);
                    });
                    unreachable!("{inner:?}");
                });
                sleep(LONG);
            })
        });
        assert_eq!(outer.map(|_| ()), Err(asked("from within")));
        assert_eq!(drops.load(Ordering::SeqCst), 2, "nobody outlived it");
    });
}

#[test]
fn scope_is_cancelled_from_inside_and_by_its_actors() {
    on_both(|| {
        let ended = scope(OnFailure::FailFast, |scope| {
            scope.spawn(|| sleep(LONG));
            scope.cancel("from inside");
            sleep(LONG);
        });
        assert!(matches!(ended, Err(ScopeError::Cancelled(why)) if why == asked("from inside")));
        let ended = scope(OnFailure::FailFast, |scope| {
            let own = scope.clone();
            scope.spawn(move || {
                own.spawn(|| sleep(LONG));
                own.cancel("by one of them");
            });
        });
        assert!(matches!(ended, Err(ScopeError::Cancelled(why)) if why == asked("by one of them")));
    });
}

#[test]
fn finished_scope_starts_no_actor() {
    on_both(|| {
        let mut kept = None;
        scope(OnFailure::FailFast, |scope| kept = Some(scope.clone())).unwrap();
        let late = kept
            .expect("it was kept")
            .spawn(|| unreachable!("it is over"));
        assert!(matches!(
            late.join(),
            Err(JoinError::Exit(ExitReason::Shutdown))
        ));
        let ended = scope(OnFailure::FailFast, |scope| {
            scope.cancel("before");
            scope
                .spawn(|| unreachable!("it is cancelled"))
                .join()
                .is_err()
        });
        // The join waits, so it may return early when the scope is cancelled.
        assert!(matches!(ended, Err(ScopeError::Cancelled(_)) | Ok(true)));
    });
}

#[test]
fn actor_killed_in_a_scope_leaves_no_actor() {
    on_both(|| {
        let drops = Arc::new(AtomicU32::new(0));
        for in_body in [true, false] {
            let count = Arc::clone(&drops);
            let (told, begun) = channel();
            let victim = spawn(move || {
                let _ = scope(OnFailure::FailFast, |scope| {
                    let held = Dropped(count);
                    scope.spawn(move || {
                        let _held = held;
                        told.send(()).expect("the test waits");
                        sleep(LONG);
                    });
                    if in_body {
                        sleep(LONG);
                    }
                });
            });
            begun.recv().expect("it begins");
            let before = drops.load(Ordering::SeqCst);
            victim.pid().kill().expect("it waits");
            assert!(matches!(
                victim.join(),
                Err(JoinError::Exit(ExitReason::Killed))
            ));
            assert_eq!(drops.load(Ordering::SeqCst), before + 1);
        }
    });
}

#[test]
fn panic_in_the_body_cancels_the_actors_and_continues() {
    on_both(|| {
        let drops = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&drops);
        let panicked = spawn(move || {
            let _ = scope(OnFailure::Ignore, |scope| {
                let held = Dropped(count);
                scope.spawn(move || {
                    let _held = held;
                    sleep(LONG);
                });
                yield_now();
                panic!("the body's own");
            });
        })
        .join();
        assert!(matches!(panicked, Err(JoinError::Panic(_))));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn large_scope_finishes() {
    run(|| {
        // Under Miri, actors are threads.
        let count = if cfg!(miri) { 20 } else { 10_000 };
        let sum = Arc::new(AtomicU32::new(0));
        let all = Arc::clone(&sum);
        scope(OnFailure::FailFast, move |scope| {
            for _ in 0..count {
                let all = Arc::clone(&all);
                scope.spawn(move || all.fetch_add(1, Ordering::Relaxed));
            }
        })
        .unwrap();
        assert_eq!(sum.load(Ordering::Relaxed), count);
    });
}
