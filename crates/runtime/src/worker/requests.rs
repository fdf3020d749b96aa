//! Requests that a worker runs on its own thread between two turns.
//!
//! 1. The caller adds the request, then pushes a finished task to the worker's remote run queue.
//!    That wakes the worker as any task does, and the task itself is never run.
//! 2. The worker checks for requests after it has emptied its remote run queue, so a turn costs
//!    nothing extra.
//! 3. A worker that has stopped drops its requests, so that their callers are notified.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_queue::no_preempt::lock;

use super::Worker;
use crate::id::ActorId;
use crate::reason::JoinError;
use crate::scheduler::WorkerShared;
use crate::task::{OnShortage, Task};

type WorkerRequest = Box<dyn FnOnce(&Worker) + Send>;

#[derive(Default)]
pub(crate) struct WorkerRequests {
    is_pending: AtomicBool,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    requests: Vec<WorkerRequest>,
    closed: bool,
}

impl WorkerShared {
    /// Rule 1. `request` neither waits nor runs user code.
    pub(crate) fn ask(&self, request: impl FnOnce(&Worker) + Send + 'static) {
        let refused = self.requests.push(Box::new(request));
        if refused.is_none() {
            let wake_task = Task::detached(ActorId::next(), OnShortage::End, None, || ());
            // The reference of the remote run queue.
            wake_task.header().state.add_reference();
            // SAFETY: the task was just created and is in no queue.
            unsafe { wake_task.cancel(JoinError::Stopped) };
            self.remote_queue.push(wake_task);
        }
    }
}

impl WorkerRequests {
    /// Returns the request if the worker has stopped.
    fn push(&self, request: WorkerRequest) -> Option<WorkerRequest> {
        let mut pending = lock(&self.pending);
        if pending.closed {
            return Some(request);
        }
        pending.requests.push(request);
        self.is_pending.store(true, Ordering::Relaxed);
        None
    }

    /// Called by the worker after it has emptied its remote run queue. The caller of `ask` wrote
    /// this before its push.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Relaxed)
    }

    #[cold]
    pub(crate) fn run(&self, worker: &Worker) {
        for request in self.take(false) {
            request(worker);
        }
    }

    /// Rule 3.
    pub(crate) fn close(&self) {
        drop(self.take(true));
    }

    fn take(&self, closed: bool) -> Vec<WorkerRequest> {
        let mut pending = lock(&self.pending);
        pending.closed = closed;
        self.is_pending.store(false, Ordering::Relaxed);
        std::mem::take(&mut pending.requests)
    }
}
