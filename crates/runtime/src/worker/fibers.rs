//! One worker's fibers: those on which something runs, and those that wait for the next job.

use std::ptr::NonNull;

use crate::fiber::Fiber;
use crate::stack::{Depot, Magazine, StackError};
use crate::task::Task;

pub(super) struct Fibers {
    /// All of this worker, each from a box until it ends. A box itself would say, wherever it is moved, that nobody else points to them, and
    /// their jobs do.
    all: Vec<NonNull<Fiber>>,
    free: Vec<NonNull<Fiber>>,
    pub(super) stacks: Magazine,
}

/// Fibers that a worker keeps for the next jobs, as their stacks: what a burst of short actors uses again.
const FIBERS_KEPT: usize = 32;

impl Fibers {
    pub(super) fn new(depot: &'static Depot) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            stacks: Magazine::new(depot),
        }
    }

    /// How many there are, on whatever they run.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The one in this place.
    pub(super) fn get(&self, place: usize) -> NonNull<Fiber> {
        self.all[place]
    }

    /// What runs on the one in this place.
    pub(super) fn task(&self, place: usize) -> Option<Task> {
        // SAFETY: it is in `all`.
        unsafe { self.all[place].as_ref() }.task.get()
    }

    /// One that waits for a job.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<NonNull<Fiber>> {
        self.free.pop()
    }

    /// One more.
    ///
    /// # Errors
    /// There are `most`, or there is no memory.
    pub(super) fn make(&mut self, most: usize) -> Result<NonNull<Fiber>, StackError> {
        if self.all.len() >= most {
            return Err(StackError::TooMany { most });
        }
        let fiber = Fiber::new(self.stacks.take()?);
        fiber.place.set(self.all.len());
        let fiber = NonNull::from(Box::leak(fiber));
        self.all.push(fiber);
        Ok(fiber)
    }

    /// Takes back one of these, whose job is done. `false`: there are enough, and it was ended.
    #[inline(always)]
    pub(super) fn give(&mut self, fiber: NonNull<Fiber>) -> bool {
        let kept = self.free.len() < FIBERS_KEPT;
        if kept {
            self.free.push(fiber);
        } else {
            // SAFETY: one of ours, which are in `all` until here.
            self.end(unsafe { fiber.as_ref() }.place.get());
        }
        kept
    }

    /// Whether anything runs on one of them.
    pub(super) fn has_any_task(&self) -> bool {
        (0..self.len()).any(|place| self.task(place).is_some())
    }

    /// What runs on the one in this place never goes on: the fiber and its stack stay in memory, and are no longer among these.
    pub(super) fn forget(&mut self, place: usize) {
        self.take_out(place);
    }

    #[cold]
    fn end(&mut self, place: usize) {
        let fiber = self.take_out(place);
        // SAFETY: it came from a box, and has just been taken out of `all`.
        let fiber = unsafe { Box::from_raw(fiber.as_ptr()) };
        self.stacks.give(fiber.into_stack());
    }

    fn take_out(&mut self, place: usize) -> NonNull<Fiber> {
        let fiber = self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            // SAFETY: it is in `all`.
            unsafe { moved.as_ref() }.place.set(place);
        }
        fiber
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.free.clear();
        while let Some(last) = self.all.len().checked_sub(1) {
            self.end(last);
        }
    }
}
