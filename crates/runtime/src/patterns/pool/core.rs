//! The queues of a pool, and its workers.
//!
//! 1. A job that was accepted is in one place: in a queue, at hand of a worker, or counted: as handled, failed or dropped. All of that changes under one lock.
//! 2. A worker that has jobs to take is **awake**: a [`Turn`] waits for it, or it will be started again, and its start makes one. So who puts a
//!    job into the queue of one that is not awake sends it a turn; a turn that finds more sends the next one; one that finds nothing ends that.
//! 3. A turn too many does no harm: it finds nothing. What takes a worker away wakes those that its jobs went to.
//! 4. Jobs, replies and hooks are dropped and called without the lock: they may be anybody's code.

use std::collections::VecDeque;
use std::sync::{Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_queue::oneshot;

use super::routing::{Routing, jump};
use super::{PoolStats, WhenFull, WorkerStats};
use crate::behaviour::{Actor, ActorRef, Context, Handler};
use crate::sync::{Notify, Semaphore};

/// A job that was accepted, or is to be.
pub(super) struct Entry<J, R> {
    pub(super) job: J,
    pub(super) reply: Option<oneshot::Sender<R>>,
    key: u64,
    /// In the order in which they were accepted.
    number: u64,
}

pub(super) struct Core<J: Send + 'static, R: Send + 'static> {
    routing: Routing<J>,
    capacity: usize,
    pub(super) when_full: WhenFull,
    /// Permits for those that wait, where who sends waits for room.
    pub(super) room: Semaphore,
    /// Something ended: see whether it was the last.
    ended: Notify,
    state: Mutex<State<J, R>>,
}

struct State<J: Send + 'static, R: Send + 'static> {
    /// Of [`Routing::Shared`].
    shared: VecDeque<Entry<J, R>>,
    lanes: Vec<Lane<J, R>>,
    closed: bool,
    next: u64,
    counts: Counts,
    /// Called once, when it is closed and the last job has ended.
    at_end: Option<Box<dyn FnOnce() + Send>>,
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

pub(super) struct Lane<J: Send + 'static, R: Send + 'static> {
    worker: ActorRef<Worker<J, R>>,
    queue: VecDeque<Entry<J, R>>,
    /// Rule 2.
    awake: bool,
    running: usize,
    handled: u64,
    failed: u64,
}

/// Why a job was not accepted.
pub(super) enum Refusal {
    Closed,
    Full,
}

type Turns<J, R> = Vec<ActorRef<Worker<J, R>>>;

impl<J: Send + 'static, R: Send + 'static> Entry<J, R> {
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
    /// Where a job is to go. `None`: into the queue of all.
    fn route(&self, routing: &Routing<J>, entry: &Entry<J, R>) -> Option<usize> {
        let count = self.lanes.len();
        match routing {
            Routing::Shared => None,
            Routing::RoundRobin => Some((entry.number % count as u64) as usize),
            Routing::ByKey(_) => Some(jump(entry.key, count)),
            Routing::LeastLoaded => {
                // Among equals they take turns.
                let first = (entry.number % count as u64) as usize;
                let all = (0..count).map(|n| (first + n) % count);
                all.min_by_key(|n| self.lanes[*n].queue.len() + self.lanes[*n].running)
            }
        }
    }

    /// Puts a job into its queue. Who needs a turn for it.
    fn put(&mut self, routing: &Routing<J>, entry: Entry<J, R>) -> Option<ActorRef<Worker<J, R>>> {
        let lane = if let Some(lane) = self.route(routing, &entry) {
            self.lanes[lane].queue.push_back(entry);
            Some(lane)
        } else {
            self.shared.push_back(entry);
            self.lanes.iter().position(|lane| !lane.awake)
        };
        let lane = &mut self.lanes[lane?];
        let woken = !std::mem::replace(&mut lane.awake, true);
        woken.then(|| lane.worker.clone())
    }

    fn pop_oldest(&mut self) -> Option<Entry<J, R>> {
        if let Some(oldest) = self.shared.pop_front() {
            return Some(oldest);
        }
        let age = |lane: &Lane<J, R>| lane.queue.front().map_or(u64::MAX, |entry| entry.number);
        let lane = self.lanes.iter_mut().min_by_key(|lane| age(lane))?;
        lane.queue.pop_front()
    }

    /// All that wait, in the order in which they were accepted.
    fn take_all(&mut self) -> Vec<Entry<J, R>> {
        let mut all: Vec<_> = self.shared.drain(..).collect();
        for lane in &mut self.lanes {
            all.extend(lane.queue.drain(..));
        }
        all.sort_by_key(|entry| entry.number);
        all
    }

    fn has_more(&self, lane: usize) -> bool {
        self.lanes
            .get(lane)
            .is_some_and(|lane| !lane.queue.is_empty() || !self.shared.is_empty())
    }

    fn hook_if_ended(&mut self) -> Option<Box<dyn FnOnce() + Send>> {
        let ended = self.closed && self.counts.waiting == 0 && self.counts.running == 0;
        if ended { self.at_end.take() } else { None }
    }
}

impl<J: Send + 'static, R: Send + 'static> Core<J, R> {
    pub(super) fn new(
        routing: Routing<J>,
        capacity: usize,
        when_full: WhenFull,
        at_end: Option<Box<dyn FnOnce() + Send>>,
    ) -> Self {
        Self {
            routing,
            capacity,
            when_full,
            room: Semaphore::new(capacity),
            ended: Notify::new(),
            state: Mutex::new(State {
                shared: VecDeque::new(),
                lanes: Vec::new(),
                closed: false,
                next: 0,
                counts: Counts::default(),
                at_end,
            }),
        }
    }

    fn state(&self) -> LockGuard<'_, State<J, R>> {
        lock(&self.state)
    }

    fn waits_for_room(&self) -> bool {
        self.when_full == WhenFull::Wait
    }

    /// Accepts a job. Where who sends waits for room it has a permit, which is the job's now.
    pub(super) fn accept(&self, mut entry: Entry<J, R>) -> Result<(), (Refusal, Entry<J, R>)> {
        entry.key = self.routing.key(&entry.job);
        let mut oldest = None;
        let turn = {
            let mut state = self.state();
            if state.closed {
                return Err((Refusal::Closed, entry));
            }
            if !self.waits_for_room() && state.counts.waiting >= self.capacity {
                if self.when_full == WhenFull::DropOldest {
                    oldest = state.pop_oldest();
                }
                if oldest.is_none() {
                    state.counts.refused += 1;
                    return Err((Refusal::Full, entry));
                }
                state.counts.waiting -= 1;
                state.counts.dropped += 1;
            }
            entry.number = state.next;
            state.next += 1;
            state.counts.accepted += 1;
            state.counts.waiting += 1;
            state.put(&self.routing, entry)
        };
        drop(oldest);
        turn.into_iter().for_each(|worker| send_turn(&worker));
        Ok(())
    }

    /// The next job for a worker, which is at hand from now on. `None`: it sleeps.
    fn take(&self, lane: usize) -> Option<Entry<J, R>> {
        let entry = {
            let mut state = self.state();
            let state = &mut *state;
            let place = state.lanes.get_mut(lane)?;
            let entry = place.queue.pop_front().or_else(|| state.shared.pop_front());
            let Some(entry) = entry else {
                place.awake = false;
                return None;
            };
            place.running += 1;
            state.counts.waiting -= 1;
            state.counts.running += 1;
            entry
        };
        if self.waits_for_room() {
            self.room.add_permits(1);
        }
        Some(entry)
    }

    /// A job is at hand no more. Whether the worker is to have another turn.
    fn done(&self, lane: usize, handled: bool) -> bool {
        let (more, hook) = {
            let mut state = self.state();
            let counts = &mut state.counts;
            counts.running -= 1;
            counts.handled += u64::from(handled);
            counts.failed += u64::from(!handled);
            if let Some(place) = state.lanes.get_mut(lane) {
                // One that it had before the pool was resized may be another's.
                place.running = place.running.saturating_sub(1);
                place.handled += u64::from(handled);
                place.failed += u64::from(!handled);
            }
            let more = state.has_more(lane);
            if !more && let Some(place) = state.lanes.get_mut(lane) {
                // One that failed is started again, and then makes itself a turn.
                place.awake = !handled;
            }
            (more, state.hook_if_ended())
        };
        self.has_ended(hook);
        more
    }

    fn has_ended(&self, hook: Option<Box<dyn FnOnce() + Send>>) {
        if let Some(hook) = hook {
            hook();
        }
        self.ended.notify_waiters();
    }

    /// Accepts no more.
    pub(super) fn close(&self) {
        let hook = {
            let mut state = self.state();
            state.closed = true;
            state.hook_if_ended()
        };
        self.room.close();
        self.has_ended(hook);
    }

    /// Accepts no more, and drops what waits. How many that were.
    pub(super) fn end(&self) -> usize {
        let (left, hook) = {
            let mut state = self.state();
            state.closed = true;
            let left = state.take_all();
            state.counts.waiting = 0;
            state.counts.dropped += left.len() as u64;
            (left, state.hook_if_ended())
        };
        self.room.close();
        let count = left.len();
        drop(left);
        self.has_ended(hook);
        count
    }

    /// Waits until nothing waits and nothing is at hand.
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
        self.state().lanes.len()
    }

    /// So many workers, of which those beyond what there are are `more`; others lose their places, which come back.
    pub(super) fn set_workers(&self, count: usize, more: Turns<J, R>) -> Turns<J, R> {
        let (gone, turns) = {
            let mut state = self.state();
            let state = &mut *state;
            let waiting = state.take_all();
            let gone: Vec<_> = state.lanes.drain(count.min(state.lanes.len())..).collect();
            // The turn that one had when it started may have found no place.
            let mut turns = more.clone();
            state.lanes.extend(more.into_iter().map(|worker| Lane {
                worker,
                queue: VecDeque::new(),
                awake: true,
                running: 0,
                handled: 0,
                failed: 0,
            }));
            // Rule 3: a turn of one that goes may have been for what is shared.
            for entry in waiting {
                turns.extend(state.put(&self.routing, entry));
            }
            (gone, turns)
        };
        turns.iter().for_each(send_turn);
        gone.into_iter().map(|lane| lane.worker).collect()
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
                .lanes
                .iter()
                .map(|lane| WorkerStats {
                    waiting: lane.queue.len(),
                    running: lane.running > 0,
                    handled: lane.handled,
                    failed: lane.failed,
                })
                .collect(),
        }
    }
}

/// One worker of a pool: a behaviour actor under the pool's supervisor.
pub(super) struct Worker<J: Send + 'static, R: Send + 'static> {
    core: Weak<Core<J, R>>,
    lane: usize,
    work: Box<dyn FnMut(J) -> R + Send>,
}

/// That there may be a job.
pub(super) struct Turn;

fn send_turn<J: Send + 'static, R: Send + 'static>(worker: &ActorRef<Worker<J, R>>) {
    // One that has gone for good went with its supervisor, or with its place.
    let _ = worker.cast(Turn);
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    pub(super) fn new(
        core: Weak<Core<J, R>>,
        lane: usize,
        work: Box<dyn FnMut(J) -> R + Send>,
    ) -> Self {
        Self { core, lane, work }
    }
}

impl<J: Send + 'static, R: Send + 'static> Actor for Worker<J, R> {
    fn started(&mut self, context: &Context<'_, Self>) {
        send_turn(&context.actor());
    }
}

/// A job at hand: whatever way it goes, it is counted.
struct AtHand<'a, J: Send + 'static, R: Send + 'static> {
    core: &'a Core<J, R>,
    lane: usize,
    is_over: bool,
}

impl<J: Send + 'static, R: Send + 'static> AtHand<'_, J, R> {
    fn handled(mut self) -> bool {
        self.is_over = true;
        self.core.done(self.lane, true)
    }
}

impl<J: Send + 'static, R: Send + 'static> Drop for AtHand<'_, J, R> {
    fn drop(&mut self) {
        if !self.is_over {
            self.core.done(self.lane, false);
        }
    }
}

impl<J: Send + 'static, R: Send + 'static> Handler<Turn> for Worker<J, R> {
    type Reply = ();

    fn handle(&mut self, _: Turn, context: &Context<'_, Self>) {
        let Some(core) = self.core.upgrade() else {
            return;
        };
        let Some(Entry { job, reply, .. }) = core.take(self.lane) else {
            return;
        };
        let at_hand = AtHand {
            core: &core,
            lane: self.lane,
            is_over: false,
        };
        let result = (self.work)(job);
        if at_hand.handled() {
            send_turn(&context.actor());
        }
        if let Some(reply) = reply {
            // Who waited no longer gets it no more.
            let _ = reply.send(result);
        }
    }
}
