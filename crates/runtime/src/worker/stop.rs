//! The end of a worker: each of its actors ends, or is abandoned (`shutdown`).

use thalweg_queue::clock;

use super::Worker;
use crate::scheduler::cancel;
use crate::shutdown::{Leaked, Unfinished};
use crate::task::Phase;

/// At shutdown, the number of rounds in which the worker resumes its remaining actors before it
/// begins to sleep between two rounds.
const ROUNDS_BEFORE_SLEEP: u32 = 64;
/// The length of that sleep. An actor that is left after these rounds waits for something outside
/// of the runtime.
const ROUND_INTERVAL_NS: u64 = 1_000_000;

impl Worker {
    /// Ends the tasks that are left when the worker stops. The wait of each started actor returns
    /// `Stopping`, so that the actor can end by itself. Actors that do not end before the shutdown
    /// deadline are abandoned.
    pub(super) fn end_actors(&self) {
        self.cancel_unstarted();
        let mut rounds = 0;
        while self.resume_each() {
            let (now, deadline) = (clock::now(), self.scheduler.shutdown.deadline());
            if now >= deadline {
                self.abandon_each();
                break;
            }
            self.drain_remote_queue();
            rounds += 1;
            if rounds < ROUNDS_BEFORE_SLEEP {
                std::thread::yield_now();
            } else {
                let next = deadline.min(now + ROUND_INTERVAL_NS);
                self.remote_queue.parker.park(Some(next));
            }
        }
        self.drain_remote_queue();
        self.cancel_unstarted();
    }

    /// Resumes each started actor once. Returns whether any of them did not end.
    fn resume_each(&self) -> bool {
        // A task that is spawned now is cancelled, so no fiber is added. A fiber that is removed is
        // replaced by the last one, hence the reverse order.
        for index in (0..self.fibers(|fibers| fibers.slots())).rev() {
            let fiber = self.fibers(|fibers| fibers.get(index));
            if let Some(task) = self.fibers(|fibers| fibers.task(index))
                && !self.cancel_if_unstarted(fiber, task)
            {
                task.header().has_context.set(true);
                self.run(task);
                // The loop reaches the tasks that this one woke, or they have already ended.
                self.cancel_unstarted();
            }
        }
        self.fibers(|fibers| fibers.has_any_task())
    }

    /// `shutdown`'s rule 2.
    #[cold]
    fn abandon_each(&self) {
        for index in (0..self.fibers(|fibers| fibers.slots())).rev() {
            let Some(task) = self.fibers(|fibers| fibers.task(index)) else {
                continue;
            };
            self.fibers(|fibers| fibers.forget(index));
            let header = task.header();
            self.scheduler.shutdown.abandon(Unfinished {
                actor: Some(header.reported_id.get()),
                name: header.name.as_ref().map(|name| name.text().to_owned()),
                parent: header.parent.get(),
                worker: self.index,
                leaked: Leaked::Stack,
            });
            // SAFETY: the task belongs to this worker, which resumes only tasks in its fibers, and
            // this task has just been removed from them.
            unsafe { task.abandon() };
        }
    }

    /// Cancels all unstarted tasks. Each started task is in a fiber.
    fn cancel_unstarted(&self) {
        while let Some(task) = self
            .lifo_slot
            .take()
            .or_else(|| self.ready.pop())
            .or_else(|| self.take_unstarted())
        {
            if task.header().phase.get() == Phase::Unstarted {
                cancel(task);
            }
        }
    }
}
