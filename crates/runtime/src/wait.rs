//! Waiting, the same for an actor and for a thread: who waits asks for a [`waker`], gives it to whoever will have
//! something, looks once more, and [`park`]s.

use std::task::Waker;
use std::time::{Duration, Instant};

use thalweg_queue::{ParkHooks, ParkResult, Parker, clock};

use crate::exit;
use crate::id::ActorId;
use crate::task::Task;
use crate::worker::{self, Worker};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Somebody woke the waiter, perhaps before it slept, perhaps in vain.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal was handled on this thread. Never in an actor.
    Interrupted,
    /// The actor's runtime stops, a signal ends it, its scope is cancelled, or it is being unwound and cannot wait: give up and return.
    Stopping,
}

/// How an actor waits in a blocking call of [`thalweg_queue`].
pub(crate) static PARK_HOOKS: ParkHooks = ParkHooks {
    waker: || {
        let (worker, task) = actor()?;
        worker.before_wait(task);
        Some(task.waker())
    },
    park: |deadline| match park(deadline) {
        WakeReason::Woken => ParkResult::Woken,
        WakeReason::TimedOut | WakeReason::Stopping => ParkResult::TimedOut,
        WakeReason::Interrupted => ParkResult::Interrupted,
    },
    timed_out: exit::raise_if_due,
};

/// Ends the actor that waits in vain, where it can be: a signal ends it, its scope is cancelled, or its runtime stops. Nothing of the wait is left in
/// any list.
pub(crate) fn unwind_if_stopping() {
    exit::raise_if_due();
    if actor().is_some_and(|(worker, _)| worker.scheduler.is_stopping()) {
        worker::unwind_if_possible();
    }
}

/// An actor that is about to wait by something that may end with an error: where its runtime stops that comes once.
pub(crate) fn begin_fallible_wait() {
    if let Some((worker, task)) = actor() {
        worker.before_wait(task);
    }
}

/// What wakes the caller.
pub fn waker() -> Waker {
    actor().map_or_else(|| Parker::current().waker(), |(_, task)| task.waker())
}

/// Whether the caller is an actor.
pub fn is_actor() -> bool {
    actor().is_some()
}

fn actor() -> Option<(&'static Worker, Task)> {
    let worker = worker::current()?;
    Some((worker, worker.running()?))
}

/// Which actor the caller is; `None`: a thread.
pub fn current() -> Option<ActorId> {
    actor().map(|(_, task)| task.actor_id())
}

/// Waits until woken or until `deadline` ([`clock`]; `None`: for ever). An actor leaves its worker to others meanwhile.
pub fn park(deadline: Option<u64>) -> WakeReason {
    let deadline = deadline.filter(|ns| *ns != u64::MAX);
    if let Some((worker, _)) = actor() {
        return worker.park(deadline);
    }
    match Parker::current().park(deadline) {
        ParkResult::Woken => WakeReason::Woken,
        ParkResult::TimedOut => WakeReason::TimedOut,
        ParkResult::Interrupted => WakeReason::Interrupted,
    }
}

/// Lets others run if they wait and this actor has had its time slice since it first saw them. A loop that computes calls it
/// often: it costs a nanosecond, and a look at the clock now and then. On a thread it does nothing.
#[inline]
pub fn check() {
    if let Some(worker) = worker::current() {
        worker.check();
    }
}

/// Lets others run now, if there are any. On a thread it does nothing.
#[inline]
pub fn yield_now() {
    if let Some(worker) = worker::current() {
        worker.yield_now();
    }
}

/// Whether the caller can wait here. An actor cannot in [`native`](crate::native), where waiting panics, in a
/// [`NoPark`](crate::preempt::NoPark) section, which is the same, or while a panic unwinds it, where waits end at once. A thread always can.
pub fn can_park() -> bool {
    !is_actor() || crate::preempt::can_park()
}

/// Whether the caller is an actor whose runtime stops, which a signal ends, or whose scope is cancelled.
pub fn is_stopping() -> bool {
    actor().is_some_and(|(worker, task)| worker.scheduler.is_stopping() || task.is_interrupted())
}

/// Waits for `duration` and no less; an actor leaves its worker to others meanwhile. Its grain is 1/16 ms. Where the
/// actor's runtime stops it does not come back: the actor is unwound, and its destructors run.
pub fn sleep(duration: Duration) {
    sleep_to(clock::deadline(duration));
}

/// Waits until `instant`, as [`sleep`].
pub fn sleep_until(instant: Instant) {
    sleep_to(clock::at(instant));
}

fn sleep_to(deadline: u64) {
    loop {
        match park(Some(deadline)) {
            WakeReason::TimedOut => return,
            WakeReason::Stopping => return unwind_if_stopping(),
            WakeReason::Woken | WakeReason::Interrupted => {}
        }
    }
}
