//! The guards of sections in which an actor is not preempted, or must not wait.

use std::marker::PhantomData;
use std::task::Waker;

use thalweg_queue::{NoPreemptGuard, ParkHooks, ParkResult, set_park_hooks};

use crate::sections::{self, NamedSection, NoWaitGuard};
use crate::worker;

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
    /// `None` on a thread.
    _no_wait: Option<NoWaitGuard>,
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
        Self {
            _no_wait: worker::running().map(|_| NoWaitGuard::new()),
            _no_preempt: NoPreemptGuard::enter(),
            of_one_thread: PhantomData,
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
    section: NamedSection,
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
        let kind = match worker::current() {
            Some(_) => Kind::Worker(NoPreemptGuard::enter()),
            None => Kind::Thread(set_park_hooks(Some(&NO_WAIT_HOOKS))),
        };
        Self {
            section: NamedSection::begin(what),
            kind,
            of_one_thread: PhantomData,
        }
    }

    /// Whether a wait was refused in this section.
    pub fn has_refused(&self) -> bool {
        self.section.has_refused()
    }

    /// The innermost section that the caller is in, by its name.
    pub fn current() -> Option<&'static str> {
        sections::section()
    }
}

impl Drop for NoWait {
    #[inline]
    fn drop(&mut self) {
        if let Kind::Thread(hooks) = self.kind {
            set_park_hooks(hooks);
        }
    }
}

/// Refuses the waits of [`thalweg_queue`] on a thread that is in a [`NoWait`] section. While a panic
/// unwinds the thread, a wait ends at once.
static NO_WAIT_HOOKS: ParkHooks = ParkHooks {
    waker: || {
        sections::may_park();
        Some(Waker::noop().clone())
    },
    park: |_| ParkResult::TimedOut,
    timed_out: || {},
};
