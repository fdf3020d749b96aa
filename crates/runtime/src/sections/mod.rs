//! Sections in which the running code must not be suspended: the state behind the guards of
//! [`preempt`](crate::preempt), whose rules apply.
//!
//! A worker reads this state before it suspends an actor, so it is below the worker. The guards ask
//! the worker whether the caller is an actor, so they are above it.

mod allocations;

use std::cell::Cell;

use thalweg_queue::{NoPreemptGuard, no_preempt};

#[cfg(any(miri, loom, thalweg_threads))]
pub(crate) use self::allocations::PointsLeft;
pub(crate) use self::allocations::{
    AllocationPoints, NOT_A_WORKER, is_allocation_point, set_allocations_left,
};

/// The depth on a worker's own frames.
pub(crate) const WORKER_DEPTH: u32 = 1;
/// A bit of the depth: no points in allocations. Far above any nesting.
const NO_ALLOCATION_POINTS: u32 = 1 << 31;

/// A bit of [`Waits::guards`]: the actor runs on its worker's stack. Far above any nesting.
const NATIVE: u32 = 1 << 31;

/// Whether the running actor, or the thread, may wait. One variable, because each access to a
/// thread-local variable of a shared library is a function call.
struct Waits {
    /// The number of guards, and [`NATIVE`]. It is 0 while another actor runs.
    guards: Cell<u32>,
    /// The innermost section that has a name.
    section: Cell<Option<&'static str>>,
    /// A wait was refused in a section of this thread that has a name.
    was_refused: Cell<bool>,
}

thread_local! {
    static WAITS: Waits = const {
        Waits {
            guards: Cell::new(0),
            section: Cell::new(None),
            was_refused: Cell::new(false),
        }
    };
}

#[inline]
fn guards() -> u32 {
    WAITS.with(|waits| waits.guards.get())
}

/// Runs a task's closure at depth 0. `f` catches its panics.
#[inline(always)]
pub(crate) fn user_code<R>(f: impl FnOnce() -> R) -> R {
    no_preempt::set_depth(0);
    let result = f();
    // The closure may have forgotten guards.
    WAITS.with(|waits| {
        waits.guards.set(0);
        waits.section.set(None);
    });
    no_preempt::set_depth(WORKER_DEPTH);
    result
}

/// Like [`user_code`], on the worker's own stack: the closure must not wait, and is not preempted.
#[inline(always)]
pub(crate) fn user_code_on_worker_stack<R>(f: impl FnOnce() -> R) -> R {
    no_preempt::set_depth(WORKER_DEPTH | NO_ALLOCATION_POINTS);
    WAITS.with(|waits| waits.guards.set(NATIVE));
    let result = f();
    // The closure may have forgotten guards.
    WAITS.with(|waits| {
        waits.guards.set(0);
        waits.section.set(None);
    });
    no_preempt::set_depth(WORKER_DEPTH);
    result
}

/// Whether a point may yield. Applies to all points except those in allocations.
#[inline]
pub(crate) fn is_allowed() -> bool {
    no_preempt::depth() & !NO_ALLOCATION_POINTS == 0
}

/// Whether a point in an allocation may yield. `None` if there are none in this task.
pub(crate) fn is_allowed_in_allocation() -> Option<bool> {
    let depth = no_preempt::depth();
    (depth & NO_ALLOCATION_POINTS == 0).then_some(depth == 0)
}

/// Called before an actor suspends itself. Returns `false` if it must not be suspended and cannot
/// panic, because it is unwinding.
///
/// # Panics
/// In a [`NoPark`](crate::preempt::NoPark) section, and in [`native`](crate::native).
#[inline]
pub(crate) fn may_park() -> bool {
    guards() == 0 || refuse()
}

/// Whether no guard keeps the actor, or the thread, from being suspended.
#[inline(always)]
pub(crate) fn is_unguarded() -> bool {
    guards() == 0
}

/// Like [`may_park`], for an actor that yields. In [`native`](crate::native) it returns `false` and
/// does not panic.
#[inline]
pub(crate) fn may_yield() -> bool {
    guards() == 0 || refuse_yield()
}

#[cold]
fn refuse_yield() -> bool {
    !is_native() && refuse()
}

#[cold]
fn refuse() -> bool {
    if !std::thread::panicking() {
        if let Some(what) = section() {
            WAITS.with(|waits| waits.was_refused.set(true));
            panic!("would park: {what} must not wait");
        }
        assert!(!is_native(), "would park: an actor must not wait in native");
        panic!("an actor must not wait, or yield, in a NoPark section");
    }
    false
}

/// Whether a thread that is not a worker may wait: it is in no
/// [`NoWait`](crate::preempt::NoWait) section.
#[inline]
pub(crate) fn thread_may_wait() -> bool {
    guards() == 0
}

/// Like [`may_park`], but never panics.
pub(crate) fn can_park() -> bool {
    guards() == 0 && !std::thread::panicking()
}

/// Whether the running actor is on its worker's stack.
pub(crate) fn is_native() -> bool {
    guards() & NATIVE != 0
}

/// While this exists, the actor that created it runs on its worker's own stack. The runtime neither
/// suspends nor preempts nor unwinds it.
pub(crate) struct Native {
    _no_preempt: NoPreemptGuard,
}

impl Native {
    /// Begins a section. Returns `None` if the actor is in one already.
    pub(crate) fn begin() -> Option<Self> {
        if is_native() {
            return None;
        }
        WAITS.with(|waits| waits.guards.set(waits.guards.get() | NATIVE));
        Some(Self {
            _no_preempt: NoPreemptGuard::enter(),
        })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        WAITS.with(|waits| waits.guards.set(waits.guards.get() & !NATIVE));
    }
}

/// While this exists, an actor must not wait, nor may a thread.
#[derive(Debug)]
pub(crate) struct NoWaitGuard(());

impl NoWaitGuard {
    pub(crate) fn new() -> Self {
        WAITS.with(|waits| waits.guards.set(waits.guards.get() + 1));
        Self(())
    }
}

impl Drop for NoWaitGuard {
    fn drop(&mut self) {
        WAITS.with(|waits| waits.guards.set(waits.guards.get() - 1));
    }
}

/// A section with a name, in which neither an actor nor a thread must wait.
#[derive(Debug)]
pub(crate) struct NamedSection {
    outer: Option<&'static str>,
    had_refused: bool,
}

impl NamedSection {
    #[inline]
    pub(crate) fn begin(name: &'static str) -> Self {
        WAITS.with(|waits| {
            waits.guards.set(waits.guards.get() + 1);
            Self {
                outer: waits.section.replace(Some(name)),
                had_refused: waits.was_refused.replace(false),
            }
        })
    }

    /// Whether a wait was refused in this section.
    pub(crate) fn has_refused(&self) -> bool {
        WAITS.with(|waits| waits.was_refused.get())
    }
}

impl Drop for NamedSection {
    #[inline]
    fn drop(&mut self) {
        WAITS.with(|waits| {
            waits.guards.set(waits.guards.get() - 1);
            waits.section.set(self.outer);
            waits.was_refused.set(self.had_refused);
        });
    }
}

/// The name of the innermost section that has one.
pub(crate) fn section() -> Option<&'static str> {
    WAITS.with(|waits| waits.section.get())
}

/// While this exists, allocations are no preemption points (rule 4 of `preempt`).
pub(crate) struct NoAllocationPoints(());

impl NoAllocationPoints {
    #[inline]
    pub(crate) fn begin() -> Self {
        no_preempt::set_depth(no_preempt::depth() | NO_ALLOCATION_POINTS);
        Self(())
    }
}

impl Drop for NoAllocationPoints {
    #[inline]
    fn drop(&mut self) {
        no_preempt::set_depth(no_preempt::depth() & !NO_ALLOCATION_POINTS);
    }
}
