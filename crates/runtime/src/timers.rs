//! The timers of one runtime: a sorted map, and a thread `tw-timer` that sleeps until the earliest
//! deadline.
//!
//! The thread starts with the runtime, so that setting a timer cannot fail. It does not tick:
//! without timers it sleeps. Setting a timer wakes the thread only if the new timer is the
//! earliest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::JoinHandle;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{Parker, clock};

use crate::counters::Counter;

/// Identifies a timer, so that it can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    deadline: u64,
    number: u64,
}

/// The timers of a runtime.
#[derive(Debug, Default)]
pub struct Timers {
    state: Arc<Mutex<State>>,
    /// Wakes the thread.
    parker: Parker,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The number of fired timers. Only the thread writes it.
    fired: Arc<Counter>,
}

#[derive(Debug, Default)]
struct State {
    set: BTreeMap<TimerKey, Waker>,
    number: u64,
    stopped: bool,
}

impl Timers {
    /// Wakes `waker` at `deadline`, a time of the [`clock`]. The waker is called on the timer
    /// thread and must not block.
    pub fn at(&self, deadline: u64, waker: Waker) -> TimerKey {
        let mut state = lock(&self.state);
        state.number += 1;
        let key = TimerKey {
            deadline,
            number: state.number,
        };
        let earliest = state.set.first_key_value().is_none_or(|(k, _)| key < *k);
        state.set.insert(key, waker);
        drop(state);
        if earliest {
            self.parker.unpark();
        }
        key
    }

    /// Removes a timer that has not fired.
    pub fn cancel(&self, key: TimerKey) {
        let waker = lock(&self.state).set.remove(&key);
        drop(waker);
    }

    /// Starts the thread, before the runtime runs any actor.
    ///
    /// # Errors
    /// The system has no thread.
    pub(crate) fn start(&self) -> std::io::Result<()> {
        let parker = self.parker.clone();
        let state = Arc::clone(&self.state);
        let fired = Arc::clone(&self.fired);
        let thread = crate::threads::spawn("tw-timer".into(), move || {
            serve(&state, &parker, &fired);
        })?;
        *lock(&self.thread) = Some(thread);
        Ok(())
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

fn serve(state: &Mutex<State>, parker: &Parker, count: &Counter) {
    loop {
        let mut guard = lock(state);
        if guard.stopped {
            return;
        }
        let now = clock::now();
        let next = guard.set.first_key_value().map(|(key, _)| key.deadline);
        match next {
            Some(deadline) if deadline <= now => {
                let fired = guard.set.pop_first();
                drop(guard);
                if let Some((_, waker)) = fired {
                    count.add(1);
                    waker.wake();
                }
            }
            later => {
                drop(guard);
                parker.park(later);
            }
        }
    }
}
