//! Starting a task on an additional stack (rule 6 of `scheduler`), and when no stack is free (rule 7).

use std::ptr::NonNull;
use std::time::Duration;

use thalweg_queue::clock;

use super::Worker;
use crate::fiber::Fiber;
use crate::reason::JoinError;
use crate::scheduler::cancel;
use crate::stack::StackError;
use crate::task::{OnShortage, Phase, Task};

/// The interval at which an idle worker checks again for a stack while a task waits for one. Memory
/// that is freed elsewhere in the process is not announced. The interval costs a failing system
/// call a hundred times a second, and is short enough for a waiting caller.
const RETRY: Duration = Duration::from_millis(10);

impl Worker {
    /// Obtains a fiber for a task that is about to begin. If there is none, the task goes to
    /// another worker, waits, or ends.
    #[cold]
    pub(super) fn obtain_fiber(&self, task: Task) -> Option<NonNull<Fiber>> {
        let task = self.scheduler.place(self.index, self.status.tick(), task)?;
        // Waiting tasks are older.
        self.serve_waiting();
        match self.obtain(task.header().is_turn) {
            Ok(fiber) => {
                self.count_fibers();
                Some(fiber)
            }
            Err(error) => {
                if task.header().on_shortage.get() == OnShortage::End {
                    // SAFETY: it came from a queue and has not been started.
                    unsafe { task.cancel(JoinError::NoStack(error)) };
                } else {
                    self.scheduler.wait_for_stack(task);
                    self.watch_fibers();
                }
                None
            }
        }
    }

    fn obtain(&self, is_turn: bool) -> Result<NonNull<Fiber>, StackError> {
        let max = self.scheduler.max_stacks_per_worker();
        let obtained = self.fibers(|fibers| match is_turn {
            true => fibers.obtain_for_turn(max),
            false => fibers.obtain(max),
        });
        if let Err(error) = &obtained {
            let is_system = !matches!(error, StackError::TooMany { .. });
            self.short_of_memory.set(is_system);
        }
        obtained
    }

    /// Takes back a fiber that cannot simply be kept.
    #[cold]
    pub(super) fn put_back(&self, fiber: NonNull<Fiber>) {
        let max = self.scheduler.max_stacks_per_worker();
        let watched = self.scheduler.has_waiting_for_stack();
        self.fibers(|fibers| fibers.put_back(fiber, max, watched));
        // A waiting task gets this fiber or the next one.
        self.retry_at.set(None);
        self.serve_waiting();
        self.count_fibers();
    }

    /// Gives stacks to waiting tasks, while there are both. The tasks run after those in the
    /// worker's own queue.
    #[inline(always)]
    pub(super) fn serve_waiting(&self) {
        // Most runtimes never have a shortage.
        if self.scheduler.shortages() > 0 {
            self.serve_waiting_tasks();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_waiting_tasks(&self) {
        self.seen_shortages.set(self.scheduler.shortages());
        if !self.scheduler.has_waiting_for_stack() {
            return;
        }
        for is_turn in [true, false] {
            while self.scheduler.waits_for_stack(is_turn)
                && let Ok(fiber) = self.obtain(is_turn)
            {
                match self.scheduler.take_waiting_for_stack(is_turn) {
                    Some(task) => self.enqueue_on_fiber(fiber, task),
                    None => {
                        // Another worker has taken the task.
                        let max = self.scheduler.max_stacks_per_worker();
                        self.fibers(|fibers| fibers.put_back(fiber, max, true));
                    }
                }
            }
        }
        self.watch_fibers();
        self.count_fibers();
    }

    fn watch_fibers(&self) {
        let max = self.scheduler.max_stacks_per_worker();
        let watched = self.scheduler.has_waiting_for_stack();
        self.fibers(|fibers| fibers.watch(max, watched));
    }

    /// Queues the task, which begins on this fiber.
    fn enqueue_on_fiber(&self, fiber: NonNull<Fiber>, task: Task) {
        self.bind(fiber, task);
        task.header().phase.set(Phase::Ready);
        self.ready.push(task);
    }

    /// Ends a task that has a fiber but has not begun. Returns `false` if it has begun.
    pub(super) fn cancel_if_unstarted(&self, fiber: NonNull<Fiber>, task: Task) -> bool {
        let unbegun = task.header().slices.get() == 0;
        if unbegun {
            // SAFETY: the fiber belongs to this worker, and all of its fibers live as long as it
            // does.
            unsafe { fiber.as_ref() }.task.set(None);
            cancel(task);
        }
        unbegun
    }

    /// Whether this worker has not yet checked the newest shortage. A worker calls it before it
    /// sleeps.
    #[inline(always)]
    pub(super) fn has_new_shortage(&self) -> bool {
        self.scheduler.shortages() != self.seen_shortages.get()
    }

    /// The time at which an idle worker checks again for a stack. `None` if no task waits.
    #[inline(always)]
    pub(super) fn next_retry(&self) -> Option<u64> {
        if self.scheduler.shortages() == 0 {
            return None;
        }
        self.next_retry_of_waiting_tasks()
    }

    #[cold]
    #[inline(never)]
    fn next_retry_of_waiting_tasks(&self) -> Option<u64> {
        let turns = self.scheduler.waits_for_stack(true);
        let actors = self.short_of_memory.get() && self.scheduler.waits_for_stack(false);
        if !turns && !actors {
            self.retry_at.set(None);
            return None;
        }
        match self.retry_at.get() {
            Some(at) if at > clock::now() => Some(at),
            due => {
                if due.is_some() {
                    self.refuse_waiting();
                }
                let next = clock::deadline(RETRY);
                self.retry_at.set(Some(next));
                Some(next)
            }
        }
    }

    /// Refuses the tasks that can be refused. No stack was returned for a whole interval, and no
    /// running actor could return one.
    #[cold]
    fn refuse_waiting(&self) {
        let mut workers = self.scheduler.workers.iter();
        if workers.all(|shared| shared.status.actor().is_none()) {
            self.refusing.set(true);
            self.scheduler.take_refusable().into_iter().for_each(cancel);
            self.refusing.set(false);
        }
    }
}
