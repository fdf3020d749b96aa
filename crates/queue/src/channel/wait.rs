//! How a blocking call waits: look again for a while, then sleep by the waiters' protocol.

use super::WaitStrategy;
use crate::clock;
use crate::park_hooks::CallerParker;
use crate::spin::{SharedSpin, processors};
use crate::wait_list::WaitList;

/// One side of a channel, as one who waits there sees it.
pub(crate) struct Side<'a> {
    pub(crate) waiters: &'a WaitList,
    pub(crate) spin: &'a SharedSpin,
    pub(crate) wait_strategy: WaitStrategy,
    /// What went through the channel so far.
    pub(crate) transferred: u64,
    pub(crate) capacity: usize,
}

impl Side<'_> {
    /// Until `ready` or woken, which is `true`, or until the deadline, which is `false`. `shows_ready` is a cheap form of `ready`
    /// for spinning; the last look before sleeping is `ready`.
    pub(crate) fn wait(
        &self,
        deadline: Option<u64>,
        shows_ready: impl Fn() -> bool,
        ready: impl Fn() -> bool,
    ) -> bool {
        let caller = CallerParker::current();
        match self.wait_strategy {
            // Others run meanwhile, perhaps the very one that it waits for; the thread spins when there are none.
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
        let kind = caller.waiter_kind();
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
        // If it was taken off the list the caller looks again in any case, and finds what it was woken for, or that another
        // took it.
        self.waiters.disarm(kind, ticket);
        woken
    }
}

fn spin(deadline: Option<u64>, ready: impl Fn() -> bool) -> bool {
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
