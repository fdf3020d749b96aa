//! Ways to send a number to another thread and back, from the lower bound up: two words in memory,
//! channels, kernel objects.

use std::io::{Read, Write};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use thalweg_peers::channel::Channel;
use thalweg_peers::patience;

use crate::problem::Problem;

/// One way to send numbers to another thread.
pub trait Link: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// The sending end.
    type Near: Send + 'static;
    /// The receiving end.
    type Far: Send + 'static;

    /// Creates a link.
    ///
    /// # Errors
    /// The operating system cannot provide it.
    fn new() -> Result<(Self::Near, Self::Far), Problem>;

    /// Sends a number other than 2^64 - 1.
    fn send(near: &mut Self::Near, message: u64);

    /// Receives a number, waiting for it.
    fn receive(far: &mut Self::Far) -> u64;
}

/// A capacity that every ring accepts. Only one number is in flight at a time.
const CAPACITY: usize = 64;

/// A channel whose ends retry at once.
#[derive(Debug)]
pub struct Spinning<C>(PhantomData<C>);

impl<C: Channel> Link for Spinning<C> {
    const NAME: &'static str = C::NAME;
    type Near = C::Sender;
    type Far = C::Receiver;

    fn new() -> Result<(C::Sender, C::Receiver), Problem> {
        Ok(C::bounded(CAPACITY))
    }

    #[inline]
    fn send(near: &mut C::Sender, message: u64) {
        patience::until(|| C::try_send(near, message).then_some(()));
    }

    #[inline]
    fn receive(far: &mut C::Receiver) -> u64 {
        patience::until(|| C::try_receive(far))
    }
}

/// A channel used through its blocking calls.
#[derive(Debug)]
pub struct Blocking<C>(PhantomData<C>);

impl<C: Channel> Link for Blocking<C> {
    const NAME: &'static str = C::NAME;
    type Near = C::Sender;
    type Far = C::Receiver;

    fn new() -> Result<(C::Sender, C::Receiver), Problem> {
        Ok(C::bounded(CAPACITY))
    }

    #[inline]
    fn send(near: &mut C::Sender, message: u64) {
        C::send(near, message);
    }

    #[inline]
    fn receive(far: &mut C::Receiver) -> u64 {
        C::receive(far)
    }
}

/// `atomics`, the lower bound: a word that contains the number plus 1, or 0.
#[derive(Debug)]
pub struct Atomics;

/// Alone on its cache line and on the line that is prefetched with it.
#[repr(align(128))]
#[derive(Debug)]
pub struct Word(AtomicU64);

impl Link for Atomics {
    const NAME: &'static str = "atomics";
    type Near = Arc<Word>;
    type Far = Arc<Word>;

    fn new() -> Result<(Arc<Word>, Arc<Word>), Problem> {
        let word = Arc::new(Word(AtomicU64::new(0)));
        Ok((Arc::clone(&word), word))
    }

    #[inline]
    fn send(near: &mut Arc<Word>, message: u64) {
        // The reply to the previous number confirms that it was taken.
        near.0.store(message + 1, Ordering::Release);
    }

    #[inline]
    fn receive(far: &mut Arc<Word>) -> u64 {
        let full = patience::until(|| match far.0.load(Ordering::Acquire) {
            0 => None,
            full => Some(full),
        });
        far.0.store(0, Ordering::Relaxed);
        full - 1
    }
}

/// `eventfd`: its count is the number plus 1.
#[derive(Debug)]
pub struct EventFd;

const KERNEL: &str = "the kernel moves eight bytes whole";

impl Link for EventFd {
    const NAME: &'static str = "eventfd";
    type Near = OwnedFd;
    type Far = OwnedFd;

    fn new() -> Result<(OwnedFd, OwnedFd), Problem> {
        let problem =
            |error: std::io::Error| Problem::Io("cannot make an eventfd".to_owned(), error);
        let near = eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| problem(errno.into()))?;
        let far = near.try_clone().map_err(problem)?;
        Ok((near, far))
    }

    #[inline]
    fn send(near: &mut OwnedFd, message: u64) {
        let count = (message + 1).to_ne_bytes();
        assert_eq!(rustix::io::write(near, &count).expect(KERNEL), 8);
    }

    #[inline]
    fn receive(far: &mut OwnedFd) -> u64 {
        let mut count = [0; 8];
        assert_eq!(rustix::io::read(far, &mut count).expect(KERNEL), 8);
        u64::from_ne_bytes(count) - 1
    }
}

/// `unix_socket`: eight bytes through a stream socket.
#[derive(Debug)]
pub struct UnixSocket;

impl Link for UnixSocket {
    const NAME: &'static str = "unix_socket";
    type Near = UnixStream;
    type Far = UnixStream;

    fn new() -> Result<(UnixStream, UnixStream), Problem> {
        UnixStream::pair().map_err(Problem::io("cannot make a pair of sockets"))
    }

    #[inline]
    fn send(near: &mut UnixStream, message: u64) {
        near.write_all(&message.to_ne_bytes()).expect(KERNEL);
    }

    #[inline]
    fn receive(far: &mut UnixStream) -> u64 {
        let mut bytes = [0; 8];
        far.read_exact(&mut bytes).expect(KERNEL);
        u64::from_ne_bytes(bytes)
    }
}
