//! A sender of many.

use std::cell::{Cell, OnceCell};
use std::fmt;

use super::Shared;
use super::lanes::Outlet;
use crate::channel::{Core, Push};
use crate::no_preempt::NoPreemptGuard;
use crate::sync::Arc;

/// Values that a sender sends before it has a lane.
const BEFORE_A_LANE: u32 = if cfg!(loom) { 2 } else { 64 };

/// A sender's part of the channel.
pub struct Tx<T> {
    shared: Arc<Shared<T>>,
    outlet: OnceCell<Outlet<T>>,
    /// Values sent on the common path, until it has a lane.
    sent: Cell<u32>,
}

impl<T> Tx<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self {
            shared,
            outlet: OnceCell::new(),
            sent: Cell::new(0),
        }
    }

    /// Whether the sender has credits in hand.
    fn has_credits(&self) -> bool {
        let outlet = self.outlet.get();
        outlet.is_some_and(|outlet| outlet.granted() > 0 && !outlet.is_revoked())
    }

    /// Rule 3: the lane's new limit, where the old one is reached.
    fn raise(&self, outlet: &Outlet<T>) -> usize {
        if self.shared.is_bounded() {
            outlet.add(self.shared.claim(1, true))
        } else {
            usize::MAX
        }
    }

    /// Rule 1.
    #[cold]
    fn push_without_a_lane(&self, value: T) -> Result<(), T> {
        // The outlet is being made.
        let _no_preempt = NoPreemptGuard::enter();
        let shared = &*self.shared;
        if !shared.lanes.are_possible() {
            return shared.common.push(value);
        }
        if self.sent.get() + 1 >= BEFORE_A_LANE {
            self.sent.set(0);
            if let Some(outlet) = shared.lanes.make(|| shared.common.pushed()) {
                return self.push_to(self.outlet.get_or_init(|| outlet), value);
            }
        }
        if shared.is_bounded() {
            self.push_with_a_credit(value)?;
        } else {
            shared.common.push(value)?;
        }
        self.sent.set(self.sent.get() + 1);
        Ok(())
    }

    /// Rule 3: on the common path a credit is claimed for each value.
    fn push_with_a_credit(&self, value: T) -> Result<(), T> {
        let shared = &*self.shared;
        let mut credits = shared.claim(1, false);
        if credits == 0 {
            if shared.is_known_full() {
                return Err(value);
            }
            credits = shared.claim_or_reclaim(1, &shared.lanes.lock(), None);
            if credits == 0 {
                return Err(value);
            }
        }
        let result = shared.common.push(value);
        let used = usize::from(result.is_ok());
        shared.give_back(credits - used);
        result
    }

    fn push_to(&self, outlet: &Outlet<T>, mut value: T) -> Result<(), T> {
        if outlet.find_room(|_| self.raise(outlet)) {
            // SAFETY: there is room.
            match unsafe { outlet.push(value) } {
                Ok(()) => {
                    self.shared.lanes.hint_of(outlet);
                    return Ok(());
                }
                Err(back) => value = back,
            }
        }
        let mut value = Some(value);
        self.push_reclaiming(outlet, 1, |count| {
            outlet.push_some(count, value.take().into_iter());
        });
        value.map_or(Ok(()), Err)
    }

    fn push_some_to(&self, outlet: &Outlet<T>, values: &mut Vec<T>) -> usize {
        let mut count = outlet.granted();
        if count < values.len() {
            let missing = values.len() - count;
            if self.shared.is_bounded() {
                outlet.grant(self.shared.claim(missing, true));
            } else {
                outlet.set_unbounded();
            }
            count = outlet.granted();
        }
        count = count.min(values.len());
        let mut pushed = 0;
        if count > 0 && outlet.announce(count) {
            outlet.push_some(count, values.drain(..count));
            self.shared.lanes.hint_of(outlet);
            pushed = count;
        }
        if !values.is_empty() {
            pushed += self.push_reclaiming(outlet, values.len(), |count| {
                outlet.push_some(count, values.drain(..count));
            });
        }
        pushed
    }

    /// Rule 6: lets `push` put in up to `wanted` values, as many as there are credits for; how many.
    #[cold]
    #[inline(never)]
    fn push_reclaiming(
        &self,
        outlet: &Outlet<T>,
        wanted: usize,
        push: impl FnOnce(usize),
    ) -> usize {
        let shared = &*self.shared;
        if !shared.is_bounded() {
            // Its lane is revoked since the channel is being closed, which is no later than this value.
            push(wanted);
            shared.lanes.hint_of(outlet);
            return wanted;
        }
        if !outlet.is_revoked() && shared.is_known_full() {
            return 0;
        }
        let locked = shared.lanes.lock();
        outlet.settle(&locked);
        while outlet.granted() < wanted {
            let missing = wanted - outlet.granted();
            match shared.claim_or_reclaim(missing, &locked, Some(outlet)) {
                0 => break,
                credits => outlet.grant(credits),
            }
        }
        let count = outlet.granted().min(wanted);
        if count > 0 {
            push(count);
        }
        let unused = outlet.give_up(&locked);
        drop(locked);
        if count > 0 {
            shared.lanes.hint_of(outlet);
        }
        shared.give_back(unused);
        count
    }
}

impl<T> Push for Tx<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn push_quickly(&self, value: T) -> Result<(), T> {
        let Some(outlet) = self.outlet.get() else {
            return Err(value);
        };
        if !outlet.knows_room() {
            return Err(value);
        }
        // Rule 7: that the channel is closed is among what revokes a lane.
        // SAFETY: there is room.
        unsafe { outlet.push(value)? };
        self.shared.lanes.hint_of(outlet);
        self.shared.core.items.signal(1);
        Ok(())
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        match self.outlet.get() {
            Some(outlet) => self.push_to(outlet, value)?,
            None => self.push_without_a_lane(value)?,
        }
        self.shared.core.items.signal(1);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        let mut count = 0;
        // The lane may come with any of them; from then on all take it.
        while self.outlet.get().is_none() && !values.is_empty() {
            match self.push_without_a_lane(values.remove(0)) {
                Ok(()) => count += 1,
                Err(value) => {
                    values.insert(0, value);
                    break;
                }
            }
        }
        if let Some(outlet) = self.outlet.get() {
            count += self.push_some_to(outlet, values);
        }
        if count > 0 {
            self.shared.core.items.signal(count);
        }
        count
    }

    fn has_room(&self) -> bool {
        if !self.shared.is_bounded() {
            return true;
        }
        if !self.shared.lanes.are_possible() {
            return self.shared.common.has_room();
        }
        self.has_credits() || self.shared.finds_room()
    }

    fn shows_room(&self) -> bool {
        if !self.shared.is_bounded() {
            return true;
        }
        if !self.shared.lanes.are_possible() {
            return self.shared.common.has_room();
        }
        self.has_credits() || self.shared.room() > 0
    }

    fn moved(&self) -> u64 {
        use crate::sync::Ordering::Relaxed;
        self.shared.popped.load(Relaxed) as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn shut(&self) {
        self.shared.close();
    }
}

impl<T> Clone for Tx<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<T> Drop for Tx<T> {
    fn drop(&mut self) {
        let Some(outlet) = self.outlet.get() else {
            return;
        };
        let mut unused = 0;
        if self.shared.is_bounded() {
            unused = outlet.give_up(&self.shared.lanes.lock());
        }
        outlet.close();
        self.shared.lanes.hint_of(outlet);
        self.shared.give_back(unused);
    }
}

impl<T> fmt::Debug for Tx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("mpsc::Tx")
            .field("has_lane", &self.outlet.get().is_some())
            .field("has_credits", &self.has_credits())
            .finish()
    }
}
