//! A receiver in an event loop: a file descriptor to poll.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Waker;

use super::{Pop, Receiver};
use crate::event_fd::EventFd;
use crate::wait_list::{Ticket, WaiterKind};

/// A file descriptor that becomes readable when a receive may succeed. [`Receiver::readiness`]
/// creates it.
///
/// Drain the receiver, call [`arm`](Self::arm), and poll the descriptor. When it is readable, drain
/// and arm again. If the descriptor is armed, the next value costs the sender one system call;
/// further values cost none.
///
/// ```
/// use std::os::fd::AsFd;
/// let (sender, receiver) = thalweg_queue::mpsc::channel(8).unwrap();
/// let mut readiness = receiver.readiness().unwrap();
/// assert!(!readiness.arm(), "nothing yet: watch the descriptor");
/// sender.send(7).unwrap();
/// // poll, epoll or an event loop says now that this is readable:
/// let _ = readiness.as_fd();
/// assert!(readiness.arm(), "there is something: receive it first");
/// assert_eq!(receiver.try_recv(), Ok(7));
/// ```
pub struct Readiness<'a, P: Pop> {
    receiver: &'a Receiver<P>,
    event: Arc<EventFd>,
    waker: Waker,
    armed: Option<Ticket>,
}

impl<'a, P: Pop> Readiness<'a, P> {
    pub(super) fn new(receiver: &'a Receiver<P>) -> io::Result<Self> {
        let event = Arc::new(EventFd::new()?);
        let waker = Waker::from(Arc::clone(&event));
        Ok(Self {
            receiver,
            event,
            waker,
            armed: None,
        })
    }

    /// Makes the descriptor unreadable until a value arrives. Returns `true` if there is already a
    /// value or the channel is closed. The descriptor is then not armed: receive first.
    pub fn arm(&mut self) -> bool {
        let waiters = &self.receiver.pop.core().recv_waiters;
        if let Some(ticket) = self.armed.take() {
            waiters.disarm(WaiterKind::Watcher, ticket);
        }
        self.event.reset();
        let ticket = waiters.arm(
            WaiterKind::Watcher,
            self.waker.clone(),
            self.receiver.pop.transferred(),
        );
        self.receiver.announce();
        if self.receiver.is_ready() {
            waiters.disarm(WaiterKind::Watcher, ticket);
            return true;
        }
        self.armed = Some(ticket);
        false
    }
}

impl<P: Pop> AsFd for Readiness<'_, P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl<P: Pop> Drop for Readiness<'_, P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.armed.take() {
            self.receiver
                .pop
                .core()
                .recv_waiters
                .disarm_or_pass_on(WaiterKind::Watcher, ticket);
        }
    }
}

impl<P: Pop> fmt::Debug for Readiness<'_, P> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Readiness")
            .field("fd", &self.event)
            .field("armed", &self.armed.is_some())
            .finish()
    }
}
