//! The process's stacks of one size, for all runtimes and workers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::valgrind::ValgrindStackRegistration;

use super::guard::{Budget, Guards};
use super::list::List;
use super::reservation::Reservation;
use super::trim::AT_ONCE;
use super::{Shape, Slot, StackError};
use crate::epoch::{epoch, watch_forks};

/// Slots of one shape that nobody holds, and where more come from. Never freed.
#[derive(Debug)]
pub(crate) struct Depot {
    shape: Shape,
    guards: Guards,
    budget: &'static Budget,
    /// The process that it serves. A forked child makes its own: its parent may have held the lock.
    epoch: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Came back from an actor: the top is warm, and there may be much below it.
    used: Vec<Slot>,
    /// Hold at most what a trim leaves.
    clean: Vec<Slot>,
    slab: Option<Slab>,
    /// Slots in existence.
    carved: usize,
}

/// The reservation that slots are carved from at present.
#[derive(Debug)]
struct Slab {
    reservation: &'static Reservation,
    carved: usize,
}

/// Slots of the first slab. Later ones, like each carving, double what there is, so that a first runtime starts with little ..
const FIRST_SLAB: usize = 16;
/// .. up to so many: at 64 KiB a slab of 64 MiB, at 1 MiB one of 1 GiB, of which nothing is used until it is touched.
const LARGEST_SLAB: usize = 1024;

impl Depot {
    /// The depot of this process for stacks of `stack_size` bytes, guard and all, rounded up to pages and to 32 KiB at least.
    pub(crate) fn of(stack_size: usize) -> &'static Self {
        static DEPOTS: List<Depot> = List::new();
        watch_forks();
        let (shape, epoch) = (Shape::new(stack_size), epoch());
        DEPOTS.find_or_add(
            |depot| depot.shape == shape && depot.epoch == epoch,
            || Self::new(shape, Guards::probed(), Budget::of_process()),
        )
    }

    fn new(shape: Shape, guards: Guards, budget: &'static Budget) -> Self {
        Self {
            shape,
            guards,
            budget,
            epoch: epoch(),
            state: Mutex::default(),
        }
    }

    /// One apart from all others, with guards of this kind, at most `most` of them heavy.
    #[cfg(test)]
    pub(super) fn apart(stack_size: usize, guards: Guards, most: usize) -> &'static Self {
        let budget = Box::leak(Box::new(Budget::new(most)));
        Box::leak(Box::new(Self::new(Shape::new(stack_size), guards, budget)))
    }

    #[inline]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Puts 1 to `most` slots on `into`, which has room for them and of which those that need no trim come first; how many
    /// those are.
    pub(super) fn withdraw(&self, into: &mut Vec<Slot>, most: usize) -> Result<usize, StackError> {
        let mut state = self.state();
        let used = state.used.len().min(most);
        let clean = state.clean.len().min(most - used);
        if used + clean == 0 {
            let carving = state.carved.clamp(1, most);
            return self.carve(&mut state, into, carving);
        }
        let from = state.clean.len() - clean;
        into.extend(state.clean.drain(from..));
        let from = state.used.len() - used;
        into.extend(state.used.drain(from..));
        Ok(clean)
    }

    /// 1 to `most` new ones.
    fn carve(
        &self,
        state: &mut State,
        into: &mut Vec<Slot>,
        most: usize,
    ) -> Result<usize, StackError> {
        for done in 0..most {
            match self.carve_one(state) {
                Ok(slot) => into.push(slot),
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
        }
        Ok(most)
    }

    fn carve_one(&self, state: &mut State) -> Result<Slot, StackError> {
        let slab = match &mut state.slab {
            Some(slab) if slab.carved < slab.reservation.slots => slab,
            _ => {
                let slots = state.carved.clamp(FIRST_SLAB, LARGEST_SLAB);
                // Both lists get room for every slot, so that giving one back never needs memory.
                for list in [&mut state.used, &mut state.clean] {
                    let more = state.carved + slots - list.len();
                    list.try_reserve(more)
                        .map_err(|_| StackError::out_of_memory(more * size_of::<Slot>()))?;
                }
                state.slab.insert(Slab {
                    reservation: Reservation::new(self.shape, slots, self.guards)?,
                    carved: 0,
                })
            }
        };
        let start = slab.reservation.slot_start(slab.carved);
        self.guards.install(start.get(), self.shape, self.budget)?;
        // Or Valgrind takes a switch to it for one huge frame. A slot is never anything else: it stays registered.
        std::mem::forget(ValgrindStackRegistration::new(
            start.get() as *mut u8,
            self.shape.size,
        ));
        slab.carved += 1;
        state.carved += 1;
        Ok(self.shape.slot(start, state.carved))
    }

    /// From who has them (rule 2).
    pub(super) fn take_back(&self, slots: &[Slot]) {
        // In a forked child they are the parent's affair.
        if self.epoch == epoch() {
            self.state().used.extend_from_slice(slots);
        }
    }

    /// Some that may have much memory, for their trim, and whether there are more.
    pub(super) fn take_used(&self) -> (Vec<Slot>, bool) {
        if self.epoch != epoch() {
            return (Vec::new(), false);
        }
        let mut state = self.state();
        let from = state.used.len().saturating_sub(AT_ONCE);
        (state.used.split_off(from), from > 0)
    }

    /// After their trim.
    pub(super) fn take_back_clean(&self, slots: &[Slot]) {
        if !slots.is_empty() {
            self.state().clean.extend_from_slice(slots);
        }
    }

    pub(super) fn needs_trim(&self) -> bool {
        self.epoch == epoch() && !self.state().used.is_empty()
    }

    /// Slots that nobody holds.
    #[cfg(test)]
    pub(super) fn spare(&self) -> usize {
        let state = self.state();
        state.used.len() + state.clean.len()
    }

    #[cfg(test)]
    pub(super) fn has_spare(&self, base: std::num::NonZeroUsize) -> bool {
        let state = self.state();
        let mut all = state.used.iter().chain(&state.clean);
        all.any(|slot| slot.base == base)
    }

    /// As a thread that is in the middle of taking or giving has it.
    #[cfg(test)]
    pub(super) fn lock(&self) -> impl Drop + '_ {
        self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
