//! The state word of a task: whether it has ended, whether its output is still wanted, and who
//! frees it.
//!
//! | bits | meaning |
//! | --- | --- |
//! | `COMPLETE` | the output is available: written before this bit is set, read after |
//! | `JOINER` | the joiner field is initialised: it contains what to wake at the end |
//! | `JOIN_INTEREST` | the handle may still ask for the output |
//! | `RELEASED` | the worker that ran the task has woken the joiner, and from then on accesses nothing but its own reference |
//! | `HAS_CONTROL` | the task has a `Control`, which must be notified of the end |
//! | `WATCHED` | the task has a watcher, which must be notified of the end; set before any other thread knows the task |
//! | the rest | reference count: the runtime has one until the end, the handle one, each waker one |
//!
//! 1. While `JOINER` is clear, the joiner field belongs to the handle. While `JOINER` is set, it
//!    belongs to the thread that sets `COMPLETE`. The handle takes it back by clearing `JOINER`,
//!    unless `COMPLETE` was set first.
//! 2. If `JOIN_INTEREST` was set when `COMPLETE` was set, the output belongs to the handle;
//!    otherwise to the thread that set `COMPLETE`. Before `COMPLETE` is set, only the worker whose
//!    own actor is the joiner may read the joiner field, because that actor does not run meanwhile.
//! 3. An actor that joins is woken through its bare address, without a reference. The actor exists
//!    until it sees `COMPLETE`, and then waits for `RELEASED`. It therefore exists for as long as
//!    the other side may use the address.
//! 4. The owner of the last reference frees the task when it drops it. It detects without an atomic
//!    read-modify-write that it is the only owner.

use std::thread::sleep;
use std::time::Duration;

use crate::shim::{AtomicUsize, Ordering, spin_loop, yield_now};

const COMPLETE: usize = 1;
const JOINER: usize = 2;
const JOIN_INTEREST: usize = 4;
const RELEASED: usize = 8;
const HAS_CONTROL: usize = 16;
const WATCHED: usize = 32;
const REFERENCE: usize = 64;

/// How often a joiner looks for `RELEASED` before it yields its processor after each look.
const SPINS: u32 = 200;

/// After how many looks it sleeps after each one: a thread with a real-time priority yields to no thread
/// with a lower one.
const SPINS_AND_YIELDS: u32 = 300;

#[derive(Debug)]
pub(crate) struct TaskState(AtomicUsize);

/// The work that remains when a task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Rule 2: no handle will take the output.
    pub(crate) drop_output: bool,
    /// Rule 1: there is a joiner, which belongs to the caller now.
    pub(crate) wake_joiner: bool,
    /// The task's control must be notified.
    pub(crate) notify_control: bool,
}

/// The observers of a task that is about to end. A control may be added at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observers {
    pub(crate) control: bool,
    pub(crate) watcher: bool,
}

impl TaskState {
    /// The state of a task that has a join handle.
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new((2 * REFERENCE) | JOIN_INTEREST))
    }

    /// The state of a task that has no join handle.
    pub(crate) fn detached() -> Self {
        Self(AtomicUsize::new(REFERENCE))
    }

    /// Whether the runtime has the only reference to a task that no thread can join or reach. No
    /// thread then sees its end.
    #[inline(always)]
    pub(crate) fn is_only_running(&self) -> bool {
        self.0.load(Ordering::Acquire) == REFERENCE
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.0.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Rule 3: a joining actor waits for this before it continues.
    pub(crate) fn is_released(&self) -> bool {
        self.0.load(Ordering::Acquire) & RELEASED != 0
    }

    /// Waits until [`is_released`](Self::is_released) is true, after the task has ended. Its worker needs a
    /// few instructions for that, but its thread may have lost its processor, perhaps to this thread.
    pub(crate) fn wait_for_release(&self) {
        look_until(|| self.is_released());
    }

    /// Whether a joiner is the only observer. Called by the worker, which may then read the joiner field if
    /// the joiner is one of its own actors.
    pub(crate) fn has_only_joiner(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & (JOINER | HAS_CONTROL | WATCHED) == JOINER
    }

    /// The observers of the end, besides a joiner. Called by the worker.
    pub(crate) fn observers(&self) -> Observers {
        let word = self.0.load(Ordering::Acquire);
        Observers {
            control: word & HAS_CONTROL != 0,
            watcher: word & WATCHED != 0,
        }
    }

    /// Called by the creator of the task, before any other thread knows it.
    pub(crate) fn set_watched(&self) {
        self.set_unshared(WATCHED);
    }

    /// [`set_joiner`](Self::set_joiner), called by the creator of the task, before any other thread knows it.
    pub(crate) fn set_first_joiner(&self) {
        self.set_unshared(JOINER);
    }

    fn set_unshared(&self, bit: usize) {
        let word = self.0.load(Ordering::Relaxed);
        self.0.store(word | bit, Ordering::Relaxed);
    }

    /// Completes and releases the task in one step. Called by the worker if the joiner is one of
    /// its own actors, which does not run meanwhile. Returns whether the control must be notified.
    pub(crate) fn complete_for_local_joiner(&self) -> bool {
        let before = self.0.fetch_add(
            (COMPLETE | RELEASED).wrapping_sub(REFERENCE),
            Ordering::AcqRel,
        );
        before & HAS_CONTROL != 0
    }

    /// Called after the control was created. Returns `false` if the task had ended before; then the
    /// end does not notify the control.
    pub(crate) fn set_has_control(&self) -> bool {
        self.0.fetch_or(HAS_CONTROL, Ordering::AcqRel) & COMPLETE == 0
    }

    /// Whether there is a control already.
    pub(crate) fn has_control(&self) -> bool {
        self.0.load(Ordering::Acquire) & HAS_CONTROL != 0
    }

    /// The first step of the end. Called by the worker.
    pub(crate) fn complete(&self) -> Completed {
        // `COMPLETE` is clear: see `set_joiner`.
        let before = self.0.fetch_add(COMPLETE, Ordering::AcqRel);
        Completed {
            drop_output: before & JOIN_INTEREST == 0,
            wake_joiner: before & JOINER != 0,
            notify_control: before & HAS_CONTROL != 0,
        }
    }

    /// The second step of the end, after the joiner was woken. Called by the worker. Returns `true`
    /// if the caller must free the task.
    pub(crate) fn release(&self) -> bool {
        if self.is_unique() {
            return true;
        }
        let before = self
            .0
            .fetch_add(RELEASED.wrapping_sub(REFERENCE), Ordering::AcqRel);
        before / REFERENCE == 1
    }

    /// Called by the handle after it has initialised the joiner field. Returns `false` if the task
    /// has ended; the field then belongs to the handle again.
    pub(crate) fn set_joiner(&self) -> bool {
        // `JOINER` is clear, so an addition sets it; the result of `fetch_or` would need a loop.
        self.0.fetch_add(JOINER, Ordering::AcqRel) & COMPLETE == 0
    }

    /// Called by the handle to take the joiner field back. Returns `false` if the task has ended;
    /// the field then does not belong to the handle.
    pub(crate) fn clear_joiner(&self) -> bool {
        self.0.fetch_and(!JOINER, Ordering::AcqRel) & COMPLETE == 0
    }

    /// Called by a handle that does not want the output. Returns `true` if the output is available;
    /// the caller then drops it.
    pub(crate) fn drop_join_interest(&self) -> bool {
        self.is_complete() || self.0.fetch_and(!JOIN_INTEREST, Ordering::AcqRel) & COMPLETE != 0
    }

    pub(crate) fn add_reference(&self) {
        self.0.fetch_add(REFERENCE, Ordering::Relaxed);
    }

    /// Returns `true` if the caller must free the task.
    pub(crate) fn drop_reference(&self) -> bool {
        if self.is_unique() {
            return true;
        }
        // Not a Release decrement with an Acquire fence for the last owner: ThreadSanitizer does
        // not support fences.
        self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1
    }

    fn is_unique(&self) -> bool {
        self.0.load(Ordering::Acquire) / REFERENCE == 1
    }
}

/// Waits for a condition that another thread makes true within a few instructions, unless it loses its
/// processor before that.
pub(super) fn look_until(is_true: impl Fn() -> bool) {
    let mut looks = 0;
    while !is_true() {
        match looks {
            // A model continues another thread only then.
            _ if cfg!(loom) => yield_now(),
            0..SPINS => spin_loop(),
            SPINS..SPINS_AND_YIELDS => yield_now(),
            _ => sleep(Duration::from_micros(20)),
        }
        looks = looks.saturating_add(1);
    }
}
