//! Threads for what blocks one: calls of the system that cannot be waited for, names to be resolved, other people's libraries.
//!
//! Each runtime has its own pool. A thread is started when there is a closure and none is idle, up to a limit; beyond it closures queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::no_preempt::NoPreemptGuard;

use crate::wait::{self, WakeReason};
use crate::{threads, worker};

/// As tokio: long enough for what comes in bursts.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct BlockingPool {
    max_threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    /// The next one's.
    next_number: usize,
    stopped: bool,
}

impl BlockingPool {
    pub(crate) fn new(max_threads: usize) -> Self {
        Self {
            max_threads,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it run by one of the threads, or gives it back where there are none to be had.
    fn run(self: &Arc<Self>, job: Job) -> Option<Job> {
        // An actor's, which must not be preempted with the lock held.
        let _no_preempt = NoPreemptGuard::enter();
        let mut state = self.state();
        if state.stopped {
            return Some(job);
        }
        // Each that is queued is for an idle thread that is on its way.
        let has_idle_thread = state.idle > state.queue.len();
        if !has_idle_thread && state.threads < self.max_threads {
            let next_number = state.next_number;
            let pool = Arc::clone(self);
            let started = threads::spawn(format!("tw-blocking-{next_number}"), move || {
                pool.run_thread()
            });
            if started.is_ok() {
                state.next_number += 1;
                state.threads += 1;
            } else if state.threads == 0 {
                return Some(job);
            }
        }
        state.queue.push_back(job);
        if state.idle > 0 {
            self.changed.notify_one();
        }
        None
    }

    fn run_thread(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job();
                state = self.state();
                continue;
            }
            let until = Instant::now() + IDLE_TIMEOUT;
            state.idle += 1;
            while state.queue.is_empty() && !state.stopped {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.idle -= 1;
            if state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Threads end when they have done what they do; what has not begun is dropped.
    pub(crate) fn stop(&self) {
        let queue = {
            let mut state = self.state();
            state.stopped = true;
            std::mem::take(&mut state.queue)
        };
        self.changed.notify_all();
        drop(queue);
    }
}

/// Where a closure's outcome is put.
struct JobResult<R> {
    outcome: Mutex<Option<thread::Result<R>>>,
    /// For an actor that cannot park any more.
    completed: Condvar,
    waker: Waker,
}

impl<R> JobResult<R> {
    fn outcome(&self) -> MutexGuard<'_, Option<thread::Result<R>>> {
        // Nothing panics while it is held.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `f` on a thread of its own, `tw-blocking-N`, while the actor waits and leaves its worker to others. A thread that is no actor may
/// block: it runs `f` itself.
///
/// The threads are the runtime's, started as they are needed up to [`Config::blocking_threads`](crate::Config::blocking_threads); where
/// all are busy `f` queues, and where the system has not even one, `f` runs on the worker and blocks it. An idle one ends after 10 s. Where the actor's runtime stops it does not come back: the actor is unwound, its
/// destructors run, and `f` goes on to its end if it has begun.
///
/// # Panics
/// With `f`'s own panic.
///
/// ```
/// use thalweg_runtime::{io, run};
///
/// let length = run(|| io::blocking(|| std::fs::read("Cargo.toml").map(|text| text.len())));
/// assert!(length? > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn blocking<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let Some(worker) = worker::current() else {
        return f();
    };
    wait::begin_fallible_wait();
    let result = Arc::new(JobResult {
        outcome: Mutex::new(None),
        completed: Condvar::new(),
        waker: wait::waker(),
    });
    let job_result = Arc::clone(&result);
    let job = Box::new(move || {
        let outcome = catch_unwind(AssertUnwindSafe(f));
        *job_result.outcome() = Some(outcome);
        job_result.completed.notify_one();
        job_result.waker.wake_by_ref();
    });
    if let Some(job) = worker.scheduler.pool.run(job) {
        // No thread: slower for the others here, and right.
        job();
    }
    loop {
        if let Some(outcome) = result.outcome().take() {
            return outcome.unwrap_or_else(|payload| resume_unwind(payload));
        }
        if wait::park(None) == WakeReason::Stopping {
            wait::unwind_if_stopping();
            // In a destructor, or where there is no unwinding: the value must come from somewhere.
            let mut outcome = result.outcome();
            while outcome.is_none() {
                let waited = result.completed.wait(outcome);
                outcome = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
