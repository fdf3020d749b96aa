//! Changes that are queued for one monitor.
//!
//! 1. A change is queued under the group's lock and delivered after it is released, because a
//!    delivery may run a foreign waker or drop a mailbox.
//! 2. One thread delivers at a time, until the queue is empty. A thread that arrives meanwhile
//!    leaves its changes to that one. The order of delivery is therefore the order of the group.

use std::collections::VecDeque;
use std::sync::Mutex;

use thalweg_queue::NoPreemptGuard;
use thalweg_queue::no_preempt::lock;

use super::inner::Change;

type Deliver<M> = Box<dyn FnMut(Change<M>) + Send>;

pub(super) struct Outbox<M>(Mutex<State<M>>);

struct State<M> {
    waiting: VecDeque<Change<M>>,
    /// `None`: a thread is delivering.
    deliver: Option<Deliver<M>>,
}

impl<M> Outbox<M> {
    /// `deliver` must not wait.
    pub(super) fn new(deliver: impl FnMut(Change<M>) + Send + 'static) -> Self {
        Self(Mutex::new(State {
            waiting: VecDeque::new(),
            deliver: Some(Box::new(deliver)),
        }))
    }

    /// Rule 1: call it under the group's lock.
    pub(super) fn put(&self, change: Change<M>) {
        lock(&self.0).waiting.push_back(change);
    }

    /// Rule 2: call it without the lock.
    pub(super) fn deliver(&self) {
        // Other threads depend on the delivering thread, so it must not be preempted.
        let _no_preempt = NoPreemptGuard::enter();
        let mut mine = None;
        loop {
            let mut state = lock(&self.0);
            let Some(mut deliver) = mine.take().or_else(|| state.deliver.take()) else {
                return;
            };
            let Some(change) = state.waiting.pop_front() else {
                state.deliver = Some(deliver);
                return;
            };
            drop(state);
            deliver(change);
            mine = Some(deliver);
        }
    }
}
