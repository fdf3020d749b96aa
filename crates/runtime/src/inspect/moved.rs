//! Actors that have not begun and go from worker to worker while a list is made.
//!
//! 1. Who makes a list says so before it asks anybody.
//! 2. A worker that takes what others had, from their ring or from where all may put it, notes it here if a list is made. One that has answered knows, since
//!    it was asked after; one that has not answers with what it took. While it knows it takes one job at a time and notes that before anybody else can
//!    take it.
//!    Who puts a job where all see it notes it under that place's lock: a list that had looked there before is told, also where the job's worker answers after.
//! 3. A job that nobody listed went from one who had not answered to one who had, who may not have noted it yet when the former answers. So all are asked
//!    again when all have answered, and what is here is read when they have answered that: between two turns no worker has anything in its hand.
//! 4. What is here may be listed elsewhere too, and may have ended: a list is no older than when it was begun.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_queue::no_preempt::lock;

use super::ActorInfo;
use crate::task::Task;

#[derive(Default)]
pub(crate) struct Moved {
    is_watched: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    lists: usize,
    actors: Vec<ActorInfo>,
}

/// One list that is made.
pub(super) struct Watching<'a>(&'a Moved);

impl Moved {
    /// Rule 1.
    pub(super) fn watch(&self) -> Watching<'_> {
        lock(&self.seen).lists += 1;
        self.is_watched.store(true, Ordering::Relaxed);
        Watching(self)
    }

    /// Rule 2: the way by which the worker was asked orders the two.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// The caller has it.
    #[cold]
    pub(crate) fn note(&self, task: Task) {
        let info = task.info_as_new();
        let mut seen = lock(&self.seen);
        if seen.lists > 0 {
            seen.actors.push(info);
        }
    }
}

impl Watching<'_> {
    /// What has moved since.
    pub(super) fn moved(&self) -> Vec<ActorInfo> {
        lock(&self.0.seen).actors.clone()
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let mut seen = lock(&self.0.seen);
        seen.lists -= 1;
        if seen.lists == 0 {
            self.0.is_watched.store(false, Ordering::Relaxed);
            seen.actors = Vec::new();
        }
    }
}
