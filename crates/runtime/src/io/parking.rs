//! Waiting for a source: an actor parks, a thread blocks.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use thalweg_queue::clock;

use super::Stopping;
use crate::poller::{Direction, ReadinessWait, Source, timespec};
use crate::sections;
use crate::wait;
use crate::wake_reason::WakeReason;
use crate::worker::{self, Worker};

impl Source {
    /// Called by an actor: waits until an event makes this direction ready.
    ///
    /// # Errors
    /// `TimedOut`; [`Stopping`]; the error of the registration.
    pub(crate) fn wait(
        self: &Arc<Self>,
        worker: &Worker,
        fd: BorrowedFd<'_>,
        direction: Direction,
        deadline: Option<u64>,
    ) -> io::Result<()> {
        wait::begin_fallible_wait();
        let mut wait = ReadinessWait::new(self, direction);
        loop {
            if wait.register(worker.poller()?, fd, &wait::waker())? {
                return Ok(());
            }
            let woke = wait::park(deadline);
            if woke == WakeReason::Woken || woke == WakeReason::Interrupted {
                if self.readiness(direction).snapshot().is_ready() {
                    return Ok(());
                }
                continue;
            }
            drop(wait);
            return match woke {
                WakeReason::Stopping => {
                    worker::raise_if_due();
                    Err(io::Error::other(Stopping))
                }
                _ if self.readiness(direction).snapshot().is_ready() => Ok(()),
                _ => Err(io::ErrorKind::TimedOut.into()),
            };
        }
    }
}

/// Blocks a thread that is no worker until `fd` is ready.
///
/// # Errors
/// `TimedOut`, also if the thread must not wait and cannot panic. The system's error.
pub(crate) fn wait_on_thread(
    fd: BorrowedFd<'_>,
    direction: Direction,
    deadline: Option<u64>,
) -> io::Result<()> {
    let flags = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    if !sections::may_park() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    loop {
        let left = deadline.map(|at| timespec(at.saturating_sub(clock::now())));
        match poll(&mut [PollFd::new(&fd, flags)], left.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
