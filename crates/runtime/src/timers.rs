//! Deadlines of one runtime: a sorted map and one thread, `tw-timer`, that sleeps until the earliest.
//!
//! The thread starts with the first timer and does not tick: without timers it sleeps for ever. Setting one
//! wakes it only if the new one is the earliest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;

use thalweg_queue::quiet::lock;
use thalweg_queue::{Parker, Quiet, clock};

use crate::metrics::Counter;

/// Names a timer that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    deadline: u64,
    number: u64,
}

/// The timers of a runtime.
#[derive(Debug, Default)]
pub struct Timers {
    state: Arc<Mutex<State>>,
    parker: OnceLock<Parker>,
    /// The thread's to count.
    fired: Arc<Counter>,
}

#[derive(Debug, Default)]
struct State {
    set: BTreeMap<TimerKey, Waker>,
    number: u64,
    stopped: bool,
}

impl Timers {
    /// Wakes `waker` at `deadline` ([`clock`]), on the timers' thread, where it must not wait.
    pub fn at(&self, deadline: u64, waker: Waker) -> TimerKey {
        let parker = self.parker.get_or_init(|| {
            let _quiet = Quiet::begin();
            self.start()
        });
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
            parker.unpark();
        }
        key
    }

    /// Forgets it, if it has not fired.
    pub fn cancel(&self, key: TimerKey) {
        let waker = lock(&self.state).set.remove(&key);
        drop(waker);
    }

    fn start(&self) -> Parker {
        let parker = Parker::new();
        let mine = parker.clone();
        let state = Arc::clone(&self.state);
        let fired = Arc::clone(&self.fired);
        let thread = crate::runtime::thread("tw-timer".into(), move || {
            serve(&state, &mine, &fired);
        });
        // Without a thread no deadline would ever fire: worse than to stop here.
        thread.expect("the system has a thread for deadlines");
        parker
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
        if let Some(parker) = self.parker.get() {
            parker.unpark();
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
