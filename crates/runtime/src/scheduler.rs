//! What the workers of one runtime share: who there is, the injector, and who sleeps.
//!
//! How work finds a worker:
//!
//! 1. A job that any worker may start: into the own ring or the injector, then a full fence, then: if a worker searches, nothing (it looks again
//!    before it sleeps); else one idle worker is woken, whose bit the waker clears; where none is idle and not all are started, one more is.
//! 2. A worker's first job in reserve is not announced: it stays in the slot that only the worker sees, which it reaches as soon as what runs
//!    there waits or ends, or its time slice is over.
//! 3. A worker without work counts itself as searching, looks everywhere for what a wake costs, says where it sleeps and after that that it is
//!    idle, stops counting as searching, passes a full fence, **looks everywhere once more**, and parks until its next deadline, in its poller
//!    if it has descriptors there (`io`).
//! 4. Others rely on a searcher and on one that was woken, who each take one job. So the last searcher that finds something, and whoever
//!    gets up, takes its job, looks whether there are more, and then wakes one more worker: a burst fans out.
//! 5. A woken actor goes to its home's queue, never elsewhere (`remote_queue`).
//! 6. Placement by two choices, after Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (1996): a started actor stays with its
//!    worker, so one that would need a stack more there first looks at one other worker, and is left with that one if it has clearly fewer. There
//!    whoever is idle may take it, as if it were in the ring. Only what makes the number of stacks grow pays for it.
//! 7. If no stack is free, a job that must not end for that reason (`OnShortage`) waits in a list
//!    that all workers share. The thread that appends it executes a full fence and wakes every
//!    sleeping worker. A worker takes from the list when a fiber is returned, before it starts
//!    another job on a new stack, every `TURNS_TO_CLOCK` turns, and before it sleeps; after it has
//!    announced that it sleeps, it checks the list once more. A job therefore waits only while no
//!    worker has a stack for it. Memory that is freed elsewhere in the process is not announced, so
//!    a sleeping worker checks again at an interval (`worker/shortage.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::affinity;
use crate::config::Config;
use crate::groups::Groups;
use crate::idle::{Announced, Idle};
use crate::injector::Injector;
use crate::inspect::{Asked, Crashes, Moved, Register};
use crate::io::BlockingPool;
use crate::join::JoinError;
use crate::metrics::Counts;
use crate::registry::Registry;
use crate::remote_queue::RemoteQueue;
use crate::ring::Ring;
use crate::runtime;
use crate::shim::{AtomicBool, AtomicUsize, Mutex, Ordering, fence, lock};
use crate::shutdown::{Left, Shutdown, ShutdownError, Unfinished};
use crate::stack::Depot;
use crate::stall::{Pulse, Watcher};
use crate::task::{Header, OnShortage, Task};
use crate::timers::Timers;
use crate::worker::Worker;

/// Something that runs on a worker each time it is scheduled, and holds no stack in between.
pub trait Run: Send + Sync + 'static {
    /// One turn, on an actor's stack: it may wait. A panic ends the turn, with the process's panic hook having
    /// its say, and nothing else.
    fn run(self: Arc<Self>);

    /// Called instead of [`run`](Self::run) where no stack came free for the turn while its worker
    /// had nothing else to do, as where every stack is held by an actor that waits for this one. It
    /// runs on the worker's own stack and must not wait. The turn is over: schedule another one if
    /// there is still something to do.
    fn refuse(self: Arc<Self>);
}

/// A worker's place in the runtime.
pub(crate) struct Seat {
    pub(crate) remote_queue: &'static RemoteQueue,
    pub(crate) ring: Ring<Header>,
    /// What other workers left for this one to start: rule 6.
    pub(crate) placed: Injector,
    /// How many its worker has.
    pub(crate) stacks: AtomicUsize,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) asked: Asked,
}

impl Seat {
    /// So many stacks more than others have are no crowd.
    const SLACK: usize = 16;

    /// Its worker: from the ring.
    #[inline(always)]
    pub(crate) fn take_own(&self) -> Option<Task> {
        let job = self.ring.pop()?;
        // SAFETY: what is in a ring came from `into_raw`, with the runtime's reference.
        unsafe { Task::from_raw(job) }
    }

    /// Another worker: half of the ring and no more than `most`, of which one comes back and the rest is put into `ring`; or what was left here.
    pub(crate) fn steal_into(&self, ring: &Ring<Header>, most: u32) -> Option<Task> {
        match self.ring.steal(ring, most) {
            // SAFETY: as above.
            Some(job) => unsafe { Task::from_raw(job) },
            None => self.placed.pop(),
        }
    }

    /// Whether there is a job that any worker may start.
    #[inline(always)]
    pub(crate) fn has_some(&self) -> bool {
        !self.ring.is_empty() || !self.placed.is_empty()
    }

    /// What its worker has to run, or is about to have.
    fn load(&self) -> usize {
        self.stacks.load(Ordering::Relaxed) + self.placed.len()
    }

    /// Rule 6: whether a new actor is better off here than with `other`; each of the two may have `most` stacks.
    fn is_better_than(&self, other: &Self, most: usize) -> bool {
        let (mine, theirs) = (self.load(), other.load());
        mine < most && (mine + mine / 8 + Self::SLACK <= theirs || theirs >= most)
    }
}

pub(crate) struct Scheduler {
    pub(crate) config: Config,
    /// Those that workers are pinned to; empty: they are not.
    pub(crate) processors: Vec<usize>,
    pub(crate) seats: Box<[Seat]>,
    pub(crate) timers: Timers,
    pub(crate) watcher: Watcher,
    pub(crate) pool: Arc<BlockingPool>,
    pub(crate) registry: Registry,
    pub(crate) groups: Groups,
    /// The behaviour actors, where books are kept.
    pub(crate) register: Option<Register>,
    pub(crate) crashes: Crashes,
    pub(crate) moved: Moved,
    /// What others than its workers count.
    pub(crate) outside: Counts,
    injector: Injector,
    /// Rule 7: turns, which have a reserve of stacks ..
    turns_without_stack: Injector,
    /// .. and spawned actors, which have none.
    actors_without_stack: Injector,
    /// How often one of the two lists got a job.
    shortages: AtomicUsize,
    idle: Idle,
    started: AtomicUsize,
    stopping: AtomicBool,
    pub(crate) shutdown: Shutdown,
    threads: Mutex<Vec<Thread>>,
}

/// A worker's, but for one that lends itself to the runtime.
struct Thread {
    worker: usize,
    handle: JoinHandle<()>,
}

impl Scheduler {
    pub(crate) fn new(config: Config) -> Self {
        let seats = (0..config.workers).map(|_| Seat {
            remote_queue: RemoteQueue::obtain(),
            ring: Ring::new(),
            placed: Injector::new(),
            stacks: AtomicUsize::new(0),
            pulse: Arc::default(),
            asked: Asked::default(),
        });
        let seats: Box<[_]> = seats.collect();
        let pulses = seats.iter().map(|seat: &Seat| Arc::clone(&seat.pulse));
        Self {
            watcher: Watcher::new(config.stall, pulses),
            seats,
            processors: if config.affinity {
                affinity::allowed()
            } else {
                Vec::new()
            },
            pool: Arc::new(BlockingPool::new(config.blocking_threads)),
            registry: Registry::new(config.workers),
            groups: Groups::default(),
            crashes: Crashes::default(),
            moved: Moved::default(),
            outside: Counts::default(),
            register: config.inspect.then(|| Register::new(config.workers)),
            config,
            timers: Timers::default(),
            injector: Injector::new(),
            turns_without_stack: Injector::new(),
            actors_without_stack: Injector::new(),
            shortages: AtomicUsize::new(0),
            idle: Idle::new(),
            started: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            shutdown: Shutdown::default(),
            threads: Mutex::default(),
        }
    }

    /// The number of a worker that is about to run; `None`: all do.
    pub(crate) fn next_worker(&self) -> Option<usize> {
        let workers = self.seats.len();
        self.started
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |started| {
                (started < workers).then_some(started + 1)
            })
            .ok()
    }

    /// One more thread; `false`: all run. Where the system has no more, those that run go on without.
    ///
    /// # Errors
    /// The system gave no thread.
    pub(crate) fn start_worker(self: &Arc<Self>) -> std::io::Result<bool> {
        if self.started.load(Ordering::Relaxed) == self.seats.len() {
            return Ok(false);
        }
        let mut threads = lock(&self.threads);
        // `stop` takes the threads after it said so.
        if self.is_stopping() {
            return Ok(false);
        }
        let Some(index) = self.next_worker() else {
            return Ok(false);
        };
        let shared = Arc::clone(self);
        let thread = runtime::worker_thread(format!("tw-worker-{index}"), move || {
            let shared = shared;
            let _leaves = shared.shutdown.leaves(index);
            Worker::enter(index, Arc::clone(&shared), |worker| worker.work(|| false));
        });
        match thread {
            Ok(thread) => {
                if self.processors.is_empty() && !cfg!(miri) {
                    affinity::move_away(&thread);
                }
                threads.push(Thread {
                    worker: index,
                    handle: thread,
                });
                Ok(true)
            }
            Err(error) => {
                // Under the lock, so it is the last one's number that is given back.
                self.started.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Rule 1, from outside and where a ring is full. Cancelled, not run, once the runtime stops.
    pub(crate) fn inject(self: &Arc<Self>, task: Task) {
        match self.injector.push(task, || self.refuses(task)) {
            Ok(()) => self.announce(),
            Err(task) => cancel(task),
        }
    }

    /// Whether a job may not be put where all see it: under that place's lock, so a list that has looked there before is told of it.
    fn refuses(&self, task: Task) -> bool {
        if self.moved.is_watched() {
            self.moved.note(task);
        }
        self.is_stopping()
    }

    /// Workers that have started, or are about to.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// Looks at each job that waits for a worker and is in no ring.
    pub(crate) fn each_waiting(&self, mut look: impl FnMut(Task)) {
        self.injector.each(&mut look);
        self.turns_without_stack.each(&mut look);
        self.actors_without_stack.each(&mut look);
        for seat in &self.seats {
            seat.placed.each(&mut look);
        }
    }

    pub(crate) fn take_injected(&self) -> Option<Task> {
        self.injector.pop()
    }

    pub(crate) fn injected(&self) -> usize {
        self.injector.len()
    }

    #[inline(always)]
    pub(crate) fn has_injected(&self) -> bool {
        !self.injector.is_empty()
    }

    /// Rule 1, after the job was put where others see it.
    pub(crate) fn announce(self: &Arc<Self>) {
        match self.idle.announce() {
            Announced::Awaited => {}
            Announced::Wakes(index) => self.seats[index].remote_queue.unpark(),
            Announced::Unheard => {
                // Without one more the others do it: a machine short of threads is slower, not wrong.
                let _ = self.start_worker();
            }
        }
    }

    /// Rule 6, for what worker `index` is about to start on one stack more. `draw` is any number. `Some`: it is to stay.
    pub(crate) fn place(self: &Arc<Self>, index: usize, draw: u32, task: Task) -> Option<Task> {
        let others = self.seats.len() - 1;
        if others == 0 {
            return Some(task);
        }
        let most = self.most_stacks();
        let other = (index + 1 + draw as usize % others) % self.seats.len();
        let (mine, other) = (&self.seats[index], &self.seats[other]);
        if !other.is_better_than(mine, most) {
            return Some(task);
        }
        match other.placed.push(task, || self.refuses(task)) {
            Ok(()) => {
                self.announce();
                None
            }
            Err(task) => Some(task),
        }
    }

    fn without_stack(&self, is_turn: bool) -> &Injector {
        if is_turn {
            &self.turns_without_stack
        } else {
            &self.actors_without_stack
        }
    }

    /// Rule 7. Cancelled where the runtime stops, or a signal is to end it.
    pub(crate) fn wait_for_stack(self: &Arc<Self>, task: Task) {
        let list = self.without_stack(task.header().is_turn);
        if let Err(task) = list.push(task, || self.refuses(task) || task.must_exit()) {
            return cancel_for_signal(task);
        }
        self.shortages.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        for seat in &self.seats {
            seat.remote_queue.unpark();
        }
        // One that has not started has stacks of its own.
        let _ = self.start_worker();
    }

    /// Rule 7: whether a job waits for a stack.
    #[inline(always)]
    pub(crate) fn has_waiting_for_stack(&self) -> bool {
        !self.turns_without_stack.is_empty() || !self.actors_without_stack.is_empty()
    }

    /// Changes whenever one more job waits for a stack.
    pub(crate) fn shortages(&self) -> usize {
        self.shortages.load(Ordering::Acquire)
    }

    /// Whether a turn waits for a stack, or else a spawned actor.
    pub(crate) fn waits_for_stack(&self, is_turn: bool) -> bool {
        !self.without_stack(is_turn).is_empty()
    }

    /// The one that has waited longest for a stack, for who has one.
    pub(crate) fn take_waiting_for_stack(&self, is_turn: bool) -> Option<Task> {
        let task = self.without_stack(is_turn).pop()?;
        if self.moved.is_watched() {
            self.moved.note(task);
        }
        Some(task)
    }

    /// Ends the actors that wait for a stack and got an exit signal: they need none for that. Who
    /// sends the signal calls it after; the list's lock orders it with who is about to wait.
    pub(crate) fn end_signalled(&self) {
        self.actors_without_stack
            .extract(|task| task.must_exit())
            .into_iter()
            .for_each(cancel_for_signal);
    }

    /// Turns that wait for a stack and can be refused: they are the caller's, to cancel.
    pub(crate) fn take_refusable(&self) -> VecDeque<Task> {
        self.turns_without_stack
            .extract(|task| task.header().on_shortage.get() == OnShortage::Refuse)
    }

    /// Of one worker.
    pub(crate) fn most_stacks(&self) -> usize {
        self.config.max_stacks.div_ceil(self.seats.len())
    }

    pub(crate) fn begin_search(&self) {
        self.idle.begin_search();
    }

    /// The caller has found something. `true`: it was the last that searched (rule 4).
    pub(crate) fn end_search(&self) -> bool {
        self.idle.end_search()
    }

    /// Whether there is a job that any worker may start.
    pub(crate) fn has_fresh(&self) -> bool {
        self.has_injected() || self.seats.iter().any(Seat::has_some)
    }

    /// Rule 3. In this order: who chooses an idle worker knows where it is to be woken.
    pub(crate) fn prepare_park(&self, index: usize, in_poller: bool) {
        self.seats[index].remote_queue.prepare_park(in_poller);
        self.idle.set_idle(index);
    }

    pub(crate) fn finish_park(&self, index: usize) {
        self.seats[index].remote_queue.finish_park();
        self.idle.clear_idle(index);
    }

    #[inline(always)]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Workers finish their turn, let what waits end with [`crate::WakeReason::Stopping`], and leave; what has not begun is cancelled. What goes on after
    /// `timeout` is left behind ([`shutdown`](crate::shutdown)); the first call sets it.
    pub(crate) fn halt(&self, timeout: Duration) {
        self.shutdown.begin(timeout);
        self.stopping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.injector.drain().for_each(cancel);
        self.turns_without_stack.drain().for_each(cancel);
        self.actors_without_stack.drain().for_each(cancel);
        for seat in &self.seats {
            seat.placed.drain().for_each(cancel);
            seat.remote_queue.unpark();
        }
    }

    /// Halts, and waits for the workers.
    ///
    /// # Errors
    /// Actors that did not end, once: another call has nothing to wait for.
    pub(crate) fn stop(&self, timeout: Duration) -> Result<(), ShutdownError> {
        self.halt(timeout);
        let threads = std::mem::take(&mut *lock(&self.threads));
        let workers: Vec<_> = threads.iter().map(|thread| thread.worker).collect();
        let staying = self.shutdown.wait_for(&workers);
        let mut actors = self.shutdown.take_abandoned();
        for Thread { worker, handle } in threads {
            if staying.contains(&worker) {
                // It goes on without us; what it needs is in its own `Arc`.
                actors.push(self.occupied(worker));
            } else {
                // A worker catches what its actors throw; there is nothing to learn from its end.
                let _ = handle.join();
            }
        }
        self.watcher.stop();
        self.timers.stop();
        self.pool.stop();
        // All that its workers had, and what other runtimes gave back.
        Depot::of(self.config.stack_size).release();
        ShutdownError::of(actors)
    }

    /// Of a worker that does not come back: the actor that it runs.
    fn occupied(&self, worker: usize) -> Unfinished {
        let actor = self.seats[worker].pulse.actor();
        let mut known = None;
        if let (Some(register), Some(actor)) = (&self.register, actor) {
            register.each(|info| {
                if info.id == actor {
                    known = Some((info.name, info.parent));
                }
            });
        }
        let (name, parent) = known.unwrap_or_default();
        Unfinished {
            actor,
            name,
            parent,
            worker,
            left: Left::Thread,
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        for seat in &self.seats {
            seat.remote_queue.recycle();
        }
    }
}

/// The same for one that a signal may have ended.
fn cancel_for_signal(task: Task) {
    if task.must_exit() {
        let why = JoinError::Exit(task.exit_reason());
        // SAFETY: as for `cancel`.
        unsafe { task.cancel(why) };
    } else {
        cancel(task);
    }
}

/// A job of the injector or a ring, when the runtime stops.
pub(crate) fn cancel(task: Task) {
    // SAFETY: it was in a queue, and nobody else's: it has not been started and now never is.
    unsafe { task.cancel(JoinError::Stopped) };
}
