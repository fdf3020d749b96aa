//! Who a blocking call puts to sleep: the thread, or what the thread is running just now.
//!
//! A runtime whose actors share threads says here how one of them waits ([`host`]). Then every blocking call of this crate that one
//! makes lets its thread go on with others.

use std::cell::Cell;
use std::task::Waker;

use crate::park::{Parker, Wake};
use crate::waiters::Who;

/// How what a thread is running waits.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// What wakes the one that runs now; `None`: just the thread runs.
    pub waker: fn() -> Option<Waker>,
    /// Puts the one that runs now aside until it is woken, perhaps before, or in vain; or until the deadline
    /// ([`clock`](crate::clock)). Without a deadline, [`Wake::TimedOut`] says that it must give up.
    pub park: fn(Option<u64>) -> Wake,
    /// Asked before a call returns an error for [`Wake::TimedOut`], when nothing of it is left in any list: here the one that runs now may be
    /// unwound.
    pub gave_up: fn(),
}

thread_local! {
    static HOST: Cell<Option<&'static Host>> = const { Cell::new(None) };
}

/// From now on blocking calls on this thread ask `host` how to wait; `None`: the thread sleeps. What was there before.
pub fn host(host: Option<&'static Host>) -> Option<&'static Host> {
    HOST.replace(host)
}

fn current_host() -> Option<&'static Host> {
    HOST.try_with(Cell::get).ok().flatten()
}

/// A call whose wait came to nothing is about to say so.
#[cold]
pub(crate) fn gave_up() {
    if let Some(host) = current_host() {
        (host.gave_up)();
    }
}

#[derive(Debug)]
pub(crate) enum Sleeper {
    Thread(Parker),
    #[cfg_attr(loom, expect(dead_code, reason = "a model's threads have no host"))]
    Hosted(&'static Host, Waker),
}

impl Sleeper {
    /// The caller.
    #[cfg(not(loom))]
    pub(crate) fn current() -> Self {
        if let Some(host) = current_host()
            && let Some(waker) = (host.waker)()
        {
            return Self::Hosted(host, waker);
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
            Self::Hosted(_, waker) => waker.clone(),
        }
    }

    pub(crate) fn who(&self) -> Who {
        match self {
            Self::Thread(_) => Who::Thread,
            // Others run before it does.
            Self::Hosted(..) => Who::Task,
        }
    }

    pub(crate) fn is_hosted(&self) -> bool {
        matches!(self, Self::Hosted(..))
    }

    /// `false`: the deadline passed, or it must give up.
    pub(crate) fn park(&self, deadline: Option<u64>) -> bool {
        loop {
            let woke = match self {
                Self::Thread(parker) => parker.park(deadline),
                Self::Hosted(host, _) => (host.park)(deadline),
            };
            match woke {
                Wake::Woken => return true,
                Wake::TimedOut => return false,
                // A signal's handler has run, and Rust's callers have nothing to do for it.
                Wake::Interrupted => {}
            }
        }
    }
}
