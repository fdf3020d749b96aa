//! Changes on their way to one monitor.
//!
//! 1. What is put in under the room's lock is delivered after it, since that may wake somebody whose waker is not ours, or end a mailbox.
//! 2. One delivers at a time, and until there is nothing more; who comes meanwhile leaves it to that one. So the order is that of the room.

use std::collections::VecDeque;
use std::sync::Mutex;

use thalweg_queue::NoPreemptGuard;
use thalweg_queue::no_preempt::lock;

use super::room::Change;

type Deliver<M> = Box<dyn FnMut(Change<M>) + Send>;

pub(super) struct Outbox<M>(Mutex<State<M>>);

struct State<M> {
    waiting: VecDeque<Change<M>>,
    /// `None`: somebody delivers.
    deliver: Option<Deliver<M>>,
}

impl<M> Outbox<M> {
    /// `deliver` does not wait.
    pub(super) fn new(deliver: impl FnMut(Change<M>) + Send + 'static) -> Self {
        Self(Mutex::new(State {
            waiting: VecDeque::new(),
            deliver: Some(Box::new(deliver)),
        }))
    }

    /// Rule 1: under the room's lock.
    pub(super) fn put(&self, change: Change<M>) {
        lock(&self.0).waiting.push_back(change);
    }

    /// Rule 2: after it.
    pub(super) fn deliver(&self) {
        // Others rely on whoever is here.
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
