//! Models of `scheduler`'s rule 7: a task that finds no stack starts with a worker that has one,
//! even if that worker is about to sleep. If the runtime stops, or a signal ends the task, it is
//! cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering::Relaxed};

use loom::thread;
use thalweg_queue::explore::model;

use super::{DropCounter, drop_counter, new_task};
use crate::config::Config;
use crate::join::JoinHandle;
use crate::reason::JoinError;
use crate::scheduler::{Scheduler, cancel};
use crate::task::Task;

/// Two workers: the first has no stack, the second has one.
struct Model {
    scheduler: Arc<Scheduler>,
    begun: StdAtomicUsize,
}

impl Model {
    fn new() -> Arc<Self> {
        let scheduler = Arc::new(Scheduler::new(Config::with_workers(2)));
        // Prevents the start of the workers.
        while scheduler.next_worker().is_some() {}
        Arc::new(Self {
            scheduler,
            begun: StdAtomicUsize::new(0),
        })
    }

    /// `Worker::serve_waiting`, if there is a stack for a task.
    fn serve(&self, seen: &mut usize) -> bool {
        *seen = self.scheduler.shortages();
        if !self.scheduler.has_waiting_for_stack() {
            return false;
        }
        let Some(task) = self.scheduler.take_waiting_for_stack(false) else {
            return false;
        };
        self.begun.fetch_add(1, Relaxed);
        // SAFETY: the task came from the list and belongs to the caller.
        unsafe { task.run() };
        true
    }

    /// `Worker::idle` of the second worker, until a task has started there or the runtime stops.
    fn work(&self) {
        let (scheduler, mut seen) = (&self.scheduler, 0);
        while !self.serve(&mut seen) && !scheduler.is_stopping() {
            let has_work = || scheduler.is_stopping() || scheduler.shortages() != seen;
            scheduler.begin_search();
            scheduler.prepare_park(1, false);
            if !has_work() {
                scheduler.workers[1].remote_queue.parker.park(None);
            }
            scheduler.finish_park(1);
        }
    }
}

fn new_counted_task() -> (Task, JoinHandle<()>, Arc<StdAtomicUsize>) {
    let (captured, dropped): (DropCounter, _) = drop_counter();
    let (task, handle) = new_task(move || drop(captured));
    (task, handle, dropped)
}

/// A lost wake-up is a deadlock.
#[test]
fn task_that_waits_for_a_stack_starts_with_a_worker_that_goes_to_sleep() {
    model(|| {
        let model = Model::new();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work()
        });
        let (task, handle) = new_task(|| ());
        model.scheduler.wait_for_stack(task);
        handle.join().unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn task_that_waits_for_a_stack_during_a_stop_starts_or_is_cancelled() {
    model(|| {
        let model = Model::new();
        let (task, handle, dropped) = new_counted_task();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work()
        });
        let stopper = thread::spawn({
            let model = model.clone();
            move || model.scheduler.halt(std::time::Duration::MAX)
        });
        model.scheduler.wait_for_stack(task);
        stopper.join().unwrap();
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
        let how = handle.join();
        assert_eq!(how.is_ok(), model.begun.load(Relaxed) == 1);
        assert!(matches!(how, Ok(()) | Err(JoinError::Stopped)));
    });
}

/// No worker has a stack: a killed task ends nevertheless.
#[test]
fn task_that_waits_for_a_stack_during_a_kill_ends() {
    model(|| {
        let model = Model::new();
        let (task, handle, dropped) = new_counted_task();
        let pid = handle.pid();
        let killer = thread::spawn({
            let model = model.clone();
            move || {
                let _ = pid.kill();
                model.scheduler.end_signalled();
            }
        });
        model.scheduler.wait_for_stack(task);
        killer.join().unwrap();
        assert!(matches!(handle.join(), Err(JoinError::Exit(_))));
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A turn that can be refused is either run or refused, once.
#[test]
fn turn_refused_while_a_worker_has_a_stack_is_taken_once() {
    model(|| {
        let model = Model::new();
        let (captured, dropped) = drop_counter();
        let task = Task::detached(
            crate::id::ActorId::next(),
            crate::task::OnShortage::Refuse,
            None,
            move || drop(captured),
        );
        model.scheduler.wait_for_stack(task);
        let refuser = thread::spawn({
            let model = model.clone();
            move || {
                let taken = model.scheduler.take_refusable();
                let count = taken.len();
                taken.into_iter().for_each(cancel);
                count
            }
        });
        let taken = model.scheduler.take_waiting_for_stack(true);
        let served = usize::from(taken.is_some());
        taken.into_iter().for_each(cancel);
        assert_eq!(refuser.join().unwrap() + served, 1);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}
