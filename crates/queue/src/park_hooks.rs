//! How a blocking call parks its caller: the thread, or the actor that runs on the thread.
//!
//! A runtime whose actors share threads installs [`ParkHooks`] by [`set_park_hooks`]. Every
//! blocking call of this crate then parks only the actor, and the thread runs other actors
//! meanwhile.

use std::cell::Cell;
use std::task::Waker;

use crate::park::{ParkResult, Parker};
use crate::wait_list::WaiterKind;

/// The functions by which a runtime parks its actors.
#[derive(Clone, Copy, Debug)]
pub struct ParkHooks {
    /// The waker of the current actor. `None`: no actor runs, so the thread itself parks.
    pub waker: fn() -> Option<Waker>,
    /// Parks the current actor until it is woken or the deadline ([`clock`](crate::clock)) passes.
    /// It may return at once for an earlier wake-up, and may wake spuriously. Without a deadline,
    /// [`ParkResult::TimedOut`] means that the actor must give up.
    pub park: fn(Option<u64>) -> ParkResult,
    /// Called before a blocking call returns an error because of [`ParkResult::TimedOut`]. The call
    /// has no entry in any wait list at this point, so the actor may be unwound here.
    pub timed_out: fn(),
}

thread_local! {
    static HOOKS: Cell<Option<&'static ParkHooks>> = const { Cell::new(None) };
}

/// Installs `hooks` for blocking calls on this thread, and returns the previous ones. With `None`,
/// the thread itself parks.
#[inline]
pub fn set_park_hooks(hooks: Option<&'static ParkHooks>) -> Option<&'static ParkHooks> {
    HOOKS.replace(hooks)
}

fn current_hooks() -> Option<&'static ParkHooks> {
    HOOKS.try_with(Cell::get).ok().flatten()
}

/// Called when a wait has failed and the call is about to return its error.
#[cold]
pub(crate) fn timed_out() {
    if let Some(hooks) = current_hooks() {
        (hooks.timed_out)();
    }
}

#[derive(Debug)]
pub(crate) enum CallerParker {
    Thread(Parker),
    #[cfg_attr(loom, expect(dead_code, reason = "a model's threads run no actors"))]
    Actor(&'static ParkHooks, Waker),
}

impl CallerParker {
    /// The parker of the caller.
    #[cfg(not(loom))]
    pub(crate) fn current() -> Self {
        if let Some(hooks) = current_hooks()
            && let Some(waker) = (hooks.waker)()
        {
            return Self::Actor(hooks, waker);
        }
        Self::Thread(Parker::current())
    }

    #[cfg(loom)]
    pub(crate) fn current() -> Self {
        Self::Thread(Parker::current())
    }

    pub(crate) fn waker(&self) -> Waker {
        match self {
            Self::Thread(parker) => parker.waker(),
            Self::Actor(_, waker) => waker.clone(),
        }
    }

    pub(crate) fn waiter_kind(&self) -> WaiterKind {
        match self {
            Self::Thread(_) => WaiterKind::Thread,
            // Other actors may run before it does.
            Self::Actor(..) => WaiterKind::Task,
        }
    }

    pub(crate) fn is_actor(&self) -> bool {
        matches!(self, Self::Actor(..))
    }

    /// Returns `false` if the deadline passed or the caller must give up.
    pub(crate) fn park(&self, deadline: Option<u64>) -> bool {
        loop {
            let woke = match self {
                Self::Thread(parker) => parker.park(deadline),
                Self::Actor(hooks, _) => (hooks.park)(deadline),
            };
            match woke {
                ParkResult::Woken => return true,
                ParkResult::TimedOut => return false,
                // The signal handler has run, and Rust callers have no pending work for it.
                ParkResult::Interrupted => {}
            }
        }
    }
}
