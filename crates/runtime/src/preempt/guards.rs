//! Sections in which an actor is not preempted, or must not wait.

use std::cell::Cell;
use std::marker::PhantomData;

use thalweg_queue::{Quiet, quiet};

/// The depth on a worker's own frames.
pub(crate) const OF_WORKER: u32 = 1;
/// In the depth: no points in allocations. Far above any nesting.
const NO_ALLOCATION_POINTS: u32 = 1 << 31;

/// In [`NO_PARK`]: the actor runs on its worker's stack. Far above any nesting.
const NATIVE: u32 = 1 << 31;

thread_local! {
    /// [`NoPark`]s of the actor that runs, and [`NATIVE`]. None of them is there while another runs.
    static NO_PARK: Cell<u32> = const { Cell::new(0) };
}

/// Runs what a job was given, at depth 0. `f` catches what it throws.
#[inline(always)]
pub(crate) fn user_code<R>(f: impl FnOnce() -> R) -> R {
    quiet::set_depth(0);
    let result = f();
    // Guards may have been forgotten.
    NO_PARK.set(0);
    quiet::set_depth(OF_WORKER);
    result
}

/// Whether a point may yield, which is not one in an allocation.
#[inline]
pub(crate) fn is_allowed() -> bool {
    quiet::depth() & !NO_ALLOCATION_POINTS == 0
}

/// Whether a point in an allocation may yield: `None`: not in this job.
pub(super) fn is_allowed_in_allocation() -> Option<bool> {
    let depth = quiet::depth();
    (depth & NO_ALLOCATION_POINTS == 0).then_some(depth == 0)
}

/// Called before an actor is put aside by its own will. `false`: it must not be, and cannot be told by a panic as it is unwinding.
///
/// # Panics
/// In a [`NoPark`] section, and in [`native`](crate::native).
#[inline]
pub(crate) fn may_park() -> bool {
    NO_PARK.get() == 0 || refuse()
}

/// The same for an actor that yields: in [`native`](crate::native) it goes on without.
#[inline]
pub(crate) fn may_yield() -> bool {
    NO_PARK.get() == 0 || (!is_native() && refuse())
}

#[cold]
fn refuse() -> bool {
    if !std::thread::panicking() {
        assert!(!is_native(), "would park: an actor must not wait in native");
        panic!("an actor must not wait, or yield, in a NoPark section");
    }
    false
}

/// The same without a panic.
pub(crate) fn can_park() -> bool {
    NO_PARK.get() == 0 && !std::thread::panicking()
}

/// Whether the actor that runs does so on its worker's stack.
pub(crate) fn is_native() -> bool {
    NO_PARK.get() & NATIVE != 0
}

/// While it is there the actor that began it runs on its worker's own stack: it is neither put aside nor preempted nor unwound by the runtime.
pub(crate) struct Native {
    _quiet: Quiet,
}

impl Native {
    /// `None`: it is there already.
    pub(crate) fn begin() -> Option<Self> {
        if is_native() {
            return None;
        }
        NO_PARK.set(NO_PARK.get() | NATIVE);
        Some(Self {
            _quiet: Quiet::begin(),
        })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        NO_PARK.set(NO_PARK.get() & !NATIVE);
    }
}

/// While it is there the actor that made it is not preempted: [`check!`](crate::check), sends, receives and allocations do not yield. Waiting
/// still lets others run, so a section that must not be interrupted at all is a [`NoPark`] one. They nest. On a thread it does nothing.
///
/// For what another actor of the same worker must not see half done, or would wait for: a `std` lock that is held over a [`check!`](crate::check)
/// or, with [`preempting_allocator!`](crate::preempting_allocator), over an allocation.
///
/// ```
/// use std::sync::Mutex;
/// use thalweg_runtime::{check, preempt::NoPreempt, run, spawn};
///
/// static LOG: Mutex<Vec<u32>> = Mutex::new(Vec::new());
///
/// run(|| {
///     let actors: Vec<_> = (0..4)
///         .map(|n| {
///             spawn(move || {
///                 // Before the lock, so that it is dropped after it.
///                 let _whole = NoPreempt::new();
///                 let mut log = LOG.lock().unwrap();
///                 for _ in 0..100 {
///                     log.push(n);
///                     check!();
///                 }
///             })
///         })
///         .collect();
///     actors.into_iter().for_each(|actor| actor.join().unwrap());
/// });
/// assert!(LOG.lock().unwrap().chunks(100).all(|of_one| of_one.iter().all(|n| *n == of_one[0])));
/// ```
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct NoPreempt {
    _quiet: Quiet,
}

impl NoPreempt {
    /// Begins a section.
    #[inline]
    #[expect(
        clippy::new_without_default,
        reason = "a guard that appears by default is one that nobody sees"
    )]
    pub fn new() -> Self {
        Self {
            _quiet: Quiet::begin(),
        }
    }
}

/// While it is there the actor that made it must not wait: to park, to yield, to receive from an empty channel, to join an actor that has not
/// ended panics, or does not wait where the actor is unwinding already. It is a [`NoPreempt`] section too. They nest. On a thread it does nothing.
///
/// For regions that are entered and left in order on a thread, such as a scoped thread-local: another actor that came in between could leave
/// them in another order.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{preempt::NoPark, run, sleep, spawn};
///
/// run(|| {
///     let slept = spawn(|| {
///         let _region = NoPark::new();
///         sleep(Duration::from_millis(1));
///     });
///     assert!(slept.join().is_err());
/// });
/// ```
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct NoPark {
    /// Made by an actor.
    counts: bool,
    _quiet: Quiet,
    of_one_thread: PhantomData<*const ()>,
}

impl NoPark {
    /// Begins a section.
    #[expect(
        clippy::new_without_default,
        reason = "a guard that appears by default is one that nobody sees"
    )]
    pub fn new() -> Self {
        let counts = crate::wait::is_actor();
        if counts {
            NO_PARK.set(NO_PARK.get() + 1);
        }
        Self {
            counts,
            _quiet: Quiet::begin(),
            of_one_thread: PhantomData,
        }
    }
}

impl Drop for NoPark {
    fn drop(&mut self) {
        if self.counts {
            NO_PARK.set(NO_PARK.get() - 1);
        }
    }
}

/// The module's rule 4.
pub(crate) struct NoAllocationPoints(());

impl NoAllocationPoints {
    pub(crate) fn begin() -> Self {
        quiet::set_depth(quiet::depth() | NO_ALLOCATION_POINTS);
        Self(())
    }
}

impl Drop for NoAllocationPoints {
    fn drop(&mut self) {
        quiet::set_depth(quiet::depth() & !NO_ALLOCATION_POINTS);
    }
}
