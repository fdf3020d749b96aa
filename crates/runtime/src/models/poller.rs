//! Models of sleep and wake-up in `remote_queue`, for the cases that `io` lists: a worker that
//! sleeps in its poller is woken through the unparker, a worker that parks is unparked, and no work
//! is published while the worker sleeps unnoticed.
//!
//! A [`Parker`] represents the kernel. It stores a wake-up until a wait consumes it, like epoll
//! stores an edge of the eventfd, and its waker is the queue's unparker.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg_queue::Parker;
use thalweg_queue::explore::{large_model, model};

use crate::remote_queue::RemoteQueue;

struct Model {
    remote_queue: &'static RemoteQueue,
    poller: Parker,
    /// The requests of other threads. They establish no ordering.
    requests: [AtomicBool; 2],
    /// The event of a descriptor. The worker sees it only when it polls.
    event: AtomicBool,
}

impl Model {
    fn new() -> Arc<Self> {
        let (queue, poller) = (RemoteQueue::allocate(), Parker::new());
        queue.set_unparker(Some(poller.waker()));
        Arc::new(Self {
            remote_queue: queue,
            poller,
            requests: [false, false].map(AtomicBool::new),
            event: AtomicBool::new(false),
        })
    }

    /// Another thread pushes into the remote queue.
    fn request(&self, nth: usize) {
        self.requests[nth].store(true, Ordering::Relaxed);
        self.remote_queue.fence_and_unpark();
    }

    /// A descriptor becomes ready.
    fn trigger_event(&self) {
        self.event.store(true, Ordering::Release);
        self.poller.unpark();
    }

    fn is_requested(&self, nth: usize) -> bool {
        self.requests[nth].load(Ordering::Relaxed)
    }

    /// One iteration of `Worker::idle`: sleeps unless `found` returns `true`.
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

    /// Polls for events without waiting. This also consumes the event of the unparker.
    fn poll(&self) {
        self.poller.park(Some(0));
    }
}

#[test]
fn worker_that_sleeps_in_its_poller_is_woken() {
    model(|| {
        let model = Model::new();
        let waker = thread::spawn({
            let model = model.clone();
            move || model.request(0)
        });
        while !model.is_requested(0) {
            model.idle(true, || model.is_requested(0));
        }
        waker.join().unwrap();
    });
}

/// The second thread finds that another one is waking the worker, or that the worker is awake.
#[test]
fn two_threads_wake_a_worker_in_its_poller() {
    large_model(|| {
        let model = Model::new();
        let wakers = [0, 1].map(|nth| {
            let model = model.clone();
            thread::spawn(move || model.request(nth))
        });
        for nth in [0, 1] {
            while !model.is_requested(nth) {
                model.idle(true, || model.is_requested(nth));
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// The worker's descriptors change: it alternates between its poller and its parker, and polls in
/// between, which consumes a late event of the unparker.
#[test]
fn two_threads_wake_a_worker_that_alternates_between_poller_and_parker() {
    large_model(|| {
        let model = Model::new();
        let wakers = [0, 1].map(|nth| {
            let model = model.clone();
            thread::spawn(move || model.request(nth))
        });
        let mut in_poller = true;
        for nth in [0, 1] {
            while !model.is_requested(nth) {
                model.idle(in_poller, || model.is_requested(nth));
                in_poller = !in_poller;
                model.poll();
            }
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// The event ends the wait that the other thread interrupts. The event of the unparker is then
/// late, and the next wait gets its own.
#[test]
fn event_arrives_during_a_wake_up() {
    large_model(|| {
        let model = Model::new();
        let waker = thread::spawn({
            let model = model.clone();
            move || model.request(0)
        });
        let kernel = thread::spawn({
            let model = model.clone();
            move || model.trigger_event()
        });
        while !model.event.load(Ordering::Acquire) {
            model.idle(true, || false);
        }
        while !model.is_requested(0) {
            model.idle(true, || model.is_requested(0));
        }
        waker.join().unwrap();
        kernel.join().unwrap();
    });
}
