//! Sections in which an actor is not preempted, or must not wait.

use std::cell::Cell;
use std::marker::PhantomData;
use std::task::Waker;

use thalweg_queue::{NoPreemptGuard, ParkHooks, ParkResult, no_preempt, set_park_hooks};

/// The depth on a worker's own frames.
pub(crate) const WORKER_DEPTH: u32 = 1;
/// A bit of the depth: no points in allocations. Far above any nesting.
const NO_ALLOCATION_POINTS: u32 = 1 << 31;

/// A bit of [`Waits::guards`]: the actor runs on its worker's stack. Far above any nesting.
const NATIVE: u32 = 1 << 31;

/// Whether the running actor, or the thread, may wait. One variable, because each access to a
/// thread-local variable of a shared library is a function call.
struct Waits {
    /// The number of [`NoPark`] and [`NoWait`] guards, and [`NATIVE`]. It is 0 while another actor
    /// runs.
    guards: Cell<u32>,
    /// The innermost [`NoWait`] section.
    section: Cell<Option<&'static str>>,
    /// A wait was refused in a [`NoWait`] section of this thread.
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

impl Waits {
    fn add_guard(&self) {
        self.guards.set(self.guards.get() + 1);
    }

    fn remove_guard(&self) {
        self.guards.set(self.guards.get() - 1);
    }
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
pub(super) fn is_allowed_in_allocation() -> Option<bool> {
    let depth = no_preempt::depth();
    (depth & NO_ALLOCATION_POINTS == 0).then_some(depth == 0)
}

/// Called before an actor suspends itself. Returns `false` if it must not be suspended and cannot
/// panic, because it is unwinding.
///
/// # Panics
/// In a [`NoPark`] section, and in [`native`](crate::native).
#[inline]
pub(crate) fn may_park() -> bool {
    guards() == 0 || refuse()
}

/// Like [`may_park`], for an actor that yields. In [`native`](crate::native) it returns `false` and
/// does not panic.
#[inline]
pub(crate) fn may_yield() -> bool {
    guards() == 0 || (!is_native() && refuse())
}

#[cold]
fn refuse() -> bool {
    if !std::thread::panicking() {
        if let Some(what) = NoWait::current() {
            WAITS.with(|waits| waits.was_refused.set(true));
            panic!("would park: {what} must not wait");
        }
        assert!(!is_native(), "would park: an actor must not wait in native");
        panic!("an actor must not wait, or yield, in a NoPark section");
    }
    false
}

/// Whether a thread that is not a worker may wait: it is in no [`NoWait`] section.
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

/// A section in which the actor is not preempted: while this exists, [`check!`](crate::check),
/// sends, receives and allocations do not yield. Waiting still lets other actors run; to prevent
/// this as well, use [`NoPark`]. Sections nest. On a thread that is not a worker, a section has no
/// effect.
///
/// Use it while data that another actor of the same worker can reach is inconsistent, and while you
/// hold a lock that another actor would wait for: a `std` lock across a [`check!`](crate::check)
/// or, with [`preempting_allocator!`](crate::preempting_allocator), across an allocation.
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
    _no_preempt: NoPreemptGuard,
}

impl NoPreempt {
    /// Begins a section.
    #[inline]
    #[expect(
        clippy::new_without_default,
        reason = "a guard must be created explicitly"
    )]
    pub fn new() -> Self {
        Self {
            _no_preempt: NoPreemptGuard::enter(),
        }
    }
}

/// A section in which the actor must not wait: while this exists, parking, yielding, receiving from
/// an empty channel, and joining an actor that has not ended panic. If the actor is already
/// unwinding, they return without waiting. It is also a [`NoPreempt`] section. Sections nest. On a
/// thread that is not a worker, a section has no effect.
///
/// Use it for regions that a thread must leave in the order in which it entered them, such as a
/// scoped thread-local. If another actor ran in between, it could leave them in another order.
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
    /// Whether an actor created the guard.
    counts: bool,
    _no_preempt: NoPreemptGuard,
    of_one_thread: PhantomData<*const ()>,
}

impl NoPark {
    /// Begins a section.
    #[expect(
        clippy::new_without_default,
        reason = "a guard must be created explicitly"
    )]
    pub fn new() -> Self {
        let counts = crate::wait::is_actor();
        if counts {
            WAITS.with(Waits::add_guard);
        }
        Self {
            counts,
            _no_preempt: NoPreemptGuard::enter(),
            of_one_thread: PhantomData,
        }
    }
}

impl Drop for NoPark {
    fn drop(&mut self) {
        if self.counts {
            WAITS.with(Waits::remove_guard);
        }
    }
}

/// A section in which the caller must not wait, be it an actor or a thread: while this exists, a
/// wait of this crate or of [`thalweg_queue`] panics with a message that begins with `would park`
/// and names the section. It is also a [`NoPreempt`] section. Sections nest.
///
/// Use it where code of others runs on a thread that must not be blocked.
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::{preempt::NoWait, sleep, wait};
///
/// let waited = std::thread::spawn(|| {
///     let section = NoWait::new("the callback");
///     assert!(!wait::can_park());
///     let slept = std::panic::catch_unwind(|| sleep(Duration::from_millis(1)));
///     (slept.is_err(), section.has_refused())
/// });
/// assert_eq!(waited.join().unwrap(), (true, true));
/// ```
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct NoWait {
    outer: Option<&'static str>,
    had_refused: bool,
    kind: Kind,
    of_one_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
enum Kind {
    /// A section of a worker. The guard is dropped with it.
    Worker(NoPreemptGuard),
    /// A section of another thread, which is never preempted: the hooks to restore.
    Thread(Option<&'static ParkHooks>),
}

impl NoWait {
    /// Begins a section. `what` names it in the panic's message: "`what` must not wait".
    #[inline]
    pub fn new(what: &'static str) -> Self {
        let kind = match crate::worker::current() {
            Some(_) => Kind::Worker(NoPreemptGuard::enter()),
            None => Kind::Thread(set_park_hooks(Some(&NO_WAIT_HOOKS))),
        };
        WAITS.with(|waits| {
            waits.add_guard();
            Self {
                outer: waits.section.replace(Some(what)),
                had_refused: waits.was_refused.replace(false),
                kind,
                of_one_thread: PhantomData,
            }
        })
    }

    /// Whether a wait was refused in this section.
    pub fn has_refused(&self) -> bool {
        WAITS.with(|waits| waits.was_refused.get())
    }

    /// The innermost section that the caller is in, by its name.
    pub fn current() -> Option<&'static str> {
        WAITS.with(|waits| waits.section.get())
    }
}

impl Drop for NoWait {
    #[inline]
    fn drop(&mut self) {
        if let Kind::Thread(hooks) = self.kind {
            set_park_hooks(hooks);
        }
        WAITS.with(|waits| {
            waits.remove_guard();
            waits.section.set(self.outer);
            waits.was_refused.set(self.had_refused);
        });
    }
}

/// Refuses the waits of [`thalweg_queue`] on a thread that is in a [`NoWait`] section. While a panic
/// unwinds the thread, a wait ends at once.
static NO_WAIT_HOOKS: ParkHooks = ParkHooks {
    waker: || {
        may_park();
        Some(Waker::noop().clone())
    },
    park: |_| ParkResult::TimedOut,
    timed_out: || {},
};

/// The module's rule 4.
pub(crate) struct NoAllocationPoints(());

impl NoAllocationPoints {
    pub(crate) fn begin() -> Self {
        no_preempt::set_depth(no_preempt::depth() | NO_ALLOCATION_POINTS);
        Self(())
    }
}

impl Drop for NoAllocationPoints {
    fn drop(&mut self) {
        no_preempt::set_depth(no_preempt::depth() & !NO_ALLOCATION_POINTS);
    }
}
