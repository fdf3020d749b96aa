//! The magazine: a worker's own stacks, the most recently used on top.

use std::cell::Cell;
use std::marker::PhantomData;

use super::{Depot, Stack, StackError, StackSlot};
use crate::prefetch;

/// The free stacks of one worker. The last stack that was returned is the next one that is handed
/// out. This uses no atomics and no lock, unless the magazine is empty or full.
#[derive(Debug)]
pub(crate) struct Magazine {
    pub(super) depot: &'static Depot,
    pub(super) slots: Vec<StackSlot>,
    /// This many slots, counted from the bottom, have no more memory than a trim leaves.
    pub(super) clean: usize,
    /// Belongs to one worker; other threads must not access it.
    not_sync: PhantomData<Cell<()>>,
}

/// The value of Go's free lists of dead goroutines (64, and 32 at a time to and from the global
/// list).
const CAPACITY: usize = 64;
const HALF: usize = CAPACITY / 2;

impl Magazine {
    /// Creates an empty magazine.
    pub(crate) fn new(depot: &'static Depot) -> Self {
        Self {
            depot,
            slots: Vec::with_capacity(CAPACITY),
            clean: 0,
            not_sync: PhantomData,
        }
    }

    /// Takes a stack: the one that was returned last, or else one of the depot's, or else a new
    /// one.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Stack, StackError> {
        if self.slots.is_empty() {
            self.refill()?;
        }
        let slot = self.slots.pop().expect("the magazine was refilled");
        self.clean = self.clean.min(self.slots.len());
        if let Some(next) = self.slots.last() {
            let first_frames = next.base.get() - prefetch::FRAME_BYTES;
            prefetch::prefetch_frames(std::ptr::without_provenance(first_frames));
        }
        Ok(Stack {
            slot,
            depot: self.depot,
        })
    }

    /// Takes back a stack on which no code runs any more.
    #[inline]
    pub(crate) fn give(&mut self, stack: Stack) {
        if !std::ptr::eq(stack.depot, self.depot) {
            return drop(stack);
        }
        if self.slots.len() == CAPACITY {
            self.flush();
        }
        self.slots.push(stack.slot);
        // The slot is in the magazine now (rule 2).
        std::mem::forget(stack);
    }

    #[cold]
    fn refill(&mut self) -> Result<(), StackError> {
        self.clean = self.depot.withdraw(&mut self.slots, HALF)?;
        Ok(())
    }

    /// Moves the least recently used half to the depot.
    #[cold]
    fn flush(&mut self) {
        self.depot.take_back(&self.slots[..HALF]);
        self.slots.drain(..HALF);
        self.clean = self.clean.saturating_sub(HALF);
    }
}

impl Drop for Magazine {
    fn drop(&mut self) {
        self.depot.take_back(&self.slots);
    }
}
