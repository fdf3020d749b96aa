//! The idle worker: it looks for work at other workers, then sleeps.

use std::cell::Cell;
use std::time::Duration;

use thalweg_queue::{AdaptiveSpin, clock};

use super::Worker;
use crate::poller::PollTimeout;
use crate::scheduler::WorkerShared;
use crate::task::Task;

/// How long a worker is idle before it returns memory. Memory that is used again within that time is
/// not returned: a trim and the faults after it cost several microseconds for each stack, and with
/// several threads each trim interrupts their processors.
const TRIM_DELAY: Duration = Duration::from_millis(100);

/// How long an idle worker leaves a task to the worker with which it was placed (`scheduler`'s rule 6). A
/// worker that is not busy starts it within some tens of microseconds.
const LEAVE_PLACED: Duration = Duration::from_millis(1);

/// The number of searches between two polls for IO events. A poll is a system call.
const POLL_INTERVAL: u32 = 8;

impl Worker {
    /// `scheduler`'s rule 3.
    pub(super) fn idle(&self, spin: &mut AdaptiveSpin) {
        self.status.set_searching();
        self.quick_ticks.set(0);
        self.fire_timers();
        self.serve_waiting();
        if self.lifo_slot.get().is_some() || !self.ready.is_empty() {
            return;
        }
        if self.remote_queue.is_empty() && self.poll() {
            return;
        }
        let deadline = earlier(self.wheel.next_deadline(), self.next_retry());
        let no_thread = self.scheduler.timers.deadline_for_workers();
        let deadline = earlier(deadline, (no_thread != u64::MAX).then_some(no_thread));
        let is_due = || deadline.is_some_and(|at| at <= clock::now());
        let looks = Cell::new(0_u32);
        let polls = || {
            looks.set(looks.get() + 1);
            looks.get().is_multiple_of(POLL_INTERVAL) && self.poll()
        };
        self.scheduler.begin_search();
        let found = spin.until(|| self.find_work() || is_due() || polls());
        if found {
            if self.scheduler.end_search() {
                self.take_next();
                self.wake_another();
            }
            return;
        }
        let (trims, deadline) = self.plan_trim(deadline);
        let is_due = || deadline.is_some_and(|at| at <= clock::now());
        let poller = self.used_poller();
        self.status.set_asleep();
        self.scheduler.prepare_park(self.index, poller.is_some());
        // Not checked while spinning, where every check counts: a task that waits for a stack can
        // wait that long.
        let finds = || {
            self.find_work()
                || self.has_new_shortage()
                || self.scheduler.timers.deadline_for_workers() < no_thread
        };
        while trims && !finds() && !is_due() && self.trim() {}
        if !finds() {
            let deadline = earlier(deadline, self.left_until.get());
            self.status.counts.sleeps.add(1);
            spin.sleep(|| match poller {
                Some(poller) => {
                    self.wait_in(poller, PollTimeout::Deadline(deadline));
                }
                None => {
                    self.remote_queue.parker.park(deadline);
                }
            });
        }
        self.status.set_awake();
        self.scheduler.watcher.wake();
        self.scheduler.finish_park(self.index);
        self.take_next();
        // A worker that leaves the only task to another one would wake others for it, without end.
        if !self.leaves_a_task() || !self.has_nothing() || is_due() {
            self.wake_another();
        }
    }

    fn needs_trim(&self) -> bool {
        self.fibers(|fibers| fibers.stacks.needs_trim()) || self.task_blocks.needs_trim()
    }

    /// Returns some memory. Returns whether there is more.
    fn trim(&self) -> bool {
        self.fibers(|fibers| fibers.stacks.trim()) || self.task_blocks.trim()
    }

    /// Decides whether the worker returns memory of unused stacks and ended tasks before it sleeps: if no
    /// task has run here for [`TRIM_DELAY`]. Until then, it sleeps no longer than that.
    #[inline(always)]
    fn plan_trim(&self, deadline: Option<u64>) -> (bool, Option<u64>) {
        match self.needs_trim() {
            true => self.plan_needed_trim(deadline),
            false => (false, deadline),
        }
    }

    #[cold]
    #[inline(never)]
    fn plan_needed_trim(&self, deadline: Option<u64>) -> (bool, Option<u64>) {
        let (now, slices) = (clock::now(), self.status.counts.slices.get());
        let (seen, due) = self.trim_at.get();
        if seen == slices && due <= now {
            return (true, deadline);
        }
        let due = if seen == slices {
            due
        } else {
            now + TRIM_DELAY.as_nanos() as u64
        };
        self.trim_at.set((slices, due));
        (false, earlier(deadline, Some(due)))
    }

    /// `scheduler`'s rule 4: this worker takes one task, so that another worker is not woken for it.
    #[inline(always)]
    fn take_next(&self) {
        if self.lifo_slot.get().is_none() && self.remote_queue.is_empty() {
            self.lifo_slot.set(self.take_unstarted());
        }
    }

    /// `scheduler`'s rule 4: this worker wakes another one if there are more tasks.
    #[inline(always)]
    fn wake_another(&self) {
        if self.scheduler.has_unstarted() {
            self.scheduler.announce();
        }
    }

    /// Looks for work everywhere. A task that it takes is in the LIFO slot afterwards, and the rest of
    /// the stolen tasks in the ring.
    #[inline(always)]
    fn find_work(&self) -> bool {
        !self.remote_queue.is_empty()
            || self.lifo_slot.get().is_some()
            || self.take_sent()
            || self.scheduler.is_stopping()
            || (!self.is_alone() && self.try_steal())
    }

    /// Takes a task that another thread put into the injector, or placed here.
    #[inline]
    fn take_sent(&self) -> bool {
        let sent = self.take_unstarted_of_others();
        if sent.is_some() {
            self.lifo_slot.set(sent);
        }
        sent.is_some()
    }

    // Not inlined, so that the search of a worker that is alone stays short.
    #[inline(never)]
    fn try_steal(&self) -> bool {
        let workers = &self.scheduler.workers;
        let mine = &self.shared().ring;
        // Begins with another victim each time, so that thieves do not all go to the same worker.
        let first = self.status.tick() as usize;
        let mut leaves = false;
        for nth in 0..workers.len() {
            let victim = (first + nth) % workers.len();
            if victim == self.index {
                continue;
            }
            // `actor_info::moved`'s rule 2.
            let watched = self.scheduler.moved.is_watched();
            let max = if watched { 1 } else { u32::MAX };
            let stolen = workers[victim].steal_into(mine, max);
            if let Some(task) = stolen.or_else(|| self.take_placed(&workers[victim], &mut leaves)) {
                self.status.counts.steals.add(1);
                if watched {
                    self.scheduler.note_moved(task);
                }
                self.lifo_slot.set(Some(task));
                return true;
            }
        }
        if !leaves {
            self.left_until.set(None);
        }
        false
    }

    /// Takes a task that was placed with `other`, unless `other` has fewer stacks and has had little time
    /// to start it: then sets `leaves`.
    fn take_placed(&self, other: &WorkerShared, leaves: &mut bool) -> Option<Task> {
        if other.placed.is_empty() {
            return None;
        }
        let max = self.scheduler.max_stacks_per_worker();
        if other.is_better_than(self.shared(), max) && !self.has_left_long() {
            *leaves = true;
            return None;
        }
        self.left_until.set(None);
        other.placed.pop()
    }

    #[cold]
    fn has_left_long(&self) -> bool {
        let now = clock::now();
        let until = self
            .left_until
            .get()
            .unwrap_or(now + LEAVE_PLACED.as_nanos() as u64);
        self.left_until.set(Some(until));
        until <= now
    }

    /// Whether a task that was placed with another worker still belongs to that worker.
    fn leaves_a_task(&self) -> bool {
        self.left_until
            .get()
            .is_some_and(|until| clock::now() < until)
    }

    /// Whether the worker has no task that it could run next.
    fn has_nothing(&self) -> bool {
        self.lifo_slot.get().is_none() && self.ready.is_empty() && self.remote_queue.is_empty()
    }
}

/// The earlier of two deadlines.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
