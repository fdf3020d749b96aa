//! What a worker is asked to do between two turns, on its own thread.
//!
//! 1. Who asks puts the request in, then a job that has ended into the worker's inbox: that wakes the worker as any job there does, and is nobody's to run.
//! 2. The worker looks here when it has emptied its inbox, so no turn of it pays for being asked.
//! 3. A worker that has left answers nothing: requests are dropped, and who waits for them hears of that.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_queue::no_preempt::lock;

use crate::id::ActorId;
use crate::join::JoinError;
use crate::scheduler::WorkerShared;
use crate::task::{OnShortage, Task};
use crate::worker::Worker;

type Request = Box<dyn FnOnce(&Worker) + Send>;

#[derive(Default)]
pub(crate) struct Asked {
    is_asked: AtomicBool,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    waiting: Vec<Request>,
    closed: bool,
}

impl WorkerShared {
    /// Rule 1. `request` neither waits nor runs code of a user.
    pub(crate) fn ask(&self, request: impl FnOnce(&Worker) + Send + 'static) {
        let refused = self.asked.put(Box::new(request));
        if refused.is_none() {
            let bell = Task::detached(ActorId::next(), OnShortage::End, None, || ());
            // The inbox's.
            bell.header().state.add_reference();
            // SAFETY: it was just made, and is in no queue.
            unsafe { bell.cancel(JoinError::Stopped) };
            self.remote_queue.push(bell);
        }
    }
}

impl Asked {
    /// It comes back if the worker has left.
    fn put(&self, request: Request) -> Option<Request> {
        let mut requests = lock(&self.requests);
        if requests.closed {
            return Some(request);
        }
        requests.waiting.push(request);
        self.is_asked.store(true, Ordering::Relaxed);
        None
    }

    /// The worker, which has taken what was in its inbox: who asked wrote this before.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn answer(&self, worker: &Worker) {
        for request in self.take(false) {
            request(worker);
        }
    }

    /// Rule 3.
    pub(crate) fn close(&self) {
        drop(self.take(true));
    }

    fn take(&self, closed: bool) -> Vec<Request> {
        let mut requests = lock(&self.requests);
        requests.closed = closed;
        self.is_asked.store(false, Ordering::Relaxed);
        std::mem::take(&mut requests.waiting)
    }
}
