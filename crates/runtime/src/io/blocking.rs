//! Blocking code in an actor.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use crate::wait;
use crate::wake_reason::WakeReason;
use crate::worker;

/// Receives the result of a closure.
struct JobResult<R> {
    outcome: Mutex<Option<thread::Result<R>>>,
    /// For an actor that cannot park any more.
    completed: Condvar,
    waker: Waker,
}

impl<R> JobResult<R> {
    fn outcome(&self) -> MutexGuard<'_, Option<thread::Result<R>>> {
        // Nothing panics while the lock is held.
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `f` on a thread of the runtime's pool, named `tw-blocking-N`, while the calling actor waits
/// and its worker runs other actors. On a thread that is no worker, it runs `f` directly.
///
/// Threads are started on demand, up to
/// [`Config::blocking_threads`](crate::Config::blocking_threads). If all are busy, `f` queues; if
/// not even one thread can be started, `f` runs on the worker and blocks it. Idle threads end after
/// 10 s. If the actor's runtime stops, the call does not return: the actor is unwound, and `f` runs
/// to its end if it has begun.
///
/// # Panics
/// If `f` panics, with the same payload.
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
        // Without a thread, it blocks the worker.
        job();
    }
    loop {
        if let Some(outcome) = result.outcome().take() {
            return outcome.unwrap_or_else(|payload| resume_unwind(payload));
        }
        if wait::park(None) == WakeReason::Stopping {
            wait::unwind_if_stopping();
            // In a destructor, or where unwinding is not possible, the caller must still get its
            // value.
            let mut outcome = result.outcome();
            while outcome.is_none() {
                let waited = result.completed.wait(outcome);
                outcome = waited.unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
