//! Sockets with the names and signatures of `std`. In an actor, a call that has to wait parks the
//! actor; on a thread, it blocks as in `std`.
//!
//! Each call tries the system call first, and waits if it would block. Several actors may use a
//! socket at once, through `&`, an `Arc` or [`try_clone`](TcpStream::try_clone), from any worker of
//! any runtime. Differences from `std`:
//!
//! - The descriptors are non-blocking, also those of clones. Conversion into the type of `std`
//!   makes them blocking again.
//! - After a timeout, the error is `TimedOut`. A timeout belongs to the socket's calls; it is not
//!   set in the operating system, so it does not affect other users of the descriptor.
//! - In an actor whose runtime stops, each call returns [`io::Stopping`](crate::io::Stopping).
//! - Names are resolved by [`io::blocking`](crate::io::blocking), so there is an own trait for
//!   addresses.

mod addresses;
mod socket;
mod tcp;
mod udp;
mod unix;

pub use addresses::ToSocketAddrs;
pub use std::net::Shutdown;
pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{UnixDatagram, UnixIncoming, UnixListener, UnixStream};
