//! What a worker writes down of its actors, and says of them when it is asked (`inspect`).

use std::time::Duration;

use thalweg_queue::clock;

use super::Worker;
use crate::exit::ExitReason;
use crate::fiber::Fiber;
use crate::inspect::{ActorInfo, ActorKind, ActorState, StackUse};
use crate::shim::Ordering;
use crate::stack::{self, overflow::Name};
use crate::task::{Header, Phase, Task};

impl Worker {
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// What ran was put aside, or has ended: then there is no header any more.
    #[inline(never)]
    pub(super) fn book(&self, header: Option<&Header>) {
        let took = clock::now().saturating_sub(self.since.get());
        self.pulse.counts.add_slice(took);
        if let Some(header) = header {
            header.ran.set(header.ran.get() + took);
        }
    }

    /// An actor with a stack has ended, before anybody can have joined it.
    #[inline(always)]
    pub(crate) fn count_end(&self, task: Task, how: Option<&ExitReason>) {
        self.pulse.counts.ended_stacks.of(how).add(1);
        if let Some(reason) = how
            && !reason.is_orderly()
        {
            let header = task.header();
            let name = header.name.as_ref().map(Name::text);
            self.scheduler.crashes.note(header.id, name, reason);
        }
    }

    /// Slices of what runs here, and nanoseconds, until now.
    pub(crate) fn books_of_running(&self) -> Option<(u64, u64)> {
        Some(self.books(self.running()?))
    }

    fn books(&self, task: Task) -> (u64, u64) {
        let header = task.header();
        let runs = self.keeps_books && self.running() == Some(task);
        let now = if runs {
            clock::now() - self.since.get()
        } else {
            0
        };
        (header.slices.get(), header.ran.get() + now)
    }

    /// All that are this worker's, begun or not. The caller is its thread.
    pub(crate) fn list(&self) -> Vec<ActorInfo> {
        let mut list = Vec::new();
        for place in 0..self.fibers(|fibers| fibers.places()) {
            let fiber = self.fibers(|fibers| fibers.get(place));
            // SAFETY: one of ours, all of which live as long as the worker.
            let fiber = unsafe { fiber.as_ref() };
            if let Some(task) = fiber.task.get() {
                list.push(self.info(task, fiber));
            }
        }
        let own = self.slot.get().into_iter().chain(self.ready.iter());
        for task in own.filter(|task| task.header().fiber.get().is_none()) {
            list.push(task.info_as_new());
        }
        self.each_in_ring(|task| list.push(task.info_as_new()));
        list
    }

    /// The ring is its owner's to take from: it takes all, looks, and puts them back in their order. What others take meanwhile they have.
    fn each_in_ring(&self, mut look: impl FnMut(Task)) {
        let taken: Vec<_> = std::iter::from_fn(|| self.seat().take_own()).collect();
        for task in taken {
            look(task);
            self.share(task);
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
            Phase::Fresh | Phase::Ready => ActorState::Runnable,
        };
        let (mut slices, mut ns) = self.books(task);
        let mut info = match task.turning() {
            None => ActorInfo {
                slices: (!header.is_turn).then_some(slices),
                worker_time: self.keeps_books.then_some(Duration::from_nanos(ns)),
                ..task.info_as_new()
            },
            Some(turning) => {
                // SAFETY: the turn keeps it, and its frame is on this fiber.
                let seen = unsafe { &*turning.body }.seen();
                if let Some((before, ns_before)) = seen.books {
                    slices += before;
                    ns += ns_before;
                }
                let books = seen.books.is_some();
                ActorInfo {
                    slices: books.then_some(slices),
                    worker_time: books.then_some(Duration::from_nanos(ns)),
                    ..seen.into_info()
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
    /// One that has not begun. The caller has it, or is the worker that has it.
    pub(crate) fn info_as_new(self) -> ActorInfo {
        let header = self.header();
        let id = header.shown.get();
        let (kind, state) = if !header.is_turn {
            (ActorKind::Stack, ActorState::New)
        } else if id == header.id {
            (ActorKind::Scheduled, ActorState::New)
        } else {
            (ActorKind::Behaviour, ActorState::Runnable)
        };
        let doomed = header.doomed.load(Ordering::Relaxed);
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
