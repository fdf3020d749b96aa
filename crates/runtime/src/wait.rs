//! Parking for actors and threads alike. A waiter gets a [`waker`], registers it with the event
//! that it waits for, checks once more, and [`park`]s.

use std::task::Waker;
use std::time::{Duration, Instant};

use thalweg_queue::{ParkResult, Parker, clock};

use crate::id::ActorId;
use crate::sections;
use crate::task::Task;
pub use crate::wake_reason::WakeReason;
use crate::worker::{self, Worker};

/// Unwinds the calling actor if it got an exit signal, its scope is cancelled or its runtime stops.
/// Precondition: the wait has left every list.
pub(crate) fn unwind_if_stopping() {
    worker::raise_if_due();
    if actor().is_some_and(|(worker, _)| worker.scheduler.is_stopping()) {
        worker::unwind_if_possible();
    }
}

/// Called by an actor before a wait that can return an error. If the runtime stops, one such wait
/// may still return the error; the next one unwinds here.
pub(crate) fn begin_fallible_wait() {
    if let Some((worker, task)) = actor() {
        worker.before_wait(task);
    }
}

/// The waker of the caller.
#[inline]
pub fn waker() -> Waker {
    actor().map_or_else(|| Parker::current().waker(), |(_, task)| task.waker())
}

/// Whether the caller is an actor.
#[inline]
pub fn is_actor() -> bool {
    actor().is_some()
}

/// The calling actor and its worker; `None` on a thread.
#[inline]
pub(crate) fn actor() -> Option<(&'static Worker, Task)> {
    let worker = worker::current()?;
    Some((worker, worker.running()?))
}

/// The id of the calling actor; `None` on a thread.
#[inline]
pub fn current() -> Option<ActorId> {
    actor().map(|(_, task)| task.actor_id())
}

/// A number of the calling actor that no other actor has while this one runs or is parked; 0 on a
/// thread. [`current`] takes twice as long.
#[doc(hidden)]
#[inline]
pub fn current_address() -> u64 {
    actor().map_or(0, |(_, task)| task.into_raw().addr() as u64)
}

/// Waits until woken or until `deadline` ([`clock`]; `None`: no deadline). An actor's worker runs
/// other actors meanwhile.
pub fn park(deadline: Option<u64>) -> WakeReason {
    let deadline = deadline.filter(|ns| *ns != u64::MAX);
    if let Some((worker, _)) = actor() {
        return worker.park(deadline);
    }
    if !sections::may_park() {
        return WakeReason::Stopping;
    }
    match Parker::current().park(deadline) {
        ParkResult::Woken => WakeReason::Woken,
        ParkResult::TimedOut => WakeReason::TimedOut,
        ParkResult::Interrupted => WakeReason::Interrupted,
    }
}

/// Lets other actors run if some are ready and the caller's time slice is over. Call it often in
/// loops that compute: it costs about a nanosecond, and reads the clock now and then. On a thread,
/// it does nothing.
#[inline]
pub fn check() {
    if let Some(worker) = worker::current() {
        worker.check();
    }
}

/// A preemption point: the actor yields if its time slice is over. This is
/// [`wait::check`](crate::wait::check) as a macro. Use it in loops that compute.
///
/// ```
/// use thalweg_runtime::{check, run};
///
/// let sum = run(|| {
///     let mut sum = 0u64;
///     for chunk in (0..100_000u64).collect::<Vec<_>>().chunks(4096) {
///         sum += chunk.iter().sum::<u64>();
///         check!();
///     }
///     sum
/// });
/// assert_eq!(sum, 4_999_950_000);
/// ```
#[macro_export]
macro_rules! check {
    () => {
        $crate::wait::check()
    };
}

/// Lets other actors run now, if some are ready. On a thread, it does nothing.
#[inline]
pub fn yield_now() {
    if let Some(worker) = worker::current() {
        worker.yield_now();
    }
}

/// Whether the caller is a thread, and not an actor, that can wait here.
#[doc(hidden)]
#[inline]
pub fn is_thread_that_can_park() -> bool {
    !is_actor() && sections::thread_may_wait()
}

/// Whether the caller can wait here. An actor cannot in [`native`](crate::native) and in a
/// [`NoPark`](crate::preempt::NoPark) section, where waits panic, nor while a panic unwinds it,
/// where waits end at once. Neither an actor nor a thread can in a
/// [`NoWait`](crate::preempt::NoWait) section.
pub fn can_park() -> bool {
    match is_actor() {
        true => sections::can_park(),
        false => sections::thread_may_wait(),
    }
}

/// Whether the caller is an actor that must end: its runtime stops, it got an exit signal, or its
/// scope is cancelled.
pub fn is_stopping() -> bool {
    actor().is_some_and(|(worker, task)| worker.scheduler.is_stopping() || task.is_interrupted())
}

/// Waits for at least `duration`, with a resolution of 1/16 ms. An actor's worker runs other actors
/// meanwhile. If the actor's runtime stops, the call does not return: the actor is unwound.
pub fn sleep(duration: Duration) {
    sleep_to(clock::deadline(duration));
}

/// Waits until `instant`, like [`sleep`].
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
