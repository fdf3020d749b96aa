//! Where what runs on a worker stops running for now: it waits, yields, or has had its time.

use std::ptr::NonNull;
use std::time::Duration;

use thalweg_queue::{clock, quiet};

use super::{TURNS_TO_CLOCK, Worker, give_up, is_unwinding};
use crate::WakeReason;
use crate::exit::{self, Doom};
use crate::fiber::Suspended;
use crate::preempt;
use crate::shutdown::TIMES_TOLD;
use crate::task::{Phase, Task};

impl Worker {
    /// Puts what runs here aside until it is woken, or until `deadline` or the one of its scope.
    pub(crate) fn park(&self, deadline: Option<u64>) -> WakeReason {
        let task = self.running.get();
        let task = task.filter(|task| task.header().masks.get() == 0);
        let scope = task.as_ref().and_then(Task::scope);
        let earlier = scope.filter(|scope| scope.deadline() < deadline.unwrap_or(u64::MAX));
        let Some(scope) = earlier else {
            return self.park_until(deadline);
        };
        match self.park_until(Some(scope.deadline())) {
            WakeReason::TimedOut if scope.is_due() => WakeReason::Stopping,
            // It has not passed: the caller looks, and waits again.
            WakeReason::TimedOut => WakeReason::Woken,
            woke => woke,
        }
    }

    fn park_until(&self, deadline: Option<u64>) -> WakeReason {
        let Some(task) = self.running.get() else {
            unreachable!("what parks runs");
        };
        if !preempt::may_park()
            || self.scheduler.is_stopping()
            || is_unwinding()
            || task.is_interrupted()
        {
            return self.refuse();
        }
        if task.header().notified.take() {
            return WakeReason::Woken;
        }
        match deadline {
            None => self.put_aside(task),
            Some(deadline) => {
                if deadline <= clock::now() {
                    // Who waits like this again and again is to keep nobody out.
                    if self.slice.is_due() && preempt::is_allowed() {
                        self.give_way();
                    }
                    return WakeReason::TimedOut;
                }
                let Some(fiber) = task.header().fiber.get() else {
                    unreachable!("what parks has begun");
                };
                // SAFETY: what runs on a fiber keeps it.
                let timer = &unsafe { fiber.as_ref() }.timer;
                timer.data.set(task.into_raw().cast());
                // SAFETY: the fiber stays where it is, and the timer is cancelled before what runs on it goes on.
                unsafe { self.wheel.insert(NonNull::from(timer), deadline) };
                self.put_aside(task);
                // SAFETY: it was set in this wheel.
                let early = unsafe { self.wheel.cancel(NonNull::from(timer)) };
                if !early {
                    return WakeReason::TimedOut;
                }
            }
        }
        if self.scheduler.is_stopping() || task.is_interrupted() {
            WakeReason::Stopping
        } else {
            WakeReason::Woken
        }
    }

    /// What runs here cannot wait.
    #[cold]
    #[inline(never)]
    fn refuse(&self) -> WakeReason {
        self.told();
        WakeReason::Stopping
    }

    /// What runs here is told once more that its runtime stops, if it does: `shutdown`'s rule 1.
    #[cold]
    #[inline(never)]
    pub(super) fn told(&self) {
        let Some(task) = self.running.get() else {
            return;
        };
        if !self.scheduler.is_stopping() {
            return;
        }
        let times = &task.header().times_told;
        times.set(times.get().saturating_add(1));
        if times.get() > TIMES_TOLD && preempt::can_park() {
            self.suspend(task, Phase::Running, Suspended::Yielded);
        }
    }

    #[inline(always)]
    fn put_aside(&self, task: Task) {
        self.pulse.counts.waits.add(1);
        match task.turning() {
            None => self.suspend(task, Phase::Parked, Suspended::Parked),
            Some(turning) => self.put_turn_aside(task, turning.doom()),
        }
    }

    /// A behaviour actor's handler: a signal is to reach it.
    #[cold]
    fn put_turn_aside(&self, task: Task, doom: &Doom) {
        doom.put_aside(task, || {
            self.suspend(task, Phase::Parked, Suspended::Parked);
        });
    }

    #[inline(always)]
    fn suspend(&self, task: Task, phase: Phase, why: Suspended) {
        let header = task.header();
        header.phase.set(phase);
        if let Some(fiber) = header.fiber.get() {
            // The worker's own frames run next, then others.
            let depth = quiet::set_depth(preempt::OF_WORKER);
            header.frame.set((&raw const depth).cast());
            // SAFETY: the caller is what runs here, on its own fiber.
            unsafe { fiber.as_ref().suspend(why) };
            quiet::set_depth(depth);
        }
    }

    /// Lets others run, if there are any.
    #[inline(always)]
    pub(crate) fn yield_now(&self) {
        if self.running.get().is_some_and(Task::is_interrupted) {
            exit::raise_if_due();
        }
        if self.others_wait() || self.scheduler.is_stopping() {
            self.let_others();
            return;
        }
        // Counted apart from turns: if both counted in step, one of them would never come to its multiples.
        let alone = self.yields_alone.get().wrapping_add(1);
        self.yields_alone.set(alone);
        if alone.is_multiple_of(TURNS_TO_CLOCK) {
            self.pulse.offer();
            self.fire();
            self.poll();
        }
    }

    fn let_others(&self) {
        if let Some(task) = self.running.get()
            && preempt::may_yield()
        {
            if self.scheduler.is_stopping() {
                give_up();
            } else if !is_unwinding() {
                self.suspend(task, Phase::Running, Suspended::Yielded);
                if task.is_interrupted() {
                    exit::raise_if_due();
                }
            }
        }
    }

    /// What runs here is about to wait. Where the runtime stops it was told so once, by the error of an earlier wait, and now ends.
    pub(crate) fn tell(&self, task: Task) {
        preempt::may_park();
        if self.scheduler.is_stopping() && task.header().told.replace(true) {
            give_up();
        }
    }

    /// A point at which what runs here yields if it has had its time slice since others were first seen to wait.
    #[inline(always)]
    pub(crate) fn check(&self) {
        if self.slice.is_due() {
            self.look();
        }
    }

    #[cold]
    fn look(&self) {
        if !preempt::is_allowed() {
            return self.slice.put_off();
        }
        exit::raise_if_due();
        self.give_way();
    }

    /// Lets others run if they wait and it has had its time slice. Nothing is raised.
    fn give_way(&self) {
        self.pulse.offer();
        self.fire();
        self.poll_if_due();
        let is_over = self
            .slice
            .is_over(self.others_wait(), self.scheduler.config.timeslice);
        if is_over || self.scheduler.is_stopping() {
            self.end_slice();
            self.let_others();
        }
    }

    /// The same where what runs here has allocated. It looks each time, as these points are far apart already; and it comes back, since an
    /// allocator must not unwind.
    pub(crate) fn allocated(&self) {
        let Some(task) = self.running.get() else {
            return;
        };
        if self.scheduler.is_stopping() {
            return;
        }
        self.pulse.offer();
        self.fire();
        if self
            .slice
            .has_ended(self.others_wait(), self.scheduler.config.timeslice)
        {
            self.end_slice();
            self.suspend(task, Phase::Running, Suspended::Yielded);
        }
    }

    /// What is left of its slice to what runs here.
    pub(crate) fn slice_remaining(&self) -> Option<Duration> {
        self.running.get()?;
        Some(
            self.slice
                .remaining(self.others_wait(), self.scheduler.config.timeslice),
        )
    }

    /// What runs here has had its slice, so others may have what is in reserve (`scheduler`'s rule 2), and what has not begun gets as long.
    fn end_slice(&self) {
        let slice = self.scheduler.config.timeslice.as_nanos() as u64;
        self.fresh_until.set(clock::now() + slice);
        if let Some(task) = self.slot.take() {
            self.put_behind(task);
        }
    }
}
