//! Readiness and IO calls as futures, for [`select!`](crate::select) and
//! [`block_on`](crate::block_on()) in an actor.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Poll;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::poller::{Direction, ReadinessWait, Source};
use crate::worker;

/// Like [`wait_readable`](super::wait_readable), as a future without a deadline. Only an actor can
/// await it, with `select!` or `block_on`: other executors have no poller.
///
/// # Errors
/// `Unsupported` if it has to wait and the caller is no actor; the error of the registration.
///
/// ```
/// use std::io::{Read, Write};
/// use std::time::Duration;
/// use thalweg_runtime::{io, run, select, sleep_async, spawn};
///
/// let (mut reader, mut writer) = std::io::pipe()?;
/// let read = run(move || {
///     spawn(move || writer.write_all(b"x"));
///     select! {
///         ready = io::wait_readable_async(&reader) => ready?,
///         () = sleep_async(Duration::from_secs(60)) => return Err(std::io::ErrorKind::TimedOut.into()),
///     }
///     let mut byte = [0];
///     reader.read(&mut byte)
/// });
/// assert_eq!(read?, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn wait_readable_async(fd: impl AsFd) -> io::Result<()> {
    wait(fd.as_fd(), Direction::Read).await
}

/// Like [`wait_writable`](super::wait_writable), as a future: see [`wait_readable_async`].
///
/// # Errors
/// As [`wait_readable_async`].
pub async fn wait_writable_async(fd: impl AsFd) -> io::Result<()> {
    wait(fd.as_fd(), Direction::Write).await
}

async fn wait(fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
    // A duplicate has its own number, so it does not collide with other waits for this descriptor.
    let own = fd.try_clone_to_owned()?;
    let guard = DeregisterOnDrop {
        source: Source::new(),
        fd: own.as_fd(),
    };
    let is_ready = |fd: &BorrowedFd<'_>| ready_now(*fd, direction);
    let waited = call_async(&guard.source, &guard.fd, direction, is_ready).await;
    match waited {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(()),
        waited => waited,
    }
}

/// Deregisters a descriptor that was registered for one wait.
struct DeregisterOnDrop<'a> {
    source: Arc<Source>,
    fd: BorrowedFd<'a>,
}

impl Drop for DeregisterOnDrop<'_> {
    fn drop(&mut self) {
        self.source.deregister(self.fd);
    }
}

/// # Errors
/// `WouldBlock` if it is not ready, or the system's error.
pub(crate) fn ready_now(fd: impl AsFd, direction: Direction) -> io::Result<()> {
    let flags = match direction {
        Direction::Read => PollFlags::IN,
        Direction::Write => PollFlags::OUT,
    };
    let fd = fd.as_fd();
    match poll(&mut [PollFd::new(&fd, flags)], Some(&Timespec::default()))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

/// Runs `call`, and again after each readiness event, until it does not return `WouldBlock`. If the
/// future is dropped, no completed call is lost.
///
/// # Errors
/// The error of `call`; `Unsupported` if it has to wait and the caller is no actor.
pub(crate) async fn call_async<T: AsFd, R>(
    source: &Arc<Source>,
    inner: &T,
    direction: Direction,
    mut call: impl FnMut(&T) -> io::Result<R>,
) -> io::Result<R> {
    let readiness = source.readiness(direction);
    let mut wait = ReadinessWait::new(source, direction);
    poll_fn(|context| {
        loop {
            let snapshot = readiness.snapshot();
            if snapshot.is_ready() || worker::current().is_none() {
                match call(inner) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        readiness.would_block(snapshot);
                    }
                    done => return Poll::Ready(done),
                }
            }
            let Some(worker) = worker::current() else {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "only an actor can await a descriptor",
                )));
            };
            let poller = match worker.poller() {
                Ok(poller) => poller,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match wait.register(poller, inner.as_fd(), context.waker()) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    })
    .await
}
