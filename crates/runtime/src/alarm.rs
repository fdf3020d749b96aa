//! Sleeping as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use crate::mark::Mark;
use crate::runtime::{Handle, Runtime};
use crate::timers::TimerKey;

/// A sleep to await or to [`select!`](crate::select): ready when its time has come, and no earlier. From [`sleep_async`] and [`sleep_until_async`].
///
/// One that is kept over several waits, by `&mut`, comes once.
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    /// Of [`clock`]; `u64::MAX`: never.
    deadline: u64,
    set: Set,
}

/// What will wake who polled it last.
enum Set {
    Nothing,
    /// Waited for by an actor or a thread of ours: `mark`'s rule 3.
    Alarm(Arc<Mark>, (u64, u64)),
    /// By anybody else.
    Timer(Handle, TimerKey, Waker),
}

/// As [`sleep`](crate::sleep), as a future. It counts from this call.
///
/// In [`select!`](crate::select) and [`block_on`](crate::block_on) it needs no timer but that of the wait around it. A task of another executor, and a
/// combinator with wakers of its own, has the timers of the actor's runtime, or of the process's, which is started for it.
///
/// ```
/// use std::time::{Duration, Instant};
/// use thalweg_runtime::{block_on, run, sleep_async};
///
/// run(|| {
///     let begun = Instant::now();
///     block_on(sleep_async(Duration::from_millis(1)));
///     assert!(begun.elapsed() >= Duration::from_millis(1));
/// });
/// ```
///
/// Where the system has no thread for that runtime, the sleep asks its executor to be polled again at once, until the time has
/// come or there is a thread.
pub fn sleep_async(duration: Duration) -> Sleep {
    Sleep::until(clock::deadline(duration))
}

/// As [`sleep_async`], until `instant`.
pub fn sleep_until_async(instant: Instant) -> Sleep {
    Sleep::until(clock::at(instant))
}

impl Sleep {
    /// Whose time is at this nanosecond of [`clock`].
    pub(crate) fn until(deadline: u64) -> Self {
        Self {
            deadline,
            set: Set::Nothing,
        }
    }

    fn unset(&mut self) {
        match std::mem::replace(&mut self.set, Set::Nothing) {
            Set::Nothing => {}
            Set::Alarm(mark, alarm) => mark.unset_alarm(alarm),
            Set::Timer(runtime, key, _) => runtime.timers().cancel(key),
        }
    }

    fn is_set_for(&self, waker: &Waker) -> bool {
        match &self.set {
            Set::Nothing => false,
            Set::Alarm(mark, _) => mark.is_of(waker),
            Set::Timer(_, _, set_for) => set_for.will_wake(waker),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if clock::now() >= this.deadline {
            this.unset();
            return Poll::Ready(());
        }
        let waker = context.waker();
        if this.deadline == u64::MAX || this.is_set_for(waker) {
            return Poll::Pending;
        }
        this.unset();
        this.set = match Mark::of(waker) {
            Some(mark) => {
                let alarm = mark.set_alarm(this.deadline);
                Set::Alarm(mark, alarm)
            }
            None => {
                let Some(runtime) = Handle::current().or_else(|| Runtime::global().ok()) else {
                    waker.wake_by_ref();
                    return Poll::Pending;
                };
                let key = runtime.timers().at(this.deadline, waker.clone());
                Set::Timer(runtime, key, waker.clone())
            }
        };
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.unset();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}
