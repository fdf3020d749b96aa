//! Credits: how many values the senders may push. Rules 3 and 6 of the module.

use super::Shared;
use super::lanes::{LaneTx, Registry};
use crate::barrier;
use crate::sync::{AtomicBool, AtomicUsize, Ordering, spin_loop};

/// How often a sender checks again before it reclaims credits. By then, a push that had claimed a
/// credit has stored its value. About 64 `pause` instructions take 1 to 3 us, which is less than
/// the cost of the heavy barrier and the lock to the other senders.
const RECHECKS: usize = if cfg!(loom) { 1 } else { 64 };

/// The credits of a channel, across all handles.
pub(super) struct Credits {
    /// All credits that were ever claimed, minus those that were returned unused.
    claimed: AtomicUsize,
    /// The value of `popped` when every credit up to the capacity was found to be used. Until the
    /// receiver pops a value, senders need not check again.
    full_at: AtomicUsize,
    /// Whether a lane may have claimed credits in advance. It is set before such a claim, and stays
    /// set while the process is asymmetric.
    claims_ahead: AtomicBool,
}

/// What a sender that found no capacity learns by checking all handles.
pub(super) enum Reclaimed {
    /// This many credits were reclaimed. They belong to the caller.
    Credits(usize),
    /// There are no unused credits: each is used or is about to be used.
    Nothing,
    /// Credits have become available meanwhile.
    Changed,
}

impl Credits {
    pub(super) fn new() -> Self {
        Self {
            claimed: AtomicUsize::new(0),
            full_at: AtomicUsize::new(usize::MAX),
            claims_ahead: AtomicBool::new(false),
        }
    }
}

impl<T> Shared<T> {
    /// Credits that no sender has claimed.
    pub(super) fn available(&self) -> usize {
        let claimed = self.credits.claimed.load(Ordering::Relaxed);
        self.available_given(claimed)
    }

    fn available_given(&self, claimed: usize) -> usize {
        let popped = self.popped.load(Ordering::Acquire);
        // The receiver may be ahead of `claimed`. Then the whole capacity is available.
        self.capacity - claimed.saturating_sub(popped).min(self.capacity)
    }

    /// Whether every credit is known to be used by a value in the channel.
    pub(super) fn is_known_full(&self) -> bool {
        let popped = self.popped.load(Ordering::Acquire);
        self.credits.full_at.load(Ordering::Relaxed) == popped
    }

    /// Rule 3: claims up to `needed` credits, or up to a block of them for a lane. Returns their
    /// number.
    pub(super) fn claim(&self, needed: usize, for_lane: bool) -> usize {
        let lanes = self.lanes.count().max(1);
        let block = if for_lane && barrier::is_asymmetric() {
            self.capacity / (8 * lanes)
        } else {
            0
        };
        let mut claimed = self.credits.claimed.load(Ordering::Relaxed);
        loop {
            let room = self.available_given(claimed);
            let count = room.min(needed.max(block.min(room / (2 * lanes))));
            if count == 0 {
                return 0;
            }
            if count > needed && !self.credits.claims_ahead.load(Ordering::Relaxed) {
                self.credits.claims_ahead.store(true, Ordering::Relaxed);
            }
            // Release: a reclaiming sender that sees this claim also sees `claims_ahead`.
            match self.credits.claimed.compare_exchange_weak(
                claimed,
                claimed + count,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count,
                Err(now) => claimed = now,
            }
        }
    }

    /// Returns unused credits and wakes waiting senders. Do not call it under the lock, because it
    /// runs wakers.
    pub(super) fn release(&self, credits: usize) {
        if credits > 0 {
            let claimed = &self.credits.claimed;
            claimed.fetch_sub(credits, Ordering::Relaxed);
            self.core.send_waiters.signal(credits);
        }
    }

    /// Rule 6: for a sender that found no capacity, reclaims the unused credits of other senders.
    /// The remaining credits of `own` are about to be used.
    fn reclaim(&self, registry: &Registry<T>, own: Option<&LaneTx<T>>) -> Reclaimed {
        let claimed = &self.credits.claimed;
        let own_credits = own.map_or(0, LaneTx::granted);
        for _ in 0..RECHECKS {
            let popped = self.popped.load(Ordering::Acquire);
            let before = claimed.load(Ordering::Relaxed);
            if before.saturating_sub(popped) < self.capacity {
                return Reclaimed::Changed;
            }
            let pushed = registry.pushed() + self.shared_lane.pushed() + own_credits;
            // A read-modify-write sees the newest claim, so each value in `pushed` belongs to a
            // claim in `before`.
            let now = claimed.fetch_add(0, Ordering::AcqRel);
            if now == before && pushed >= before {
                self.credits.full_at.store(popped, Ordering::Relaxed);
                return Reclaimed::Nothing;
            }
            spin_loop();
        }
        if !barrier::is_asymmetric() {
            // No sender claims in advance, so the credits belong to sends in progress. The
            // exception is claims from before the process changed to fences: they are reclaimed
            // once. The barrier then takes 10 ms, because the system refuses it.
            if !self.credits.claims_ahead.swap(false, Ordering::Relaxed) {
                return Reclaimed::Nothing;
            }
        }
        registry.revoke_all();
        barrier::heavy();
        match registry.reclaim_unused(own) {
            0 => Reclaimed::Nothing,
            count => {
                // A batch that was announced and then withdrawn may have looked like values.
                self.credits.full_at.store(usize::MAX, Ordering::Relaxed);
                Reclaimed::Credits(count)
            }
        }
    }

    /// Like [`claim`](Self::claim) without a block, but includes unused credits of other senders.
    /// The result may exceed `needed`.
    pub(super) fn claim_or_reclaim(
        &self,
        needed: usize,
        registry: &Registry<T>,
        own: Option<&LaneTx<T>>,
    ) -> usize {
        loop {
            let count = self.claim(needed, false);
            if count > 0 {
                return count;
            }
            match self.reclaim(registry, own) {
                Reclaimed::Credits(count) => return count,
                Reclaimed::Nothing => return 0,
                Reclaimed::Changed => {}
            }
        }
    }

    /// Whether a send would find capacity after rule 6 is applied. Reclaimed credits become
    /// available to every sender.
    pub(super) fn has_reclaimable_capacity(&self) -> bool {
        if self.available() > 0 {
            return true;
        }
        if self.is_known_full() {
            return false;
        }
        let reclaimed = self.reclaim(&self.lanes.lock(), None);
        match reclaimed {
            Reclaimed::Credits(count) => {
                self.release(count);
                true
            }
            Reclaimed::Nothing => false,
            Reclaimed::Changed => true,
        }
    }
}
