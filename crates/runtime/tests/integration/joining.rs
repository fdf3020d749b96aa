//! Guarantees of join handles.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use thalweg_runtime::{
    Config, JoinError, Signal, channel, run, runtime, sleep, spawn, spawn_under, wait, yield_now,
};

/// Returns the smaller number under Miri, where each step is interpreted.
const fn few(interpreted: u32, else_: u32) -> u32 {
    if cfg!(miri) { interpreted } else { else_ }
}

/// Runs `test` on one worker and on several.
fn everywhere(test: fn()) {
    run(test);
    for workers in if cfg!(miri) { 2..=2 } else { 2..=4 } {
        runtime::init(Config::with_workers(workers))
            .unwrap()
            .run(test);
    }
}

#[test]
fn a_value_comes_back_whether_it_was_there_before_the_join_or_not() {
    everywhere(|| {
        let early = spawn(|| String::from("early"));
        for _ in 0..100 {
            yield_now();
        }
        let late = spawn(|| {
            yield_now();
            String::from("late")
        });
        assert_eq!(late.join().unwrap(), "late");
        assert_eq!(early.join().unwrap(), "early");
    });
}

#[test]
fn a_thousand_one_after_another_and_a_thousand_at_once() {
    const MANY: u64 = few(6, 1_000) as u64;
    everywhere(|| {
        let mut sum = 0;
        for n in 0..MANY {
            sum += spawn(move || n).join().unwrap();
        }
        let all: Vec<_> = (0..MANY).map(|n| spawn(move || n)).collect();
        for handle in all {
            sum += handle.join().unwrap();
        }
        assert_eq!(sum, MANY * (MANY - 1));
    });
}

#[test]
fn actors_that_spawn_and_join_to_a_depth_of_a_hundred() {
    fn depth(n: u32) -> u32 {
        if n == 0 {
            0
        } else {
            1 + spawn(move || depth(n - 1)).join().unwrap()
        }
    }
    everywhere(|| assert_eq!(depth(few(8, 100)), few(8, 100)));
}

#[test]
fn a_panic_comes_with_its_message_and_the_rest_goes_on() {
    everywhere(|| {
        let handle = spawn(|| std::panic::resume_unwind(Box::new("on purpose")));
        let Err(JoinError::Panic(panic)) = handle.join() else {
            panic!("it ended well");
        };
        assert_eq!(panic.message(), Some("on purpose"));
        assert_eq!(panic.location(), None);
        assert!(
            panic
                .take_payload()
                .is_some_and(|payload| payload.is::<&str>())
        );
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn a_panic_says_where_it_was() {
    everywhere(|| {
        let number = std::hint::black_box(3);
        let Err(JoinError::Panic(panic)) =
            spawn(move || assert_eq!(number, 4, "{number} is not it")).join()
        else {
            panic!("it ended well");
        };
        assert!(
            panic
                .message()
                .is_some_and(|text| text.contains("3 is not it"))
        );
        assert!(
            panic
                .location()
                .is_some_and(|place| place.contains("joining.rs:"))
        );
        // The location of one actor's panic is not reported for the next actor.
        let Err(JoinError::Panic(quiet)) = spawn(|| std::panic::resume_unwind(Box::new(()))).join()
        else {
            panic!("it ended well");
        };
        assert_eq!((quiet.message(), quiet.location()), (None, None));
    });
}

#[test]
fn a_supervisor_hears_of_each_end_once() {
    everywhere(|| {
        let (supervisor, ends) = channel();
        let children: Vec<_> = (0..few(10, 100))
            .map(|n| spawn_under(supervisor.clone(), move || assert!(n % 3 > 0)).id())
            .collect();
        drop(supervisor);
        let ends: Vec<Signal> = ends.iter().collect();
        assert_eq!(
            ends.iter()
                .filter(|end| matches!(end, Signal::Panic(..)))
                .count(),
            few(4, 34) as usize
        );
        let mut heard: Vec<_> = ends.iter().map(Signal::id).collect();
        heard.sort();
        assert_eq!(heard, children);
    });
}

#[test]
fn a_join_that_takes_too_long_gives_the_handle_back() {
    everywhere(|| {
        // It parks: the awaited actor may not have begun, and this worker may have to run it.
        let (tx, rx) = channel();
        let waits = spawn(move || {
            tx.send(wait::waker()).unwrap();
            wait::park(None);
            5
        });
        let soon = Duration::from_millis(2);
        let began = Instant::now();
        let again = waits.join_timeout(soon).expect_err("nobody woke it").0;
        assert!(began.elapsed() >= soon);
        let again = again
            .join_timeout(Duration::ZERO)
            .expect_err("nobody woke it")
            .0;
        rx.recv().unwrap().wake();
        assert_eq!(
            again
                .join_timeout(Duration::from_secs(60))
                .expect("woken")
                .unwrap(),
            5
        );
    });
}

#[test]
fn a_handle_that_is_dropped_lets_its_actor_go_on_and_its_value_is_dropped() {
    everywhere(|| {
        let token = Arc::new(());
        for _ in 0..10 {
            let token = Arc::clone(&token);
            drop(spawn(move || token));
        }
        while Arc::strong_count(&token) > 1 {
            sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn a_thread_joins_as_an_actor_does() {
    let runtime = thalweg_runtime::Runtime::start(Config::with_workers(2)).unwrap();
    let handles: Vec<_> = (0..few(6, 100))
        .map(|n| {
            runtime.handle().spawn(move || {
                sleep(Duration::from_millis(1));
                n
            })
        })
        .collect();
    let sum: u32 = handles
        .into_iter()
        .map(|handle| handle.join().unwrap())
        .sum();
    assert_eq!(sum, (0..few(6, 100)).sum());
}

#[test]
fn what_is_not_done_when_the_runtime_stops_says_so() {
    let runtime = thalweg_runtime::Runtime::start(Config::with_workers(1)).unwrap();
    let (tx, rx) = mpsc::channel();
    let busy = runtime.handle().spawn(move || {
        tx.send(()).unwrap();
        while !wait::is_stopping() {
            std::hint::spin_loop();
        }
        3
    });
    rx.recv().unwrap();
    let never = runtime.handle().spawn(|| 4);
    drop(runtime);
    assert_eq!(busy.join().unwrap(), 3);
    assert!(matches!(never.join(), Err(JoinError::Stopped)));
}

#[test]
fn the_first_actor_may_hold_what_must_not_be_sent() {
    let value = Rc::new(5);
    let also = Rc::clone(&value);
    assert_eq!(*run(move || also), 5);
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn the_first_actors_panic_is_the_callers() {
    let caught = std::panic::catch_unwind(|| run(|| std::panic::resume_unwind(Box::new(7u8))));
    assert_eq!(caught.unwrap_err().downcast_ref::<u8>(), Some(&7));
}

#[test]
fn those_left_behind_end_with_the_first_actor() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for workers in [1, 3] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&dropped);
        runtime::init(Config::with_workers(workers))
            .unwrap()
            .run(move || {
                for _ in 0..few(5, 50) {
                    let token = Counted(Arc::clone(&counted));
                    spawn(move || {
                        let _token = token;
                        wait::park(None);
                    });
                }
                for _ in 0..10 {
                    yield_now();
                }
            });
        let left = few(5, 50) as usize;
        assert_eq!(dropped.load(Ordering::Relaxed), left, "{workers} workers");
    }
}

/// The timer wheel's own test checks the order. Here the order would depend on the machine.
#[test]
fn sleepers_wake_no_sooner_than_they_said() {
    const STEP: Duration = Duration::from_millis(5);
    everywhere(|| {
        let all = [5, 1, 3, 2, 4].map(|steps| {
            spawn(move || {
                let began = Instant::now();
                sleep(steps * STEP);
                began.elapsed() >= steps * STEP
            })
        });
        for handle in all {
            assert!(handle.join().unwrap(), "it woke too soon");
        }
    });
}

#[test]
#[cfg_attr(
    any(miri, thalweg_threads),
    ignore = "an overflow of a thread is the standard library's"
)]
fn an_actor_that_overflows_its_stack_is_named_and_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;

    const CHILD: &str = "THALWEG_TEST_OVERFLOWS";
    fn deep(n: u64) -> u64 {
        if n == u64::MAX {
            0
        } else {
            std::hint::black_box(deep(n + 1)) + 1
        }
    }
    if std::env::var_os(CHILD).is_some() {
        for workers in [1, 2] {
            let config = Config {
                stack_size: 256 << 10,
                ..Config::with_workers(workers)
            };
            runtime::init(config).unwrap().run(|| {
                thalweg_runtime::Builder::new()
                    .name("digger")
                    .spawn(|| deep(0))
                    .join()
                    .unwrap()
            });
        }
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["an_actor_that_overflows_its_stack", "--nocapture"])
        .env(CHILD, "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(6), "{said}");
    assert!(
        said.contains("thalweg: actor digger overflowed its stack of 256 KiB"),
        "{said}"
    );
}

/// Constant yielders do not starve new actors. A previous defect: the count of yields kept the
/// worker's own count from reaching its multiples.
#[test]
fn what_is_spawned_beside_yielders_begins() {
    everywhere(|| {
        let stop = Arc::new(AtomicUsize::new(0));
        let yielders: Vec<_> = (0..8)
            .map(|_| {
                let stop = Arc::clone(&stop);
                spawn(move || {
                    while stop.load(Ordering::Relaxed) == 0 {
                        yield_now();
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            let block: Vec<_> = (0..64u64).map(|n| spawn(move || n)).collect();
            assert_eq!(
                block
                    .into_iter()
                    .map(|one| one.join().unwrap())
                    .sum::<u64>(),
                2_016
            );
        }
        stop.store(1, Ordering::Relaxed);
        for yielder in yielders {
            yielder.join().unwrap();
        }
    });
}

/// The panic count belongs to the thread. If a panicking actor were suspended, the next panic on
/// that thread would abort the process.
#[test]
fn an_actor_that_panics_does_not_wait_in_its_destructors() {
    struct Waits(mpsc::Sender<&'static str>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let (_open, never) = channel::<()>();
            assert!(never.recv().is_err());
            sleep(Duration::from_secs(3600));
            yield_now();
            assert!(matches!(
                spawn(|| ()).join(),
                Ok(()) | Err(JoinError::Stopped)
            ));
            self.0.send("through").unwrap();
        }
    }
    everywhere(|| {
        let (tx, rx) = mpsc::channel();
        let all: Vec<_> = (0..4)
            .map(|_| {
                let waits = Waits(tx.clone());
                spawn(move || {
                    let _waits = waits;
                    std::panic::resume_unwind(Box::new("on purpose"));
                })
            })
            .collect();
        for handle in all {
            assert!(matches!(handle.join(), Err(JoinError::Panic(_))));
        }
        drop(tx);
        assert_eq!(rx.iter().count(), 4);
    });
}
