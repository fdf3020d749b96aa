//! UDP sockets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket as StdSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use super::addresses::{ToSocketAddrs, bind_udp, first_success, no_address};
use super::socket::{Socket, socket, timeouts};
use crate::poller::Direction;

/// A UDP socket: [`std::net::UdpSocket`] for actors.
///
/// ```
/// use thalweg_runtime::{net::UdpSocket, run};
///
/// let received = run(|| {
///     let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
///     one.send_to(b"hello", other.local_addr()?)?;
///     let mut buf = [0; 16];
///     let (length, from) = other.recv_from(&mut buf)?;
///     assert_eq!(from, one.local_addr()?);
///     std::io::Result::Ok(buf[..length].to_vec())
/// });
/// assert_eq!(received?, b"hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UdpSocket(Socket<StdSocket>);

socket!(UdpSocket, StdSocket);
timeouts!(UdpSocket);

impl UdpSocket {
    /// Binds to the first of the addresses that is free.
    ///
    /// # Errors
    /// The error of the last address, or the resolver's.
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        bind_udp(address)?.try_into()
    }

    /// Connects: from now on, the socket sends to and receives from this address only.
    ///
    /// # Errors
    /// The error of the last address, or the resolver's.
    pub fn connect(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        first_success(address, |address| self.0.get().connect(address))
    }

    /// Sends a datagram to the connected address.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.0.call(Direction::Write, |inner| inner.send(buf))
    }

    /// Sends a datagram to the first of the addresses.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn send_to(&self, buf: &[u8], address: impl ToSocketAddrs) -> io::Result<usize> {
        let to = address.addresses()?.into_iter().next();
        let to = to.ok_or_else(no_address)?;
        self.0
            .call(Direction::Write, |inner| inner.send_to(buf, to))
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

    /// Reads the next datagram without removing it.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.call(Direction::Read, |inner| inner.peek(buf))
    }

    /// Like [`peek`](Self::peek); returns the length and the sender.
    ///
    /// # Errors
    /// The system's error, or `TimedOut`.
    pub fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.call(Direction::Read, |inner| inner.peek_from(buf))
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

    /// Whether the socket may send to broadcast addresses.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.0.get().set_broadcast(broadcast)
    }

    /// Whether the socket may send to broadcast addresses.
    ///
    /// # Errors
    /// The system's error.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.0.get().broadcast()
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

    /// Joins a multicast group.
    ///
    /// # Errors
    /// The system's error.
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.0.get().join_multicast_v4(group, interface)
    }

    /// Joins a multicast group.
    ///
    /// # Errors
    /// The system's error.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.0.get().join_multicast_v6(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// The system's error.
    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.0.get().leave_multicast_v4(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// The system's error.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.0.get().leave_multicast_v6(group, interface)
    }
}
