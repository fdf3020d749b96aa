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
    /// Hold no memory but that of their guards' entries in the page tables. The last to go out.
    bare: Vec<Slot>,
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

/// Slots that a trim takes out of a depot.
pub(super) struct Taken {
    pub(super) slots: Vec<Slot>,
    /// There are more.
    pub(super) more: bool,
    /// Their tops keep their memory.
    pub(super) keeps_top: bool,
}

/// Trimmed slots whose tops keep their memory: 16 MiB where all were used to 16 KiB. What a burst used beyond that goes back to the system as a whole, since
/// nobody knows whether there will be another.
const MOST_CLEAN: usize = 1024;
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
        let bare = state.bare.len().min(most - used - clean);
        if used + clean + bare == 0 {
            let carving = state.carved.clamp(1, most);
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
                // Each list gets room for every slot, so that giving one back never needs memory.
                for list in [&mut state.used, &mut state.clean, &mut state.bare] {
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

    /// Some that may have much memory, for their trim, and how that goes on.
    pub(super) fn take_used(&self) -> Taken {
        if self.epoch != epoch() {
            return Taken {
                slots: Vec::new(),
                more: false,
                keeps_top: true,
            };
        }
        let mut state = self.state();
        let from = state.used.len().saturating_sub(AT_ONCE);
        Taken {
            slots: state.used.split_off(from),
            more: from > 0,
            keeps_top: state.clean.len() < MOST_CLEAN,
        }
    }

    /// After their trim.
    pub(super) fn take_back_trimmed(&self, taken: &Taken) {
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

    /// All that nobody holds and that may have memory, but for `left`; for [`release`](Self::release). None, if there is no memory for the list.
    pub(super) fn take_all_but(&self, left: usize) -> Vec<Slot> {
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

    /// After all of their memory was given back.
    pub(super) fn take_back_bare(&self, slots: &[Slot]) {
        if !slots.is_empty() {
            self.state().bare.extend_from_slice(slots);
        }
    }

    pub(super) fn needs_trim(&self) -> bool {
        self.epoch == epoch() && !self.state().used.is_empty()
    }

    /// Slots that nobody holds.
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
