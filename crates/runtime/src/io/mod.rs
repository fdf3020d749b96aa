//! Readiness of file descriptors for actors, and a thread pool for blocking calls.
//!
//! Each worker has its own poller (epoll), created when one of its actors first waits for a
//! descriptor. A started stack never changes its thread, so the worker that receives an event also
//! resumes the waiting actor. There is no IO thread.
//!
//! 1. Only the poller's worker waits in it: without blocking at every 64th turn and before it would
//!    go idle, and instead of its parker's futex when it sleeps. A worker whose poller has no
//!    descriptors does neither.
//! 2. Events are edge-triggered: a descriptor is registered once, with the poller of the first
//!    actor that waits for it. `Source` keeps the readiness: an event sets `READY` and increments a
//!    counter; a caller that got `WouldBlock` clears `READY`, unless the counter has changed since
//!    its snapshot.
//! 3. A waiter checks `READY` and registers its waker under the source's lock. An event sets
//!    `READY` first, and then takes the wakers under that lock. So one of the two sees the other.
//! 4. A source may be waited for from any worker of any runtime. If it has no other waiter, it
//!    moves to the poller of the new waiter, because its events should not depend on another worker
//!    that may be busy. A poller that closes marks all its sources `READY` and wakes their waiters,
//!    which register elsewhere.
//! 5. Lock order: source, then poller. A poller delivers events without its lock.
//! 6. A forked child does not touch the pollers of its parent: they share the open file
//!    descriptions.
//!
//! # No wake-up is lost between the last check and the wait
//!
//! The `sleep` word of a remote queue is `AWAKE`, `PARKED`, `POLLING` or `NOTIFIED`. The worker (S)
//! stores `PARKED` or `POLLING`, passes a full fence, checks all queues once more, waits, and
//! stores `AWAKE`. A waker (W) publishes its work, passes a full fence, and loads the word. If W
//! loads a value older than S's last store, then S's fence is the later one, and S's check sees the
//! work: S does not wait. If W loads S's last store:
//!
//! - `PARKED`: W unparks S. The parker keeps a token, so it does not matter whether S sleeps
//!   already.
//! - `POLLING`: W changes it to `NOTIFIED`, and on success writes to the poller's waker, an
//!   eventfd. Its event stays in the epoll until a wait takes it, and only S waits there; so it
//!   does not matter whether S waits already.
//! - `NOTIFIED`: another waker is between its exchange and its write. That write wakes S, which
//!   checks all queues before it sleeps again.
//! - `AWAKE`: S checks before it sleeps.
//!
//! A late write to the eventfd, for a sleep that has ended otherwise, ends the next wait early,
//! once. A waker that outlives its runtime finds no unparker in the queue, or that of the queue's
//! next worker, which wakes up spuriously.

mod blocking;
mod parking;
mod ready;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use thalweg_queue::clock;

pub use self::blocking::blocking;
pub(crate) use self::parking::wait_on_thread;
pub(crate) use self::ready::{call_async, ready_now};
pub use self::ready::{wait_readable_async, wait_writable_async};
use crate::poller::{Direction, Source};
use crate::worker::{self, Worker};

/// The error of IO in an actor whose runtime stops: the inner error of an [`io::Error`] of kind
/// `Other`. The next IO call unwinds the actor.
///
/// ```
/// use thalweg_runtime::io::Stopping;
///
/// fn is_stopping(error: &std::io::Error) -> bool {
///     error.get_ref().is_some_and(|why| why.is::<Stopping>())
/// }
/// assert!(is_stopping(&std::io::Error::other(Stopping)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopping;

impl std::fmt::Display for Stopping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the actor's runtime stops")
    }
}

impl std::error::Error for Stopping {}

/// Waits until `fd` is readable, at its end or in error, or until `deadline`. An actor parks; a
/// thread blocks. A descriptor that cannot be polled, such as a regular file, is always ready, as
/// with `poll`.
///
/// When it returns, the descriptor may no longer be ready, because another caller may have read:
/// use non-blocking descriptors. Each call registers the descriptor anew; the types of
/// [`crate::net`] register once.
///
/// # Errors
/// `TimedOut` at the deadline; the error of the registration; [`Stopping`].
///
/// ```
/// use std::io::{Read, Write};
/// use thalweg_runtime::{io, run, spawn};
///
/// let (mut reader, mut writer) = std::io::pipe()?;
/// let read = run(move || {
///     spawn(move || writer.write_all(b"x"));
///     io::wait_readable(&reader, None)?;
///     let mut byte = [0];
///     reader.read(&mut byte)
/// });
/// assert_eq!(read?, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn wait_readable(fd: impl AsFd, deadline: Option<Instant>) -> io::Result<()> {
    wait(fd, Direction::Read, deadline)
}

/// Waits until `fd` is writable, or until `deadline`. Like [`wait_readable`].
///
/// # Errors
/// As [`wait_readable`].
pub fn wait_writable(fd: impl AsFd, deadline: Option<Instant>) -> io::Result<()> {
    wait(fd, Direction::Write, deadline)
}

fn wait(fd: impl AsFd, direction: Direction, deadline: Option<Instant>) -> io::Result<()> {
    let fd = fd.as_fd();
    let deadline = deadline.map(clock::at);
    let Some(worker) = worker::current() else {
        return wait_on_thread(fd, direction, deadline);
    };
    match wait_once(worker, fd, direction, deadline) {
        // This descriptor is already registered with this poller. A duplicate has its own number.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let fd = fd.try_clone_to_owned()?;
            wait_once(worker, fd.as_fd(), direction, deadline)
        }
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        result => result,
    }
}

fn wait_once(
    worker: &Worker,
    fd: BorrowedFd<'_>,
    direction: Direction,
    deadline: Option<u64>,
) -> io::Result<()> {
    let source = Source::new_unready();
    let result = source.wait(worker, fd, direction, deadline);
    source.deregister(fd);
    result
}
