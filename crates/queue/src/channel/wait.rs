//! How a blocking call waits: it spins for a while, then parks according to the protocol of the
//! wait list.

use super::WaitStrategy;
use crate::clock;
use crate::park_hooks::CallerParker;
use crate::spin::{Looked, SharedSpin, processors};
use crate::wait_list::{WaitList, WaiterKind};

/// One side of a channel, as its waiters see it.
pub(crate) struct Side<'a> {
    pub(crate) waiters: &'a WaitList,
    pub(crate) spin: &'a SharedSpin,
    pub(crate) wait_strategy: WaitStrategy,
    /// The number of values that have passed through the channel.
    pub(crate) transferred: u64,
    pub(crate) capacity: usize,
    /// Whether the other side wakes all waiters at once.
    pub(crate) wakes_all: bool,
}

impl Side<'_> {
    /// Waits until `ready` holds or the caller is woken (returns `true`), or until the deadline
    /// (returns `false`). `shows_ready` is a cheap form of `ready` for spinning. The last check
    /// before parking uses `ready`.
    pub(crate) fn wait(
        &self,
        deadline: Option<u64>,
        shows_ready: impl Fn() -> bool,
        ready: impl Fn() -> bool,
    ) -> bool {
        let caller = CallerParker::current();
        match self.wait_strategy {
            // An actor does not spin: its thread runs other actors meanwhile, perhaps the one it
            // waits for. The thread spins when it has no actor to run.
            _ if caller.is_actor() => {}
            WaitStrategy::Adaptive => {
                if !self.waiters.has_slow_wakeup()
                    && self
                        .spin
                        .until(self.transferred, self.capacity as u64, shows_ready)
                {
                    return true;
                }
            }
            WaitStrategy::Park => {}
            WaitStrategy::Spin => return spin(deadline, ready),
        }
        let kind = if self.wakes_all {
            // Rule 7 of the wait list is for waiters that wake each other.
            WaiterKind::Task
        } else {
            caller.waiter_kind()
        };
        let ticket = self.waiters.arm(kind, caller.waker(), self.transferred);
        if ready() {
            self.waiters.disarm(kind, ticket);
            return true;
        }
        let woken = if caller.is_actor() {
            self.waiters.record_park(0);
            caller.park(deadline)
        } else {
            let since = clock::now();
            let woken = self.spin.sleep(|| caller.park(deadline));
            self.waiters.record_park(clock::now().saturating_sub(since));
            woken
        };
        // If the entry had already been removed, the caller checks the channel again. It finds the
        // value, or another receiver has taken it.
        self.waiters.disarm(kind, ticket);
        woken
    }

    /// For a task that is about to arm: looks at `shows_ready` for a few microseconds. To arm and to
    /// be woken costs both sides more.
    pub(crate) fn look(&self, shows_ready: impl Fn() -> bool) -> Looked {
        if self.wait_strategy == WaitStrategy::Park {
            return Looked::Missed;
        }
        let capacity = self.capacity as u64;
        self.spin.look(self.transferred, capacity, shows_ready)
    }
}

pub(super) fn spin(deadline: Option<u64>, ready: impl Fn() -> bool) -> bool {
    loop {
        for _ in 0..64 {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if processors() < 2 {
            std::thread::yield_now();
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            return false;
        }
    }
}
