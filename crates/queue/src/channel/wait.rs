//! How a blocking call waits: look again for a while, then sleep by the waiters' protocol.

use super::Waiting;
use crate::clock;
use crate::park::{Parker, Wake};
use crate::spin::{SharedSpin, processors};
use crate::waiters::{Waiters, Who};

/// One side of a channel, as one who waits there sees it.
pub(crate) struct Side<'a> {
    pub(crate) waiters: &'a Waiters,
    pub(crate) spin: &'a SharedSpin,
    pub(crate) waiting: Waiting,
    /// What went through the channel so far.
    pub(crate) moved: u64,
    pub(crate) capacity: usize,
}

impl Side<'_> {
    /// Until `ready` or woken, which is `true`, or until the deadline, which is `false`.
    pub(crate) fn wait(&self, deadline: Option<u64>, ready: impl Fn() -> bool) -> bool {
        match self.waiting {
            Waiting::Adaptive => {
                if !self.waiters.is_waking_for_long()
                    && self.spin.until(self.moved, self.capacity as u64, &ready)
                {
                    return true;
                }
            }
            Waiting::Park => {}
            Waiting::Spin => return spin(deadline, ready),
        }
        let parker = Parker::current();
        let ticket = self.waiters.arm(Who::Thread, &parker.waker(), self.moved);
        if ready() {
            self.waiters.disarm(Who::Thread, ticket);
            return true;
        }
        let since = clock::now();
        // A signal's handler has run when a sleep is interrupted, and Rust's callers have nothing to do for it.
        let woken = self.spin.sleep(|| {
            loop {
                match parker.park(deadline) {
                    Wake::Woken => return true,
                    Wake::TimedOut => return false,
                    Wake::Interrupted => {}
                }
            }
        });
        self.waiters.parked(clock::now().saturating_sub(since));
        // If it was taken off the list the caller looks again in any case, and finds what it was woken for, or that another
        // took it.
        self.waiters.disarm(Who::Thread, ticket);
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
