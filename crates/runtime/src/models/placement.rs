//! Models of `scheduler`'s rule 6: a task that is placed with another worker starts there, or with
//! any idle worker that has no more stacks, even if that worker goes to sleep meanwhile. If the runtime
//! stops, the task is cancelled. A model has no time, so a worker with more stacks never takes the
//! task.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering::Relaxed};

use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{drop_counter, new_task};
use crate::config::Config;
use crate::reason::JoinError;
use crate::scheduler::{Scheduler, WorkerShared, cancel};
use crate::shim::Ordering;
use crate::task::Task;

/// Workers of one scheduler, which only look for tasks to start.
struct Model {
    scheduler: Arc<Scheduler>,
    begun: StdAtomicUsize,
}

impl Model {
    /// Creates a scheduler whose first worker has this number of stacks.
    fn new(workers: usize, stacks: usize) -> Arc<Self> {
        let scheduler = Arc::new(Scheduler::new(Config::with_workers(workers)));
        // Prevents the start of the workers.
        while scheduler.next_worker().is_some() {}
        scheduler.workers[0].stacks.store(stacks, Ordering::Relaxed);
        Arc::new(Self {
            scheduler,
            begun: StdAtomicUsize::new(0),
        })
    }

    fn run(&self, task: Task) {
        self.begun.fetch_add(1, Relaxed);
        // SAFETY: the task came from a queue and belongs to the caller.
        unsafe { task.run() };
    }

    /// `Worker::take_unstarted`, and stealing.
    fn take(&self, index: usize) -> Option<Task> {
        let mine = &self.scheduler.workers[index];
        mine.take_own()
            .or_else(|| mine.placed.pop())
            .or_else(|| self.scheduler.take_injected())
            .or_else(|| {
                self.victims(index)
                    .filter_map(|victim| {
                        let stolen = victim.steal_into(&mine.ring, u32::MAX);
                        stolen.or_else(|| victim.placed.pop())
                    })
                    .next()
            })
    }

    /// The workers from which this worker takes tasks, besides itself. No rings are used here.
    fn victims(&self, index: usize) -> impl Iterator<Item = &WorkerShared> {
        let workers = &self.scheduler.workers;
        let max = self.scheduler.max_stacks_per_worker();
        (0..workers.len())
            .filter(move |other| *other != index)
            .map(|other| &workers[other])
            .filter(move |other| !other.is_better_than(&workers[index], max))
    }

    fn finds(&self, index: usize) -> bool {
        self.scheduler.is_stopping()
            || self.scheduler.has_injected()
            || self.scheduler.workers[index].has_some()
            || self.victims(index).any(WorkerShared::has_some)
    }

    /// `Worker::idle`: returns the task that it found, or that was placed while it slept.
    fn idle(&self, index: usize) -> Option<Task> {
        let scheduler = &self.scheduler;
        let has_work = || self.finds(index);
        scheduler.begin_search();
        if has_work() {
            return if scheduler.end_search() {
                self.pass_on(index)
            } else {
                None
            };
        }
        scheduler.prepare_park(index, false);
        if !has_work() {
            scheduler.workers[index].remote_queue.parker.park(None);
        }
        scheduler.finish_park(index);
        self.pass_on(index)
    }

    fn pass_on(&self, index: usize) -> Option<Task> {
        let taken = self.take(index);
        let leaves = taken.is_none() && !self.finds(index);
        if !leaves && self.scheduler.has_unstarted() {
            self.scheduler.announce();
        }
        taken
    }

    /// `Worker::work`, until this many tasks have started here or the runtime stops; then like
    /// `Worker::end_actors`.
    fn work(&self, index: usize, mut max: usize) {
        while max > 0 && !self.scheduler.is_stopping() {
            if let Some(task) = self.take(index).or_else(|| self.idle(index)) {
                self.run(task);
                max -= 1;
            }
        }
        while self.scheduler.is_stopping()
            && let Some(task) = self.take(index)
        {
            cancel(task);
        }
    }
}

/// The worker sleeps or is about to. A lost wake-up is a deadlock.
#[test]
fn task_placed_with_a_worker_that_goes_to_sleep_starts() {
    model(|| {
        let model = Model::new(2, 100);
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work(1, 1)
        });
        let (task, handle) = new_task(|| ());
        assert!(model.scheduler.place(0, 0, task).is_none());
        handle.join().unwrap();
        worker.join().unwrap();
    });
}

/// The selected worker is busy and never looks for work: another one, which goes to sleep, takes
/// the task.
#[test]
fn task_placed_with_a_busy_worker_starts_elsewhere() {
    model(|| {
        let model = Model::new(3, 100);
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work(2, 1)
        });
        let (task, handle) = new_task(|| ());
        assert!(model.scheduler.place(0, 0, task).is_none());
        handle.join().unwrap();
        worker.join().unwrap();
    });
}

/// Another worker has as many stacks as the placing one, and leaves the task, even if it is the one that
/// is woken.
#[test]
fn task_that_another_worker_leaves_starts() {
    large_model(|| {
        let model = Model::new(3, 100);
        model.scheduler.workers[1]
            .stacks
            .store(100, Ordering::Relaxed);
        let workers = [1, 2].map(|index| {
            let model = model.clone();
            thread::spawn(move || model.work(index, 1))
        });
        let (task, handle) = new_task(|| ());
        // So that both sleep in some executions with few preemptions.
        thread::yield_now();
        assert!(model.scheduler.place(0, 1, task).is_none());
        handle.join().unwrap();
        // The other worker takes this one.
        let (task, handle) = new_task(|| ());
        drop(handle);
        model.scheduler.inject(task);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// `scheduler`'s rule 4: the worker that takes one of them is busy until the other has been run.
#[test]
fn two_placed_tasks_start() {
    large_model(|| {
        let model = Model::new(3, 100);
        let workers = [1, 2].map(|index| {
            let model = model.clone();
            thread::spawn(move || model.work(index, 1))
        });
        for draw in [0, 1] {
            let (task, handle) = new_task(|| ());
            drop(handle);
            assert!(model.scheduler.place(0, draw, task).is_none());
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// The task is placed, or returned to the placing worker. It starts or is cancelled, exactly once.
#[test]
fn task_placed_during_a_stop_starts_or_is_cancelled() {
    large_model(|| {
        let model = Model::new(2, 100);
        let (captured, dropped) = drop_counter();
        let (task, handle) = new_task(move || drop(captured));
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work(1, usize::MAX)
        });
        let stopper = thread::spawn({
            let model = model.clone();
            move || model.scheduler.halt(std::time::Duration::MAX)
        });
        if let Some(task) = model.scheduler.place(0, 0, task) {
            cancel(task);
        }
        stopper.join().unwrap();
        worker.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
        let how = handle.join();
        assert_eq!(how.is_ok(), model.begun.load(Relaxed) == 1);
        assert!(matches!(how, Ok(()) | Err(JoinError::Stopped)));
    });
}

/// A task stays if its own worker is no busier.
#[test]
fn task_stays_if_the_other_worker_is_no_better() {
    for (mine, theirs) in [(0, 0), (16, 1), (100, 100), (99, 75)] {
        model(move || {
            let model = Model::new(2, mine);
            model.scheduler.workers[1]
                .stacks
                .store(theirs, Ordering::Relaxed);
            let (task, handle) = new_task(|| ());
            let stays = model.scheduler.place(0, 0, task).expect("it stays");
            model.run(stays);
            handle.join().unwrap();
        });
    }
}
