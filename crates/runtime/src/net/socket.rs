//! What all sockets have: std's type, what is known of its readiness, and its timeouts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use thalweg_queue::clock;

use crate::io::{Direction, Source, Stopping, call_async, ready_now, wait_on_thread};
use crate::{wait, worker};

/// Nanoseconds for each call; 0: it waits for ever. Clones share them, as they share the system's.
#[derive(Debug, Default)]
struct Timeouts {
    read: AtomicU64,
    write: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Socket<T: AsFd> {
    /// `None` only once it was taken out.
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

/// Whether a call moved all that it was asked to, so that there may be more.
pub(super) trait ByteCount {
    fn is_short_of(&self, asked: usize) -> bool;
}

impl ByteCount for usize {
    #[inline(always)]
    fn is_short_of(&self, asked: usize) -> bool {
        // 0 is the end, which stays.
        *self != 0 && *self < asked
    }
}

impl<T: AsFd> Socket<T> {
    /// Of one that is non-blocking.
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

    /// Std's, registered nowhere.
    pub(super) fn into_inner(mut self) -> T {
        let inner = self.inner.take().expect("it is taken out once");
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
    /// `InvalidInput` for no time at all, as in std.
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
                    "a timeout of 0 would wait for ever",
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

    /// Does `call`, and again each time that the socket got ready, until it does not say `WouldBlock`.
    pub(super) fn call<R>(
        &self,
        direction: Direction,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.call_stream(direction, |inner| call(inner).map(|value| (value, false)))
    }

    /// The same for TCP, where `call` also says whether it moved less than it was asked to: there is no need to try again then.
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

    /// The same as a future. The timeouts are not for it.
    pub(super) async fn call_async<R>(
        &self,
        direction: Direction,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        call_async(&self.source, self.get(), direction, call).await
    }

    /// Ready, and nothing done yet.
    pub(super) async fn ready_async(&self, direction: Direction) -> io::Result<()> {
        self.call_async(direction, |inner| ready_now(inner, direction))
            .await
    }

    /// Waits until the connection that was begun is there. `connected` says so, or `NotConnected`.
    pub(super) fn wait_connected(
        &self,
        deadline: Option<u64>,
        connected: impl Fn(&T) -> io::Result<()>,
    ) -> io::Result<()> {
        let inner = self.get();
        let readiness = self.source.readiness(Direction::Write);
        // It is registered nowhere yet: what it is then is the first event.
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

    /// The same as a future.
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
/// `WouldBlock`: it is under way; or why there will be none.
fn check_connected<T: AsFd>(inner: &T, connected: impl Fn(&T) -> io::Result<()>) -> io::Result<()> {
    rustix::net::sockopt::socket_error(inner)??;
    connected(inner).map_err(|error| match error.kind() {
        io::ErrorKind::NotConnected => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}

/// Whether the connection is under way.
pub(super) fn is_in_progress(error: Errno) -> bool {
    matches!(error, Errno::INPROGRESS | Errno::INTR)
}

impl<T: AsFd> AsFd for Socket<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get().as_fd()
    }
}

/// Conversions that all have: std's type, a descriptor, and the two timeouts.
macro_rules! socket {
    ($type:ident, $std:ty) => {
        impl From<$type> for OwnedFd {
            /// Of a descriptor that is non-blocking still.
            fn from(socket: $type) -> Self {
                socket.0.into_inner().into()
            }
        }

        impl TryFrom<$std> for $type {
            type Error = io::Error;

            /// Makes the descriptor non-blocking, which the system does not refuse to a socket. Its timeouts are forgotten.
            fn try_from(socket: $std) -> io::Result<Self> {
                socket.set_nonblocking(true)?;
                Ok(Self(Socket::new(socket)))
            }
        }

        impl TryFrom<$type> for $std {
            type Error = io::Error;

            /// Makes the descriptor block, and those of its clones with it. Its timeouts are forgotten.
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
            /// Another handle on the same socket, with a descriptor of its own. They share the timeouts.
            ///
            /// # Errors
            /// The system has no more descriptors.
            pub fn try_clone(&self) -> io::Result<Self> {
                let inner = self.0.get().try_clone()?;
                Ok(Self(self.0.cloned(inner)))
            }

            /// Waits until it can be read, or accepted from, has ended or failed: as a future, for [`select!`](crate::select) in an actor. Its timeouts
            /// do not count. Somebody else may read first, so where several do the call that follows may wait.
            ///
            /// # Errors
            /// `Unsupported`: it would wait, and the caller is no actor; the system's.
            pub async fn readable_async(&self) -> io::Result<()> {
                self.0.ready_async(Direction::Read).await
            }

            /// As [`readable_async`](Self::readable_async), until it can be written.
            ///
            /// # Errors
            /// As there.
            pub async fn writable_async(&self) -> io::Result<()> {
                self.0.ready_async(Direction::Write).await
            }

            /// The error that the system keeps for this socket, taken out.
            ///
            /// # Errors
            /// The system's.
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
            /// How long a call that reads may wait; `None`, the default: for ever. It ends with `TimedOut` then.
            ///
            /// # Errors
            /// `InvalidInput` for no time at all.
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.0.set_timeout(Direction::Read, timeout)
            }

            /// How long a call that writes may wait; `None`, the default: for ever. It ends with `TimedOut` then.
            ///
            /// # Errors
            /// `InvalidInput` for no time at all.
            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.0.set_timeout(Direction::Write, timeout)
            }

            /// What was set.
            ///
            /// # Errors
            /// None: as in std's signature.
            pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.0.timeout(Direction::Read))
            }

            /// What was set.
            ///
            /// # Errors
            /// None: as in std's signature.
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
            /// As `read`, as a future, for [`select!`](crate::select) in an actor; its timeouts do not count. Dropped, it has read nothing.
            ///
            /// # Errors
            /// The system's; `Unsupported`: it would wait, and the caller is no actor.
            pub async fn read_async(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.0
                    .call_async(Direction::Read, |mut inner| inner.read(buf))
                    .await
            }

            /// As `write`, as a future: see [`read_async`](Self::read_async). Dropped, it has written nothing.
            ///
            /// # Errors
            /// As there.
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
