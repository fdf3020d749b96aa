//! The queues and the workers of a pool.
//!
//! 1. An accepted job is in a queue, is being run by a worker, or is counted as handled, failed or
//!    dropped. All of that changes under one lock.
//! 2. A worker with jobs to take is **notified**: a [`JobAvailable`] is in its mailbox, or the
//!    worker will be restarted and sends one to itself. A job for a worker that is not notified
//!    therefore sends it one. A worker that finds a further job sends itself the next one; a worker
//!    that finds none is no longer notified.
//! 3. A superfluous notification is harmless: the worker finds no job. Removing a worker notifies
//!    the workers that receive its jobs.
//! 4. Jobs, replies and hooks are dropped and called without the lock, since they may run user
//!    code.

use std::collections::VecDeque;
use std::sync::{Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_queue::oneshot;

use super::routing::{Routing, jump};
use super::{PoolOverflow, PoolStats, WorkerStats};
use crate::behaviour::{Actor, ActorRef, Context, Handler};
use crate::sync::{Notify, Semaphore};

/// A job that was accepted or is being submitted.
pub(super) struct QueuedJob<J, R> {
    pub(super) job: J,
    pub(super) reply: Option<oneshot::Sender<R>>,
    key: u64,
    /// Ascends in the order of acceptance.
    number: u64,
}

pub(super) struct Core<J: Send + 'static, R: Send + 'static> {
    routing: Routing<J>,
    capacity: usize,
    pub(super) overflow: PoolOverflow,
    /// Capacity for waiting jobs, if senders wait for it.
    pub(super) permits: Semaphore,
    /// Notified when a job or the pool has ended, so that waiters check the counters.
    ended: Notify,
    state: Mutex<State<J, R>>,
}

struct State<J: Send + 'static, R: Send + 'static> {
    /// The queue of [`Routing::Shared`].
    shared: VecDeque<QueuedJob<J, R>>,
    slots: Vec<WorkerSlot<J, R>>,
    closed: bool,
    next: u64,
    counts: Counts,
    /// Called once, when the pool is closed and the last job has ended.
    on_drained: Option<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    waiting: usize,
    running: usize,
    accepted: u64,
    handled: u64,
    failed: u64,
    dropped: u64,
    refused: u64,
}

pub(super) struct WorkerSlot<J: Send + 'static, R: Send + 'static> {
    worker: ActorRef<Worker<J, R>>,
    queue: VecDeque<QueuedJob<J, R>>,
    /// Rule 2.
    notified: bool,
    running: usize,
    handled: u64,
    failed: u64,
}

/// Why a job was not accepted.
pub(super) enum AcceptError {
    Closed,
    Full,
}

type WorkerRefs<J, R> = Vec<ActorRef<Worker<J, R>>>;

impl<J: Send + 'static, R: Send + 'static> QueuedJob<J, R> {
    pub(super) fn new(job: J, reply: Option<oneshot::Sender<R>>) -> Self {
        Self {
            job,
            reply,
            key: 0,
            number: 0,
        }
    }
}

impl<J: Send + 'static, R: Send + 'static> State<J, R> {
    /// The worker for a job. `None`: the shared queue.
    fn route(&self, routing: &Routing<J>, queued: &QueuedJob<J, R>) -> Option<usize> {
        let count = self.slots.len();
        match routing {
            Routing::Shared => None,
            Routing::RoundRobin => Some((queued.number % count as u64) as usize),
            Routing::ByKey(_) => Some(jump(queued.key, count)),
            Routing::LeastLoaded => {
                // Equally loaded workers take turns.
                let first = (queued.number % count as u64) as usize;
                let all = (0..count).map(|n| (first + n) % count);
                all.min_by_key(|n| self.slots[*n].queue.len() + self.slots[*n].running)
            }
        }
    }

    /// Puts a job into its queue, and returns the worker that must be notified.
    fn put(
        &mut self,
        routing: &Routing<J>,
        queued: QueuedJob<J, R>,
    ) -> Option<ActorRef<Worker<J, R>>> {
        let slot = if let Some(slot) = self.route(routing, &queued) {
            self.slots[slot].queue.push_back(queued);
            Some(slot)
        } else {
            self.shared.push_back(queued);
            self.slots.iter().position(|slot| !slot.notified)
        };
        let slot = &mut self.slots[slot?];
        let woken = !std::mem::replace(&mut slot.notified, true);
        woken.then(|| slot.worker.clone())
    }

    fn pop_oldest(&mut self) -> Option<QueuedJob<J, R>> {
        if let Some(oldest) = self.shared.pop_front() {
            return Some(oldest);
        }
        let age =
            |slot: &WorkerSlot<J, R>| slot.queue.front().map_or(u64::MAX, |queued| queued.number);
        let slot = self.slots.iter_mut().min_by_key(|slot| age(slot))?;
        slot.queue.pop_front()
    }

    /// All waiting jobs in the order of acceptance.
    fn take_all(&mut self) -> Vec<QueuedJob<J, R>> {
        let mut all: Vec<_> = self.shared.drain(..).collect();
        for slot in &mut self.slots {
            all.extend(slot.queue.drain(..));
        }
        all.sort_by_key(|queued| queued.number);
        all
    }

    fn has_more(&self, slot: usize) -> bool {
        self.slots
            .get(slot)
            .is_some_and(|slot| !slot.queue.is_empty() || !self.shared.is_empty())
    }

    fn take_drained_hook(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        let ended = self.closed && self.counts.waiting == 0 && self.counts.running == 0;
        if ended { self.on_drained.take() } else { None }
    }
}

impl<J: Send + 'static, R: Send + 'static> Core<J, R> {
    pub(super) fn new(
        routing: Routing<J>,
        capacity: usize,
        overflow: PoolOverflow,
        on_drained: Option<Box<dyn FnOnce() + Send>>,
    ) -> Self {
        Self {
            routing,
            capacity,
            overflow,
            permits: Semaphore::new(capacity),
            ended: Notify::new(),
            state: Mutex::new(State {
                shared: VecDeque::new(),
                slots: Vec::new(),
                closed: false,
                next: 0,
                counts: Counts::default(),
                on_drained,
            }),
        }
    }

    fn state(&self) -> LockGuard<'_, State<J, R>> {
        lock(&self.state)
    }

    fn blocks_when_full(&self) -> bool {
        self.overflow == PoolOverflow::Block
    }

    /// Accepts a job. If senders wait for capacity, this takes over the caller's permit.
    pub(super) fn accept(
        &self,
        mut queued: QueuedJob<J, R>,
    ) -> Result<(), (AcceptError, QueuedJob<J, R>)> {
        queued.key = self.routing.key(&queued.job);
        let mut oldest = None;
        let worker = {
            let mut state = self.state();
            if state.closed {
                return Err((AcceptError::Closed, queued));
            }
            if !self.blocks_when_full() && state.counts.waiting >= self.capacity {
                if self.overflow == PoolOverflow::DropOldest {
                    oldest = state.pop_oldest();
                }
                if oldest.is_none() {
                    state.counts.refused += 1;
                    return Err((AcceptError::Full, queued));
                }
                state.counts.waiting -= 1;
                state.counts.dropped += 1;
            }
            queued.number = state.next;
            state.next += 1;
            state.counts.accepted += 1;
            state.counts.waiting += 1;
            state.put(&self.routing, queued)
        };
        drop(oldest);
        worker.into_iter().for_each(|worker| notify_worker(&worker));
        Ok(())
    }

    /// The next job of a worker, which counts as running from now on. `None`: the worker is no
    /// longer notified.
    fn take(&self, slot: usize) -> Option<QueuedJob<J, R>> {
        let queued = {
            let mut state = self.state();
            let state = &mut *state;
            let slot_state = state.slots.get_mut(slot)?;
            let queued = slot_state
                .queue
                .pop_front()
                .or_else(|| state.shared.pop_front());
            let Some(queued) = queued else {
                slot_state.notified = false;
                return None;
            };
            slot_state.running += 1;
            state.counts.waiting -= 1;
            state.counts.running += 1;
            queued
        };
        if self.blocks_when_full() {
            self.permits.add_permits(1);
        }
        Some(queued)
    }

    /// A job has ended. Returns whether the worker must be notified again.
    fn done(&self, slot: usize, handled: bool) -> bool {
        let (more, hook) = {
            let mut state = self.state();
            let counts = &mut state.counts;
            counts.running -= 1;
            counts.handled += u64::from(handled);
            counts.failed += u64::from(!handled);
            if let Some(slot_state) = state.slots.get_mut(slot) {
                // After a resize, the running job may be one that another worker in this slot had.
                slot_state.running = slot_state.running.saturating_sub(1);
                slot_state.handled += u64::from(handled);
                slot_state.failed += u64::from(!handled);
            }
            let more = state.has_more(slot);
            if !more && let Some(slot_state) = state.slots.get_mut(slot) {
                // A failed worker is restarted, and then notifies itself.
                slot_state.notified = !handled;
            }
            (more, state.take_drained_hook())
        };
        self.notify_ended(hook);
        more
    }

    fn notify_ended(&self, hook: Option<Box<dyn FnOnce() + Send>>) {
        if let Some(hook) = hook {
            hook();
        }
        self.ended.notify_waiters();
    }

    /// Accepts no more jobs.
    pub(super) fn close(&self) {
        let hook = {
            let mut state = self.state();
            state.closed = true;
            state.take_drained_hook()
        };
        self.permits.close();
        self.notify_ended(hook);
    }

    /// Accepts no more jobs, drops the waiting ones, and returns their number.
    pub(super) fn end(&self) -> usize {
        let (left, hook) = {
            let mut state = self.state();
            state.closed = true;
            let left = state.take_all();
            state.counts.waiting = 0;
            state.counts.dropped += left.len() as u64;
            (left, state.take_drained_hook())
        };
        self.permits.close();
        let count = left.len();
        drop(left);
        self.notify_ended(hook);
        count
    }

    /// Waits until no job waits or runs.
    pub(super) fn wait_until_empty(&self, deadline: std::time::Instant) {
        loop {
            let ended = self.ended.notified();
            let counts = self.state().counts;
            if counts.waiting + counts.running == 0
                || crate::block_on_deadline(deadline, ended).is_err()
            {
                return;
            }
        }
    }

    pub(super) fn running(&self) -> usize {
        self.state().counts.running
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(super) fn workers(&self) -> usize {
        self.state().slots.len()
    }

    /// Sets the number of workers. `more` are the added ones. Returns the removed ones.
    pub(super) fn set_workers(&self, count: usize, more: WorkerRefs<J, R>) -> WorkerRefs<J, R> {
        let (removed, to_notify) = {
            let mut state = self.state();
            let state = &mut *state;
            let waiting = state.take_all();
            let removed: Vec<_> = state.slots.drain(count.min(state.slots.len())..).collect();
            // A worker that notified itself when it started may not have had its slot yet.
            let mut to_notify = more.clone();
            state
                .slots
                .extend(more.into_iter().map(|worker| WorkerSlot {
                    worker,
                    queue: VecDeque::new(),
                    notified: true,
                    running: 0,
                    handled: 0,
                    failed: 0,
                }));
            // Rule 3: a removed worker may have been notified for a job in the shared queue.
            for queued in waiting {
                to_notify.extend(state.put(&self.routing, queued));
            }
            (removed, to_notify)
        };
        to_notify.iter().for_each(notify_worker);
        removed.into_iter().map(|slot| slot.worker).collect()
    }

    pub(super) fn stats(&self) -> PoolStats {
        let state = self.state();
        let counts = state.counts;
        PoolStats {
            waiting: counts.waiting,
            running: counts.running,
            accepted: counts.accepted,
            handled: counts.handled,
            failed: counts.failed,
            dropped: counts.dropped,
            refused: counts.refused,
            workers: state
                .slots
                .iter()
                .map(|slot| WorkerStats {
                    waiting: slot.queue.len(),
                    running: slot.running > 0,
                    handled: slot.handled,
                    failed: slot.failed,
                })
                .collect(),
        }
    }
}

/// A worker of a pool: a behaviour actor under the pool's supervisor.
pub(super) struct Worker<J: Send + 'static, R: Send + 'static> {
    core: Weak<Core<J, R>>,
    slot: usize,
    work: Box<dyn FnMut(J) -> R + Send>,
}

/// Notifies a worker that there may be a job.
pub(super) struct JobAvailable;

fn notify_worker<J: Send + 'static, R: Send + 'static>(worker: &ActorRef<Worker<J, R>>) {
    // The worker may have been removed, or its supervisor may have ended.
    let _ = worker.cast(JobAvailable);
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    pub(super) fn new(
        core: Weak<Core<J, R>>,
        slot: usize,
        work: Box<dyn FnMut(J) -> R + Send>,
    ) -> Self {
        Self { core, slot, work }
    }
}

impl<J: Send + 'static, R: Send + 'static> Actor for Worker<J, R> {
    fn started(&mut self, context: &Context<'_, Self>) {
        notify_worker(&context.actor());
    }
}

/// A running job. However it ends, it is counted.
struct RunningJob<'a, J: Send + 'static, R: Send + 'static> {
    core: &'a Core<J, R>,
    slot: usize,
    is_over: bool,
}

impl<J: Send + 'static, R: Send + 'static> RunningJob<'_, J, R> {
    fn handled(mut self) -> bool {
        self.is_over = true;
        self.core.done(self.slot, true)
    }
}

impl<J: Send + 'static, R: Send + 'static> Drop for RunningJob<'_, J, R> {
    fn drop(&mut self) {
        if !self.is_over {
            self.core.done(self.slot, false);
        }
    }
}

impl<J: Send + 'static, R: Send + 'static> Handler<JobAvailable> for Worker<J, R> {
    type Reply = ();

    fn handle(&mut self, _: JobAvailable, context: &Context<'_, Self>) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        let Some(QueuedJob { job, reply, .. }) = core.take(self.slot) else {
            return;
        };
        let running_job = RunningJob {
            core: &core,
            slot: self.slot,
            is_over: false,
        };
        let result = (self.work)(job);
        if running_job.handled() {
            notify_worker(&context.actor());
        }
        if let Some(reply) = reply {
            // The caller may have stopped waiting.
            let _ = reply.send(result);
        }
    }
}
