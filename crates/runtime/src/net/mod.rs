//! Sockets with std's names and signatures. In an actor a call that has to wait leaves the worker to others; on a thread it blocks as
//! std's does.
//!
//! A call tries the system call first, and waits where there is nothing. A socket may be used by several actors at once, through `&`, an `Arc` or
//! [`try_clone`](TcpStream::try_clone), from any worker of any runtime. What differs from std:
//!
//! - The descriptors are non-blocking, those of clones too. Conversion into std's type makes them block again.
//! - Where a timeout passes the error is `TimedOut`. A timeout is a call's, and not the system's: who holds the descriptor does not see it.
//! - In an actor whose runtime stops each call ends with [`io::Stopping`](crate::io::Stopping).
//! - Names are resolved by [`io::blocking`](crate::io::blocking), so the trait for addresses is one of our own.

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
