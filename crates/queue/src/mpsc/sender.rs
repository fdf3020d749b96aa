//! The sending half of an `mpsc` channel.

use std::cell::{Cell, OnceCell};
use std::fmt;

use super::Shared;
use super::lanes::LaneTx;
use crate::channel::{Core, Push, SharedRef};
use crate::no_preempt::NoPreemptGuard;

/// The send that creates the sender's own lane.
const SENDS_BEFORE_LANE: u32 = if cfg!(loom) { 2 } else { 64 };

/// The sending half of an `mpsc` channel.
pub struct Tx<T> {
    shared: SharedRef<Shared<T>>,
    lane_tx: OnceCell<LaneTx<T>>,
    /// Values that were sent through the shared lane, until there is an own lane.
    sent: Cell<u32>,
}

impl<T> Tx<T> {
    pub(super) fn new(shared: SharedRef<Shared<T>>) -> Self {
        Self {
            shared,
            lane_tx: OnceCell::new(),
            sent: Cell::new(0),
        }
    }

    /// Whether the sender has unused credits.
    fn has_credits(&self) -> bool {
        let lane_tx = self.lane_tx.get();
        lane_tx.is_some_and(|lane_tx| lane_tx.granted() > 0 && !lane_tx.is_revoked())
    }

    /// Rule 3: the lane's new limit when the old one is reached.
    fn raise(&self, lane_tx: &LaneTx<T>) -> usize {
        if self.shared.is_bounded() {
            lane_tx.add(self.shared.claim(1, true))
        } else {
            usize::MAX
        }
    }

    /// Rule 1.
    #[cold]
    fn push_shared(&self, value: T) -> Result<(), T> {
        // The lane is being created.
        let _no_preempt = NoPreemptGuard::enter();
        let shared = &*self.shared;
        if !shared.lanes.are_allowed() {
            return shared.shared_lane.push(value);
        }
        if self.sent.get() + 1 >= SENDS_BEFORE_LANE {
            self.sent.set(0);
            if let Some(lane_tx) = shared.lanes.create(|| shared.shared_lane.pushed()) {
                return self.push_to(self.lane_tx.get_or_init(|| lane_tx), value);
            }
        }
        if shared.is_bounded() {
            self.push_with_credit(value)?;
        } else {
            shared.shared_lane.push(value)?;
        }
        self.sent.set(self.sent.get() + 1);
        Ok(())
    }

    /// Rule 3: in the shared lane, a credit is claimed for each value.
    fn push_with_credit(&self, value: T) -> Result<(), T> {
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
        let result = shared.shared_lane.push(value);
        let used = usize::from(result.is_ok());
        shared.release(credits - used);
        result
    }

    fn push_to(&self, lane_tx: &LaneTx<T>, mut value: T) -> Result<(), T> {
        if lane_tx.reserve(|_| self.raise(lane_tx)) {
            // SAFETY: there is a free slot.
            match unsafe { lane_tx.push(value) } {
                Ok(()) => {
                    self.shared.lanes.set_hint_of(lane_tx);
                    return Ok(());
                }
                Err(back) => value = back,
            }
        }
        let mut value = Some(value);
        self.push_reclaiming(lane_tx, 1, |count| {
            lane_tx.push_some(count, value.take().into_iter());
        });
        value.map_or(Ok(()), Err)
    }

    fn push_some_to(&self, lane_tx: &LaneTx<T>, values: &mut Vec<T>) -> usize {
        let mut count = lane_tx.granted();
        if count < values.len() {
            let missing = values.len() - count;
            if self.shared.is_bounded() {
                lane_tx.grant(self.shared.claim(missing, true));
            } else {
                lane_tx.set_unbounded();
            }
            count = lane_tx.granted();
        }
        count = count.min(values.len());
        let mut pushed = 0;
        if count > 0 && lane_tx.announce(count) {
            lane_tx.push_some(count, values.drain(..count));
            self.shared.lanes.set_hint_of(lane_tx);
            pushed = count;
        }
        if !values.is_empty() {
            pushed += self.push_reclaiming(lane_tx, values.len(), |count| {
                lane_tx.push_some(count, values.drain(..count));
            });
        }
        pushed
    }

    /// Rule 6: calls `push` with the number of values for which there are credits, at most
    /// `wanted`. Returns that number.
    #[cold]
    #[inline(never)]
    fn push_reclaiming(
        &self,
        lane_tx: &LaneTx<T>,
        wanted: usize,
        push: impl FnOnce(usize),
    ) -> usize {
        let shared = &*self.shared;
        if !shared.is_bounded() {
            // The lane is revoked because the channel is being closed. This value still counts as
            // sent before the close.
            push(wanted);
            shared.lanes.set_hint_of(lane_tx);
            return wanted;
        }
        if !lane_tx.is_revoked() && shared.is_known_full() {
            return 0;
        }
        let locked = shared.lanes.lock();
        lane_tx.update_limit(&locked);
        while lane_tx.granted() < wanted {
            let missing = wanted - lane_tx.granted();
            match shared.claim_or_reclaim(missing, &locked, Some(lane_tx)) {
                0 => break,
                credits => lane_tx.grant(credits),
            }
        }
        let count = lane_tx.granted().min(wanted);
        if count > 0 {
            push(count);
        }
        let unused = lane_tx.release_unused(&locked);
        drop(locked);
        if count > 0 {
            shared.lanes.set_hint_of(lane_tx);
        }
        shared.release(unused);
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
    fn push_fast(&self, value: T) -> Result<(), T> {
        let Some(lane_tx) = self.lane_tx.get() else {
            return Err(value);
        };
        if !lane_tx.has_granted() {
            return Err(value);
        }
        // Rule 7: closing the channel revokes the lane, so no check for closed is needed. SAFETY:
        // there is a free slot.
        unsafe { lane_tx.push(value)? };
        self.shared.lanes.set_hint_of(lane_tx);
        self.shared.core.recv_waiters.signal(1);
        Ok(())
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        match self.lane_tx.get() {
            Some(lane_tx) => self.push_to(lane_tx, value)?,
            None => self.push_shared(value)?,
        }
        self.shared.core.recv_waiters.signal(1);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        let mut count = 0;
        // Any of these values may create the lane. All later values use it.
        while self.lane_tx.get().is_none() && !values.is_empty() {
            match self.push_shared(values.remove(0)) {
                Ok(()) => count += 1,
                Err(value) => {
                    values.insert(0, value);
                    break;
                }
            }
        }
        if let Some(lane_tx) = self.lane_tx.get() {
            count += self.push_some_to(lane_tx, values);
        }
        if count > 0 {
            self.shared.core.recv_waiters.signal(count);
        }
        count
    }

    fn has_capacity(&self) -> bool {
        if !self.shared.is_bounded() {
            return true;
        }
        if !self.shared.lanes.are_allowed() {
            return self.shared.shared_lane.has_capacity();
        }
        self.has_credits() || self.shared.has_reclaimable_capacity()
    }

    fn has_visible_capacity(&self) -> bool {
        if !self.shared.is_bounded() {
            return true;
        }
        if !self.shared.lanes.are_allowed() {
            return self.shared.shared_lane.has_capacity();
        }
        self.has_credits() || self.shared.available() > 0
    }

    fn transferred(&self) -> u64 {
        use crate::sync::Ordering::Relaxed;
        self.shared.popped.load(Relaxed) as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl<T> Clone for Tx<T> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<T> Drop for Tx<T> {
    fn drop(&mut self) {
        let Some(lane_tx) = self.lane_tx.get() else {
            return;
        };
        let mut unused = 0;
        if self.shared.is_bounded() {
            unused = lane_tx.release_unused(&self.shared.lanes.lock());
        }
        lane_tx.close();
        self.shared.lanes.set_hint_of(lane_tx);
        self.shared.release(unused);
    }
}

impl<T> fmt::Debug for Tx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("mpsc::Tx")
            .field("has_lane", &self.lane_tx.get().is_some())
            .field("has_credits", &self.has_credits())
            .finish()
    }
}
