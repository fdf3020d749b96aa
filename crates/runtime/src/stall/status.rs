//! The status that a worker publishes for the watcher.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::counters::CounterSet;
use crate::id::ActorId;

/// The worker sleeps.
pub(super) const ASLEEP: u64 = 0;
/// The worker is awake and runs no actor.
pub(super) const WORKER: u64 = u64::MAX;
/// The worker searches for work. However long that takes, no task waits for it.
pub(super) const SEARCHING: u64 = u64::MAX - 1;

/// Aligned to its own cache lines, because the worker writes it at every tick.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct WorkerStatus {
    /// The number of ticks in which no actor ran. The others are counted as slices.
    empty_ticks: AtomicU32,
    /// Incremented when the running actor would have yielded if another task had waited.
    pub(super) offer: AtomicU32,
    /// The number of the running actor, or `ASLEEP`, `WORKER` or `SEARCHING`. It is written shortly
    /// after the tick is counted.
    pub(super) actor: AtomicU64,
    /// The kernel's number of the worker's thread. 0 if the thread must not be signalled.
    #[cfg_attr(
        not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64"),
            not(any(miri, loom, thalweg_threads))
        )),
        expect(dead_code, reason = "there is no watcher here")
    )]
    pub(super) thread: AtomicI32,
    /// The thread's own stack: its lowest address, and one past its highest.
    #[cfg_attr(
        not(all(
            target_os = "linux",
            any(target_arch = "x86_64", target_arch = "aarch64"),
            not(any(miri, loom, thalweg_threads))
        )),
        expect(dead_code, reason = "there is no watcher here")
    )]
    pub(super) stack: [AtomicUsize; 2],
    /// If the running actor is on the worker's stack ([`native`](crate::native)), its stack pointer
    /// on its own stack. 0 otherwise.
    pub(super) actor_stack_pointer: AtomicUsize,
    /// The counters of the worker.
    pub(crate) counts: CounterSet,
}

impl WorkerStatus {
    /// Begins a tick in which no actor runs.
    pub(crate) fn begin_empty_tick(&self) {
        // Only one thread writes it.
        let ticks = self.empty_ticks.load(Ordering::Relaxed).wrapping_add(1);
        self.empty_ticks.store(ticks, Ordering::Relaxed);
    }

    /// Returns the number of the current tick.
    #[inline(always)]
    pub(crate) fn tick(&self) -> u32 {
        let slices = self.counts.slices.get() as u32;
        slices.wrapping_add(self.empty_ticks.load(Ordering::Relaxed))
    }

    /// Records that the running actor would yield to others.
    #[inline(always)]
    pub(crate) fn offer_to_yield(&self) {
        let offers = self.offer.load(Ordering::Relaxed);
        self.offer.store(offers.wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the running actor, as other threads see it.
    pub(crate) fn actor(&self) -> Option<ActorId> {
        match self.actor.load(Ordering::Relaxed) {
            ASLEEP | WORKER | SEARCHING => None,
            actor => Some(ActorId::from_number(actor)),
        }
    }

    /// Records which actor runs.
    #[inline(always)]
    pub(crate) fn set_actor(&self, actor: u64) {
        self.actor.store(actor, Ordering::Relaxed);
    }

    /// Records that the worker searches for work.
    pub(crate) fn set_searching(&self) {
        self.actor.store(SEARCHING, Ordering::Relaxed);
    }

    pub(crate) fn set_asleep(&self) {
        self.actor.store(ASLEEP, Ordering::Relaxed);
    }

    /// Records that the worker is awake. This begins a tick, so that the watcher does not mistake
    /// it for the tick before the sleep.
    pub(crate) fn set_awake(&self) {
        self.begin_empty_tick();
        self.actor.store(WORKER, Ordering::Relaxed);
    }

    /// Records the stack pointer of an actor that moves to the worker's stack. 0 when it returns.
    pub(crate) fn set_actor_stack_pointer(&self, here: usize) {
        self.actor_stack_pointer.store(here, Ordering::Relaxed);
    }
}
