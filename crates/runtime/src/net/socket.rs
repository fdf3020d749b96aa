//! The common parts of all sockets: the type of `std`, its readiness, and its timeouts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use thalweg_queue::clock;

use crate::io::{Stopping, call_async, ready_now, wait_on_thread};
use crate::poller::{Direction, Source};
use crate::{wait, worker};

/// Nanoseconds per call; 0: no timeout. Clones share the timeouts, as they do in the operating
/// system.
#[derive(Debug, Default)]
struct Timeouts {
    read: AtomicU64,
    write: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Socket<T: AsFd> {
    /// `None` only after it was taken out.
    inner: Option<T>,
    source: Arc<Source>,
    timeouts: Arc<Timeouts>,
}

impl<T: AsFd> Drop for Socket<T> {
    fn drop(&mut self) {
        if let Some(inner) = &self.inner {
            self.source.deregister(inner.as_fd());
        }
    }
}

/// Whether a call transferred less than requested, so that the next one would block.
pub(super) trait ByteCount {
    fn is_short_of(&self, asked: usize) -> bool;
}

impl ByteCount for usize {
    #[inline(always)]
    fn is_short_of(&self, asked: usize) -> bool {
        // 0 is the end of the stream, which persists.
        *self != 0 && *self < asked
    }
}

impl<T: AsFd> Socket<T> {
    /// Precondition: `inner` is non-blocking.
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner: Some(inner),
            source: Source::new(),
            timeouts: Arc::default(),
        }
    }

    /// Another descriptor of the same socket.
    pub(super) fn cloned(&self, inner: T) -> Self {
        Self {
            inner: Some(inner),
            source: Source::new(),
            timeouts: Arc::clone(&self.timeouts),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> &T {
        self.inner.as_ref().expect("only `into_inner` takes it out")
    }

    /// Deregisters the socket and returns the type of `std`.
    pub(super) fn into_inner(mut self) -> T {
        let inner = self.inner.take().expect("`into_inner` is called once");
        self.source.deregister(inner.as_fd());
        inner
    }

    fn timeout_of(&self, direction: Direction) -> &AtomicU64 {
        match direction {
            Direction::Read => &self.timeouts.read,
            Direction::Write => &self.timeouts.write,
        }
    }

    pub(super) fn timeout(&self, direction: Direction) -> Option<Duration> {
        let ns = self.timeout_of(direction).load(Ordering::Relaxed);
        (ns != 0).then(|| Duration::from_nanos(ns))
    }

    /// # Errors
    /// `InvalidInput` for a timeout of zero, as in `std`.
    pub(super) fn set_timeout(
        &self,
        direction: Direction,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let ns = match timeout {
            None => 0,
            Some(Duration::ZERO) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a timeout of 0 is invalid",
                ));
            }
            Some(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        };
        self.timeout_of(direction).store(ns, Ordering::Relaxed);
        Ok(())
    }

    fn deadline(&self, direction: Direction) -> Option<u64> {
        self.timeout(direction).map(clock::deadline)
    }

    /// Runs `call`, and again after each readiness event, until it does not return `WouldBlock`.
    pub(super) fn call<R>(
        &self,
        direction: Direction,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.call_stream(direction, |inner| call(inner).map(|value| (value, false)))
    }

    /// Like [`call`](Self::call), for TCP: `call` also returns whether it transferred less than
    /// requested; then the next call would block.
    #[inline]
    pub(super) fn call_stream<R>(
        &self,
        direction: Direction,
        mut call: impl FnMut(&T) -> io::Result<(R, bool)>,
    ) -> io::Result<R> {
        let inner = self.get();
        let worker = worker::current();
        let readiness = self.source.readiness(direction);
        let mut deadline = None;
        loop {
            let snapshot = readiness.snapshot();
            if let Some(worker) = worker {
                if worker.scheduler.is_stopping() {
                    wait::begin_fallible_wait();
                    return Err(io::Error::other(Stopping));
                }
                worker.check();
            }
            if worker.is_none() || snapshot.is_ready() {
                match call(inner) {
                    Ok((value, is_short)) => {
                        if is_short {
                            readiness.short_transfer(snapshot);
                        }
                        return Ok(value);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        readiness.would_block(snapshot);
                    }
                    Err(error) => return Err(error),
                }
            }
            if deadline.is_none() {
                deadline = self.deadline(direction);
            }
            match worker {
                Some(worker) => self
                    .source
                    .wait(worker, inner.as_fd(), direction, deadline)?,
                None => wait_on_thread(inner.as_fd(), direction, deadline)?,
            }
        }
    }

    /// Like [`call`](Self::call), as a future. The timeouts do not apply.
    pub(super) async fn call_async<R>(
        &self,
        direction: Direction,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        call_async(&self.source, self.get(), direction, call).await
    }

    /// Waits until the socket is ready, without a transfer.
    pub(super) async fn ready_async(&self, direction: Direction) -> io::Result<()> {
        self.call_async(direction, |inner| ready_now(inner, direction))
            .await
    }

    /// Waits until a connection in progress is established. `connected` checks it, and returns
    /// `NotConnected` until then.
    pub(super) fn wait_connected(
        &self,
        deadline: Option<u64>,
        connected: impl Fn(&T) -> io::Result<()>,
    ) -> io::Result<()> {
        let inner = self.get();
        let readiness = self.source.readiness(Direction::Write);
        // It is not registered yet: its present readiness will be the first event.
        readiness.would_block(readiness.snapshot());
        loop {
            match worker::current() {
                Some(worker) => {
                    self.source
                        .wait(worker, inner.as_fd(), Direction::Write, deadline)?;
                }
                None => wait_on_thread(inner.as_fd(), Direction::Write, deadline)?,
            }
            let snapshot = readiness.snapshot();
            match check_connected(inner, &connected) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    readiness.would_block(snapshot);
                }
                result => return result,
            }
        }
    }

    /// Like [`wait_connected`](Self::wait_connected), as a future.
    pub(super) async fn wait_connected_async(
        &self,
        connected: impl Fn(&T) -> io::Result<()>,
    ) -> io::Result<()> {
        let readiness = self.source.readiness(Direction::Write);
        readiness.would_block(readiness.snapshot());
        self.call_async(Direction::Write, |inner| check_connected(inner, &connected))
            .await
    }
}

/// # Errors
/// `WouldBlock` if the connection is in progress, or the reason for which it failed.
fn check_connected<T: AsFd>(inner: &T, connected: impl Fn(&T) -> io::Result<()>) -> io::Result<()> {
    rustix::net::sockopt::socket_error(inner)??;
    connected(inner).map_err(|error| match error.kind() {
        io::ErrorKind::NotConnected => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

/// Whether the connection is in progress.
pub(super) fn is_in_progress(error: Errno) -> bool {
    matches!(error, Errno::INPROGRESS | Errno::INTR)
}

impl<T: AsFd> AsFd for Socket<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get().as_fd()
    }
}

/// Conversions of all sockets: to and from the type of `std`, and to a descriptor.
macro_rules! socket {
    ($type:ident, $std:ty) => {
        impl From<$type> for OwnedFd {
            /// The descriptor stays non-blocking.
            fn from(socket: $type) -> Self {
                socket.0.into_inner().into()
            }
        }

        impl TryFrom<$std> for $type {
            type Error = io::Error;

            /// Makes the descriptor non-blocking, which always succeeds for a socket. The timeouts
            /// are reset.
            fn try_from(socket: $std) -> io::Result<Self> {
                socket.set_nonblocking(true)?;
                Ok(Self(Socket::new(socket)))
            }
        }

        impl TryFrom<$type> for $std {
            type Error = io::Error;

            /// Makes the descriptor blocking, and with it those of its clones. The timeouts are
            /// dropped.
            fn try_from(socket: $type) -> io::Result<Self> {
                let socket = socket.0.into_inner();
                socket.set_nonblocking(false)?;
                Ok(socket)
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                self.0.as_fd().as_raw_fd()
            }
        }

        impl $type {
            /// Creates another handle of the same socket, with its own descriptor. The timeouts are
            /// shared.
            ///
            /// # Errors
            /// The system has no more descriptors.
            pub fn try_clone(&self) -> io::Result<Self> {
                let inner = self.0.get().try_clone()?;
                Ok(Self(self.0.cloned(inner)))
            }

            /// Waits until the socket is readable, can accept a connection, is at its end or in
            /// error. A future for [`select!`](crate::select) in an actor; the timeouts do not
            /// apply. If several actors read, another one may be faster, and the next read may
            /// wait.
            ///
            /// # Errors
            /// `Unsupported` if it has to wait and the caller is no actor; the system's error.
            pub async fn readable_async(&self) -> io::Result<()> {
                self.0.ready_async(Direction::Read).await
            }

            /// Like [`readable_async`](Self::readable_async), until the socket is writable.
            ///
            /// # Errors
            /// As [`readable_async`](Self::readable_async).
            pub async fn writable_async(&self) -> io::Result<()> {
                self.0.ready_async(Direction::Write).await
            }

            /// Takes the pending error of this socket.
            ///
            /// # Errors
            /// The system's error.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.0.get().take_error()
            }
        }
    };
}

/// The two timeouts.
macro_rules! timeouts {
    ($type:ident) => {
        impl $type {
            /// Sets how long a read may wait before it fails with `TimedOut`. `None`, the default:
            /// no timeout.
            ///
            /// # Errors
            /// `InvalidInput` for a timeout of zero.
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.0.set_timeout(Direction::Read, timeout)
            }

            /// Sets how long a write may wait before it fails with `TimedOut`. `None`, the default:
            /// no timeout.
            ///
            /// # Errors
            /// `InvalidInput` for a timeout of zero.
            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.0.set_timeout(Direction::Write, timeout)
            }

            /// The timeout of reads.
            ///
            /// # Errors
            /// None; the signature is that of `std`.
            pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.0.timeout(Direction::Read))
            }

            /// The timeout of writes.
            ///
            /// # Errors
            /// None; the signature is that of `std`.
            pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.0.timeout(Direction::Write))
            }
        }
    };
}

/// `Read` and `Write`, for the value and for a reference to it.
macro_rules! read_write {
    ($type:ident, $is_short:expr) => {
        impl $type {
            /// Like `read`, as a future for [`select!`](crate::select) in an actor; the timeouts do
            /// not apply. If it is dropped, it has read nothing.
            ///
            /// # Errors
            /// The system's error; `Unsupported` if it has to wait and the caller is no actor.
            pub async fn read_async(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.0
                    .call_async(Direction::Read, |mut inner| inner.read(buf))
                    .await
            }

            /// Like `write`, as a future: see [`read_async`](Self::read_async). If it is dropped,
            /// it has written nothing.
            ///
            /// # Errors
            /// As [`read_async`](Self::read_async).
            pub async fn write_async(&self, buf: &[u8]) -> io::Result<usize> {
                self.0
                    .call_async(Direction::Write, |mut inner| inner.write(buf))
                    .await
            }
        }

        impl Read for &$type {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.call_stream(Direction::Read, |mut inner| {
                    let read = inner.read(buf)?;
                    Ok((read, $is_short && read.is_short_of(buf.len())))
                })
            }

            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.0
                    .call(Direction::Read, |mut inner| inner.read_vectored(bufs))
            }
        }

        impl Write for &$type {
            fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
                self.0.call_stream(Direction::Write, |mut inner| {
                    let written = inner.write(buf)?;
                    Ok((written, $is_short && written.is_short_of(buf.len())))
                })
            }

            fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.0
                    .call(Direction::Write, |mut inner| inner.write_vectored(bufs))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        impl Read for $type {
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buf)
            }

            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                (&*self).read_vectored(bufs)
            }
        }

        impl Write for $type {
            fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
                (&*self).write(buf)
            }

            fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                (&*self).write_vectored(bufs)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

pub(super) use {read_write, socket, timeouts};
