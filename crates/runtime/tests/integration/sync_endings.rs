//! Waits on synchronisation objects that end abnormally: by a panic, by the end of the runtime, or
//! where waiting is forbidden.

use std::io::{BufRead, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use thalweg_runtime::preempt::NoPark;
use thalweg_runtime::sync::{Barrier, Condvar, Mutex, Notify, RwLock, Semaphore, WaitError, watch};
use thalweg_runtime::{Config, JoinError, init, native, run, spawn, yield_now};

use crate::kit::{NO_TIME, SHORT, let_others, runtime};

#[test]
fn guard_dropped_by_a_panic_unlocks() {
    run(|| {
        let shared = Arc::new((Mutex::new(1), RwLock::new(1), Semaphore::new(1)));
        let panics = spawn({
            let shared = shared.clone();
            move || {
                let mut value = shared.0.lock();
                let _writing = shared.1.write();
                let _permit = shared.2.acquire().unwrap();
                *value = 2;
                let_others();
                panic!("with all of them");
            }
        });
        let_others();
        assert_eq!(*shared.0.lock(), 2);
        assert_eq!((*shared.1.read(), shared.2.available()), (1, 1));
        panics.join().unwrap_err();
    });
}

/// A named wait.
type Wait = (&'static str, Box<dyn FnOnce() + Send>);

/// One wait for each kind of object. None of them succeeds.
fn waits() -> Vec<Wait> {
    let mutex = Arc::new(Mutex::new(()));
    std::mem::forget(mutex.lock());
    let lock = Arc::new(RwLock::new(()));
    std::mem::forget(lock.write());
    let (read, open) = (lock.clone(), Mutex::new(()));
    vec![
        ("mutex", Box::new(move || drop(mutex.lock())) as Box<_>),
        ("read", Box::new(move || drop(read.read()))),
        ("write", Box::new(move || drop(lock.write()))),
        ("permit", Box::new(|| drop(Semaphore::new(0).acquire()))),
        ("notify", Box::new(|| Notify::new().wait())),
        (
            "barrier",
            Box::new(|| assert!(Barrier::new(2).wait().is_leader())),
        ),
        (
            "change",
            Box::new(move || drop(Condvar::new().wait(open.lock()))),
        ),
        (
            "watch",
            Box::new(|| {
                let (_sender, mut receiver) = watch::channel(());
                let _ = receiver.changed();
            }),
        ),
        (
            "receivers",
            Box::new(|| {
                let (sender, _receiver) = watch::channel(());
                sender.closed();
            }),
        ),
    ]
}

#[test]
fn actor_that_must_not_wait_panics_and_joins_no_wait_list() {
    run(|| {
        for (name, wait) in waits() {
            let in_section = spawn(move || {
                let _section = NoPark::new();
                wait();
            });
            assert!(in_section.join().is_err(), "{name}");
        }
        for (name, wait) in waits() {
            let in_native = spawn(move || native(wait));
            assert!(in_native.join().is_err(), "{name}");
        }
        // The refused waiter is no longer in the wait list, so the grant goes to the current
        // waiter.
        let shared = Arc::new((Mutex::new(()), Semaphore::new(0), Notify::new()));
        let held = shared.0.lock();
        let refused = spawn({
            let shared = shared.clone();
            move || {
                let _section = NoPark::new();
                let one = catch_unwind(AssertUnwindSafe(|| drop(shared.0.lock())));
                let two = catch_unwind(AssertUnwindSafe(|| drop(shared.1.acquire())));
                let three = catch_unwind(AssertUnwindSafe(|| shared.2.wait()));
                [one, two, three].map(|caught| caught.is_err())
            }
        });
        assert_eq!(refused.join().unwrap(), [true; 3]);
        drop(held);
        shared.1.add_permits(1);
        shared.2.notify_one();
        assert!(shared.0.try_lock().is_some());
        assert!(shared.1.try_acquire().is_ok());
        assert_eq!(shared.2.wait_timeout(NO_TIME), Ok(()));
    });
}

/// Reports that it was dropped.
struct Dropped(mpsc::Sender<&'static str>, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(self.1).unwrap();
    }
}

#[test]
fn runtime_stop_ends_waits_and_runs_destructors() {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (tx, rx) = mpsc::channel();
        let mut names = Vec::new();
        for (name, wait) in waits() {
            names.push(name);
            let (begun, waiting) = mpsc::channel();
            let dropped = Dropped(tx.clone(), name);
            let actor = runtime.handle().spawn(move || {
                let _dropped = dropped;
                begun.send(()).unwrap();
                wait();
                // A semaphore and a watch return an error, so the actor waits once more.
                wait_for_ever();
            });
            waiting.recv().unwrap();
            drop(actor);
        }
        drop(runtime);
        drop(tx);
        let mut ended: Vec<_> = rx.iter().collect();
        ended.sort_unstable();
        names.sort_unstable();
        assert_eq!(ended, names);
    }
}

fn wait_for_ever() {
    Notify::new().wait();
    unreachable!("nobody notifies");
}

#[test]
fn kill_ends_each_wait_with_or_without_a_deadline() {
    const LONG: Duration = Duration::from_secs(600);
    fn timed() -> Vec<Wait> {
        let mutex = Arc::new(Mutex::new(()));
        std::mem::forget(mutex.lock());
        let open = Mutex::new(());
        vec![
            ("mutex", Box::new(move || drop(mutex.lock_timeout(LONG)))),
            (
                "permit",
                Box::new(|| drop(Semaphore::new(0).acquire_timeout(1, LONG))),
            ),
            (
                "notify",
                Box::new(|| assert!(Notify::new().wait_timeout(LONG).is_ok())),
            ),
            (
                "barrier",
                Box::new(|| assert!(Barrier::new(2).wait_timeout(LONG).is_ok())),
            ),
            (
                "change",
                Box::new(move || drop(Condvar::new().wait_timeout(open.lock(), LONG))),
            ),
        ]
    }
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            for rounds in 0..4 {
                for (name, wait) in waits().into_iter().chain(timed()) {
                    let (tx, dropped) = mpsc::channel();
                    let held = Dropped(tx, "dropped");
                    let victim = spawn(move || {
                        let _held = held;
                        wait();
                    });
                    (0..rounds).for_each(|_| yield_now());
                    victim.pid().kill().expect("it waits for ever");
                    let ended = victim.join();
                    assert!(
                        matches!(&ended, Err(JoinError::Exit(reason)) if reason.kind() == "killed"),
                        "{name} after {rounds}: {ended:?}"
                    );
                    assert_eq!(dropped.recv(), Ok("dropped"), "{name}");
                }
            }
        });
    }
}

type Shared = (Mutex<()>, Semaphore, Notify, RwLock<()>);

#[test]
fn grant_of_a_killed_waiter_goes_to_the_next() {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            for _ in 0..if cfg!(miri) { 3 } else { 100 } {
                let shared = Arc::new((
                    Mutex::new(()),
                    Semaphore::new(0),
                    Notify::new(),
                    RwLock::new(()),
                ));
                let (held, reading) = (shared.0.lock(), shared.3.read());
                let uses: [fn(&Shared); 4] = [
                    |shared| drop(shared.0.lock()),
                    |shared| drop(shared.1.acquire()),
                    |shared| {
                        shared.2.wait();
                        shared.2.notify_one();
                    },
                    |shared| drop(shared.3.write()),
                ];
                let actors: Vec<_> = uses
                    .into_iter()
                    .flat_map(|each| [each; 2])
                    .map(|each| {
                        let shared = shared.clone();
                        spawn(move || each(&shared))
                    })
                    .collect();
                let_others();
                drop((held, reading));
                shared.1.add_permits(1);
                shared.2.notify_one();
                // Kills the first of each pair, which may have been granted already.
                for victim in actors.iter().step_by(2) {
                    let _ = victim.pid().kill();
                }
                for (nth, actor) in actors.into_iter().enumerate() {
                    let ended = actor.join();
                    assert!(nth % 2 == 0 || ended.is_ok(), "{nth}: {ended:?}");
                }
                assert!(shared.0.try_lock().is_some() && shared.3.try_write().is_some());
                assert_eq!(shared.1.available(), 1);
                assert_eq!(shared.2.wait_timeout(NO_TIME), Ok(()));
            }
        });
    }
}

#[test]
fn grant_of_a_stopped_actor_goes_to_the_next_waiter() {
    let runtime = runtime(1);
    let shared = Arc::new((Mutex::new(()), Semaphore::new(1), Barrier::new(2)));
    let (tx, rx) = mpsc::channel();
    for nth in 0..3 {
        let (shared, tx) = (shared.clone(), tx.clone());
        drop(runtime.handle().spawn(move || {
            tx.send(()).unwrap();
            match nth {
                0 => drop(shared.0.lock()),
                1 => drop(shared.1.acquire_many(2)),
                _ => assert!(!shared.2.wait().is_leader()),
            }
        }));
    }
    let held = shared.0.lock();
    (0..3).for_each(|_| rx.recv().unwrap());
    drop(runtime);
    drop(held);
    assert!(shared.0.lock_timeout(NO_TIME).is_ok());
    assert!(shared.1.try_acquire().is_ok());
    assert_eq!(shared.2.wait_timeout(NO_TIME), Err(WaitError::TimedOut));
}

/// The actor was woken, and ends before it observes the wake-up.
#[test]
fn wake_up_for_a_killed_waiter_goes_to_the_next_waiter() {
    init(Config::with_workers(1)).unwrap().run(|| {
        let shared = Arc::new((Mutex::new(()), Condvar::new(), Notify::new()));
        type Shared = (Mutex<()>, Condvar, Notify);
        let waits: [[fn(&Shared); 2]; 2] = [
            [
                |shared| drop(shared.1.wait(shared.0.lock())),
                |shared| shared.1.notify_one(),
            ],
            [|shared| shared.2.wait(), |shared| shared.2.notify_one()],
        ];
        for [wait, notify] in waits {
            let [first, second] = [(); 2].map(|()| {
                let shared = shared.clone();
                spawn(move || wait(&shared))
            });
            let_others();
            notify(&shared);
            first.pid().kill().unwrap();
            assert!(first.join().is_err());
            second.join().unwrap();
        }
    });
}

#[test]
fn waiting_actor_on_shutdown_gets_an_error_and_is_unwound() {
    let runtime = runtime(1);
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.lock();
    let (tx, rx) = mpsc::channel();
    drop(runtime.handle().spawn({
        let mutex = mutex.clone();
        move || {
            let dropped = Dropped(tx.clone(), "unwound");
            tx.send("begun").unwrap();
            loop {
                if mutex.lock_timeout(Duration::from_secs(600)).err() == Some(WaitError::Stopping) {
                    tx.send("told").unwrap();
                }
                let _ = &dropped;
            }
        }
    }));
    assert_eq!(rx.recv().unwrap(), "begun");
    drop(runtime);
    drop(held);
    let told: Vec<_> = rx.iter().collect();
    // The wait under way is notified, if there was one, and so is one more wait.
    let twice = ["told", "told", "unwound"];
    assert!(told == twice || told == twice[1..], "{told:?}");
}

/// Calls its closure in its destructor.
struct Asks<F: FnMut()>(F);

impl<F: FnMut()> Drop for Asks<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn timed_wait_in_a_destructor_during_a_panic_ends_at_once() {
    run(|| {
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.lock();
        let (tx, rx) = mpsc::channel();
        let panics = spawn({
            let mutex = mutex.clone();
            move || {
                let _asks = Asks(move || {
                    let late = mutex.lock_timeout(Duration::from_secs(600));
                    tx.send(late.err()).unwrap();
                });
                panic!("unwinds");
            }
        });
        panics.join().unwrap_err();
        assert_eq!(rx.recv(), Ok(Some(WaitError::Stopping)));
        drop(held);
    });
}

#[test]
fn lock_in_a_destructor_during_a_panic_blocks_the_worker() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let runtime = runtime(1);
    let (tx, rx) = mpsc::channel();
    let panics = runtime.handle().spawn({
        let mutex = mutex.clone();
        move || {
            let _asks = Asks(move || {
                tx.send(()).unwrap();
                *mutex.lock() += 1;
            });
            panic!("unwinds");
        }
    });
    rx.recv().unwrap();
    std::thread::sleep(SHORT);
    drop(held);
    panics.join().unwrap_err();
    assert_eq!(*mutex.lock(), 1);
}

/// The lock may be held by another actor of that worker, which the runtime cannot know. The program
/// prints a report and continues when the lock is free.
#[test]
#[cfg_attr(any(miri, thalweg_threads), ignore = "starts itself again")]
fn worker_that_waits_in_a_destructor_is_reported() {
    const CHILD: &str = "THALWEG_TEST_WAITS";
    const NAME: &str = "worker_that_waits_in_a_destructor_is_reported";
    if std::env::var_os(CHILD).is_some() {
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.lock();
        let runtime = runtime(1);
        let locks = mutex.clone();
        let panics = runtime.handle().spawn(move || {
            let _asks = Asks(move || drop(locks.lock()));
            panic!("unwinds");
        });
        // Waits until the parent has read the report.
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        drop(held);
        panics.join().unwrap_err();
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--nocapture"])
        .env(CHILD, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.find(|line| line.as_ref().unwrap().contains("waits in a destructor"));
    assert!(said.is_some());
    drop(child.stdin.take());
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
}
