//! Waiting for a future on any thread: an actor parks, a thread blocks. `future_wait` implements
//! the waker. A wait allocates at most once, and a poll never.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{Parker, clock};

use crate::future_wait::FutureWait;
use crate::{wait, worker};

/// Waits for the output of a future. An actor parks, and its worker runs other actors; a thread
/// blocks. The future's waker may be woken from any thread, such as a tokio thread.
///
/// If a future wakes itself while it is polled, other actors run before it is polled again. If the
/// actor's runtime stops, the call does not return: the actor is unwound, and the future is
/// dropped.
///
/// In a destructor that runs while the actor panics, the actor cannot park, so the call blocks its
/// worker. If the future waits for another actor of the same worker, that is a deadlock;
/// [`block_on_timeout`] gives up there at once.
///
/// Futures that need their executor must be created inside it: create a tokio socket or sleep
/// within `Handle::enter`, and drop that guard before the actor waits.
///
/// ```
/// use std::future::ready;
/// use thalweg_runtime::{block_on, run, spawn};
///
/// assert_eq!(block_on(ready(1)), 1);
/// assert_eq!(run(|| block_on(async { spawn(|| 6).await.unwrap() * 7 })), 42);
/// ```
///
/// # Panics
/// If the future panics. Also if it has to wait in a [`NoPark`](crate::preempt::NoPark) section.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    drive(future.as_mut(), None).unwrap_or_else(|| {
        wait::unwind_if_stopping();
        on_thread(future)
    })
}

/// Like [`block_on`], for at most `timeout`. A future that is ready at once succeeds with any
/// timeout.
///
/// # Errors
/// The timeout passes, or the actor's runtime stops, or the actor is unwound by a panic and cannot
/// wait. The future is dropped.
///
/// ```
/// use std::{future::pending, time::Duration};
/// use thalweg_runtime::{Elapsed, block_on_timeout, run};
///
/// let waited = run(|| block_on_timeout(Duration::from_millis(1), pending::<()>()));
/// assert_eq!(waited, Err(Elapsed));
/// ```
pub fn block_on_timeout<F: IntoFuture>(timeout: Duration, future: F) -> Result<F::Output, Elapsed> {
    until(clock::deadline(timeout), future)
}

/// Like [`block_on_timeout`], until `deadline`.
///
/// # Errors
/// As [`block_on_timeout`].
pub fn block_on_deadline<F: IntoFuture>(
    deadline: Instant,
    future: F,
) -> Result<F::Output, Elapsed> {
    until(clock::at(deadline), future)
}

/// A future was not ready in time, and was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the future was not ready in time")
    }
}

impl std::error::Error for Elapsed {}

fn until<F: IntoFuture>(deadline: u64, future: F) -> Result<F::Output, Elapsed> {
    let output = drive(pin!(future.into_future()), Some(deadline));
    if output.is_none() {
        worker::raise_if_due();
    }
    output.ok_or(Elapsed)
}

/// `None`: the deadline passed, or the caller cannot wait.
fn drive<F: Future>(mut future: Pin<&mut F>, deadline: Option<u64>) -> Option<F::Output> {
    let waiting = FutureWait::begin();
    let waker = waiting.waker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if !waiting.wait(deadline) {
            return None;
        }
    }
}

/// Blocks the worker's thread, for an actor that cannot park and must return a value.
fn on_thread<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let parker = Parker::new();
    let waker = parker.waker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        parker.park(None);
    }
}
