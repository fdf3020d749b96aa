//! Closures that run on a worker's own stack.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use thalweg_runtime::{
    Config, JoinError, Run, Runtime, TurnSlot, block_on_timeout, check, native, sleep, spawn, wait,
    yield_now,
};

/// Returns a runtime with the smallest supported stacks.
fn runtime() -> Runtime {
    Runtime::start(Config::with_workers(1).stack_size(64 << 10)).unwrap()
}

/// Runs `f` as an actor of such a runtime.
fn in_actor<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    runtime().handle().spawn(f).join()
}

/// Uses 4 KiB of stack for each level of `n`.
fn deep(n: usize) -> usize {
    let mut frame = [n; 512];
    std::hint::black_box(&mut frame);
    if n == 0 {
        return 0;
    }
    deep(frame[n % 512] - 1) + 1
}

/// The message of the panic of `f`, if it panics.
fn message(f: impl FnOnce()) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    Some(payload.downcast_ref::<&str>().unwrap().to_string())
}

#[test]
fn call_recursing_four_megabytes_deep_returns() {
    let depth = if cfg!(miri) { 10 } else { 1_024 };
    assert_eq!(in_actor(move || native(|| deep(depth))).unwrap(), depth);
    // The worker's stack is free again afterwards, and actors can take turns with it.
    let sum = in_actor(move || {
        let others: Vec<_> = (0..4)
            .map(|_| {
                spawn(move || {
                    let first = native(|| deep(depth));
                    yield_now();
                    first + native(|| deep(depth))
                })
            })
            .collect();
        let sum: usize = others.into_iter().map(|actor| actor.join().unwrap()).sum();
        sum
    });
    assert_eq!(sum.unwrap(), 8 * depth);
}

#[test]
fn argument_and_result_need_not_be_send() {
    let value = in_actor(|| {
        let shared = Rc::new(Cell::new(1));
        let mut borrowed = String::from("a");
        let theirs = native(|| {
            shared.set(shared.get() + 1);
            borrowed.push('b');
            Rc::clone(&shared)
        });
        (theirs.get(), Rc::strong_count(&shared), borrowed)
    });
    assert_eq!(value.unwrap(), (2, 2, "ab".to_owned()));
}

#[test]
fn call_runs_on_the_same_thread_and_actor() {
    thread_local!(static HERE: Cell<u32> = const { Cell::new(0) });
    let here = || {
        (
            HERE.with(|here| std::ptr::from_ref(here).addr()),
            std::thread::current().id(),
            wait::current(),
        )
    };
    in_actor(move || {
        assert_eq!(native(here), here());
        assert!(wait::current().is_some());
    })
    .unwrap();
    // On a thread that is no actor, `native` just calls the closure.
    assert_eq!(native(here), here());
    assert_eq!(native(|| 42), 42);
}

#[test]
fn nested_call_stays_on_the_native_stack() {
    let nested = in_actor(|| {
        native(|| {
            let inner = native(|| !wait::can_park());
            // The outer `native` call is still active.
            inner && !wait::can_park()
        }) && wait::can_park()
    });
    assert!(nested.unwrap());
}

#[test]
fn panic_propagates_and_leaks_nothing() {
    let ended = in_actor(|| {
        let caught = catch_unwind(|| native(|| resume_unwind(Box::new(7u32))));
        assert_eq!(caught.unwrap_err().downcast_ref::<u32>(), Some(&7));
        assert!(wait::can_park());
        sleep(Duration::from_millis(1));
        native(|| resume_unwind(Box::new("on purpose")))
    });
    let ended: Result<(), _> = ended;
    assert!(matches!(ended, Err(JoinError::Panic(panic)) if panic.message() == Some("on purpose")));
}

#[test]
fn wait_on_the_native_stack_panics_with_a_reason() {
    let would =
        |message: Option<String>| message.is_some_and(|text| text.starts_with("would park"));
    in_actor(move || {
        let (tx, rx) = thalweg_runtime::channel::<u32>();
        let sleeps = || sleep(Duration::from_millis(1));
        assert!(native(|| would(message(sleeps))));
        assert!(native(|| would(message(|| assert!(rx.recv().is_err())))));
        let actor = spawn(|| ());
        assert!(native(|| would(message(|| drop(actor.join())))));
        let hour = Duration::from_secs(3600);
        let awaits = || block_on_timeout(hour, std::future::pending()).unwrap();
        assert!(native(|| would(message(awaits))));
        let blocks = || thalweg_runtime::io::blocking(|| ());
        assert!(native(|| would(message(blocks))));
        // An operation that can complete at once is allowed.
        tx.send(3).unwrap();
        assert_eq!(native(|| rx.recv()), Ok(3));
        assert_eq!(native(|| thalweg_runtime::block_on(async { 4 })), 4);
        // After `native` returns, the actor can wait again.
        sleeps();
    })
    .unwrap();
}

#[test]
fn other_actors_of_the_worker_do_not_run_during_the_call() {
    let ran = in_actor(|| {
        let ran = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ran);
        let other = spawn(move || seen.store(true, Ordering::SeqCst));
        let meanwhile = native(|| {
            for _ in 0..1_000 {
                yield_now();
                check!();
            }
            // Longer than a time slice.
            std::thread::sleep(Duration::from_millis(2));
            for _ in 0..1_000 {
                yield_now();
                check!();
            }
            ran.load(Ordering::SeqCst)
        });
        yield_now();
        other.join().unwrap();
        (meanwhile, ran.load(Ordering::SeqCst))
    });
    assert_eq!(ran.unwrap(), (false, true));
}

#[test]
fn runtime_stop_waits_for_the_call() {
    let runtime = runtime();
    let (tx, rx) = mpsc::channel();
    let (stopping, stops) = mpsc::channel();
    let actor = runtime.handle().spawn(move || {
        native(|| {
            tx.send("begun").unwrap();
            // Like a blocking C function: the thread waits.
            stops.recv().unwrap();
            while !wait::is_stopping() {
                std::thread::yield_now();
            }
            yield_now();
            tx.send("done").unwrap();
        });
        yield_now();
        tx.send("never").unwrap();
    });
    assert_eq!(rx.recv(), Ok("begun"));
    let stopped = std::thread::spawn(move || drop(runtime));
    stopping.send(()).unwrap();
    stopped.join().unwrap();
    assert_eq!(rx.iter().collect::<Vec<_>>(), ["done"]);
    assert!(matches!(actor.join(), Err(JoinError::Stopped)));
}

#[test]
fn turns_on_the_worker_s_stack_are_deep_and_do_not_wait() {
    struct Object(TurnSlot, mpsc::Sender<(usize, bool, Option<String>)>);
    impl Run for Object {
        fn run(self: Arc<Self>) {
            let depth = deep(if cfg!(miri) { 10 } else { 1_024 });
            yield_now();
            let refused = message(|| sleep(Duration::from_secs(60)));
            self.1.send((depth, wait::can_park(), refused)).unwrap();
            panic!("ends the turn");
        }

        fn refuse(self: Arc<Self>) {
            unreachable!("it needs no stack");
        }

        fn turn_slot(&self) -> &TurnSlot {
            &self.0
        }
    }
    let runtime = runtime();
    let (tx, rx) = mpsc::channel();
    let object = Arc::new(Object(TurnSlot::on_worker_stack(), tx));
    for _ in 0..3 {
        runtime.handle().schedule(Arc::clone(&object) as _);
        let (depth, can_park, refused) = rx.recv().unwrap();
        assert_eq!(
            (depth, can_park),
            (if cfg!(miri) { 10 } else { 1_024 }, false)
        );
        assert!(refused.unwrap().starts_with("would park"));
    }
    // An actor may wait on the same worker afterwards.
    let waits = runtime.handle().spawn(|| sleep(Duration::from_millis(1)));
    waits.join().unwrap();
    // A turn that was not taken before the runtime stops is dropped.
    runtime.handle().schedule(Arc::clone(&object) as _);
    drop(runtime);
    drop(rx);
    assert_eq!(Arc::strong_count(&object), 1);
}
