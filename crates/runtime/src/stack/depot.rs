//! The depot: the process's stacks of one size, for all runtimes and workers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::valgrind::ValgrindStackRegistration;

use super::guard::{Budget, Guards};
use super::list::AppendOnlyList;
use super::reservation::Reservation;
use super::trim::BATCH;
use super::{SlotLayout, StackError, StackSlot};
use crate::epoch::{epoch, watch_forks};

/// The free slots of one layout, and the slab from which new ones are carved. Never freed.
#[derive(Debug)]
pub(crate) struct Depot {
    layout: SlotLayout,
    guards: Guards,
    budget: &'static Budget,
    /// The process to which the depot belongs. A forked child creates its own, because its parent
    /// may have held the lock during the fork.
    epoch: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Slots that an actor returned. The top is in the cache, and much memory below it may be in
    /// use.
    used: Vec<StackSlot>,
    /// Slots with no more memory than a trim leaves.
    clean: Vec<StackSlot>,
    /// Slots without memory, except for the page-table entries of their guards. They are handed out
    /// last.
    bare: Vec<StackSlot>,
    slab: Option<Slab>,
    /// The number of slots that were ever carved.
    carved: usize,
}

/// The reservation from which slots are currently carved.
#[derive(Debug)]
struct Slab {
    reservation: &'static Reservation,
    carved: usize,
}

/// Slots that a trim takes out of a depot.
pub(super) struct TrimBatch {
    pub(super) slots: Vec<StackSlot>,
    /// Whether there are more slots to trim.
    pub(super) more: bool,
    /// Whether the tops of the slots keep their memory.
    pub(super) keeps_top: bool,
}

/// The maximum number of trimmed slots whose tops keep their memory: 16 MiB if each keeps 16 KiB.
/// Memory that a burst used beyond that is returned completely, because another burst may never
/// come.
const MAX_CLEAN_SLOTS: usize = 1024;
/// The number of slots in the first slab. Later slabs (and carvings) double the number of slots, so
/// that a first runtime starts with little.
const FIRST_SLAB_SLOTS: usize = 16;
/// The maximum number of slots in a slab. That is 64 MiB for stacks of 64 KiB, and 1 GiB for stacks
/// of 1 MiB; no memory is used until it is touched.
const MAX_SLAB_SLOTS: usize = 1024;

impl Depot {
    /// Returns this process's depot for stacks of `stack_size` bytes, including the guard. The size
    /// is rounded up to pages and to at least 32 KiB.
    pub(crate) fn of(stack_size: usize) -> &'static Self {
        static DEPOTS: AppendOnlyList<Depot> = AppendOnlyList::new();
        watch_forks();
        let (layout, epoch) = (SlotLayout::new(stack_size), epoch());
        DEPOTS.find_or_add(
            |depot| depot.layout == layout && depot.epoch == epoch,
            || Self::new(layout, Guards::probed(), Budget::of_process()),
        )
    }

    fn new(layout: SlotLayout, guards: Guards, budget: &'static Budget) -> Self {
        Self {
            layout,
            guards,
            budget,
            epoch: epoch(),
            state: Mutex::default(),
        }
    }

    /// Creates a separate depot with guards of this kind, and a budget of `max` heavy guards.
    #[cfg(test)]
    pub(super) fn apart(stack_size: usize, guards: Guards, max: usize) -> &'static Self {
        let budget = Box::leak(Box::new(Budget::new(max)));
        Box::leak(Box::new(Self::new(
            SlotLayout::new(stack_size),
            guards,
            budget,
        )))
    }

    #[inline]
    pub(super) fn layout(&self) -> &SlotLayout {
        &self.layout
    }

    /// Appends 1 to `max` slots to `into`, which has capacity for them. Slots that need no trim
    /// come first. Returns the number of those.
    pub(super) fn withdraw(
        &self,
        into: &mut Vec<StackSlot>,
        max: usize,
    ) -> Result<usize, StackError> {
        let mut state = self.state();
        let used = state.used.len().min(max);
        let clean = state.clean.len().min(max - used);
        let bare = state.bare.len().min(max - used - clean);
        if used + clean + bare == 0 {
            let carving = state.carved.clamp(1, max);
            return self.carve(&mut state, into, carving);
        }
        let from = state.bare.len() - bare;
        into.extend(state.bare.drain(from..));
        let from = state.clean.len() - clean;
        into.extend(state.clean.drain(from..));
        let from = state.used.len() - used;
        into.extend(state.used.drain(from..));
        Ok(bare + clean)
    }

    /// Carves 1 to `max` new slots.
    fn carve(
        &self,
        state: &mut State,
        into: &mut Vec<StackSlot>,
        max: usize,
    ) -> Result<usize, StackError> {
        for done in 0..max {
            match self.carve_one(state) {
                Ok(slot) => into.push(slot),
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
        }
        Ok(max)
    }

    fn carve_one(&self, state: &mut State) -> Result<StackSlot, StackError> {
        let slab = match &mut state.slab {
            Some(slab) if slab.carved < slab.reservation.slots => slab,
            _ => {
                let slots = state.carved.clamp(FIRST_SLAB_SLOTS, MAX_SLAB_SLOTS);
                // Each list has capacity for all slots, so that returning a slot never allocates.
                for list in [&mut state.used, &mut state.clean, &mut state.bare] {
                    let more = state.carved + slots - list.len();
                    list.try_reserve(more)
                        .map_err(|_| StackError::out_of_memory(more * size_of::<StackSlot>()))?;
                }
                state.slab.insert(Slab {
                    reservation: Reservation::new(self.layout, slots, self.guards)?,
                    carved: 0,
                })
            }
        };
        let start = slab.reservation.slot_start(slab.carved);
        self.guards.install(start.get(), self.layout, self.budget)?;
        // Without this, Valgrind would interpret a switch to the stack as one huge frame. A slot
        // always stays a stack, so it stays registered.
        std::mem::forget(ValgrindStackRegistration::new(
            start.get() as *mut u8,
            self.layout.size,
        ));
        slab.carved += 1;
        state.carved += 1;
        Ok(self.layout.slot(start, state.carved))
    }

    /// Takes slots back from their owner (rule 2).
    pub(super) fn take_back(&self, slots: &[StackSlot]) {
        // In a forked child, the slots of the parent's depot are not reused.
        if self.epoch == epoch() {
            self.state().used.extend_from_slice(slots);
        }
    }

    /// Takes some slots that may have much memory, for a trim.
    pub(super) fn take_trim_batch(&self) -> TrimBatch {
        if self.epoch != epoch() {
            return TrimBatch {
                slots: Vec::new(),
                more: false,
                keeps_top: true,
            };
        }
        let mut state = self.state();
        let from = state.used.len().saturating_sub(BATCH);
        TrimBatch {
            slots: state.used.split_off(from),
            more: from > 0,
            keeps_top: state.clean.len() < MAX_CLEAN_SLOTS,
        }
    }

    /// Takes slots back after their trim.
    pub(super) fn take_back_trimmed(&self, taken: &TrimBatch) {
        if !taken.slots.is_empty() {
            let mut state = self.state();
            let list = if taken.keeps_top {
                &mut state.clean
            } else {
                &mut state.bare
            };
            list.extend_from_slice(&taken.slots);
        }
    }

    /// Takes all free slots that may have memory, except for `left` of them, for
    /// [`release`](Self::release). Returns none if there is no memory for the list.
    pub(super) fn take_all_but(&self, left: usize) -> Vec<StackSlot> {
        let mut slots = Vec::new();
        if self.epoch != epoch() {
            return slots;
        }
        let mut state = self.state();
        let all = state.used.len() + state.clean.len();
        if slots.try_reserve_exact(all.saturating_sub(left)).is_err() {
            return slots;
        }
        let mut left = left;
        let state = &mut *state;
        for list in [&mut state.used, &mut state.clean] {
            let stays = list.len().min(left);
            left -= stays;
            slots.extend(list.drain(stays..));
        }
        slots
    }

    /// Takes slots back after all of their memory was returned to the system.
    pub(super) fn take_back_bare(&self, slots: &[StackSlot]) {
        if !slots.is_empty() {
            self.state().bare.extend_from_slice(slots);
        }
    }

    pub(super) fn needs_trim(&self) -> bool {
        self.epoch == epoch() && !self.state().used.is_empty()
    }

    /// Returns the number of free slots.
    #[cfg(test)]
    pub(super) fn spare(&self) -> usize {
        let state = self.state();
        state.used.len() + state.clean.len() + state.bare.len()
    }

    #[cfg(test)]
    pub(super) fn has_spare(&self, base: std::num::NonZeroUsize) -> bool {
        let state = self.state();
        let mut all = state.used.iter().chain(&state.clean).chain(&state.bare);
        all.any(|slot| slot.base == base)
    }

    /// Locks the depot, like a thread that is taking or returning a slot.
    #[cfg(test)]
    pub(super) fn lock(&self) -> impl Drop + '_ {
        self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
