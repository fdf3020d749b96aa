//! WaiterKind a blocking call puts to sleep: the thread, or what the thread is running just now.
//!
//! A runtime whose actors share threads says here how one of them waits ([`set_park_hooks`]). Then every blocking call of this crate that one
//! makes lets its thread go on with others.

use std::cell::Cell;
use std::task::Waker;

use crate::park::{ParkResult, Parker};
use crate::wait_list::WaiterKind;

/// How what a thread is running waits.
#[derive(Clone, Copy, Debug)]
pub struct ParkHooks {
    /// What wakes the one that runs now; `None`: just the thread runs.
    pub waker: fn() -> Option<Waker>,
    /// Puts the one that runs now aside until it is woken, perhaps before, or in vain; or until the deadline
    /// ([`clock`](crate::clock)). Without a deadline, [`ParkResult::TimedOut`] says that it must give up.
    pub park: fn(Option<u64>) -> ParkResult,
    /// Asked before a call returns an error for [`ParkResult::TimedOut`], when nothing of it is left in any list: here the one that runs now may be
    /// unwound.
    pub timed_out: fn(),
}

thread_local! {
    static HOOKS: Cell<Option<&'static ParkHooks>> = const { Cell::new(None) };
}

/// From now on blocking calls on this thread ask `host` how to wait; `None`: the thread sleeps. What was there before.
pub fn set_park_hooks(hooks: Option<&'static ParkHooks>) -> Option<&'static ParkHooks> {
    HOOKS.replace(hooks)
}

fn current_hooks() -> Option<&'static ParkHooks> {
    HOOKS.try_with(Cell::get).ok().flatten()
}

/// A call whose wait came to nothing is about to say so.
#[cold]
pub(crate) fn timed_out() {
    if let Some(hooks) = current_hooks() {
        (hooks.timed_out)();
    }
}

#[derive(Debug)]
pub(crate) enum CallerParker {
    Thread(Parker),
    #[cfg_attr(loom, expect(dead_code, reason = "a model's threads have no host"))]
    Actor(&'static ParkHooks, Waker),
}

impl CallerParker {
    /// The caller.
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
            // Others run before it does.
            Self::Actor(..) => WaiterKind::Task,
        }
    }

    pub(crate) fn is_actor(&self) -> bool {
        matches!(self, Self::Actor(..))
    }

    /// `false`: the deadline passed, or it must give up.
    pub(crate) fn park(&self, deadline: Option<u64>) -> bool {
        loop {
            let woke = match self {
                Self::Thread(parker) => parker.park(deadline),
                Self::Actor(hooks, _) => (hooks.park)(deadline),
            };
            match woke {
                ParkResult::Woken => return true,
                ParkResult::TimedOut => return false,
                // A signal's handler has run, and Rust's callers have nothing to do for it.
                ParkResult::Interrupted => {}
            }
        }
    }
}
