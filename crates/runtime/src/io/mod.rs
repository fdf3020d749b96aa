//! Readiness of file descriptors for actors, and a pool for calls that block.
//!
//! Each worker has a poller of its own (epoll), made when one of its actors first waits for a descriptor. A started stack never changes
//! thread, so the worker that is told of an event is the one that goes on with who waited for it. There is no thread for IO.
//!
//! 1. Only its worker waits in a poller: without waiting at every 64th turn, and before it would go idle; and instead of the futex of its parker
//!    when it sleeps. A worker whose poller has no descriptors does neither.
//! 2. A poller's events are edges: a descriptor is registered once, with the poller of the actor that first waits for it. `Source` keeps
//!    what was seen since: an event sets `READY` and counts, who got `WouldBlock` clears it, unless the count moved since it looked.
//! 3. Who waits looks at `READY` and leaves its waker under the source's lock. An event sets `READY` first and then takes the wakers
//!    under that lock. So one of the two sees the other.
//! 4. Anybody may wait for a source, from any worker of any runtime. Where nobody else does it moves to the waiter's poller, for its events should not
//!    depend on a worker that may be busy. A poller that ends makes all its sources `READY` and wakes their waiters, who go
//!    elsewhere.
//! 5. Locks are taken in the order source, poller. A poller hands on events without its lock.
//! 6. In a forked child the parent's pollers are not touched: they are the same files.
//!
//! # No wake-up is lost between the last look and the wait
//!
//! A queue's `sleep` word is `AWAKE`, `PARKED`, `POLLING` or `NOTIFIED`. The worker (S) stores `PARKED` or `POLLING`, passes a full fence, looks everywhere
//! once more, waits, stores `AWAKE`. A waker (W) publishes, passes a full fence, loads the word. All of W's cases:
//!
//! - W loads what S stored before the wait in question: then W's fence comes after S's or S's look after W's fence. If W loads an older value
//!   of the word than S's last, S's fence is the later one and its look sees what W published, whatever W does: S does not wait. If W loads S's last:
//! - `PARKED`: W unparks. The parker keeps a token: before or after S sleeps is the same.
//! - `POLLING`: W turns it to `NOTIFIED`, and if that was W it writes to the bell, an eventfd in the poller. An eventfd's event stays in epoll until
//!   a wait takes it, and S's is the only one: before or after S waits is the same.
//! - `NOTIFIED`: another waker is between its exchange and its write; S wakes up by that, and looks everywhere before it sleeps again.
//! - `AWAKE`: S looks before it sleeps.
//!
//! A bell that is late, written for a sleep that ended otherwise, ends the next wait early, once. A waker that outlived its runtime finds no
//! bell at the queue, or that of the queue's next worker, which wakes up in vain.

mod blocking;
mod poller;
mod ready;
mod source;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use thalweg_queue::clock;

pub(crate) use blocking::BlockingPool;
pub use blocking::blocking;
pub(crate) use poller::{EventBuffer, PollTimeout, Poller};
pub(crate) use ready::{call_async, ready_now};
pub use ready::{wait_readable_async, wait_writable_async};
pub(crate) use source::{Direction, ReadinessWait, Source, wait_on_thread};

use crate::worker::{self, Worker};

/// Why IO ended in an actor whose runtime stops: what an [`io::Error`] of kind `Other` holds then. The call after that unwinds the actor.
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

/// Waits until `fd` can be read, has ended or failed, or until `deadline`. An actor leaves its worker to others meanwhile, a thread blocks.
/// What cannot be waited for, as a file on a disk, is always ready, as for `poll`.
///
/// It may be over although the descriptor is not ready any more when it returns, for somebody else may have read: the descriptor should be
/// non-blocking. Each call registers the descriptor anew; the types of [`crate::net`] do so once.
///
/// # Errors
/// `TimedOut` when the deadline passes; what the system says to the registration; [`Stopping`].
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

/// Waits until `fd` can be written, or until `deadline`: as [`wait_readable`].
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
        // One of ours has this very descriptor, or another actor waits for it here: a number of its own keeps them apart.
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
