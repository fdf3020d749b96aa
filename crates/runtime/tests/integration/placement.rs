//! Placement: an actor stays on the worker where it begins. The tests identify a worker by its
//! thread, which requires that actors have no threads of their own.
#![cfg(not(any(miri, thalweg_threads)))]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use thalweg_runtime::{Config, JoinHandle, Runtime, channel, spawn, yield_now};

/// Keeps a worker other than the caller's busy until it is dropped.
struct Held {
    go: Arc<AtomicBool>,
    actor: Option<JoinHandle<()>>,
}

impl Held {
    fn other_worker() -> Self {
        let here = std::thread::current().id();
        loop {
            let (begun, go) = (Arc::new(AtomicBool::new(false)), Arc::default());
            let (begins, goes): (_, Arc<AtomicBool>) = (begun.clone(), Arc::clone(&go));
            let actor = spawn(move || {
                // The other worker was slower. Here the loop would block the caller.
                if std::thread::current().id() == here {
                    return;
                }
                begins.store(true, Ordering::Release);
                while !goes.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            });
            // The first spawned actor stays in this worker's reserve slot; the second can be
            // stolen.
            spawn(|| ());
            while !begun.load(Ordering::Acquire) && !actor.is_finished() {
                thalweg_runtime::check!();
                std::thread::yield_now();
            }
            if begun.load(Ordering::Acquire) {
                let actor = Some(actor);
                return Self { go, actor };
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.go.store(true, Ordering::Release);
        if let Some(actor) = self.actor.take() {
            actor.join().unwrap();
        }
    }
}

/// Spawns actors that wait while the other worker is busy. Returns how many of them began on each
/// thread.
fn wait_by_thread(config: Config, actors: usize) -> HashMap<ThreadId, usize> {
    let runtime = Runtime::start(config).unwrap();
    let spawner = runtime.handle().spawn(move || {
        let held = Held::other_worker();
        let (begun, begins) = channel();
        let (release, released) = channel::<()>();
        let waiting: Vec<_> = (0..actors)
            .map(|_| {
                let (begun, released) = (begun.clone(), released.clone());
                spawn(move || {
                    begun.send(std::thread::current().id()).unwrap();
                    drop(begun);
                    // Waits until the last sender is dropped.
                    assert!(released.recv().is_err());
                })
            })
            .collect();
        // One turn in eight goes to a new actor.
        for _ in 0..16 * actors {
            yield_now();
        }
        drop(held);
        let mut by_thread = HashMap::new();
        drop(begun);
        for _ in 0..actors {
            if let Ok(thread) = begins.recv() {
                *by_thread.entry(thread).or_default() += 1;
            }
        }
        drop(release);
        for one in waiting {
            one.join().unwrap();
        }
        by_thread
    });
    spawner.join().unwrap()
}

/// Power of two choices: all actors become ready while only one worker can run them, and still they
/// do not pile up there.
#[test]
fn started_actors_do_not_pile_up_on_one_worker() {
    let actors = 1000;
    let by_thread = wait_by_thread(Config::with_workers(2), actors);
    assert_eq!(by_thread.len(), 2, "{by_thread:?}");
    let fewest = *by_thread.values().min().unwrap();
    assert!(fewest >= actors / 3, "{by_thread:?}");
}

/// A worker may use its share of `max_stacks`; further actors go to the other workers.
#[test]
fn actor_without_a_stack_on_one_worker_begins_on_another() {
    // Two stacks belong to the spawner and to the actor that keeps the other worker busy.
    let by_thread = wait_by_thread(Config::with_workers(2).max_stacks(32), 28);
    assert_eq!(by_thread.len(), 2, "{by_thread:?}");
}

/// Each level waits for the next one, so that this worker soon has many more stacks than the busy one.
fn levels(count: u32) -> u32 {
    match count {
        0 => 0,
        _ => 1 + spawn(move || levels(count - 1)).join().unwrap(),
    }
}

/// The other worker does not look for work until all levels have begun.
#[test]
fn actor_placed_with_a_busy_worker_begins() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let spawner = runtime.handle().spawn(|| {
        let held = Held::other_worker();
        let levels = spawn(|| levels(500)).join_timeout(Duration::from_secs(30));
        drop(held);
        levels
    });
    let levels = spawner.join().unwrap();
    assert_eq!(levels.expect("all levels begin").unwrap(), 500);
}
