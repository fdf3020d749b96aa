//! Socket addresses and host names. The system's resolver blocks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::net::{ToSocketAddrs as Std, UdpSocket as StdUdpSocket};

use crate::io::blocking;

mod sealed {
    pub trait Sealed {}
}

/// Addresses to bind or connect to: like [`std::net::ToSocketAddrs`], but names are resolved on the
/// blocking pool.
pub trait ToSocketAddrs: sealed::Sealed {
    /// The addresses, in the resolver's order.
    ///
    /// # Errors
    /// The resolver's error, or `InvalidInput` if the text is neither an address nor a name.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>>;
}

macro_rules! literal {
    ($($type:ty),*) => { $(
        impl sealed::Sealed for $type {}
        impl ToSocketAddrs for $type {
            fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
                Ok(self.to_socket_addrs()?.collect())
            }
        }
    )* };
}

literal!(
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
    [SocketAddr]
);

fn resolve(name: impl Std + Send + 'static) -> io::Result<Vec<SocketAddr>> {
    blocking(move || Ok(name.to_socket_addrs()?.collect()))
}

impl sealed::Sealed for str {}
impl ToSocketAddrs for str {
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match self.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => resolve(self.to_owned()),
        }
    }
}

impl sealed::Sealed for String {}
impl ToSocketAddrs for String {
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.as_str().addresses()
    }
}

impl sealed::Sealed for (&str, u16) {}
impl ToSocketAddrs for (&str, u16) {
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match self.0.parse::<IpAddr>() {
            Ok(address) => (address, self.1).addresses(),
            Err(_) => resolve((self.0.to_owned(), self.1)),
        }
    }
}

impl sealed::Sealed for (String, u16) {}
impl ToSocketAddrs for (String, u16) {
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        (self.0.as_str(), self.1).addresses()
    }
}

impl<T: ToSocketAddrs + ?Sized> sealed::Sealed for &T {}
impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        (**self).addresses()
    }
}

/// The first success of `f`, or the error of the last address.
pub(super) fn first_success<T>(
    addresses: impl ToSocketAddrs,
    mut f: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut failed = None;
    for address in addresses.addresses()? {
        match f(address) {
            Ok(value) => return Ok(value),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(no_address))
}

pub(super) fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "no address")
}

/// Binds a socket of `std`.
pub(super) fn bind_udp(addresses: impl ToSocketAddrs) -> io::Result<StdUdpSocket> {
    first_success(addresses, StdUdpSocket::bind)
}
