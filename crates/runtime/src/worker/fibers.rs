//! The fibers of one worker: those in use, and those that are free for the next task.
//!
//! 1. Spawned actors have at most `max` fibers, the worker's share of `max_stacks`. Turns of actors
//!    without a stack of their own may use [`TURN_RESERVE`] more: a turn often waits for another
//!    actor's turn, and neither may depend on a spawned actor that never ends.
//! 2. One fiber is reserved for turns. It is created before the first spawned actor gets a stack,
//!    so a turn finds one even if the system has no memory for another.
//! 3. Returned fibers are kept for the next tasks only while rule 2 holds, no more than `max`
//!    exist, and no task waits for a stack (`scheduler`'s rule 7). Otherwise [`Fibers::give`]
//!    refuses, and the worker decides which task gets the fiber.

use std::ptr::NonNull;
use std::sync::Mutex;

use thalweg_queue::no_preempt::lock;

use crate::fiber::Fiber;
use crate::stack::{Depot, Magazine, StackError};
use crate::task::Task;

pub(super) struct Fibers {
    /// All fibers of this worker; each was leaked from a box. They are raw pointers because moving
    /// a `Box` would assert that no other pointer exists, and the tasks point to their fibers.
    all: Vec<NonNull<Fiber>>,
    free: Vec<NonNull<Fiber>>,
    /// Rule 2. `None` if it is not created yet, or a turn uses it.
    reserve: Option<NonNull<Fiber>>,
    /// The number of fibers that `free` may contain: [`FIBERS_KEPT`], or 0 by rule 3.
    kept: usize,
    pub(super) stacks: Magazine,
}

/// The addresses of forgotten fibers, for debuggers and leak detectors.
static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The number of free fibers (with their stacks) that a worker keeps for the next tasks. A burst of
/// short actors uses them again.
const FIBERS_KEPT: usize = 32;

/// Rule 1. A supervision tree of this depth can start although each supervisor waits on its stack
/// for the next one below.
const TURN_RESERVE: usize = 16;

impl Fibers {
    pub(super) fn new(depot: &'static Depot) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            reserve: None,
            kept: 0,
            stacks: Magazine::new(depot),
        }
    }

    /// The number of fibers, used or free, without the one that is reserved for turns.
    pub(super) fn len(&self) -> usize {
        self.all.len() - usize::from(self.reserve.is_some())
    }

    /// The number of valid indices for [`get`](Self::get) and [`task`](Self::task).
    pub(super) fn slots(&self) -> usize {
        self.all.len()
    }

    /// Returns the fiber at this index.
    pub(super) fn get(&self, index: usize) -> NonNull<Fiber> {
        self.all[index]
    }

    /// Returns the task that runs on the fiber at this index.
    pub(super) fn task(&self, index: usize) -> Option<Task> {
        // SAFETY: the fiber is in `all`.
        unsafe { self.all[index].as_ref() }.task.get()
    }

    /// Takes a free fiber.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<NonNull<Fiber>> {
        self.free.pop()
    }

    /// Obtains a fiber for a spawned actor.
    ///
    /// # Errors
    /// There are `max` fibers, or there is no memory.
    pub(super) fn obtain(&mut self, max: usize) -> Result<NonNull<Fiber>, StackError> {
        if let Some(fiber) = self.take() {
            return Ok(fiber);
        }
        if self.len() >= max {
            return Err(StackError::TooMany { max });
        }
        if self.reserve.is_none() {
            self.reserve = Some(self.make()?);
        }
        self.make()
    }

    /// Obtains a fiber for a turn (rules 1 and 2).
    ///
    /// # Errors
    /// There are `max` fibers and the reserve for turns is used up, or there is no memory.
    pub(super) fn obtain_for_turn(&mut self, max: usize) -> Result<NonNull<Fiber>, StackError> {
        if let Some(fiber) = self.take() {
            return Ok(fiber);
        }
        if self.len() < max
            && let Ok(fiber) = self.make()
        {
            return Ok(fiber);
        }
        if self.len() >= max + TURN_RESERVE {
            return Err(StackError::TooMany { max });
        }
        self.kept = 0;
        match self.reserve.take() {
            Some(fiber) => Ok(fiber),
            None => self.make(),
        }
    }

    fn make(&mut self) -> Result<NonNull<Fiber>, StackError> {
        let fiber = Fiber::new(self.stacks.take()?);
        fiber.index.set(self.all.len());
        let fiber = NonNull::from(Box::leak(fiber));
        self.all.push(fiber);
        Ok(fiber)
    }

    /// Takes back a fiber whose task has ended. If it returns `false`, the caller still owns the
    /// fiber; it checks whether a task waits for a stack, and otherwise [puts the fiber
    /// back](Self::put_back).
    #[inline(always)]
    pub(super) fn give(&mut self, fiber: NonNull<Fiber>) -> bool {
        let kept = self.free.len() < self.kept;
        if kept {
            self.free.push(fiber);
        }
        kept
    }

    /// Keeps or destroys a fiber that no task uses. `watched`: a task waits for a stack.
    pub(super) fn put_back(&mut self, fiber: NonNull<Fiber>, max: usize, watched: bool) {
        if self.reserve.is_none() {
            self.reserve = Some(fiber);
        } else if self.len() <= max && self.free.len() < FIBERS_KEPT {
            self.free.push(fiber);
        } else {
            // SAFETY: the fiber belongs to this worker and is in `all` until here.
            self.end(unsafe { fiber.as_ref() }.index.get());
        }
        self.watch(max, watched);
    }

    /// Applies rule 3 after one of its conditions may have changed.
    pub(super) fn watch(&mut self, max: usize, watched: bool) {
        let keeps = !watched && self.reserve.is_some() && self.len() <= max;
        self.kept = if keeps { FIBERS_KEPT } else { 0 };
    }

    /// Whether any fiber has a task.
    pub(super) fn has_any_task(&self) -> bool {
        (0..self.slots()).any(|index| self.task(index).is_some())
    }

    /// Gives up the fiber at this index. Its task never continues, and the fiber and its stack stay
    /// in memory.
    pub(super) fn forget(&mut self, index: usize) {
        let fiber = self.take_out(index);
        lock(&FORGOTTEN).push(fiber.as_ptr().expose_provenance());
    }

    #[cold]
    fn end(&mut self, index: usize) {
        let fiber = self.take_out(index);
        // SAFETY: it came from a box and has just been removed from `all`.
        let fiber = unsafe { Box::from_raw(fiber.as_ptr()) };
        self.stacks.give(fiber.into_stack());
    }

    fn take_out(&mut self, index: usize) -> NonNull<Fiber> {
        let fiber = self.all.swap_remove(index);
        if let Some(moved) = self.all.get(index) {
            // SAFETY: the fiber is in `all`.
            unsafe { moved.as_ref() }.index.set(index);
        }
        fiber
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.free.clear();
        self.reserve = None;
        while let Some(last) = self.all.len().checked_sub(1) {
            self.end(last);
        }
    }
}
