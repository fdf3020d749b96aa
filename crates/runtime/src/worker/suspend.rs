//! The points at which a running task suspends: it waits, yields, or has used its time slice.

use std::ptr::NonNull;
use std::time::Duration;

use thalweg_queue::{clock, no_preempt};

use super::{CLOCK_INTERVAL, Worker, is_unwinding, raise_if_due, unwind_if_possible};
use crate::control::KillFlag;
use crate::fiber::Suspended;
use crate::sections;
use crate::shutdown::MAX_STOP_NOTICES;
use crate::task::{Phase, Task};
use crate::wake_reason::WakeReason;

impl Worker {
    /// Parks the running task until it is woken, or until `deadline` or the deadline of its scope.
    #[inline(never)]
    pub(crate) fn park(&self, deadline: Option<u64>) -> WakeReason {
        let Some(task) = self.running.get() else {
            unreachable!("only a running task parks");
        };
        self.park_task(task, deadline)
    }

    /// [`park`](Self::park), in the caller's frame. `task` is the running task.
    #[inline(always)]
    pub(crate) fn park_task(&self, task: Task, deadline: Option<u64>) -> WakeReason {
        if task.header().has_context.get() {
            return self.park_in_context(task, deadline);
        }
        match deadline {
            None => self.park_until_woken(task),
            Some(deadline) => self.park_until(task, deadline, false),
        }
    }

    /// As [`park`](Self::park), but if the deadline has passed already, other tasks may run before
    /// the wait ends. It does not read the clock.
    pub(crate) fn park_until_later(&self, deadline: u64) -> WakeReason {
        match self.running.get() {
            Some(task) if deadline != u64::MAX && !task.header().has_context.get() => {
                self.park_until(task, deadline, true)
            }
            _ => self.park(Some(deadline).filter(|ns| *ns != u64::MAX)),
        }
    }

    /// Parks a task that may have a scope.
    #[inline(never)]
    fn park_in_context(&self, task: Task, deadline: Option<u64>) -> WakeReason {
        let scope = task.scope().filter(|_| task.header().masks.get() == 0);
        let earlier = scope.filter(|scope| scope.deadline() < deadline.unwrap_or(u64::MAX));
        match (earlier, deadline) {
            (None, None) => self.park_until_woken(task),
            (None, Some(deadline)) => self.park_until(task, deadline, false),
            (Some(scope), _) => match self.park_until(task, scope.deadline(), false) {
                WakeReason::TimedOut if scope.is_due() => WakeReason::Stopping,
                // The caller's deadline has not passed. The caller checks its condition and waits
                // again.
                WakeReason::TimedOut => WakeReason::Woken,
                woke => woke,
            },
        }
    }

    #[inline(always)]
    fn park_until_woken(&self, task: Task) -> WakeReason {
        if !self.may_park(task) {
            return self.refuse_park();
        }
        if task.header().notified.take() {
            return WakeReason::Woken;
        }
        self.suspend_parked(task);
        self.woken(task)
    }

    /// `is_later`: the deadline is assumed not to have passed.
    #[inline(never)]
    fn park_until(&self, task: Task, deadline: u64, is_later: bool) -> WakeReason {
        if !self.may_park(task) {
            return self.refuse_park();
        }
        if task.header().notified.take() {
            return WakeReason::Woken;
        }
        if !is_later && deadline <= clock::now() {
            // A task that repeatedly waits with a passed deadline must not starve the others.
            if self.slice.is_due() && sections::is_allowed() {
                self.yield_if_slice_over();
            }
            return WakeReason::TimedOut;
        }
        let Some(fiber) = task.header().fiber.get() else {
            unreachable!("a running task has a fiber");
        };
        // SAFETY: the task that runs on a fiber keeps it alive.
        let timer = &unsafe { fiber.as_ref() }.timer;
        timer.data.set(task.into_raw().cast());
        // SAFETY: the fiber is not moved, and the timer is cancelled before the task continues.
        unsafe { self.wheel.insert(NonNull::from(timer), deadline) };
        self.suspend_parked(task);
        // SAFETY: the timer was inserted into this wheel.
        let is_early = unsafe { self.wheel.cancel(NonNull::from(timer)) };
        match is_early {
            true => self.woken(task),
            false => WakeReason::TimedOut,
        }
    }

    #[inline(always)]
    fn may_park(&self, task: Task) -> bool {
        sections::may_park()
            && !self.scheduler.is_stopping()
            && !is_unwinding()
            && !task.is_interrupted()
    }

    /// Why a parked task continues.
    #[inline(always)]
    fn woken(&self, task: Task) -> WakeReason {
        // At a stop, the worker resumes the task as if it had a context.
        if task.may_be_interrupted() && (self.scheduler.is_stopping() || task.is_interrupted()) {
            WakeReason::Stopping
        } else {
            WakeReason::Woken
        }
    }

    /// Refuses to park a task that cannot wait.
    #[cold]
    #[inline(never)]
    fn refuse_park(&self) -> WakeReason {
        self.count_stop_notice();
        WakeReason::Stopping
    }

    /// Counts one more stop notice for the running task, if the runtime is stopping (`shutdown`'s
    /// rule 1).
    #[cold]
    #[inline(never)]
    pub(super) fn count_stop_notice(&self) {
        let Some(task) = self.running.get() else {
            return;
        };
        if !self.scheduler.is_stopping() {
            return;
        }
        let times = &task.header().stop_notices;
        times.set(times.get().saturating_add(1));
        if times.get() > MAX_STOP_NOTICES && sections::can_park() {
            self.suspend_ready(task);
        }
    }

    #[inline(always)]
    fn suspend_parked(&self, task: Task) {
        self.status.counts.waits.add(1);
        match task.running_turn() {
            None => self.suspend(task, Phase::Parked),
            Some(turn) => self.suspend_turn(task, turn.kill_flag()),
        }
    }

    /// Parks the handler of a behaviour actor so that a signal can wake it.
    #[cold]
    fn suspend_turn(&self, task: Task, kill_flag: &KillFlag) {
        kill_flag.suspend(task, || {
            self.suspend(task, Phase::Parked);
        });
    }

    /// Suspends the running task until the worker takes it from its queue.
    #[inline(always)]
    fn suspend_ready(&self, task: Task) {
        self.ready.push(task);
        self.suspend(task, Phase::Ready);
    }

    #[inline(always)]
    fn suspend(&self, task: Task, phase: Phase) {
        let header = task.header();
        header.phase.set(phase);
        if let Some(fiber) = header.fiber.get() {
            // The worker's own frames run next, then other tasks.
            let depth = no_preempt::set_depth(sections::WORKER_DEPTH);
            header.frame.set((&raw const depth).cast());
            // SAFETY: the caller is the running task, on its own fiber.
            unsafe { fiber.as_ref().suspend(Suspended::Waiting) };
            no_preempt::set_depth(depth);
        }
    }

    /// Lets other tasks run, if there are any.
    #[inline(always)]
    pub(crate) fn yield_now(&self) {
        if self.ready.is_empty() {
            self.yield_unless_alone();
        } else {
            self.yield_to_others();
        }
    }

    /// Yields if any other task waits, in the queue or elsewhere.
    #[inline(never)]
    fn yield_unless_alone(&self) {
        if self.running.get().is_some_and(Task::is_interrupted) {
            raise_if_due();
        }
        if self.scheduler.is_stopping() {
            return self.refuse_yield();
        }
        if self.has_other_work() {
            return self.yield_to_others();
        }
        // Counted separately from ticks: if both used one counter in step, one of them might never
        // reach a multiple of its interval.
        let alone = self.uncontended_yields.get().wrapping_add(1);
        self.uncontended_yields.set(alone);
        if alone.is_multiple_of(CLOCK_INTERVAL) {
            self.status.offer_to_yield();
            self.fire_timers();
            self.poll();
        }
    }

    /// Does not check whether the runtime is stopping: `Scheduler::halt` makes the worker notice
    /// that at its next tick, and the worker then resumes the task to unwind it.
    #[inline(always)]
    fn yield_to_others(&self) {
        let Some(task) = self.running.get() else {
            return;
        };
        if !sections::is_unguarded() || is_unwinding() {
            return self.refuse_yield();
        }
        self.suspend_ready(task);
        if task.may_be_interrupted() {
            self.end_if_interrupted(task);
        }
    }

    /// The task does not yield, because it must not be suspended or the runtime is stopping.
    #[cold]
    #[inline(never)]
    fn refuse_yield(&self) {
        raise_if_due();
        if self.running.get().is_some() && sections::may_yield() && self.scheduler.is_stopping() {
            unwind_if_possible();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_if_interrupted(&self, task: Task) {
        if self.scheduler.is_stopping() {
            unwind_if_possible();
        } else if task.is_interrupted() {
            raise_if_due();
        }
    }

    /// Called when the running task is about to wait. If the runtime is stopping, an earlier wait
    /// has already returned an error to this task, and the task is unwound now.
    pub(crate) fn before_wait(&self, task: Task) {
        sections::may_park();
        if self.scheduler.is_stopping() && task.header().stop_notified.replace(true) {
            unwind_if_possible();
        }
    }

    /// A preemption point: the running task yields if its time slice is over. The slice begins when
    /// other tasks are first seen to wait.
    #[inline(always)]
    pub(crate) fn check(&self) {
        if self.slice.is_due() {
            self.check_slice();
        }
    }

    #[cold]
    fn check_slice(&self) {
        if !sections::is_allowed() {
            return self.slice.check_next();
        }
        raise_if_due();
        self.yield_if_slice_over();
    }

    /// Yields if other tasks wait and the time slice is over. Does not unwind.
    fn yield_if_slice_over(&self) {
        self.status.offer_to_yield();
        self.fire_timers();
        self.poll_if_due();
        let is_over = self
            .slice
            .is_over(self.has_other_work(), self.scheduler.config.timeslice);
        if self.scheduler.is_stopping() {
            self.refuse_yield();
        } else if is_over {
            self.end_slice();
            self.yield_to_others();
        }
    }

    /// The preemption point of an allocation. It always checks the clock, because these points are
    /// already far apart. It does not unwind, because an allocator must not.
    pub(crate) fn allocated(&self) {
        let Some(task) = self.running.get() else {
            return;
        };
        if self.scheduler.is_stopping() {
            return;
        }
        self.status.offer_to_yield();
        self.fire_timers();
        if self
            .slice
            .has_ended(self.has_other_work(), self.scheduler.config.timeslice)
        {
            self.end_slice();
            self.suspend_ready(task);
        }
    }

    /// Returns the rest of the running task's time slice. `None` if no task runs.
    pub(crate) fn slice_remaining(&self) -> Option<Duration> {
        self.running.get()?;
        Some(
            self.slice
                .remaining(self.has_other_work(), self.scheduler.config.timeslice),
        )
    }

    /// Ends the time slice of the running task. The reserved task becomes stealable (`scheduler`'s
    /// rule 2), and unstarted tasks get an equal amount of time.
    fn end_slice(&self) {
        let slice = self.scheduler.config.timeslice.as_nanos() as u64;
        self.unstarted_until.set(clock::now() + slice);
        self.quick_ticks.set(0);
        if let Some(task) = self.lifo_slot.take() {
            self.enqueue(task);
        }
    }
}
