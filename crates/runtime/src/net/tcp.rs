//! TCP sockets.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketAddrAny, SocketFlags, SocketType, acceptfrom_with, socket_with,
};
use thalweg_queue::clock;

use super::addresses::{ToSocketAddrs, first_success};
use super::socket::{ByteCount, Socket, is_in_progress, read_write, socket, timeouts};
use crate::poller::Direction;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A listening TCP socket: [`std::net::TcpListener`] for actors.
///
/// ```
/// use std::io::{Read, Write};
/// use thalweg_runtime::net::{TcpListener, TcpStream};
/// use thalweg_runtime::{run, spawn};
///
/// let answer = run(|| {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let address = listener.local_addr()?;
///     spawn(move || {
///         let (mut stream, _) = listener.accept()?;
///         let mut word = [0; 4];
///         stream.read_exact(&mut word)?;
///         stream.write_all(&word)
///     });
///     let mut stream = TcpStream::connect(address)?;
///     stream.write_all(b"echo")?;
///     let mut answer = String::new();
///     stream.read_to_string(&mut answer)?;
///     std::io::Result::Ok(answer)
/// });
/// assert_eq!(answer?, "echo");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TcpListener(Socket<StdListener>);

socket!(TcpListener, StdListener);

impl TcpListener {
    /// Listens on the first of the addresses that is free.
    ///
    /// # Errors
    /// The error of the last address, or the resolver's.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        first_success(address, StdListener::bind)?.try_into()
    }

    /// Accepts a connection; returns it and the peer's address. Several actors may accept at once.
    ///
    /// # Errors
    /// The system's error. If it has no more descriptors, the connection stays in the queue, and
    /// the next call tries again.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self
            .0
            .call(Direction::Read, |inner| Ok(acceptfrom_with(inner, FLAGS)?))?;
        Self::stream(accepted)
    }

    /// Like [`accept`](Self::accept), as a future for [`select!`](crate::select) in an actor. If it
    /// is dropped, it has accepted nothing.
    ///
    /// # Errors
    /// As [`accept`](Self::accept); `Unsupported` if it has to wait and the caller is no actor.
    pub async fn accept_async(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self
            .0
            .call_async(Direction::Read, |inner| Ok(acceptfrom_with(inner, FLAGS)?))
            .await?;
        Self::stream(accepted)
    }

    fn stream((fd, peer): (OwnedFd, Option<SocketAddrAny>)) -> io::Result<(TcpStream, SocketAddr)> {
        let stream = StdStream::from(fd);
        let peer = match peer.map(SocketAddr::try_from) {
            Some(Ok(peer)) => peer,
            _ => stream.peer_addr()?,
        };
        Ok((TcpStream(Socket::new(stream)), peer))
    }

    /// Iterates over accepted connections, without end.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming(self)
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.get().local_addr()
    }

    /// The time to live of packets: the maximum number of hops.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.0.get().set_ttl(ttl)
    }

    /// The time to live of packets: the maximum number of hops.
    ///
    /// # Errors
    /// The system's error.
    pub fn ttl(&self) -> io::Result<u32> {
        self.0.get().ttl()
    }
}

/// The iterator of [`TcpListener::incoming`].
#[derive(Debug)]
pub struct Incoming<'a>(&'a TcpListener);

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.accept().map(|(stream, _)| stream))
    }
}

/// A TCP connection: [`std::net::TcpStream`] for actors. One actor may read while another
/// one writes.
#[derive(Debug)]
pub struct TcpStream(Socket<StdStream>);

socket!(TcpStream, StdStream);
timeouts!(TcpStream);
read_write!(TcpStream, true);

impl TcpStream {
    /// Connects to the first of the addresses that accepts the connection.
    ///
    /// # Errors
    /// The error of the last address, or the resolver's.
    pub fn connect(address: impl ToSocketAddrs) -> io::Result<Self> {
        first_success(address, |address| Self::connect_until(address, None))
    }

    /// Like [`connect`](Self::connect) to one address, for at most `timeout`.
    ///
    /// # Errors
    /// `TimedOut`, `InvalidInput` for a timeout of zero, or the system's error.
    pub fn connect_timeout(address: &SocketAddr, timeout: Duration) -> io::Result<Self> {
        if timeout.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a timeout of 0 is invalid",
            ));
        }
        Self::connect_until(*address, Some(clock::deadline(timeout)))
    }

    /// Like [`connect`](Self::connect) to one address, as a future for [`select!`](crate::select)
    /// in an actor. Dropping it abandons the connection in progress. It does not resolve names,
    /// because the resolver blocks: for a name, spawn an actor that connects, and await its handle.
    ///
    /// ```
    /// use std::io;
    /// use std::time::Duration;
    /// use thalweg_runtime::net::{TcpListener, TcpStream};
    /// use thalweg_runtime::{run, select, sleep_async};
    ///
    /// run(|| {
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let address = listener.local_addr()?;
    ///     select! {
    ///         stream = TcpStream::connect_async(address) => assert_eq!(stream?.peer_addr()?, address),
    ///         () = sleep_async(Duration::from_secs(60)) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
    ///     }
    ///     Ok::<(), io::Error>(())
    /// })?;
    /// # Ok::<(), io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The system's error; `Unsupported` if it has to wait and the caller is no actor.
    pub async fn connect_async(address: SocketAddr) -> io::Result<Self> {
        let (socket, is_in_progress) = Self::start_connect(address)?;
        if is_in_progress {
            socket
                .wait_connected_async(|inner| inner.peer_addr().map(drop))
                .await?;
        }
        Ok(Self(socket))
    }

    fn connect_until(address: SocketAddr, deadline: Option<u64>) -> io::Result<Self> {
        let (socket, is_in_progress) = Self::start_connect(address)?;
        if is_in_progress {
            socket.wait_connected(deadline, |inner| inner.peer_addr().map(drop))?;
        }
        Ok(Self(socket))
    }

    /// Returns the socket, and whether the connection is still in progress.
    fn start_connect(address: SocketAddr) -> io::Result<(Socket<StdStream>, bool)> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let fd = socket_with(family, SocketType::STREAM, FLAGS, None)?;
        let socket = Socket::new(StdStream::from(fd));
        match rustix::net::connect(socket.get(), &address) {
            Ok(()) => Ok((socket, false)),
            Err(error) if is_in_progress(error) => Ok((socket, true)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads available data without consuming it.
    ///
    /// # Errors
    /// As `read`.
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.call(Direction::Read, |inner| inner.peek(buf))
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

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The system's error.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.0.get().set_nodelay(nodelay)
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// The system's error.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.0.get().nodelay()
    }

    /// The time to live of packets: the maximum number of hops.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.0.get().set_ttl(ttl)
    }

    /// The time to live of packets: the maximum number of hops.
    ///
    /// # Errors
    /// The system's error.
    pub fn ttl(&self) -> io::Result<u32> {
        self.0.get().ttl()
    }
}
