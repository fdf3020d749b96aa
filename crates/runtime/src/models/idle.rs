//! `idle`: no job waits while a worker sleeps.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::large_model;
use crate::desk::Desk;
use crate::idle::{Announced, Idle};

/// Workers that take jobs, which are nothing but a number, and sleep.
struct Model {
    idle: Idle,
    desks: [&'static Desk; 2],
    jobs: AtomicUsize,
    done: AtomicUsize,
    /// Told when a job is done.
    waits: thalweg_queue::Parker,
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(),
            desks: [(); 2].map(|()| Desk::make()),
            jobs: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            waits: thalweg_queue::Parker::new(),
        })
    }

    fn add(&self) {
        self.jobs.fetch_add(1, Ordering::Release);
        self.announce();
    }

    fn announce(&self) {
        if let Announced::Wakes(index) = self.idle.announce() {
            self.desks[index].unpark();
        }
    }

    fn has(&self) -> bool {
        self.jobs.load(Ordering::Relaxed) > 0
    }

    fn take(&self) -> bool {
        self.jobs
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |jobs| {
                jobs.checked_sub(1)
            })
            .is_ok()
    }

    /// `Worker::idle` and what it calls of the scheduler, until there is something.
    fn find(&self, index: usize) {
        let desk = self.desks[index];
        while !self.take() {
            self.idle.begin_search();
            if self.has() {
                if self.idle.end_search() && self.pass_on() {
                    return;
                }
                continue;
            }
            self.idle.lie_down(index);
            desk.lie_down(false);
            if !self.has() {
                desk.parker.park(None);
            }
            desk.get_up();
            self.idle.get_up(index);
            if self.pass_on() {
                return;
            }
        }
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
    loom::model(|| {
        let model = Model::new();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.find(0)
        });
        model.add();
        worker.join().unwrap();
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
        model.add();
        model.add();
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
    builder.check(|| {
        let model = Model::new();
        let workers = [0, 1].map(|index| {
            let model = model.clone();
            thread::spawn(move || {
                model.find(index);
                model.end();
            })
        });
        model.add();
        model.add();
        model.wait_for(2);
        for worker in workers {
            worker.join().unwrap();
        }
    });
}
