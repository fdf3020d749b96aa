//! Guarantees of actors and their workers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_runtime::{Config, JoinError, Run, Runtime, TurnSlot, WakeReason, wait};

fn runtime(workers: usize) -> Runtime {
    Runtime::start(Config {
        workers,
        ..Config::default()
    })
    .unwrap()
}

#[test]
fn a_parked_actor_leaves_its_worker_to_others_and_goes_on_when_woken() {
    let runtime = runtime(1);
    let (tx, rx) = mpsc::channel::<Waker>();
    let (done, ended) = mpsc::channel();
    let first = done.clone();
    runtime.handle().spawn(move || {
        let thread = std::thread::current().id();
        tx.send(wait::waker()).unwrap();
        assert_eq!(wait::park(None), WakeReason::Woken);
        assert_eq!(std::thread::current().id(), thread, "a started stack stays");
        first.send("parked one").unwrap();
    });
    let waker = rx.recv().unwrap();
    runtime
        .handle()
        .spawn(move || done.send("other one").unwrap());
    assert_eq!(ended.recv().unwrap(), "other one");
    waker.wake();
    assert_eq!(ended.recv().unwrap(), "parked one");
}

#[test]
fn a_wake_before_the_parking_is_kept() {
    let runtime = runtime(1);
    let (done, ended) = mpsc::channel();
    runtime.handle().spawn(move || {
        wait::waker().wake();
        done.send(wait::park(None)).unwrap();
    });
    assert_eq!(ended.recv().unwrap(), WakeReason::Woken);
}

#[test]
fn a_deadline_ends_an_actors_wait() {
    let runtime = runtime(1);
    let (done, ended) = mpsc::channel();
    runtime.handle().spawn(move || {
        let deadline = clock::deadline(Duration::from_millis(10));
        let woke = wait::park(Some(deadline));
        done.send((woke, clock::now() >= deadline)).unwrap();
    });
    assert_eq!(ended.recv().unwrap(), (WakeReason::TimedOut, true));
}

#[test]
fn a_computing_actor_that_checks_does_not_hold_the_worker() {
    let runtime = runtime(1);
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    runtime.handle().spawn(move || {
        while !seen.load(Ordering::Relaxed) {
            wait::check();
        }
    });
    let (done, ended) = mpsc::channel();
    runtime.handle().spawn(move || done.send(()).unwrap());
    ended.recv_timeout(Duration::from_secs(20)).unwrap();
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn a_panic_ends_its_actor_only() {
    let runtime = runtime(1);
    runtime
        .handle()
        .spawn(|| std::panic::resume_unwind(Box::new("on purpose")));
    let (done, ended) = mpsc::channel();
    runtime.handle().spawn(move || done.send(()).unwrap());
    ended.recv().unwrap();
}

#[test]
fn thousands_of_actors_from_four_threads_all_run() {
    /// Actors that each thread spawns.
    const ACTORS: usize = if cfg!(miri) { 5 } else { 2_500 };
    let runtime = runtime(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (handle, ran, done) = (runtime.handle().clone(), ran.clone(), done.clone());
            scope.spawn(move || {
                for _ in 0..ACTORS {
                    let (ran, done) = (ran.clone(), done.clone());
                    handle.spawn(move || {
                        if ran.fetch_add(1, Ordering::Relaxed) + 1 == 4 * ACTORS {
                            done.send(()).unwrap();
                        }
                    });
                }
            });
        }
    });
    ended.recv().unwrap();
}

#[test]
fn an_actor_for_which_there_is_no_stack_says_so_and_the_next_one_may_have_it() {
    let runtime = Runtime::start(Config {
        workers: 1,
        max_stacks: 2,
        ..Config::default()
    })
    .unwrap();
    let (tx, wakers) = mpsc::channel();
    let waiting = [0, 1].map(|_| {
        let tx = tx.clone();
        runtime.handle().spawn(move || {
            tx.send(wait::waker()).unwrap();
            wait::park(None);
        })
    });
    let wakers = [wakers.recv().unwrap(), wakers.recv().unwrap()];
    let third = runtime.handle().spawn(|| ());
    assert!(matches!(third.join(), Err(JoinError::NoStack(_))));
    wakers.into_iter().for_each(Waker::wake);
    for actor in waiting {
        actor.join().unwrap();
    }
    assert_eq!(runtime.handle().spawn(|| 4).join().unwrap(), 4);
}

#[test]
fn stopping_ends_waits_and_runs_destructors() {
    struct Dropped(mpsc::Sender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send("dropped").unwrap();
        }
    }
    let runtime = runtime(2);
    let (tx, rx) = mpsc::channel();
    let token = Dropped(tx.clone());
    runtime.handle().spawn(move || {
        let _token = token;
        tx.send("waits").unwrap();
        assert_eq!(wait::park(None), WakeReason::Stopping);
    });
    assert_eq!(rx.recv().unwrap(), "waits");
    drop(runtime);
    assert_eq!(rx.recv().unwrap(), "dropped");
}

#[test]
fn a_scheduled_actor_runs_once_each_time() {
    struct Counter(AtomicUsize, mpsc::Sender<usize>, TurnSlot);
    impl Run for Counter {
        fn run(self: Arc<Self>) {
            let turn = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            self.1.send(turn).unwrap();
        }

        fn refuse(self: Arc<Self>) {
            unreachable!("there are stacks");
        }

        fn turn_slot(&self) -> &TurnSlot {
            &self.2
        }
    }
    let runtime = runtime(2);
    let (tx, rx) = mpsc::channel();
    let counter = Arc::new(Counter(AtomicUsize::new(0), tx, TurnSlot::default()));
    for turn in 1..=if cfg!(miri) { 5 } else { 100 } {
        runtime.handle().schedule(counter.clone());
        assert_eq!(rx.recv().unwrap(), turn);
    }
}
