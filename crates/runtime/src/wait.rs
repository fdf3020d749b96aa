//! Waiting, the same for an actor and for a thread: who waits asks for a [`waker`], gives it to whoever will have
//! something, looks once more, and [`park`]s.

use std::task::Waker;

use thalweg_queue::{Parker, Wake, clock};

use crate::fiber::{self, Suspended};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// Somebody woke the waiter, perhaps before it slept, perhaps in vain.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal was handled on this thread. Never in an actor.
    Interrupted,
    /// The actor's runtime stops: give up and return.
    Stopping,
}

/// What wakes the caller.
pub fn waker() -> Waker {
    fiber::with_current(|running| Waker::from(running.actor().clone()))
        .unwrap_or_else(|| Parker::current().waker())
}

/// Whether the caller is an actor.
pub fn in_actor() -> bool {
    fiber::with_current(|_| ()).is_some()
}

/// Waits until woken or until `deadline` ([`clock`]; `None`: for ever). An actor leaves its worker to others meanwhile.
pub fn park(deadline: Option<u64>) -> Woke {
    let deadline = deadline.filter(|ns| *ns != u64::MAX);
    fiber::with_current(|running| {
        if running.scheduler.is_stopping() {
            return Woke::Stopping;
        }
        let timer = match deadline {
            Some(ns) if ns <= clock::now() => return Woke::TimedOut,
            Some(ns) => Some(running.scheduler.timers.at(ns, waker())),
            None => None,
        };
        let actor = running.actor();
        if actor.will_park() {
            running.suspend(Suspended::Parked);
            actor.did_park();
        }
        if let Some(timer) = timer {
            running.scheduler.timers.cancel(timer);
        }
        if running.scheduler.is_stopping() {
            Woke::Stopping
        } else if deadline.is_some_and(|ns| ns <= clock::now()) {
            Woke::TimedOut
        } else {
            Woke::Woken
        }
    })
    .unwrap_or_else(|| match Parker::current().park(deadline) {
        Wake::Woken => Woke::Woken,
        Wake::TimedOut => Woke::TimedOut,
        Wake::Interrupted => Woke::Interrupted,
    })
}

/// Lets others run if they wait and this actor has had its time slice since it first saw them. A loop that computes calls it
/// often: it costs a few loads, and a look at the clock while others wait. On a thread it does nothing.
pub fn check() {
    fiber::with_current(|running| {
        let scheduler = &running.scheduler;
        let waiting = running.others.get()
            || scheduler.has_fresh()
            || !scheduler.desks[running.seat.worker as usize]
                .inbox
                .is_empty();
        if !waiting || scheduler.is_stopping() {
            return;
        }
        let now = clock::now();
        if running.since.get() == 0 {
            running.since.set(now);
        }
        let slice = scheduler.config.timeslice.as_nanos() as u64;
        if now.saturating_sub(running.since.get()) >= slice {
            running.suspend(Suspended::Yielded);
        }
    });
}

/// Lets others run now. On a thread it does nothing.
pub fn yield_now() {
    fiber::with_current(|running| {
        if !running.scheduler.is_stopping() {
            running.suspend(Suspended::Yielded);
        }
    });
}

/// Whether the caller is an actor whose runtime stops.
pub fn stopping() -> bool {
    fiber::with_current(|running| running.scheduler.is_stopping()).unwrap_or(false)
}
