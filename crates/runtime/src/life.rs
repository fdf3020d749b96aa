//! One word for the life of a job: whether it is done, who still wants its value, and who may free it.
//!
//! | bits | meaning |
//! | --- | --- |
//! | `DONE` | the output is there: written before, read after |
//! | `JOINER` | the joiner's place is filled: whom to wake at the end |
//! | `HANDLE` | somebody may still ask for the output |
//! | `LEFT` | the worker that ran it has woken the joiner and touches nothing any more but its own reference |
//! | `NAMED` | somebody outside knows it by its `Control`, which is to be told of the end |
//! | the rest | references: one of the runtime until the end, one of the handle, one of each waker |
//!
//! 1. The joiner's place belongs to the handle while `JOINER` is clear, and to whoever sets `DONE` while it is set. The handle takes it
//!    back by clearing `JOINER`, unless `DONE` was set first.
//! 2. The output belongs to the handle once `DONE` is set, if `HANDLE` was set then; else to who set `DONE`.
//!    Before `DONE` is set, only the worker whose own actor filled the place may look into it: that actor does not run meanwhile.
//! 3. Who joins as an actor is woken by its bare address. It is there until it sees `DONE`, and it waits for `LEFT` then, so it is
//!    there for as long as the other side may use the address.
//! 4. Who drops the last reference frees the job. One that is alone needs no atomic operation to know.

use crate::shim::{AtomicUsize, Ordering};

const DONE: usize = 1;
const JOINER: usize = 2;
const HANDLE: usize = 4;
const LEFT: usize = 8;
const NAMED: usize = 16;
const REFERENCE: usize = 32;

#[derive(Debug)]
pub(crate) struct Life(AtomicUsize);

/// What the end of a job leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Rule 2: nobody will take the output.
    pub(crate) unwanted: bool,
    /// Rule 1: the joiner's place is filled, and the caller's.
    pub(crate) joined: bool,
    /// Its control is to be told.
    pub(crate) named: bool,
}

impl Life {
    /// Of a job with a handle.
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new((2 * REFERENCE) | HANDLE))
    }

    /// Of a job that nobody will ask.
    pub(crate) fn detached() -> Self {
        Self(AtomicUsize::new(REFERENCE))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) & DONE != 0
    }

    /// Rule 3: what a joiner by address asks before it goes.
    pub(crate) fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire) & LEFT != 0
    }

    /// The worker: whether somebody joined already. It may read the joiner's place then.
    pub(crate) fn is_joined(&self) -> bool {
        self.0.load(Ordering::Acquire) & JOINER != 0
    }

    /// The worker, where the joiner is an actor of its own, which does not run meanwhile: all of the end at once. `true`: its control is to be told.
    pub(crate) fn end_joined_here(&self) -> bool {
        let before = self
            .0
            .fetch_add((DONE | LEFT).wrapping_sub(REFERENCE), Ordering::AcqRel);
        before & NAMED != 0
    }

    /// Whoever made its control, after. `false`: it was done before, and tells nobody.
    pub(crate) fn name(&self) -> bool {
        self.0.fetch_or(NAMED, Ordering::AcqRel) & DONE == 0
    }

    /// The worker: whether it has a control already.
    pub(crate) fn is_named(&self) -> bool {
        self.0.load(Ordering::Acquire) & NAMED != 0
    }

    /// The worker, first half of the end.
    pub(crate) fn end(&self) -> Ended {
        let before = self.0.fetch_or(DONE, Ordering::AcqRel);
        Ended {
            unwanted: before & HANDLE == 0,
            joined: before & JOINER != 0,
            named: before & NAMED != 0,
        }
    }

    /// The worker, second half, after it woke the joiner. `true`: the job is the caller's to free.
    pub(crate) fn leave(&self) -> bool {
        if self.is_alone() {
            return true;
        }
        let before = self
            .0
            .fetch_add(LEFT.wrapping_sub(REFERENCE), Ordering::AcqRel);
        before / REFERENCE == 1
    }

    /// The handle, having filled the joiner's place. `false`: it is done already, and the place is the handle's again.
    pub(crate) fn join(&self) -> bool {
        self.0.fetch_or(JOINER, Ordering::AcqRel) & DONE == 0
    }

    /// The handle takes the place back. `false`: it is done, and the place is not the handle's.
    pub(crate) fn unjoin(&self) -> bool {
        self.0.fetch_and(!JOINER, Ordering::AcqRel) & DONE == 0
    }

    /// The handle wants nothing any more. `true`: the output is there, and the caller's to drop.
    pub(crate) fn renounce(&self) -> bool {
        self.is_done() || self.0.fetch_and(!HANDLE, Ordering::AcqRel) & DONE != 0
    }

    pub(crate) fn add_reference(&self) {
        self.0.fetch_add(REFERENCE, Ordering::Relaxed);
    }

    /// `true`: the job is the caller's to free.
    pub(crate) fn drop_reference(&self) -> bool {
        if self.is_alone() {
            return true;
        }
        // No fence for the last one: ThreadSanitizer does not see fences.
        self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1
    }

    fn is_alone(&self) -> bool {
        self.0.load(Ordering::Acquire) / REFERENCE == 1
    }
}
