//! The number of actors in a scope, and the wait until there are none.
//!
//! 1. An actor that enters before the members are closed leaves once.
//! 2. The last one that leaves wakes the waiter, if `WAITING` is set. The waiter stores its waker before
//!    it sets that bit, and does not wait if there are no members then.

use std::task::Waker;

use crate::shim::{AtomicUsize, Mutex, Ordering, lock};

/// No actor enters any more.
const CLOSED: usize = 1;
/// There is, or was, a waiter.
const WAITING: usize = 2;
const MEMBER: usize = 4;

pub(crate) struct Members {
    word: AtomicUsize,
    waiter: Mutex<Option<Waker>>,
}

impl Members {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(0),
            waiter: Mutex::new(None),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.word.load(Ordering::Acquire) / MEMBER
    }

    /// An actor enters. `false`: the members are closed.
    pub(crate) fn enter(&self) -> bool {
        let is_open = self.word.fetch_add(MEMBER, Ordering::AcqRel) & CLOSED == 0;
        if !is_open {
            self.leave();
        }
        is_open
    }

    pub(crate) fn leave(&self) {
        let before = self.word.fetch_sub(MEMBER, Ordering::AcqRel);
        if before & !CLOSED == MEMBER | WAITING {
            let waiter = lock(&self.waiter).take();
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }
    }

    /// Has `waker` woken when there are no members any more. `false`: there are none now. There is one
    /// waiter at a time.
    pub(crate) fn must_wait(&self, waker: Waker) -> bool {
        *lock(&self.waiter) = Some(waker);
        self.word.fetch_or(WAITING, Ordering::AcqRel) >= MEMBER
    }

    /// Closes the members, if there are none.
    pub(crate) fn close_if_empty(&self) -> bool {
        let close = |word| (word < MEMBER).then_some(word | CLOSED);
        let closed = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, close);
        closed.is_ok()
    }

    pub(crate) fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Drops the waker of the last wait.
    pub(crate) fn forget_waiter(&self) {
        let waiter = lock(&self.waiter).take();
        drop(waiter);
    }
}
