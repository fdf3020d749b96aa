//! A thread pool for blocking code: system calls without readiness, name resolution, foreign
//! libraries.
//!
//! Each runtime has its own pool. A closure starts a thread if none is idle, up to a limit; beyond
//! the limit, closures queue.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_queue::no_preempt::NoPreemptGuard;

use crate::threads;

/// The same as tokio's: long enough to keep threads between bursts.
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
    /// The number of the next thread.
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
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the job for a thread. Returns it if the pool is stopped or no thread can be started.
    pub(crate) fn run(self: &Arc<Self>, job: Job) -> Option<Job> {
        // The caller may be an actor, which must not be preempted while it holds the lock.
        let _no_preempt = NoPreemptGuard::enter();
        let mut state = self.state();
        if state.stopped {
            return Some(job);
        }
        // Each queued job has an idle thread that is about to take it.
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

    /// Idle threads end; busy ones end after their job. Queued jobs are dropped.
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
