//! `remote_queue`'s sleep and bell, by `io`'s cases: a worker that sleeps in its poller is rung for, one that parks is unparked, and neither sleeps
//! over what was said.
//!
//! A [`Parker`] stands in for the kernel: it keeps a wake-up until a wait takes it, as epoll keeps an edge of the bell's eventfd, and its
//! waker hangs at the queue.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg_queue::Parker;
use thalweg_queue::explore::{large_model, model};

use crate::remote_queue::RemoteQueue;

struct Model {
    remote_queue: &'static RemoteQueue,
    poller: Parker,
    /// What others want of the worker. It passes nothing on.
    said: [AtomicBool; 2],
    /// Of a descriptor; known to the worker by a look into its poller only.
    event: AtomicBool,
}

impl Model {
    fn new() -> Arc<Self> {
        let (queue, poller) = (RemoteQueue::allocate(), Parker::new());
        queue.set_unparker(Some(poller.waker()));
        Arc::new(Self {
            remote_queue: queue,
            poller,
            said: [false, false].map(AtomicBool::new),
            event: AtomicBool::new(false),
        })
    }

    /// Somebody puts something into the inbox.
    fn say(&self, nth: usize) {
        self.said[nth].store(true, Ordering::Relaxed);
        self.remote_queue.fence_and_unpark();
    }

    /// A descriptor becomes ready.
    fn happen(&self) {
        self.event.store(true, Ordering::Release);
        self.poller.unpark();
    }

    fn hears(&self, nth: usize) -> bool {
        self.said[nth].load(Ordering::Relaxed)
    }

    /// `Worker::idle`, once: unless `found`, it sleeps.
    fn idle(&self, in_poller: bool, found: impl Fn() -> bool) {
        self.remote_queue.prepare_park(in_poller);
        if !found() {
            if in_poller {
                self.poller.park(None);
            } else {
                self.remote_queue.parker.park(None);
            }
        }
        self.remote_queue.finish_park();
    }

    /// A look at the events, without waiting. It takes the bell's too.
    fn poll(&self) {
        self.poller.park(Some(0));
    }
}

#[test]
fn a_worker_that_goes_to_its_poller_is_rung_for() {
    model(|| {
        let model = Model::new();
        let waker = thread::spawn({
            let model = model.clone();
            move || model.say(0)
        });
        while !model.hears(0) {
            model.idle(true, || model.hears(0));
        }
        waker.join().unwrap();
    });
}

/// The second finds that another rings, or that the worker got up.
#[test]
fn two_wake_a_worker_in_its_poller() {
    large_model(|| {
        let model = Model::new();
        let wakers = [0, 1].map(|nth| {
            let model = model.clone();
            thread::spawn(move || model.say(nth))
        });
        for nth in [0, 1] {
            while !model.hears(nth) {
                model.idle(true, || model.hears(nth));
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// Its descriptors come and go: it sleeps here and there in turn, and looks at the events in between, which takes a bell that is late.
#[test]
fn two_wake_a_worker_that_sleeps_here_and_there() {
    large_model(|| {
        let model = Model::new();
        let wakers = [0, 1].map(|nth| {
            let model = model.clone();
            thread::spawn(move || model.say(nth))
        });
        let mut in_poller = true;
        for nth in [0, 1] {
            while !model.hears(nth) {
                model.idle(in_poller, || model.hears(nth));
                in_poller = !in_poller;
                model.poll();
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// The event ends the wait for which the other one rings. Then the bell is late, and the next wait has one of its own.
#[test]
fn an_event_comes_beside_a_wake() {
    large_model(|| {
        let model = Model::new();
        let waker = thread::spawn({
            let model = model.clone();
            move || model.say(0)
        });
        let kernel = thread::spawn({
            let model = model.clone();
            move || model.happen()
        });
        while !model.event.load(Ordering::Acquire) {
            model.idle(true, || false);
        }
        while !model.hears(0) {
            model.idle(true, || model.hears(0));
        }
        waker.join().unwrap();
        kernel.join().unwrap();
    });
}
