//! A sender of many.

use std::cell::{Cell, OnceCell};
use std::fmt;

use super::Shared;
use super::lanes::Outlet;
use crate::channel::{Core, Push};
use crate::quiet::Quiet;
use crate::sync::Arc;

/// Values that a sender sends before it has a lane.
const BEFORE_A_LANE: u32 = if cfg!(loom) { 2 } else { 64 };

/// A sender's part of the channel.
pub struct Tx<T> {
    shared: Arc<Shared<T>>,
    outlet: OnceCell<Outlet<T>>,
    /// Credits in hand, until it has a lane, whose limit they are from then on.
    credits: Cell<usize>,
    /// Values sent on the common path, until it has a lane.
    sent: Cell<u32>,
}

impl<T> Tx<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self {
            shared,
            outlet: OnceCell::new(),
            credits: Cell::new(0),
            sent: Cell::new(0),
        }
    }

    /// Rule 3: the lane's new limit, where the old one is reached.
    fn raise(&self, limit: usize) -> usize {
        if self.shared.is_bounded() {
            limit + self.shared.claim(usize::MAX)
        } else {
            usize::MAX
        }
    }

    /// Rule 1.
    #[cold]
    fn push_without_a_lane(&self, value: T) -> Result<(), T> {
        // The outlet is being made.
        let _quiet = Quiet::begin();
        let shared = &*self.shared;
        if !shared.lanes.are_possible() {
            return shared.common.push(value);
        }
        if self.sent.get() + 1 >= BEFORE_A_LANE {
            self.sent.set(0);
            if let Some(outlet) = shared.lanes.make(|| shared.common.pushed()) {
                outlet.set_limit(self.credits.take());
                let outlet = self.outlet.get_or_init(|| outlet);
                return self.push_to(outlet, value);
            }
        }
        if shared.is_bounded() {
            if self.credits.get() == 0 {
                self.credits.set(shared.claim(1));
            }
            if self.credits.get() == 0 {
                return Err(value);
            }
            shared.common.push(value)?;
            self.credits.set(self.credits.get() - 1);
        } else {
            shared.common.push(value)?;
        }
        self.sent.set(self.sent.get() + 1);
        Ok(())
    }

    fn push_some_to(&self, outlet: &Outlet<T>, values: &mut Vec<T>) -> usize {
        loop {
            let granted = outlet.granted();
            if granted < values.len() {
                outlet.set_limit(self.raise(outlet.limit()));
            }
            if outlet.granted() == granted || outlet.granted() >= values.len() {
                break;
            }
        }
        let count = outlet.granted().min(values.len());
        if count > 0 {
            outlet.push_some(count, values.drain(..count));
            self.shared.lanes.hint_of(outlet);
        }
        count
    }

    fn push_to(&self, outlet: &Outlet<T>, value: T) -> Result<(), T> {
        if !outlet.find_room(|limit| self.raise(limit)) {
            return Err(value);
        }
        // SAFETY: there is room.
        unsafe { outlet.push(value) };
        self.shared.lanes.hint_of(outlet);
        Ok(())
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
        if !outlet.knows_room() || self.shared.core.is_closed() {
            return Err(value);
        }
        // SAFETY: there is room.
        unsafe { outlet.push(value) };
        self.shared.lanes.hint_of(outlet);
        self.shared.core.items.0.signal(1);
        Ok(())
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        match self.outlet.get() {
            Some(outlet) => self.push_to(outlet, value)?,
            None => self.push_without_a_lane(value)?,
        }
        self.shared.core.items.0.signal(1);
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
            self.shared.core.items.0.signal(count);
        }
        count
    }

    fn has_room(&self) -> bool {
        let granted = self.outlet.get().map_or(0, Outlet::granted);
        if !self.shared.is_bounded() || self.credits.get() + granted > 0 {
            return true;
        }
        if self.shared.lanes.are_possible() {
            self.shared.room() > 0
        } else {
            self.shared.common.has_room()
        }
    }

    fn moved(&self) -> u64 {
        use crate::sync::Ordering::Relaxed;
        self.shared.popped.0.load(Relaxed) as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn shut(&self) {
        self.shared.common.close();
    }
}

impl<T> Clone for Tx<T> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl<T> Drop for Tx<T> {
    fn drop(&mut self) {
        let mut unused = self.credits.get();
        if let Some(outlet) = self.outlet.get() {
            unused += outlet.granted();
            outlet.close();
            self.shared.lanes.hint_of(outlet);
        }
        if self.shared.is_bounded() {
            self.shared.give_back(unused);
        }
    }
}

impl<T> fmt::Debug for Tx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("mpsc::Tx")
            .field("has_lane", &self.outlet.get().is_some())
            .field("credits", &self.credits.get())
            .finish()
    }
}
