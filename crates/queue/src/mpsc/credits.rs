//! Credits: how many values the senders may put in. Rules 3 and 6 of the module.

use super::Shared;
use super::lanes::{LaneTx, Registry};
use crate::barrier;
use crate::sync::{AtomicBool, AtomicUsize, Ordering, spin_loop};

/// How often a sender looks again before it takes credits back: a push between its claim and its value is over by then. About
/// 64 `pause` instructions, 1 to 3 us, are less than the heavy barrier and the lock cost the others.
const RECHECKS: usize = if cfg!(loom) { 1 } else { 64 };

/// The credits that are out, as seen from all handles.
pub(super) struct Credits {
    /// Credits ever claimed, less those given back unused.
    claimed: AtomicUsize,
    /// What `popped` was when all claimed credits were found to be used and there were as many as the capacity: until the receiver
    /// takes a value out, nobody needs to look again.
    full_at: AtomicUsize,
    /// A lane may hold credits in advance. It is set before such a claim, and stays set while the
    /// process is asymmetric.
    claims_ahead: AtomicBool,
}

/// What a sender that found no room learns from a look at all handles.
pub(super) enum Reclaimed {
    /// So many credits were taken back. They are the caller's.
    Credits(usize),
    /// There are none: each is used, or is about to be.
    Nothing,
    /// Room shows after all.
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
    /// Credits that nobody holds.
    pub(super) fn available(&self) -> usize {
        let claimed = self.credits.claimed.load(Ordering::Relaxed);
        self.available_given(claimed)
    }

    fn available_given(&self, claimed: usize) -> usize {
        let popped = self.popped.load(Ordering::Acquire);
        // The receiver may be ahead of `claimed`: then there is as much room as can be.
        self.capacity - claimed.saturating_sub(popped).min(self.capacity)
    }

    /// Whether it is known that each credit is used by a value inside.
    pub(super) fn is_known_full(&self) -> bool {
        let popped = self.popped.load(Ordering::Acquire);
        self.credits.full_at.load(Ordering::Relaxed) == popped
    }

    /// Rule 3: takes up to `needed` credits, and for a lane up to a block of them; how many.
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
            // Release: a reclaiming sender that sees the claim sees `claims_ahead`.
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

    /// Gives back credits that are not used, and wakes the senders that wait for them. Not under the lock: it runs wakers.
    pub(super) fn give_back(&self, credits: usize) {
        if credits > 0 {
            let claimed = &self.credits.claimed;
            claimed.fetch_sub(credits, Ordering::Relaxed);
            self.core.send_waiters.signal(credits);
        }
    }

    /// Rule 6: for a sender that found no room, looks for credits that other senders hold and do not use, and takes them back.
    /// What `mine` has left is about to be used.
    fn reclaim(&self, registry: &Registry<T>, mine: Option<&LaneTx<T>>) -> Reclaimed {
        let claimed = &self.credits.claimed;
        let my_credits = mine.map_or(0, LaneTx::granted);
        for _ in 0..RECHECKS {
            let popped = self.popped.load(Ordering::Acquire);
            let before = claimed.load(Ordering::Relaxed);
            if before.saturating_sub(popped) < self.capacity {
                return Reclaimed::Changed;
            }
            let put = registry.pushed() + self.shared_lane.pushed() + my_credits;
            // A read-modify-write sees the newest claim: each value in `put` belongs to a claim in `before`.
            let now = claimed.fetch_add(0, Ordering::AcqRel);
            if now == before && put >= before {
                self.credits.full_at.store(popped, Ordering::Relaxed);
                return Reclaimed::Nothing;
            }
            spin_loop();
        }
        if !barrier::is_asymmetric() {
            // No sender claims in advance, so the credits are those of sends under way. The exception are
            // claims from before the process changed to fences: they are taken back once. The barrier
            // then takes 10 ms, because the system refuses it.
            if !self.credits.claims_ahead.swap(false, Ordering::Relaxed) {
                return Reclaimed::Nothing;
            }
        }
        registry.revoke_all();
        barrier::heavy();
        match registry.reclaim_unused(mine) {
            0 => Reclaimed::Nothing,
            count => {
                // A batch that was announced and given up again may have looked like a value.
                self.credits.full_at.store(usize::MAX, Ordering::Relaxed);
                Reclaimed::Credits(count)
            }
        }
    }

    /// As [`claim`](Self::claim) without a block; what other senders hold and do not use included, which may be more than `needed`.
    pub(super) fn claim_or_reclaim(
        &self,
        needed: usize,
        registry: &Registry<T>,
        mine: Option<&LaneTx<T>>,
    ) -> usize {
        loop {
            let count = self.claim(needed, false);
            if count > 0 {
                return count;
            }
            match self.reclaim(registry, mine) {
                Reclaimed::Credits(count) => return count,
                Reclaimed::Nothing => return 0,
                Reclaimed::Changed => {}
            }
        }
    }

    /// Whether a send would find room: rule 6 applied, and what was taken back is there for whoever claims it.
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
                self.give_back(count);
                true
            }
            Reclaimed::Nothing => false,
            Reclaimed::Changed => true,
        }
    }
}
