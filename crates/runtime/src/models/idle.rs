//! `idle` and `remote_queue`: no job waits while a worker sleeps, in its poller or in its parker.

use std::sync::atomic::{AtomicUsize as Figure, Ordering::Relaxed};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::Parker;
use thalweg_queue::explore::{explore, large_model, model};

use crate::idle::{Announced, Idle};
use crate::remote_queue::RemoteQueue;

/// Workers that take jobs, which are nothing but a number, and sleep.
struct Model {
    idle: Idle,
    queues: [&'static RemoteQueue; 2],
    /// The first worker's, which it sleeps in; see `models::poller`. The second one has none.
    poller: Parker,
    /// In two places, as in a ring and the injector: who takes one from here has not seen what is there.
    jobs: [AtomicUsize; 2],
    /// Announcements for which nobody searched: somebody is woken, or all are at work and look when they are done.
    heard: Figure,
    done: AtomicUsize,
    /// Told when a job is done.
    waits: Parker,
}

impl Model {
    fn new() -> Arc<Self> {
        let (queues, poller) = ([(); 2].map(|()| RemoteQueue::allocate()), Parker::new());
        queues[0].set_unparker(Some(poller.waker()));
        Arc::new(Self {
            idle: Idle::new(),
            queues,
            poller,
            jobs: [0, 0].map(AtomicUsize::new),
            heard: Figure::new(0),
            done: AtomicUsize::new(0),
            waits: Parker::new(),
        })
    }

    fn put(&self, place: usize) {
        self.jobs[place].fetch_add(1, Ordering::Release);
    }

    fn add(&self, place: usize) -> Announced {
        self.put(place);
        self.announce()
    }

    fn announce(&self) -> Announced {
        let announced = self.idle.announce();
        if announced != Announced::Awaited {
            self.heard.fetch_add(1, Relaxed);
        }
        if let Announced::Wakes(index) = announced {
            self.queues[index].unpark();
        }
        announced
    }

    fn has(&self) -> bool {
        self.jobs
            .iter()
            .any(|jobs| jobs.load(Ordering::Relaxed) > 0)
    }

    fn take(&self) -> bool {
        let less = |jobs: usize| jobs.checked_sub(1);
        self.jobs.iter().any(|jobs| {
            jobs.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less)
                .is_ok()
        })
    }

    /// `Worker::idle` and what it calls of the scheduler. Whether it has taken a job.
    fn idle(&self, index: usize) -> bool {
        self.idle.begin_search();
        if self.has() {
            return self.idle.end_search() && self.pass_on();
        }
        let (queue, in_poller) = (self.queues[index], index == 0);
        queue.prepare_park(in_poller);
        self.idle.set_idle(index);
        if !self.has() {
            if in_poller {
                self.poller.park(None);
            } else {
                queue.parker.park(None);
            }
        }
        queue.finish_park();
        self.idle.clear_idle(index);
        self.pass_on()
    }

    fn find(&self, index: usize) {
        while !self.take() && !self.idle(index) {}
    }

    /// Whether it has taken one itself.
    fn pass_on(&self) -> bool {
        let taken = self.take();
        if self.has() {
            self.announce();
        }
        taken
    }

    fn end(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
        self.waits.unpark();
    }

    fn wait_for(&self, done: usize) {
        while self.done.load(Ordering::Acquire) < done {
            self.waits.park(None);
        }
    }
}

#[test]
fn a_worker_that_lies_down_hears_of_a_job() {
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

/// Who takes the bit of a worker that is about to sleep must know where: the wake-up for what somebody else took by then is not lost, for no
/// other job would find the worker idle.
#[test]
fn who_is_chosen_while_it_lies_down_is_woken_where_it_sleeps() {
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

/// Something else wakes it. Who takes its bit meanwhile relies on the look that it has when it is up.
#[test]
fn who_is_chosen_while_it_gets_up_sees_the_job() {
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
            assert!(has_taken || announced == Announced::Unheard);
        });
    }
}

/// `end_search`'s fence: either the searcher sees the job, or who put it in sees that nobody searches.
#[test]
fn what_comes_as_the_last_search_ends_is_heard_of() {
    model(|| {
        let model = Model::new();
        model.put(0);
        let worker = thread::spawn({
            let model = model.clone();
            move || model.idle(0)
        });
        model.add(1);
        assert!(worker.join().unwrap());
        assert!(model.heard.load(Relaxed) > 0 || !model.has());
    });
}

#[test]
fn two_workers_hear_of_two_jobs() {
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

/// Rule 4: the first to find a job is busy for as long as the other job waits.
#[test]
fn who_finds_one_job_while_two_relied_on_its_search_wakes_another() {
    // One less does not find the fault that this is about, and one more takes too long.
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
