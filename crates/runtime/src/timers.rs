//! The timers of one runtime: a sorted map, and a thread `tw-timer` that sleeps until the earliest
//! deadline.
//!
//! The first timer starts the thread, unless the runtime has threads anyway: then it starts with the
//! runtime. A process with one thread is faster without it, because the kernel then counts no
//! references to its table of descriptors. The thread does not tick: without timers it sleeps.
//! Setting a timer wakes it only if the new timer is the earliest.
//!
//! Setting a timer cannot fail. If the system refuses the thread, the workers fire the timers,
//! together with those of their wheels, and the first worker sleeps no longer than until the earliest
//! one. Every further timer tries to start the thread again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::JoinHandle;

use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_queue::{Parker, clock};

use crate::counters::Counter;
use crate::log::{self, Level};

/// Identifies a timer, so that it can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    deadline: u64,
    number: u64,
}

/// The timers of a runtime.
pub struct Timers {
    state: Arc<Mutex<State>>,
    /// Wakes the thread.
    parker: Parker,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Whether the system refused the thread, so that the workers fire the timers.
    without_thread: AtomicBool,
    /// Wakes the worker that looks at the deadlines meanwhile.
    wake_worker: Box<dyn Fn() + Send + Sync>,
    /// The number of fired timers.
    fired: Arc<Counter>,
}

#[derive(Debug, Default)]
struct State {
    set: BTreeMap<TimerKey, Waker>,
    number: u64,
    /// Whether the thread runs, or is being started.
    has_thread: bool,
    stopped: bool,
}

impl Timers {
    /// Without a thread. `wake_worker` wakes the runtime's first worker.
    pub(crate) fn new(wake_worker: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            state: Arc::default(),
            parker: Parker::new(),
            thread: Mutex::default(),
            without_thread: AtomicBool::new(false),
            wake_worker: Box::new(wake_worker),
            fired: Arc::default(),
        }
    }

    /// Wakes `waker` at `deadline`, a time of the [`clock`]. The waker is called on the timer
    /// thread, or on a worker, and must not block.
    pub fn at(&self, deadline: u64, waker: Waker) -> TimerKey {
        let mut state = lock(&self.state);
        state.number += 1;
        let key = TimerKey {
            deadline,
            number: state.number,
        };
        let earliest = state.set.first_key_value().is_none_or(|(k, _)| key < *k);
        state.set.insert(key, waker);
        let has_thread = state.has_thread;
        drop(state);
        if !has_thread {
            self.start_or_leave_to_workers();
        } else if earliest {
            self.parker.unpark();
        }
        key
    }

    /// Removes a timer that has not fired.
    pub fn cancel(&self, key: TimerKey) {
        let waker = lock(&self.state).set.remove(&key);
        drop(waker);
    }

    /// Starts the thread, if it does not run.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(&self) -> std::io::Result<()> {
        // Held until the handle is stored, so that `stop` finds it.
        let mut thread = lock(&self.thread);
        let mut state = lock(&self.state);
        if state.stopped || state.has_thread {
            return Ok(());
        }
        state.has_thread = true;
        drop(state);
        let parker = self.parker.clone();
        let state = Arc::clone(&self.state);
        let fired = Arc::clone(&self.fired);
        let started = crate::threads::spawn("tw-timer".into(), move || {
            serve(&state, &parker, &fired);
        });
        lock(&self.state).has_thread = started.is_ok();
        self.without_thread
            .store(started.is_err(), Ordering::Release);
        *thread = Some(started?);
        Ok(())
    }

    #[cold]
    fn start_or_leave_to_workers(&self) {
        if let Err(error) = self.start() {
            log::write(
                Level::Warning,
                "runtime",
                format_args!("the system has no thread for timers, the workers fire them: {error}"),
            );
            (self.wake_worker)();
        }
    }

    /// For a worker that may sleep: the earliest deadline that it has to fire. `u64::MAX`: none.
    #[inline(always)]
    pub(crate) fn deadline_for_workers(&self) -> u64 {
        match self.without_thread.load(Ordering::Acquire) {
            false => u64::MAX,
            true => self.earliest(),
        }
    }

    #[cold]
    fn earliest(&self) -> u64 {
        let state = lock(&self.state);
        let first = state.set.first_key_value();
        first.map_or(u64::MAX, |(key, _)| key.deadline)
    }

    /// Fires the timers whose deadlines have passed, if the timers have no thread. Called by workers.
    #[inline(always)]
    pub(crate) fn fire_without_thread(&self) {
        if self.without_thread.load(Ordering::Relaxed) {
            while fire_first(lock(&self.state), &self.fired) {}
        }
    }

    pub(crate) fn fired(&self) -> u64 {
        self.fired.get()
    }

    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        let left = std::mem::take(&mut state.set);
        drop(state);
        drop(left);
        self.parker.unpark();
        let thread = lock(&self.thread).take();
        // If a waker ends the runtime on the timer thread, that thread ends by itself.
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of that thread has been printed already.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Timers")
            .field("state", &self.state)
            .field("fired", &self.fired())
            .finish_non_exhaustive()
    }
}

fn serve(state: &Mutex<State>, parker: &Parker, fired: &Counter) {
    loop {
        let guard = lock(state);
        if guard.stopped {
            return;
        }
        let next = guard.set.first_key_value().map(|(key, _)| key.deadline);
        if !fire_first(guard, fired) {
            parker.park(next);
        }
    }
}

/// Fires the first timer if its deadline has passed. Returns whether it has.
fn fire_first(mut state: LockGuard<'_, State>, fired: &Counter) -> bool {
    let first = state.set.first_entry();
    let Some(due) = first.filter(|first| first.key().deadline <= clock::now()) else {
        return false;
    };
    let waker = due.remove();
    drop(state);
    fired.add_shared(1);
    waker.wake();
    true
}
