//! Sleep as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use crate::future_wait::WaitWaker;
use crate::runtime::{Handle, Runtime};
use crate::timers::TimerKey;

/// A future that completes when its time has come, never earlier. Await it, or use it in
/// [`select!`](crate::select). Created by [`sleep_async`] and [`sleep_until_async`].
///
/// If you wait for the same `Sleep` several times through `&mut`, it completes once.
#[must_use = "a future does nothing until it is awaited"]
pub struct Sleep {
    /// A time of the [`clock`]. `u64::MAX`: never.
    deadline: u64,
    timer: Registration,
}

/// The mechanism that wakes the last poller.
enum Registration {
    None,
    /// The poller is an actor or thread that waits in this crate (`future_wait`'s rule 3).
    Alarm(Arc<WaitWaker>, (u64, u64)),
    /// The poller is another executor or combinator.
    Timer(Handle, TimerKey, Waker),
}

/// Like [`sleep`](crate::sleep), but returns a future. The duration counts from this call.
///
/// In [`select!`](crate::select) and [`block_on`](crate::block_on) it needs no timer other than
/// that of the wait around it. In a task of another executor, and in a combinator that has its own
/// wakers, it uses the timers of the actor's runtime, or of the [global runtime](Runtime::global),
/// which is started if necessary.
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
/// If the system has no thread for the global runtime, the future asks its executor to poll it
/// again at once, until the time has come or a thread is available.
pub fn sleep_async(duration: Duration) -> Sleep {
    Sleep::until(clock::deadline(duration))
}

/// Like [`sleep_async`], but until `instant`.
pub fn sleep_until_async(instant: Instant) -> Sleep {
    Sleep::until(clock::at(instant))
}

impl Sleep {
    /// Creates a sleep until this time of the [`clock`], in nanoseconds.
    pub(crate) fn until(deadline: u64) -> Self {
        Self {
            deadline,
            timer: Registration::None,
        }
    }

    fn cancel(&mut self) {
        match std::mem::replace(&mut self.timer, Registration::None) {
            Registration::None => {}
            Registration::Alarm(wait, alarm) => wait.unset_alarm(alarm),
            Registration::Timer(runtime, key, _) => runtime.timers().cancel(key),
        }
    }

    fn is_registered_for(&self, waker: &Waker) -> bool {
        match &self.timer {
            Registration::None => false,
            Registration::Alarm(wait, _) => wait.is_of(waker),
            Registration::Timer(_, _, registered) => registered.will_wake(waker),
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if clock::now() >= this.deadline {
            this.cancel();
            return Poll::Ready(());
        }
        let waker = context.waker();
        if this.deadline == u64::MAX || this.is_registered_for(waker) {
            return Poll::Pending;
        }
        this.cancel();
        this.timer = match WaitWaker::of(waker) {
            Some(wait) => {
                let alarm = wait.set_alarm(this.deadline);
                Registration::Alarm(wait, alarm)
            }
            None => {
                let Some(runtime) = Handle::current().or_else(|| Runtime::global().ok()) else {
                    waker.wake_by_ref();
                    return Poll::Pending;
                };
                let key = runtime.timers().at(this.deadline, waker.clone());
                Registration::Timer(runtime, key, waker.clone())
            }
        };
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}
