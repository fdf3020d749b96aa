//! Unstarted tasks that move between workers while a list is made.
//!
//! 1. A list registers itself before it sends any request.
//! 2. While a list is made, a worker that takes tasks from another worker's ring or from a shared
//!    queue records them here. A worker that has replied knows of the list, since it was registered
//!    before the request; a worker that has not replied yet will list those tasks. While a list is
//!    registered, a worker takes one task at a time, and records it before another worker can take
//!    it. A thread that puts a task into a shared queue records it under that queue's lock, so a
//!    list that read the queue earlier learns of it, even if the task's worker replies later.
//! 3. A task that is in no reply moved from a worker that had not replied to one that had, and the
//!    latter may not have recorded it when the former replies. Therefore all workers are asked a
//!    second time after all have replied, and the records are read after the second replies:
//!    between two turns, no worker holds a task that is in no queue.
//! 4. A recorded task may be listed elsewhere too, and may have ended: a list is only as recent as
//!    its beginning.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_queue::no_preempt::lock;

use super::ActorInfo;

#[derive(Default)]
pub(crate) struct MovedActors {
    is_watched: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    lists: usize,
    actors: Vec<ActorInfo>,
}

/// The registration of a list.
pub(crate) struct MoveWatch<'a>(&'a MovedActors);

impl MovedActors {
    /// Rule 1.
    pub(crate) fn watch(&self) -> MoveWatch<'_> {
        lock(&self.state).lists += 1;
        self.is_watched.store(true, Ordering::Relaxed);
        MoveWatch(self)
    }

    /// Rule 2: the request to the worker orders this load after the store.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Records a task that the caller owns.
    pub(crate) fn note(&self, info: ActorInfo) {
        let mut state = lock(&self.state);
        if state.lists > 0 {
            state.actors.push(info);
        }
    }
}

impl MoveWatch<'_> {
    /// The tasks that have moved since.
    pub(crate) fn moved(&self) -> Vec<ActorInfo> {
        lock(&self.0.state).actors.clone()
    }
}

impl Drop for MoveWatch<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.lists -= 1;
        if state.lists == 0 {
            self.0.is_watched.store(false, Ordering::Relaxed);
            state.actors = Vec::new();
        }
    }
}
