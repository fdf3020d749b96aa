//! One worker's fibers: those in use, and those that wait for the next job.
//!
//! 1. Spawned actors hold at most `most` fibers, the worker's share of `max_stacks`. Turns of actors
//!    without a stack of their own may take [`TURN_RESERVE`] more: a turn often waits for another
//!    actor's turn, and neither may depend on a spawned actor that never ends.
//! 2. One fiber is kept for turns. It is made before the first spawned actor gets a stack, so a
//!    turn finds one even if the system has no memory for another.
//! 3. Fibers that come back are kept for the next jobs only while rule 2 holds, no more than `most`
//!    exist, and no task waits for a stack (`scheduler`'s rule 7). Otherwise [`Fibers::give`]
//!    refuses, and the worker decides which job gets the fiber.

use std::ptr::NonNull;
use std::sync::Mutex;

use thalweg_queue::quiet::lock;

use crate::fiber::Fiber;
use crate::stack::{Depot, Magazine, StackError};
use crate::task::Task;

pub(super) struct Fibers {
    /// All of this worker, each from a box until it ends. A box itself would say, wherever it is moved, that nobody else points to them, and
    /// their jobs do.
    all: Vec<NonNull<Fiber>>,
    free: Vec<NonNull<Fiber>>,
    /// Rule 2; `None`: not made yet, or a turn has it.
    reserve: Option<NonNull<Fiber>>,
    /// Fibers in `free` that may be kept: [`FIBERS_KEPT`], or 0 by rule 3.
    kept: usize,
    pub(super) stacks: Magazine,
}

/// The addresses of those that were forgotten, for debuggers and for tools that look for leaks.
static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Fibers that a worker keeps for the next jobs, as their stacks: what a burst of short actors uses again.
const FIBERS_KEPT: usize = 32;

/// Rule 1. A supervision tree of this depth starts although each supervisor waits on its stack for
/// the next one below.
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

    /// How many there are, on whatever they run; without the one that is kept for turns.
    pub(super) fn len(&self) -> usize {
        self.all.len() - usize::from(self.reserve.is_some())
    }

    /// Places for [`get`](Self::get) and [`task`](Self::task).
    pub(super) fn places(&self) -> usize {
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

    /// One for a spawned actor.
    ///
    /// # Errors
    /// There are `most`, or there is no memory.
    pub(super) fn obtain(&mut self, most: usize) -> Result<NonNull<Fiber>, StackError> {
        if let Some(fiber) = self.take() {
            return Ok(fiber);
        }
        if self.len() >= most {
            return Err(StackError::TooMany { most });
        }
        if self.reserve.is_none() {
            self.reserve = Some(self.make()?);
        }
        self.make()
    }

    /// One for a turn: rules 1 and 2.
    ///
    /// # Errors
    /// There are `most` and the turns' reserve is used up, or there is no memory.
    pub(super) fn obtain_for_turn(&mut self, most: usize) -> Result<NonNull<Fiber>, StackError> {
        if let Some(fiber) = self.take() {
            return Ok(fiber);
        }
        if self.len() < most
            && let Ok(fiber) = self.make()
        {
            return Ok(fiber);
        }
        if self.len() >= most + TURN_RESERVE {
            return Err(StackError::TooMany { most });
        }
        self.kept = 0;
        match self.reserve.take() {
            Some(fiber) => Ok(fiber),
            None => self.make(),
        }
    }

    fn make(&mut self) -> Result<NonNull<Fiber>, StackError> {
        let fiber = Fiber::new(self.stacks.take()?);
        fiber.place.set(self.all.len());
        let fiber = NonNull::from(Box::leak(fiber));
        self.all.push(fiber);
        Ok(fiber)
    }

    /// Takes back one of these, whose job is done. `false`: it is still the caller's, who asks
    /// whether a task waits for a stack, and otherwise [puts it back](Self::put_back).
    #[inline(always)]
    pub(super) fn give(&mut self, fiber: NonNull<Fiber>) -> bool {
        let kept = self.free.len() < self.kept;
        if kept {
            self.free.push(fiber);
        }
        kept
    }

    /// Takes back one that no job has, or ends it. `watched`: a task waits for a stack.
    pub(super) fn put_back(&mut self, fiber: NonNull<Fiber>, most: usize, watched: bool) {
        if self.reserve.is_none() {
            self.reserve = Some(fiber);
        } else if self.len() <= most && self.free.len() < FIBERS_KEPT {
            self.free.push(fiber);
        } else {
            // SAFETY: one of ours, which are in `all` until here.
            self.end(unsafe { fiber.as_ref() }.place.get());
        }
        self.watch(most, watched);
    }

    /// Rule 3, where what it depends on may have changed.
    pub(super) fn watch(&mut self, most: usize, watched: bool) {
        let keeps = !watched && self.reserve.is_some() && self.len() <= most;
        self.kept = if keeps { FIBERS_KEPT } else { 0 };
    }

    /// Whether anything runs on one of them.
    pub(super) fn has_any_task(&self) -> bool {
        (0..self.places()).any(|place| self.task(place).is_some())
    }

    /// Gives up the fiber in this place: its job never continues, and the fiber and its stack stay in
    /// memory.
    pub(super) fn forget(&mut self, place: usize) {
        let fiber = self.take_out(place);
        lock(&FORGOTTEN).push(fiber.as_ptr().expose_provenance());
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
        self.reserve = None;
        while let Some(last) = self.all.len().checked_sub(1) {
            self.end(last);
        }
    }
}
