//! What a worker says of itself, for the watcher to look at.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::id::ActorId;
use crate::metrics::Counts;

/// The worker sleeps.
pub(super) const NOBODY: u64 = 0;
/// The worker is awake, and runs nobody.
pub(super) const ITSELF: u64 = u64::MAX;
/// The worker looks for work: however long that takes it keeps nobody.
pub(super) const IDLE: u64 = u64::MAX - 1;

/// On lines of its own: its worker writes it in every turn.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pulse {
    /// Grows with each turn.
    turn: AtomicU32,
    /// Grows where the turn would have ended, had anybody else been there.
    pub(super) offer: AtomicU32,
    /// The number of the actor that runs; or `NOBODY`, `ITSELF`, `IDLE`. Behind the turn by what lies between two actors.
    pub(super) actor: AtomicU64,
    /// The worker's thread, as the kernel counts; 0: none that may be asked.
    #[cfg_attr(
        not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64"),
            not(any(miri, loom, thalweg_threads))
        )),
        expect(dead_code, reason = "nobody is asked here")
    )]
    pub(super) thread: AtomicI32,
    /// That thread's own stack: its lowest address, and the one behind its highest.
    #[cfg_attr(
        not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64"),
            not(any(miri, loom, thalweg_threads))
        )),
        expect(dead_code, reason = "nobody is asked here")
    )]
    pub(super) stack: [AtomicUsize; 2],
    /// Where on its own stack the actor is that runs on the worker's just now ([`native`](crate::native)); 0: nowhere.
    pub(super) left: AtomicUsize,
    /// What it counts as it goes.
    pub(crate) counts: Counts,
}

impl Pulse {
    /// The next turn. Its number.
    #[inline(always)]
    pub(crate) fn begin(&self) -> u32 {
        // One thread writes it.
        let turn = self.turn().wrapping_add(1);
        self.turn.store(turn, Ordering::Relaxed);
        turn
    }

    #[inline(always)]
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Relaxed)
    }

    /// The actor would let others run.
    #[inline(always)]
    pub(crate) fn offer(&self) {
        let offers = self.offer.load(Ordering::Relaxed);
        self.offer.store(offers.wrapping_add(1), Ordering::Relaxed);
    }

    /// Who has the turn, as other threads see it.
    pub(crate) fn actor(&self) -> Option<ActorId> {
        match self.actor.load(Ordering::Relaxed) {
            NOBODY | ITSELF | IDLE => None,
            actor => Some(ActorId::of_number(actor)),
        }
    }

    /// This actor has the turn.
    #[inline(always)]
    pub(crate) fn run(&self, actor: u64) {
        self.actor.store(actor, Ordering::Relaxed);
    }

    /// There is no work.
    pub(crate) fn idle(&self) {
        self.actor.store(IDLE, Ordering::Relaxed);
    }

    pub(crate) fn sleep(&self) {
        self.actor.store(NOBODY, Ordering::Relaxed);
    }

    /// In a turn of its own, so that no look takes it for that from before the sleep.
    pub(crate) fn set_awake(&self) {
        self.begin();
        self.actor.store(ITSELF, Ordering::Relaxed);
    }

    /// The actor that runs here goes over to the worker's stack, from here on its own; 0: it is back.
    pub(crate) fn leave_at(&self, here: usize) {
        self.left.store(here, Ordering::Relaxed);
    }
}
