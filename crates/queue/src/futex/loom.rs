//! A replacement for the system's futex in loom's models. A model has no time: a wait with a
//! deadline times out at once.

use loom::sync::Condvar;

use super::ParkResult;
use crate::sync::{Mutex, lock};

#[derive(Debug)]
pub(crate) struct Futex {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl Futex {
    pub(crate) fn new() -> Self {
        Self {
            notified: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn wake(&self) {
        *lock(&self.notified) = true;
        self.changed.notify_one();
    }

    pub(crate) fn park(&self, deadline: Option<u64>) -> ParkResult {
        let waits = deadline.is_none_or(|ns| ns == u64::MAX);
        let mut notified = lock(&self.notified);
        while waits && !*notified {
            let relocked = self.changed.wait(notified);
            notified = relocked.expect("loom's locks are not poisoned");
        }
        match std::mem::take(&mut *notified) {
            true => ParkResult::Woken,
            false => ParkResult::TimedOut,
        }
    }
}
