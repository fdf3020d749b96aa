//! The worker's part in IO: it polls the descriptors that its actors wait for.

use std::sync::Arc;
use std::task::Waker;

use thalweg_queue::{clock, no_preempt};

use super::Worker;
use crate::poller::{PollTimeout, Poller};

impl Worker {
    /// Returns the poller of this worker. Creates it at the first call.
    ///
    /// # Errors
    /// The system has no descriptor or no memory for a poller.
    pub(crate) fn poller(&self) -> std::io::Result<&Arc<Poller>> {
        if self.poller.get().is_none() {
            let poller = Arc::new(Poller::new()?);
            self.remote_queue
                .set_unparker(Some(Waker::from(Arc::clone(&poller.waker))));
            // This cannot fail: the cell is empty.
            let _ = self.poller.set(poller);
        }
        self.poller
            .get()
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    pub(super) fn used_poller(&self) -> Option<&Poller> {
        self.poller.get().map(|p| &**p).filter(|p| p.has_sources())
    }

    /// Wakes the tasks whose descriptors are ready. Returns whether there were any.
    #[inline(always)]
    pub(super) fn poll(&self) -> bool {
        self.used_poller()
            .is_some_and(|poller| self.wait_in(poller, PollTimeout::Immediate))
    }

    pub(super) fn wait_in(&self, poller: &Poller, until: PollTimeout) -> bool {
        // An allocation in here must not be a preemption point: the next task could call this
        // function again.
        let _no_preempt = no_preempt::NoPreemptGuard::enter();
        poller.poll(&mut self.event_buffer.borrow_mut(), until)
    }

    /// Polls once per time slice on behalf of a task that runs for long.
    pub(super) fn poll_if_due(&self) {
        if self.used_poller().is_some() {
            let now = clock::now();
            let slice = self.scheduler.config.timeslice.as_nanos() as u64;
            if now.saturating_sub(self.last_poll.get()) >= slice {
                self.last_poll.set(now);
                self.poll();
            }
        }
    }

    pub(super) fn end_io(&self) {
        if let Some(poller) = self.poller.get() {
            self.remote_queue.set_unparker(None);
            poller.close();
        }
    }
}
