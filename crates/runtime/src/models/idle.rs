//! Models of `idle` and `remote_queue`: no task waits while a worker sleeps, in its poller or in
//! its parker.

use std::sync::atomic::{AtomicUsize as StdAtomicUsize, Ordering::Relaxed};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::Parker;
use thalweg_queue::explore::{explore, large_model, model};

use crate::idle::{Announcement, Idle};
use crate::remote_queue::RemoteQueue;

/// Workers that take tasks and sleep. The tasks are only counted.
struct Model {
    idle: Idle,
    queues: [&'static RemoteQueue; 2],
    /// The poller in which the first worker sleeps; see `models::poller`. The second worker has
    /// none.
    poller: Parker,
    /// Two places for tasks, like a ring and the injector. A thread that takes from one has not
    /// seen the other.
    tasks: [AtomicUsize; 2],
    /// The announcements that found no searcher: they woke a worker, or all workers are busy and
    /// look for work when they are done.
    without_searcher: StdAtomicUsize,
    done: AtomicUsize,
    /// Unparked when a task is done.
    waiter: Parker,
}

impl Model {
    fn new() -> Arc<Self> {
        let (queues, poller) = ([(); 2].map(|()| RemoteQueue::allocate()), Parker::new());
        queues[0].set_unparker(Some(poller.waker()));
        Arc::new(Self {
            idle: Idle::new(),
            queues,
            poller,
            tasks: [0, 0].map(AtomicUsize::new),
            without_searcher: StdAtomicUsize::new(0),
            done: AtomicUsize::new(0),
            waiter: Parker::new(),
        })
    }

    fn put(&self, place: usize) {
        self.tasks[place].fetch_add(1, Ordering::Release);
    }

    fn add(&self, place: usize) -> Announcement {
        self.put(place);
        self.announce()
    }

    fn announce(&self) -> Announcement {
        let announced = self.idle.announce();
        if announced != Announcement::Searching {
            self.without_searcher.fetch_add(1, Relaxed);
        }
        if let Announcement::Wake(index) = announced {
            self.queues[index].unpark();
        }
        announced
    }

    fn has_tasks(&self) -> bool {
        self.tasks
            .iter()
            .any(|tasks| tasks.load(Ordering::Relaxed) > 0)
    }

    fn take(&self) -> bool {
        let less = |tasks: usize| tasks.checked_sub(1);
        self.tasks.iter().any(|tasks| {
            tasks
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, less)
                .is_ok()
        })
    }

    /// `Worker::idle` and the functions of the scheduler that it calls. Returns whether it has
    /// taken a task.
    fn idle(&self, index: usize) -> bool {
        self.idle.begin_search();
        if self.has_tasks() {
            return self.idle.end_search() && self.take_and_wake_another();
        }
        let (queue, in_poller) = (self.queues[index], index == 0);
        queue.prepare_park(in_poller);
        self.idle.set_idle(index);
        if !self.has_tasks() {
            if in_poller {
                self.poller.park(None);
            } else {
                queue.parker.park(None);
            }
        }
        queue.finish_park();
        self.idle.clear_idle(index);
        self.take_and_wake_another()
    }

    fn find(&self, index: usize) {
        while !self.take() && !self.idle(index) {}
    }

    /// Returns whether it has taken a task itself.
    fn take_and_wake_another(&self) -> bool {
        let taken = self.take();
        if self.has_tasks() {
            self.announce();
        }
        taken
    }

    fn end(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
        self.waiter.unpark();
    }

    fn wait_for(&self, done: usize) {
        while self.done.load(Ordering::Acquire) < done {
            self.waiter.park(None);
        }
    }
}

#[test]
fn worker_that_goes_to_sleep_sees_a_new_task() {
    for index in [0, 1] {
        model(move || {
            let model = Model::new();
            let worker = thread::spawn({
                let model = model.clone();
                move || model.find(index)
            });
            model.add(0);
            worker.join().unwrap();
        });
    }
}

/// A thread that clears the idle bit of a worker that is about to sleep must know where the worker
/// sleeps. The wake-up must not be lost even if the task has been taken meanwhile, because no later
/// task would find the worker idle.
#[test]
fn worker_selected_while_going_to_sleep_is_woken_where_it_sleeps() {
    for index in [0, 1] {
        model(move || {
            let model = Model::new();
            let others = thread::spawn({
                let model = model.clone();
                move || {
                    model.add(0);
                    model.take();
                    model.add(1);
                }
            });
            model.find(index);
            others.join().unwrap();
        });
    }
}

/// Another event wakes the worker. A thread that clears its bit meanwhile relies on the search that
/// follows the wake-up.
#[test]
fn worker_selected_while_waking_up_sees_the_task() {
    for index in [0, 1] {
        model(move || {
            let model = Model::new();
            [&model.poller, &model.queues[1].parker][index].unpark();
            let other = thread::spawn({
                let model = model.clone();
                move || model.add(0)
            });
            let has_taken = model.idle(index);
            let announced = other.join().unwrap();
            assert!(has_taken || announced == Announcement::NoneIdle);
        });
    }
}

/// The fence of `end_search`: either the searcher sees the task, or the thread that added it sees
/// that no worker is searching.
#[test]
fn task_added_at_the_end_of_the_last_search_is_seen() {
    model(|| {
        let model = Model::new();
        model.put(0);
        let worker = thread::spawn({
            let model = model.clone();
            move || model.idle(0)
        });
        model.add(1);
        assert!(worker.join().unwrap());
        assert!(model.without_searcher.load(Relaxed) > 0 || !model.has_tasks());
    });
}

#[test]
fn two_workers_see_two_tasks() {
    large_model(|| {
        let model = Model::new();
        let workers = [0, 1].map(|index| {
            let model = model.clone();
            thread::spawn(move || model.find(index))
        });
        model.add(0);
        model.add(1);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

/// Rule 4: the first worker that finds a task is busy until the other task has been run.
#[test]
fn searcher_that_finds_one_of_two_tasks_wakes_another_worker() {
    // With a lower bound the model does not find this error; with a higher one it takes too long.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    explore(builder, || {
        let model = Model::new();
        let workers = [0, 1].map(|index| {
            let model = model.clone();
            thread::spawn(move || {
                model.find(index);
                model.end();
            })
        });
        model.add(0);
        model.add(1);
        model.wait_for(2);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}
