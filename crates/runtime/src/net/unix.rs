//! Unix domain sockets.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::{
    SocketAddr, UnixDatagram as StdDatagram, UnixListener as StdListener, UnixStream as StdStream,
};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, socket_with,
};

use super::socket::{ByteCount, Socket, read_write, socket, timeouts};
use crate::io::blocking;
use crate::poller::Direction;
use crate::wait;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A listening Unix socket: [`std::os::unix::net::UnixListener`] for actors.
#[derive(Debug)]
pub struct UnixListener(Socket<StdListener>);

socket!(UnixListener, StdListener);

impl UnixListener {
    /// Listens on `path`, which must not exist yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        StdListener::bind(path)?.try_into()
    }

    /// Accepts a connection; returns it and the peer's address.
    ///
    /// # Errors
    /// The system's error. If it has no more descriptors, the connection stays in the queue, and
    /// the next call tries again.
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let fd = self
            .0
            .call(Direction::Read, |inner| Ok(accept_with(inner, FLAGS)?))?;
        Self::stream(fd)
    }

    /// Like [`accept`](Self::accept), as a future for [`select!`](crate::select) in an actor. If it
    /// is dropped, it has accepted nothing.
    ///
    /// # Errors
    /// As [`accept`](Self::accept); `Unsupported` if it has to wait and the caller is no actor.
    pub async fn accept_async(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let fd = self
            .0
            .call_async(Direction::Read, |inner| Ok(accept_with(inner, FLAGS)?))
            .await?;
        Self::stream(fd)
    }

    fn stream(fd: OwnedFd) -> io::Result<(UnixStream, SocketAddr)> {
        let stream = StdStream::from(fd);
        let peer = stream.peer_addr()?;
        Ok((UnixStream(Socket::new(stream)), peer))
    }

    /// Iterates over accepted connections, without end.
    pub fn incoming(&self) -> UnixIncoming<'_> {
        UnixIncoming(self)
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }
}

/// The iterator of [`UnixListener::incoming`].
#[derive(Debug)]
pub struct UnixIncoming<'a>(&'a UnixListener);

impl Iterator for UnixIncoming<'_> {
    type Item = io::Result<UnixStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

/// A Unix connection: [`std::os::unix::net::UnixStream`] for actors. One actor may read while
/// another one writes.
///
/// ```
/// use std::io::{Read, Write};
/// use thalweg_runtime::{net::UnixStream, run, spawn};
///
/// let read = run(|| {
///     let (mut one, mut other) = UnixStream::pair()?;
///     spawn(move || one.write_all(b"hello"));
///     let mut text = String::new();
///     other.read_to_string(&mut text)?;
///     std::io::Result::Ok(text)
/// });
/// assert_eq!(read?, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UnixStream(Socket<StdStream>);

socket!(UnixStream, StdStream);
timeouts!(UnixStream);
// A read ends early at sent descriptors, so a short read does not mean that the buffer is drained.
read_write!(UnixStream, false);

impl UnixStream {
    /// Connects to the listener at `path`. If the listener's queue is full, an actor waits on the
    /// blocking pool, because the system reports no readiness for such a connection.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if !wait::is_actor() {
            return StdStream::connect(path)?.try_into();
        }
        let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
        match rustix::net::connect(&fd, &SocketAddrUnix::new(path)?) {
            Ok(()) => Ok(Self(Socket::new(fd.into()))),
            Err(Errno::AGAIN | Errno::INTR) => {
                let path = path.to_owned();
                blocking(move || StdStream::connect(path))?.try_into()
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates two connected sockets.
    ///
    /// # Errors
    /// The system's error.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = StdStream::pair()?;
        Ok((one.try_into()?, other.try_into()?))
    }

    /// Shuts down one direction or both. Wakes waiting readers and writers.
    ///
    /// # Errors
    /// The system's error.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.get().shutdown(how)
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// The system's error.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().peer_addr()
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }
}

/// A Unix datagram socket: [`std::os::unix::net::UnixDatagram`] for actors.
#[derive(Debug)]
pub struct UnixDatagram(Socket<StdDatagram>);

socket!(UnixDatagram, StdDatagram);
timeouts!(UnixDatagram);

impl UnixDatagram {
    /// Binds to `path`, which must not exist yet.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        StdDatagram::bind(path)?.try_into()
    }

    /// Creates a socket without an address.
    ///
    /// # Errors
    /// The system's error.
    pub fn unbound() -> io::Result<Self> {
        StdDatagram::unbound()?.try_into()
    }

    /// Creates two connected sockets.
    ///
    /// # Errors
    /// The system's error.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = StdDatagram::pair()?;
        Ok((one.try_into()?, other.try_into()?))
    }

    /// Connects: from now on, the socket sends to and receives from `path` only.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.0.get().connect(path)
    }

    /// Sends a datagram to the connected peer.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.call(Direction::Write, |inner| inner.send(buf))
    }

    /// Sends a datagram to the socket at `path`. It does not wait if that socket's queue is full:
    /// the system reports a change of that state only to connected sockets.
    ///
    /// # Errors
    /// The system's error; `WouldBlock` if the receiver's queue is full.
    pub fn send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.0.get().send_to(buf, path)
    }

    /// Receives a datagram. Bytes that do not fit into `buf` are lost.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.call(Direction::Read, |inner| inner.recv(buf))
    }

    /// Like [`recv`](Self::recv), as a future for [`select!`](crate::select) in an actor; the
    /// timeouts do not apply. If it is dropped, it has received nothing.
    ///
    /// # Errors
    /// The system's error; `Unsupported` if it has to wait and the caller is no actor.
    pub async fn recv_async(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0
            .call_async(Direction::Read, |inner| inner.recv(buf))
            .await
    }

    /// Like [`recv_from`](Self::recv_from), as a future: see [`recv_async`](Self::recv_async).
    ///
    /// # Errors
    /// As [`recv_async`](Self::recv_async).
    pub async fn recv_from_async(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0
            .call_async(Direction::Read, |inner| inner.recv_from(buf))
            .await
    }

    /// Receives a datagram; returns its length and its sender.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.call(Direction::Read, |inner| inner.recv_from(buf))
    }

    /// Shuts down one direction or both. Wakes waiting calls.
    ///
    /// # Errors
    /// The system's error.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.get().shutdown(how)
    }

    /// The address of this socket.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }

    /// The connected address.
    ///
    /// # Errors
    /// The system's error; `NotConnected`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().peer_addr()
    }
}
