//! A worker's own stacks, the warmest on top.

use std::cell::Cell;
use std::marker::PhantomData;

use super::{Depot, Slot, Stack, StackError};
use crate::ahead;

/// Stacks of one worker: the last that came back is the next that goes out, with neither an atomic nor a lock while there is
/// one, or room for one.
#[derive(Debug)]
pub(crate) struct Magazine {
    pub(super) depot: &'static Depot,
    pub(super) slots: Vec<Slot>,
    /// The lowest so many slots hold at most what a trim leaves.
    pub(super) clean: usize,
    /// One worker's: not to be looked at from elsewhere.
    not_sync: PhantomData<Cell<()>>,
}

/// As Go's free lists of dead goroutines have it (64, and 32 at a time to and from the global one).
const CAPACITY: usize = 64;
const HALF: usize = CAPACITY / 2;

impl Magazine {
    /// An empty one.
    pub(crate) fn new(depot: &'static Depot) -> Self {
        Self {
            depot,
            slots: Vec::with_capacity(CAPACITY),
            clean: 0,
            not_sync: PhantomData,
        }
    }

    /// A stack to run on: the one that came back last, else one of the depot's, else a new one.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Stack, StackError> {
        if self.slots.is_empty() {
            self.refill()?;
        }
        let slot = self.slots.pop().expect("refilled if it was empty");
        self.clean = self.clean.min(self.slots.len());
        if let Some(next) = self.slots.last() {
            let first_frames = next.base.get() - ahead::FRAMES;
            ahead::fetch_frames(std::ptr::without_provenance(first_frames));
        }
        Ok(Stack {
            slot,
            depot: self.depot,
        })
    }

    /// Takes a stack back that nothing runs on any more.
    #[inline]
    pub(crate) fn give(&mut self, stack: Stack) {
        if !std::ptr::eq(stack.depot, self.depot) {
            return drop(stack);
        }
        if self.slots.len() == CAPACITY {
            self.flush();
        }
        self.slots.push(stack.slot);
        // The slot is here now (rule 2).
        std::mem::forget(stack);
    }

    #[cold]
    fn refill(&mut self) -> Result<(), StackError> {
        self.clean = self.depot.withdraw(&mut self.slots, HALF)?;
        Ok(())
    }

    /// The coldest half goes to the depot.
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
