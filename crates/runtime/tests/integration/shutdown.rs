//! Shutdown of a runtime whose actors do not end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::kit::LONG;
use thalweg_runtime::{
    Actor, Builder, Config, Context, Handler, JoinError, Leaked, Pid, Runtime, Unfinished, channel,
    check, sleep, wait, yield_now,
};

/// Long enough for an actor that ends, and short for a test that waits until it has passed.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The result of `job`, which runs on another thread. A job that hangs fails the test.
fn within_a_minute<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || done.send(job()));
    is_done
        .recv_timeout(Duration::from_secs(60))
        .expect("it ends, and does not panic")
}

/// Repeats `step` forever, even when it unwinds.
fn for_ever(step: impl Fn()) -> ! {
    loop {
        let _ = catch_unwind(AssertUnwindSafe(&step));
    }
}

/// The shutdown report of a runtime with one actor that repeats `step` once it has begun.
fn report_on(step: impl Fn() + Send + Sync + Clone + 'static) -> Vec<Unfinished> {
    within_a_minute(move || {
        let runtime = crate::kit::runtime(1);
        let (begun, has_begun) = mpsc::channel();
        let stubborn = Builder::new()
            .name("stubborn")
            .spawn_on(runtime.handle(), move || {
                begun.send(()).unwrap();
                for_ever(step)
            });
        has_begun.recv().unwrap();
        let id = stubborn.id();
        let left = runtime.shutdown_within(TIMEOUT).unwrap_err().actors;
        assert!(left.iter().all(|left| left.actor == Some(id)), "{left:?}");
        // A joiner receives an error, although the actor never ends.
        assert!(matches!(stubborn.join(), Err(JoinError::Stopped)));
        left
    })
}

#[test]
fn shutdown_of_an_actor_that_catches_its_end_is_reported_with_its_name() {
    let steps: [fn(); 6] = [
        || sleep(LONG),
        yield_now,
        || check!(),
        || {
            let (_sender, receiver) = channel::<()>();
            let _ = receiver.recv();
        },
        || {
            let (_sender, receiver) = channel::<()>();
            while receiver.recv_timeout(LONG).is_err() {}
        },
        || while wait::park(None) == thalweg_runtime::WakeReason::Stopping {},
    ];
    for (nth, step) in steps.into_iter().enumerate() {
        let left = report_on(step);
        assert_eq!(left.len(), 1, "step {nth}");
        assert_eq!(left[0].name.as_deref(), Some("stubborn"), "step {nth}");
        assert_eq!(left[0].leaked, Leaked::Stack, "step {nth}");
        assert_eq!(left[0].worker, 0, "step {nth}");
    }
}

#[test]
fn shutdown_ends_the_other_actors_of_the_same_worker() {
    struct SetOnDrop(Arc<AtomicBool>);
    impl Drop for SetOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let dropped = within_a_minute(|| {
        let runtime = crate::kit::runtime(1);
        let flags: Vec<_> = (0..10).map(|_| Arc::<AtomicBool>::default()).collect();
        let (begun, has_begun) = mpsc::channel();
        for (nth, flag) in flags.iter().enumerate() {
            let (begun, flag) = (begun.clone(), SetOnDrop(Arc::clone(flag)));
            runtime.handle().spawn(move || {
                begun.send(()).unwrap();
                if nth % 3 == 0 {
                    for_ever(|| sleep(LONG));
                }
                sleep(LONG);
                drop(flag);
            });
        }
        flags.iter().for_each(|_| has_begun.recv().unwrap());
        let left = runtime.shutdown_within(TIMEOUT).unwrap_err().actors;
        assert_eq!(left.len(), 4, "{left:?}");
        flags
            .iter()
            .map(|flag| flag.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    });
    let expected: Vec<_> = (0..10).map(|nth| nth % 3 != 0).collect();
    assert_eq!(dropped, expected);
}

#[test]
fn shutdown_waits_for_an_actor_that_ends_late_but_in_time() {
    let ended = within_a_minute(|| {
        let runtime = crate::kit::runtime(1);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let late = runtime.handle().spawn({
            let released = Arc::clone(&release);
            move || {
                begun.send(()).unwrap();
                while !released.load(Ordering::Acquire) {
                    let _ = catch_unwind(AssertUnwindSafe(|| sleep(LONG)));
                }
                7
            }
        });
        has_begun.recv().unwrap();
        // The actor is released in the middle of the shutdown: this actor ends first, while the
        // other one is suspended.
        let (other_begun, other_has_begun) = mpsc::channel();
        runtime.handle().spawn(move || {
            other_begun.send(()).unwrap();
            let _ = catch_unwind(AssertUnwindSafe(|| sleep(LONG)));
            release.store(true, Ordering::Release);
            released.store(true, Ordering::Release);
        });
        other_has_begun.recv().unwrap();
        runtime.shutdown_within(LONG).expect("both end");
        late.join()
    });
    assert_eq!(ended.expect("it has a value"), 7);
}

#[test]
fn shutdown_of_an_actor_that_never_waits_detaches_its_thread() {
    within_a_minute(|| {
        let runtime = crate::kit::runtime(1);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (ended, has_ended) = mpsc::channel();
        let busy = Builder::new()
            .name("busy")
            .spawn_on(runtime.handle(), move || {
                begun.send(()).unwrap();
                // It blocks its thread instead of waiting as an actor does.
                assert!(released.recv().is_err());
                ended.send(()).unwrap();
            });
        has_begun.recv().unwrap();
        let left = runtime.shutdown_within(TIMEOUT).unwrap_err().actors;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].actor, Some(busy.id()));
        assert_eq!(left[0].leaked, Leaked::Thread);
        // The thread can continue, although the runtime is gone.
        drop(release);
        has_ended.recv_timeout(LONG).expect("the actor goes on");
        busy.join().expect("it has ended by itself");
    });
}

#[test]
fn shutdown_of_a_handler_that_catches_its_end_tells_its_callers_and_monitors() {
    struct Stubborn;
    struct Begin(mpsc::Sender<()>);
    impl Actor for Stubborn {}
    impl Handler<Begin> for Stubborn {
        type Reply = ();
        fn handle(&mut self, begin: Begin, _: &Context<'_, Self>) {
            begin.0.send(()).unwrap();
            for_ever(|| sleep(LONG))
        }
    }
    within_a_minute(|| {
        let runtime = crate::kit::runtime(1);
        let actor = Builder::new()
            .name("handler")
            .start_on(runtime.handle(), Stubborn);
        let (begun, has_begun) = mpsc::channel();
        actor.cast(Begin(begun)).unwrap();
        has_begun.recv().unwrap();
        // This message is queued behind the one being handled. Its sender is dropped with it.
        let (waiting, dropped) = mpsc::channel();
        actor.cast(Begin(waiting)).unwrap();
        let pid: Pid = actor.pid();
        let left = runtime.shutdown_within(TIMEOUT).unwrap_err().actors;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].actor, Some(actor.id()));
        assert_eq!(left[0].name.as_deref(), Some("handler"));
        assert!(dropped.recv().is_err());
        assert!(!actor.is_alive());
        assert!(actor.cast(Begin(mpsc::channel().0)).is_err());
        assert!(pid.kill().is_err());
    });
}

#[test]
fn drop_of_a_runtime_with_an_actor_that_catches_its_end_returns() {
    within_a_minute(|| {
        let runtime = Runtime::start(Config::with_workers(1).shutdown_timeout(TIMEOUT)).unwrap();
        let (begun, has_begun) = mpsc::channel();
        runtime.handle().spawn(move || {
            begun.send(()).unwrap();
            for_ever(|| sleep(LONG))
        });
        has_begun.recv().unwrap();
        drop(runtime);
    });
}

#[test]
fn run_with_an_actor_that_catches_its_end_returns_the_value() {
    let value = within_a_minute(|| {
        let ready =
            thalweg_runtime::init(Config::with_workers(1).shutdown_timeout(TIMEOUT)).unwrap();
        ready.run(|| {
            let (begun, has_begun) = channel();
            thalweg_runtime::spawn(move || {
                begun.send(()).unwrap();
                for_ever(|| sleep(LONG))
            });
            has_begun.recv().unwrap();
            7
        })
    });
    assert_eq!(value, 7);
}

#[test]
fn shutdown_of_actors_that_end_reports_nothing() {
    within_a_minute(|| {
        let runtime = crate::kit::runtime(2);
        for _ in 0..100 {
            runtime.handle().spawn(|| sleep(LONG));
        }
        let begun = Instant::now();
        runtime.shutdown_within(LONG).expect("all end");
        assert!(begun.elapsed() < LONG);
    });
}

#[test]
fn drop_reports_on_standard_error() {
    const CHILD: &str = "THALWEG_SHUTDOWN_TEST";
    if std::env::var_os(CHILD).is_some() {
        let runtime = crate::kit::runtime(1);
        let (begun, has_begun) = mpsc::channel();
        Builder::new()
            .name("stubborn")
            .spawn_on(runtime.handle(), move || {
                begun.send(()).unwrap();
                for_ever(|| sleep(LONG))
            });
        has_begun.recv().unwrap();
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "shutdown::drop_reports_on_standard_error",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .env("THALWEG_SHUTDOWN_TIMEOUT", "50ms")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("not all actors ended in time"), "{text}");
    assert!(text.contains("(stubborn)"), "{text}");
    assert!(text.contains("its stack is leaked"), "{text}");
}
