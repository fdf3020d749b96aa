//! Unix sockets.

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
use crate::io::{Direction, blocking};
use crate::wait;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A Unix socket that listens: [`std::os::unix::net::UnixListener`] for actors.
#[derive(Debug)]
pub struct UnixListener(Socket<StdListener>);

socket!(UnixListener, StdListener);

impl UnixListener {
    /// Listens at `path`, which must not be there yet.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        StdListener::bind(path)?.try_into()
    }

    /// The next connection, and whence it comes.
    ///
    /// # Errors
    /// The system's: where it has no more descriptors the connection stays in the queue, and the next call tries again.
    pub fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let fd = self
            .0
            .call(Direction::Read, |inner| Ok(accept_with(inner, FLAGS)?))?;
        Self::stream(fd)
    }

    /// As [`accept`](Self::accept), as a future, for [`select!`](crate::select) in an actor. Dropped, it has accepted nothing.
    ///
    /// # Errors
    /// As there; `Unsupported`: it would wait, and the caller is no actor.
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

    /// Connections, one after the other, without end.
    pub fn incoming(&self) -> UnixIncoming<'_> {
        UnixIncoming(self)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }
}

/// What [`UnixListener::incoming`] returns.
#[derive(Debug)]
pub struct UnixIncoming<'a>(&'a UnixListener);

impl Iterator for UnixIncoming<'_> {
    type Item = io::Result<UnixStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

/// A Unix connection: [`std::os::unix::net::UnixStream`] for actors. One may read while another writes.
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
// A read ends early where descriptors were sent, so less than asked does not mean that there is no more.
read_write!(UnixStream, false);

impl UnixStream {
    /// Connects to who listens at `path`. Where that one's queue is full an actor waits on the blocking pool: such a connection cannot be waited for.
    ///
    /// # Errors
    /// The system's.
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

    /// Two that are connected to each other.
    ///
    /// # Errors
    /// The system's.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = StdStream::pair()?;
        Ok((one.try_into()?, other.try_into()?))
    }

    /// Ends one direction or both. Who waits to read or write is woken.
    ///
    /// # Errors
    /// The system's.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.get().shutdown(how)
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// The system's.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().peer_addr()
    }

    /// This end.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }
}

/// A Unix socket for datagrams: [`std::os::unix::net::UnixDatagram`] for actors.
#[derive(Debug)]
pub struct UnixDatagram(Socket<StdDatagram>);

socket!(UnixDatagram, StdDatagram);
timeouts!(UnixDatagram);

impl UnixDatagram {
    /// Receives at `path`, which must not be there yet.
    ///
    /// # Errors
    /// The system's.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        StdDatagram::bind(path)?.try_into()
    }

    /// One without an address.
    ///
    /// # Errors
    /// The system's.
    pub fn unbound() -> io::Result<Self> {
        StdDatagram::unbound()?.try_into()
    }

    /// Two that are connected to each other.
    ///
    /// # Errors
    /// The system's.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = StdDatagram::pair()?;
        Ok((one.try_into()?, other.try_into()?))
    }

    /// From now on it sends to, and receives from, `path` alone.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.0.get().connect(path)
    }

    /// Sends a datagram to what it is connected to.
    ///
    /// # Errors
    /// The system's, or `TimedOut`.
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.call(Direction::Write, |inner| inner.send(buf))
    }

    /// Sends a datagram to who receives at `path`. It does not wait for a receiver whose queue is full: the system does not say when that has
    /// changed, other than to who is connected to it.
    ///
    /// # Errors
    /// The system's; `WouldBlock`: the receiver's queue is full.
    pub fn send_to(&self, buf: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.0.get().send_to(buf, path)
    }

    /// The next datagram. What does not fit into `buf` is lost.
    ///
    /// # Errors
    /// The system's, or `TimedOut`.
    pub fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.call(Direction::Read, |inner| inner.recv(buf))
    }

    /// As [`recv`](Self::recv), as a future, for [`select!`](crate::select) in an actor; its timeouts do not count. Dropped, it has taken nothing.
    ///
    /// # Errors
    /// The system's; `Unsupported`: it would wait, and the caller is no actor.
    pub async fn recv_async(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0
            .call_async(Direction::Read, |inner| inner.recv(buf))
            .await
    }

    /// As [`recv_from`](Self::recv_from), as a future: see [`recv_async`](Self::recv_async).
    ///
    /// # Errors
    /// As there.
    pub async fn recv_from_async(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0
            .call_async(Direction::Read, |inner| inner.recv_from(buf))
            .await
    }

    /// The next datagram, and whence it comes.
    ///
    /// # Errors
    /// The system's, or `TimedOut`.
    pub fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.call(Direction::Read, |inner| inner.recv_from(buf))
    }

    /// Ends one direction or both. Who waits is woken.
    ///
    /// # Errors
    /// The system's.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.get().shutdown(how)
    }

    /// This end.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }

    /// What it is connected to.
    ///
    /// # Errors
    /// The system's; `NotConnected`.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().peer_addr()
    }
}
