//! The state that the workers of one runtime share: the workers, the injector, and the idle
//! workers.
//!
//! How work reaches a worker:
//!
//! 1. A task that any worker may start goes into the spawning worker's ring or into the injector,
//!    followed by a full fence. If a worker is searching, nothing else happens, because the
//!    searcher looks again before it sleeps. Otherwise one idle worker is woken, and its idle bit
//!    is cleared by the thread that wakes it. If no worker is idle and not all workers are started,
//!    one more is started.
//! 2. A worker's first spawned task (its reserve) is not announced. It stays in the worker's
//!    private LIFO slot. The worker reaches it as soon as the running task waits or ends, or its
//!    time slice is over.
//! 3. A worker without work counts itself as searching and looks everywhere for as long as a
//!    wake-up costs. Then it publishes where it sleeps, sets its idle bit, stops counting as
//!    searching, executes a full fence, **looks everywhere once more**, and parks until its next
//!    deadline. It parks in its poller if it has descriptors there (`io`).
//! 4. Other threads rely on a searching worker and on a woken worker, and each of these takes one
//!    task. Therefore the last searcher that finds a task, and every worker that wakes up, takes
//!    its task, checks whether there are more, and then wakes one more worker. A burst fans out in
//!    this way.
//! 5. A woken actor goes to the remote queue of its home worker, never elsewhere (`remote_queue`).
//! 6. Placement uses two choices, after Mitzenmacher, "The Power of Two Choices in Randomized Load
//!    Balancing" (1996). A started actor stays with its worker. A worker that would need one more
//!    stack for an unstarted task first looks at one other worker, places the task with that worker if it
//!    has clearly fewer stacks, and wakes it. An idle worker may take the task from there if it has no
//!    more stacks itself, or after a short time: then that worker is busy. Only a task that would increase
//!    the number of stacks pays for this.
//! 7. If no stack is free, a task that must not end for that reason (`OnShortage`) waits in a list
//!    that all workers share. The thread that appends it executes a full fence and wakes every
//!    sleeping worker. A worker takes from the list when a fiber is returned, before it starts
//!    another task on a new stack, every `CLOCK_INTERVAL` ticks, and before it sleeps; after it has
//!    announced that it sleeps, it checks the list once more. A task therefore waits only while no
//!    worker has a stack for it. Memory that is freed elsewhere in the process is not announced, so
//!    a sleeping worker checks again at an interval (`worker/shortage.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::actor_info::{ActorTable, Crashes, MovedActors};
use crate::affinity;
use crate::blocking_pool::BlockingPool;
use crate::config::Config;
use crate::counters::CounterSet;
use crate::extension::Extension;
use crate::idle::{Announcement, Idle};
use crate::injector::Injector;
use crate::injector_slot::InjectorSlot;
use crate::log::{Level, Limit};
use crate::reason::JoinError;
use crate::remote_queue::RemoteQueue;
use crate::ring::Ring;
use crate::shim::{AtomicBool, AtomicUsize, Mutex, Ordering, fence, lock};
use crate::shutdown::{Leaked, Shutdown, ShutdownError, Unfinished};
use crate::stack::Depot;
use crate::stall::{Watcher, WorkerStatus};
use crate::task::{Header, OnShortage, Task};
use crate::threads;
use crate::timers::Timers;
use crate::worker::{Worker, WorkerRequests};

/// The part of a worker that other threads access.
pub(crate) struct WorkerShared {
    pub(crate) remote_queue: &'static RemoteQueue,
    pub(crate) ring: Ring<Header>,
    /// Tasks that other workers placed here (rule 6).
    pub(crate) placed: Injector<Task>,
    /// The number of stacks that the worker has.
    pub(crate) stacks: AtomicUsize,
    pub(crate) status: Arc<WorkerStatus>,
    pub(crate) requests: WorkerRequests,
}

impl WorkerShared {
    /// Two workers count as balanced if their numbers of stacks differ by no more than this.
    const SLACK: usize = 16;

    /// Takes a task from the ring. Called by the owner.
    #[inline(always)]
    pub(crate) fn take_own(&self) -> Option<Task> {
        let job = self.ring.pop()?;
        // SAFETY: the pointers in a ring came from `into_raw`, with the runtime's reference.
        unsafe { Task::from_raw(job) }
    }

    /// Steals for another worker: half of the ring, but no more than `max` tasks. Returns one of
    /// them and puts the rest into `ring`.
    pub(crate) fn steal_into(&self, ring: &Ring<Header>, max: u32) -> Option<Task> {
        let job = self.ring.steal(ring, max)?;
        // SAFETY: as above.
        unsafe { Task::from_raw(job) }
    }

    /// Takes half of the ring's tasks. Called by the owner.
    pub(crate) fn take_half(&self) -> impl Iterator<Item = Task> + use<> {
        // SAFETY: as above.
        self.ring
            .pop_half()
            .filter_map(|job| unsafe { Task::from_raw(job) })
    }

    /// Whether there is a task that any worker may start.
    #[inline(always)]
    pub(crate) fn has_some(&self) -> bool {
        !self.ring.is_empty() || !self.placed.is_empty()
    }

    /// The number of tasks that the worker runs or is about to start.
    fn load(&self) -> usize {
        self.stacks.load(Ordering::Relaxed) + self.placed.len()
    }

    /// Rule 6: whether this worker is a better place than `other` for a new actor. Each of the two
    /// may have `max` stacks.
    pub(crate) fn is_better_than(&self, other: &Self, max: usize) -> bool {
        let (mine, theirs) = (self.load(), other.load());
        mine < max && (mine + mine / 8 + Self::SLACK <= theirs || theirs >= max)
    }
}

pub(crate) struct Scheduler {
    pub(crate) config: Config,
    /// The processors to which workers are pinned. Empty if workers are not pinned.
    pub(crate) processors: Vec<usize>,
    pub(crate) workers: Box<[WorkerShared]>,
    pub(crate) timers: Timers,
    pub(crate) watcher: Watcher,
    pub(crate) pool: Arc<BlockingPool>,
    /// The names of actors (`registry`).
    pub(crate) registry: Extension,
    /// The groups of actors (`groups`).
    pub(crate) groups: Extension,
    /// The behaviour actors. `None` unless `Config::inspect` is on.
    pub(crate) actor_table: Option<ActorTable>,
    pub(crate) crashes: Crashes,
    pub(crate) moved: MovedActors,
    /// The counters of threads that are not workers of this runtime.
    pub(crate) outside: CounterSet,
    /// The first of the tasks that other threads added.
    injector_slot: InjectorSlot,
    injector: Injector<Task>,
    /// Rule 7: turns that wait for a stack. Turns have a reserve of stacks.
    turns_without_stack: Injector<Task>,
    /// Rule 7: spawned actors that wait for a stack. They have no reserve.
    actors_without_stack: Injector<Task>,
    /// The number of tasks that were ever appended to the two lists.
    shortages: AtomicUsize,
    idle: Idle,
    started: AtomicUsize,
    stopping: AtomicBool,
    pub(crate) shutdown: Shutdown,
    threads: Mutex<Vec<Thread>>,
}

/// The thread of a worker. A worker that runs on a lent thread has none.
struct Thread {
    worker: usize,
    handle: JoinHandle<()>,
}

impl Scheduler {
    pub(crate) fn new(config: Config) -> Self {
        let workers = (0..config.workers).map(|_| WorkerShared {
            remote_queue: RemoteQueue::obtain(),
            ring: Ring::new(),
            placed: Injector::new(),
            stacks: AtomicUsize::new(0),
            status: Arc::default(),
            requests: WorkerRequests::default(),
        });
        let workers: Box<[_]> = workers.collect();
        let statuses = workers
            .iter()
            .map(|shared: &WorkerShared| Arc::clone(&shared.status));
        let first_worker = workers[0].remote_queue;
        let timers = Timers::new(move || first_worker.fence_and_unpark());
        Self {
            watcher: Watcher::new(config.stall, statuses),
            workers,
            processors: if config.affinity {
                affinity::allowed()
            } else {
                Vec::new()
            },
            pool: Arc::new(BlockingPool::new(config.blocking_threads)),
            registry: Extension::default(),
            groups: Extension::default(),
            crashes: Crashes::default(),
            moved: MovedActors::default(),
            outside: CounterSet::default(),
            actor_table: config.inspect.then(|| ActorTable::new(config.workers)),
            config,
            timers,
            injector_slot: InjectorSlot::new(),
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

    /// Returns the number of the next worker to start. `None` if all workers have started.
    pub(crate) fn next_worker(&self) -> Option<usize> {
        let workers = self.workers.len();
        self.started
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |started| {
                (started < workers).then_some(started + 1)
            })
            .ok()
    }

    /// Starts the thread of one more worker. Returns `false` if all workers run. If the system has
    /// no thread, the running workers continue without it.
    ///
    /// # Errors
    /// The system refused a thread.
    pub(crate) fn start_worker(self: &Arc<Self>) -> std::io::Result<bool> {
        if self.started.load(Ordering::Relaxed) == self.workers.len() {
            return Ok(false);
        }
        let mut threads = lock(&self.threads);
        // `stop` sets the flag before it takes the threads.
        if self.is_stopping() {
            return Ok(false);
        }
        let Some(index) = self.next_worker() else {
            return Ok(false);
        };
        let shared = Arc::clone(self);
        let thread = threads::spawn_worker(format!("tw-worker-{index}"), move || {
            let shared = shared;
            let _guard = shared.shutdown.worker_guard(index);
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
                // The lock is held, so this gives back the number that was taken last.
                self.started.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Starts one more worker. If this fails, the other workers run its tasks. Too few threads make
    /// the runtime slower, not incorrect.
    #[cold]
    fn start_worker_if_possible(self: &Arc<Self>) {
        static REFUSED: Limit = Limit::new();
        if let Err(error) = self.start_worker() {
            let started = self.started();
            REFUSED.write(
                Level::Warning,
                "runtime",
                format_args!("the system has no thread for another worker, {started} run: {error}"),
            );
        }
    }

    /// [`inject`](Self::inject) for several tasks. One announcement is enough: by rule 4, the worker that takes
    /// the first one wakes another for the next one.
    pub(crate) fn inject_all(self: &Arc<Self>, tasks: impl Iterator<Item = Task>) {
        let refused = self.injector.push_all(tasks, |task| self.refuses(task));
        refused.into_iter().for_each(cancel);
        self.announce();
    }

    /// Rule 1, for a task that comes from another thread. Once the runtime stops, the task is cancelled
    /// instead.
    pub(crate) fn inject(self: &Arc<Self>, task: Task) {
        match self.injector.push(task, || self.refuses(task)) {
            Ok(()) => self.announce(),
            Err(task) => cancel(task),
        }
    }

    /// Like [`inject`](Self::inject), for a task that was just created.
    #[inline]
    pub(crate) fn inject_new(self: &Arc<Self>, task: Task) {
        if !self.injector.is_empty() || !self.injector_slot.put(task) {
            return self.inject(task);
        }
        // The fence in `announce` is that of `injector_slot`'s rule 3.
        self.announce();
        if self.is_stopping() {
            self.injector_slot.take().into_iter().for_each(cancel);
        }
    }

    /// Whether a task must not be put into a shared queue. The caller has that queue's lock, so a
    /// listing that has already visited the queue is informed about the task.
    fn refuses(&self, task: Task) -> bool {
        if self.moved.is_watched() {
            self.note_moved(task);
        }
        self.is_stopping()
    }

    /// Records a task that moves between workers while a list of actors is made. The caller owns
    /// the task.
    #[cold]
    pub(crate) fn note_moved(&self, task: Task) {
        self.moved.note(task.info_as_new());
    }

    /// The number of workers that have started or are about to start.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// The number of workers that have a task now.
    pub(crate) fn busy_workers(&self) -> usize {
        self.started().saturating_sub(self.idle.without_task())
    }

    /// Calls `look` for each task that waits for a worker and is in no ring.
    pub(crate) fn for_each_waiting(self: &Arc<Self>, mut look: impl FnMut(Task)) {
        // A worker could free the task in the slot while `look` reads it.
        self.injector_slot
            .take()
            .into_iter()
            .for_each(|task| self.inject(task));
        self.injector.for_each(&mut look);
        self.turns_without_stack.for_each(&mut look);
        self.actors_without_stack.for_each(&mut look);
        for shared in &self.workers {
            shared.placed.for_each(&mut look);
        }
    }

    #[inline(always)]
    pub(crate) fn take_injected(&self) -> Option<Task> {
        match self.injector_slot.take() {
            None => self.injector.pop(),
            task => task,
        }
    }

    pub(crate) fn injected(&self) -> usize {
        self.injector.len() + usize::from(!self.injector_slot.is_empty())
    }

    #[inline(always)]
    pub(crate) fn has_injected(&self) -> bool {
        !self.injector_slot.is_empty() || !self.injector.is_empty()
    }

    /// Rule 1, after the task was published.
    #[inline]
    pub(crate) fn announce(self: &Arc<Self>) {
        match self.idle.announce() {
            Announcement::Searching => {}
            Announcement::Wake(index) => self.workers[index].remote_queue.unpark(),
            Announcement::NoneIdle if self.started() < self.workers.len() => {
                self.start_worker_if_possible();
            }
            Announcement::NoneIdle => {}
        }
    }

    /// Rule 6, for a task that worker `index` is about to start on an additional stack. `draw` is
    /// an arbitrary number that selects the other worker. Returns the task if it stays with worker
    /// `index`.
    pub(crate) fn place(self: &Arc<Self>, index: usize, draw: u32, task: Task) -> Option<Task> {
        let others = self.workers.len() - 1;
        if others == 0 {
            return Some(task);
        }
        let max = self.max_stacks_per_worker();
        let other = (index + 1 + draw as usize % others) % self.workers.len();
        let (mine, other) = (&self.workers[index], &self.workers[other]);
        let stays = task.header().placed.get() && mine.load() < max;
        if stays || !other.is_better_than(mine, max) {
            return Some(task);
        }
        task.header().placed.set(true);
        match other.placed.push(task, || self.refuses(task)) {
            Ok(()) => {
                self.announce();
                // Another worker that was woken for it may leave it there.
                other.remote_queue.unpark();
                None
            }
            Err(task) => Some(task),
        }
    }

    fn without_stack(&self, is_turn: bool) -> &Injector<Task> {
        if is_turn {
            &self.turns_without_stack
        } else {
            &self.actors_without_stack
        }
    }

    /// Rule 7. The task is cancelled instead if the runtime is stopping or an exit signal has
    /// arrived for it.
    pub(crate) fn wait_for_stack(self: &Arc<Self>, task: Task) {
        let list = self.without_stack(task.header().is_turn);
        if let Err(task) = list.push(task, || self.refuses(task) || task.must_unwind()) {
            return cancel_for_signal(task);
        }
        self.shortages.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        for shared in &self.workers {
            shared.remote_queue.unpark();
        }
        // A worker that has not started has stacks of its own.
        self.start_worker_if_possible();
    }

    /// Rule 7: whether a task waits for a stack.
    #[inline(always)]
    pub(crate) fn has_waiting_for_stack(&self) -> bool {
        !self.turns_without_stack.is_empty() || !self.actors_without_stack.is_empty()
    }

    /// A counter that changes whenever one more task waits for a stack.
    pub(crate) fn shortages(&self) -> usize {
        self.shortages.load(Ordering::Acquire)
    }

    /// Whether a turn (`is_turn`) or a spawned actor waits for a stack.
    pub(crate) fn waits_for_stack(&self, is_turn: bool) -> bool {
        !self.without_stack(is_turn).is_empty()
    }

    /// Takes the task that has waited longest for a stack. The caller has a stack for it.
    pub(crate) fn take_waiting_for_stack(&self, is_turn: bool) -> Option<Task> {
        let task = self.without_stack(is_turn).pop()?;
        if self.moved.is_watched() {
            self.note_moved(task);
        }
        Some(task)
    }

    /// Ends the actors that wait for a stack and have received an exit signal; they need no stack
    /// for that. The sender calls it after the signal. The list's lock orders this call with a task
    /// that is about to wait.
    pub(crate) fn end_signalled(&self) {
        self.actors_without_stack
            .extract(|task| task.must_unwind())
            .into_iter()
            .for_each(cancel_for_signal);
    }

    /// Takes the turns that wait for a stack and can be refused. The caller cancels them.
    pub(crate) fn take_refusable(&self) -> VecDeque<Task> {
        self.turns_without_stack
            .extract(|task| task.header().on_shortage.get() == OnShortage::Refuse)
    }

    /// The maximum number of stacks of one worker.
    pub(crate) fn max_stacks_per_worker(&self) -> usize {
        self.config.max_stacks.div_ceil(self.workers.len())
    }

    pub(crate) fn begin_search(&self) {
        self.idle.begin_search();
    }

    /// Called by a searcher that has found work. Returns `true` if it was the last searcher (rule
    /// 4).
    pub(crate) fn end_search(&self) -> bool {
        self.idle.end_search()
    }

    /// Whether there is a task that any worker may start.
    pub(crate) fn has_unstarted(&self) -> bool {
        self.has_injected() || self.workers.iter().any(WorkerShared::has_some)
    }

    /// Rule 3. The order matters: a thread that sees the idle bit also sees where the worker
    /// sleeps.
    pub(crate) fn prepare_park(&self, index: usize, in_poller: bool) {
        self.workers[index].remote_queue.prepare_park(in_poller);
        self.idle.set_idle(index);
    }

    pub(crate) fn finish_park(&self, index: usize) {
        self.workers[index].remote_queue.finish_park();
        self.idle.clear_idle(index);
    }

    #[inline(always)]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Makes the workers stop. Each worker finishes its current turn, lets waiting actors end with
    /// [`crate::WakeReason::Stopping`], cancels unstarted tasks, and leaves. Actors that still run
    /// after `timeout` are abandoned ([`shutdown`](crate::shutdown)). The first call sets the
    /// timeout.
    pub(crate) fn halt(&self, timeout: Duration) {
        self.shutdown.begin(timeout);
        self.stopping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.injector_slot.take().into_iter().for_each(cancel);
        self.injector.drain().for_each(cancel);
        self.turns_without_stack.drain().for_each(cancel);
        self.actors_without_stack.drain().for_each(cancel);
        for shared in &self.workers {
            shared.placed.drain().for_each(cancel);
            shared.remote_queue.unpark();
            // The models have workers of their own.
            #[cfg(not(loom))]
            shared.ask(Worker::end_quick_ticks);
        }
    }

    /// Halts the runtime and waits for its workers.
    ///
    /// # Errors
    /// The actors that did not end in time. Only the first call returns them.
    pub(crate) fn stop(&self, timeout: Duration) -> Result<(), ShutdownError> {
        self.halt(timeout);
        let threads = std::mem::take(&mut *lock(&self.threads));
        let workers: Vec<_> = threads.iter().map(|thread| thread.worker).collect();
        let staying = self.shutdown.wait_for(&workers);
        let mut actors = self.shutdown.take_abandoned();
        for Thread { worker, handle } in threads {
            if staying.contains(&worker) {
                // The thread continues on its own. It owns a reference to everything that it needs.
                actors.push(self.occupied(worker));
            } else {
                // A worker catches the panics of its actors, so the result of its thread contains
                // nothing new.
                let _ = handle.join();
            }
        }
        self.watcher.stop();
        self.timers.stop();
        self.pool.stop();
        // The stacks that this runtime's workers had, and those that other runtimes returned.
        Depot::of(self.config.stack_size).release();
        ShutdownError::of(actors)
    }

    /// Describes the actor that occupies a worker that did not stop.
    fn occupied(&self, worker: usize) -> Unfinished {
        let actor = self.workers[worker].status.actor();
        let mut known = None;
        if let (Some(table), Some(actor)) = (&self.actor_table, actor) {
            table.each(|info| {
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
            leaked: Leaked::Thread,
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        for shared in &self.workers {
            shared.remote_queue.recycle();
        }
    }
}

/// Cancels a task that may have been ended by an exit signal.
fn cancel_for_signal(task: Task) {
    if task.must_unwind() {
        let why = JoinError::Exit(task.exit_reason());
        // SAFETY: as for `cancel`.
        unsafe { task.cancel(why) };
    } else {
        cancel(task);
    }
}

/// Cancels a queued task when the runtime stops.
pub(crate) fn cancel(task: Task) {
    // SAFETY: the task was in a queue and belongs to the caller. It has not been started and never
    // will be.
    unsafe { task.cancel(JoinError::Stopped) };
}
