//! The statistics that a worker records about its actors, and the list that it returns on request
//! (`inspect`).

use std::time::Duration;

use thalweg_queue::clock;

use super::Worker;
use crate::actor_info::{ActorInfo, ActorKind, ActorState, StackUse};
use crate::fiber::Fiber;
use crate::reason::ExitReason;
use crate::shim::Ordering;
use crate::stack::{self, overflow::Name};
use crate::task::{Header, Phase, Task};

impl Worker {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Records the slice of a task that was suspended or has ended. `None`: it has ended, and its
    /// header may be freed.
    #[inline(never)]
    pub(super) fn record_slice(&self, header: Option<&Header>) {
        let took = clock::now().saturating_sub(self.slice_began.get());
        self.status.counts.add_slice(took);
        if let Some(header) = header {
            header.run_time_ns.set(header.run_time_ns.get() + took);
        }
    }

    /// Counts an actor with a stack that has ended, before any thread can have joined it.
    #[inline(always)]
    pub(crate) fn count_end(&self, task: Task, how: Option<&ExitReason>) {
        self.status
            .counts
            .ended_stacks
            .of(how.map(ExitReason::kind))
            .add(1);
        if let Some(reason) = how
            && !reason.is_orderly()
        {
            let header = task.header();
            let name = header.name.as_ref().map(Name::text);
            self.scheduler.crashes.record(header.id, name, reason);
        }
    }

    /// Returns the number of slices of the running task, and the nanoseconds that it has run until
    /// now.
    pub(crate) fn usage_of_running(&self) -> Option<(u64, u64)> {
        Some(self.usage(self.running()?))
    }

    fn usage(&self, task: Task) -> (u64, u64) {
        let header = task.header();
        let runs = self.tracks_time && self.running() == Some(task);
        let now = if runs {
            clock::now() - self.slice_began.get()
        } else {
            0
        };
        (header.slices.get(), header.run_time_ns.get() + now)
    }

    /// Lists all tasks of this worker, started or not. The caller is the worker's thread.
    pub(crate) fn list(&self) -> Vec<ActorInfo> {
        let mut list = Vec::new();
        for index in 0..self.fibers(|fibers| fibers.slots()) {
            let fiber = self.fibers(|fibers| fibers.get(index));
            // SAFETY: the fiber belongs to this worker, and all of its fibers live as long as it
            // does.
            let fiber = unsafe { fiber.as_ref() };
            if let Some(task) = fiber.task.get() {
                list.push(self.info(task, fiber));
            }
        }
        let own = self.lifo_slot.get().into_iter().chain(self.ready.iter());
        for task in own.filter(|task| task.header().fiber.get().is_none()) {
            list.push(task.info_as_new());
        }
        self.each_in_ring(|task| list.push(task.info_as_new()));
        list
    }

    /// Calls `look` for each task in the ring. Only its owner may take from the ring: it takes all
    /// tasks, looks at each, and puts them back in order. Other workers may steal some of them
    /// meanwhile.
    fn each_in_ring(&self, mut look: impl FnMut(Task)) {
        let taken: Vec<_> = std::iter::from_fn(|| self.shared().take_own()).collect();
        for task in taken {
            look(task);
            self.push_stealable(task);
        }
    }

    fn info(&self, task: Task, fiber: &Fiber) -> ActorInfo {
        let header = task.header();
        let state = match header.phase.get() {
            _ if header.raised.get() || header.ending.get() => ActorState::Ending,
            Phase::Running => ActorState::Running,
            Phase::Parked => ActorState::Waiting {
                timeout: fiber
                    .timer
                    .deadline()
                    .map(|deadline| Duration::from_nanos(deadline.saturating_sub(clock::now()))),
            },
            Phase::Unstarted | Phase::Ready => ActorState::Runnable,
        };
        let (mut slices, mut ns) = self.usage(task);
        let mut info = match task.running_turn() {
            None => ActorInfo {
                slices: (!header.is_turn).then_some(slices),
                worker_time: self.tracks_time.then_some(Duration::from_nanos(ns)),
                ..task.info_as_new()
            },
            Some(turn) => {
                // SAFETY: the turn keeps its actor alive, and the turn's frame is on this fiber.
                let snapshot = unsafe { &*turn.body }.snapshot();
                if let Some((before, ns_before)) = snapshot.stats {
                    slices += before;
                    ns += ns_before;
                }
                let books = snapshot.stats.is_some();
                ActorInfo {
                    slices: books.then_some(slices),
                    worker_time: books.then_some(Duration::from_nanos(ns)),
                    ..snapshot.into_info()
                }
            }
        };
        info.state = state;
        info.worker = Some(self.index);
        let local = 0_u8;
        let frame = if state == ActorState::Running {
            &raw const local
        } else {
            header.frame.get()
        };
        info.stack = stack::usable_around(frame.addr()).map(|range| StackUse::new(range, frame));
        info
    }
}

impl Task {
    /// Describes a task that has not started. The caller owns it, or is the worker that owns it.
    pub(crate) fn info_as_new(self) -> ActorInfo {
        let header = self.header();
        let id = header.reported_id.get();
        let (kind, state) = if !header.is_turn {
            (ActorKind::Stack, ActorState::New)
        } else if id == header.id {
            (ActorKind::Scheduled, ActorState::New)
        } else {
            (ActorKind::Behaviour, ActorState::Runnable)
        };
        let doomed = header.kill_flag.load(Ordering::Relaxed);
        let name = header.name.as_ref().map(Name::text);
        let parent = header.parent.get();
        ActorInfo {
            id,
            name: name.map(str::to_owned),
            kind,
            state: if doomed { ActorState::Ending } else { state },
            mailbox: None,
            parent,
            supervisor: parent.filter(|_| header.supervised.get()),
            worker: None,
            slices: None,
            worker_time: None,
            stack: None,
        }
    }
}
