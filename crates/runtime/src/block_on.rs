//! Waiting for a future, anywhere: an actor leaves its worker to others meanwhile, a thread sleeps.
//! `mark` says how a future is waited for. A wait allocates once, or not at all, and a poll never.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{Parker, clock};

use crate::exit;
use crate::future_wait::FutureWait;
use crate::wait;

/// Waits for a future's value: an actor leaves its worker to others meanwhile, a thread sleeps. The future may be anybody's, and its waker
/// may be woken from any thread, such as one of tokio.
///
/// A future that wakes itself while it is polled lets others run before it is polled again. Where the actor's runtime stops it does not come
/// back: the actor is unwound, and the future dropped.
///
/// In a destructor that runs because the actor panics the actor cannot be put aside, so its worker waits with it. If what the future waits for is another actor
/// of that worker, that is for ever: [`block_on_timeout`] gives up there at once.
///
/// What a future needs of its executor it must bring: a socket or a sleep of tokio is made within `Handle::enter`, whose guard is dropped
/// before the actor waits.
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
/// With the future's own panic; in a [`NoPark`](crate::preempt::NoPark) section, if the future is not ready.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    drive(future.as_mut(), None).unwrap_or_else(|| {
        wait::unwind_if_stopping();
        on_thread(future)
    })
}

/// As [`block_on`], for at most `timeout`. A future that is ready at once is so with no time left, too.
///
/// # Errors
/// It takes longer, or the actor's runtime stops, or the actor is unwound by a panic and cannot wait. The future is dropped.
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

/// As [`block_on_timeout`], until `deadline`.
///
/// # Errors
/// As there.
pub fn block_on_deadline<F: IntoFuture>(
    deadline: Instant,
    future: F,
) -> Result<F::Output, Elapsed> {
    until(clock::at(deadline), future)
}

/// A future was not ready in time, and has been dropped.
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
        exit::raise_if_due();
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

/// An actor that cannot be put aside, and must have a value: its worker's thread sleeps.
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
