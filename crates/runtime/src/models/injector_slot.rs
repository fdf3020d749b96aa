//! Models of `injector_slot`: a task in the slot starts once, even if the worker goes to sleep, and
//! is cancelled if the runtime stops.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::thread;
use thalweg_queue::explore::model;

use super::{drop_counter, new_task, run};
use crate::config::Config;
use crate::reason::JoinError;
use crate::scheduler::{Scheduler, cancel};

/// A scheduler with one worker.
fn scheduler() -> Arc<Scheduler> {
    let scheduler = Arc::new(Scheduler::new(Config::with_workers(1)));
    // Prevents the start of the worker.
    while scheduler.next_worker().is_some() {}
    scheduler
}

/// `Worker::work`: runs this many tasks, or ends when the runtime stops. Returns the number of tasks
/// that it ran.
fn work(scheduler: &Scheduler, most: usize) -> usize {
    let mut ran = 0;
    while ran < most && !scheduler.is_stopping() {
        let Some(task) = scheduler.take_injected() else {
            idle(scheduler);
            continue;
        };
        ran += 1;
        run(task);
    }
    while scheduler.is_stopping()
        && let Some(task) = scheduler.take_injected()
    {
        cancel(task);
    }
    ran
}

fn idle(scheduler: &Scheduler) {
    let has_work = || scheduler.is_stopping() || scheduler.has_unstarted();
    scheduler.begin_search();
    if has_work() {
        scheduler.end_search();
        return;
    }
    scheduler.prepare_park(0, false);
    if !has_work() {
        scheduler.workers[0].remote_queue.parker.park(None);
    }
    scheduler.finish_park(0);
}

/// One of them finds the slot occupied or the injector in use. A lost wake-up is a deadlock.
#[test]
fn two_injected_tasks_start() {
    model(|| {
        let scheduler = scheduler();
        let worker = thread::spawn({
            let scheduler = scheduler.clone();
            move || work(&scheduler, 2)
        });
        let handles = [(); 2].map(|()| {
            let (task, handle) = new_task(|| ());
            scheduler.inject_new(task);
            handle
        });
        for handle in handles {
            handle.join().unwrap();
        }
        assert_eq!(worker.join().unwrap(), 2);
    });
}

/// A list of actors moves the task from the slot to the injector.
#[test]
fn injected_task_starts_during_a_listing() {
    model(|| {
        let scheduler = scheduler();
        let worker = thread::spawn({
            let scheduler = scheduler.clone();
            move || work(&scheduler, 1)
        });
        let (task, handle) = new_task(|| ());
        scheduler.inject_new(task);
        scheduler.for_each_waiting(|_| {});
        handle.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn task_injected_during_a_stop_starts_or_is_cancelled() {
    model(|| {
        let scheduler = scheduler();
        let (captured, dropped) = drop_counter();
        let (task, handle) = new_task(move || drop(captured));
        let worker = thread::spawn({
            let scheduler = scheduler.clone();
            move || work(&scheduler, 1)
        });
        let stopper = thread::spawn({
            let scheduler = scheduler.clone();
            move || scheduler.halt(std::time::Duration::MAX)
        });
        scheduler.inject_new(task);
        stopper.join().unwrap();
        let ran = worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
        let how = handle.join();
        assert_eq!(how.is_ok(), ran == 1);
        assert!(matches!(how, Ok(()) | Err(JoinError::Stopped)));
    });
}
