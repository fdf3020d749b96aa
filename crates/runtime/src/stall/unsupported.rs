//! Replaces `watcher` on platforms where the state of a worker's thread cannot be sampled by a
//! signal.

use std::sync::Arc;
use std::time::Duration;

use super::WorkerStatus;

/// Whether stall reports are supported here.
pub(crate) const IS_SUPPORTED: bool = false;

/// Not used here.
pub(crate) fn stack_pointer() -> usize {
    0
}

#[derive(Debug)]
pub(crate) struct Watcher;

impl Watcher {
    pub(crate) fn new(_: Option<Duration>, _: impl Iterator<Item = Arc<WorkerStatus>>) -> Self {
        Self
    }

    pub(crate) fn wake(&self) {}

    pub(crate) fn stop(&self) {}
}

/// A worker that the watcher observes.
#[derive(Debug)]
pub(crate) struct WatchedWorker;

impl WatchedWorker {
    pub(crate) fn new(_: &Watcher, _: &Arc<WorkerStatus>) -> Option<Self> {
        None
    }
}
