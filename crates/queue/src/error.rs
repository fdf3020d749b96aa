//! What can go wrong with a channel: one type for each question that can be asked of it.

use std::error::Error;
use std::fmt;

/// A capacity that no queue can have: 0, beyond 2^30, or more than there is memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityError(pub usize);

impl CapacityError {
    const MAX: usize = 1 << 30;

    pub(crate) fn check(capacity: usize) -> Result<(), Self> {
        if capacity == 0 || capacity > Self::MAX {
            return Err(Self(capacity));
        }
        Ok(())
    }
}

impl fmt::Display for CapacityError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(capacity) = self;
        if *capacity == 0 || *capacity > Self::MAX {
            write!(to, "a queue of {capacity} is not possible: 1 to 2^30")
        } else {
            write!(to, "there is no memory for a queue of {capacity}")
        }
    }
}

impl Error for CapacityError {}

/// Why [`Sender::try_send`](crate::Sender::try_send) gave the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room.
    Full(T),
    /// The channel was closed, or nobody is left to receive.
    Closed(T),
}

/// Why [`Sender::send`](crate::Sender::send) gave the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// The channel was closed, or nobody is left to receive.
    Closed(T),
    /// There is no room, and the channel's policy is [`Overflow::Fail`](crate::Overflow::Fail).
    Full(T),
    /// There was no room for as long as the channel's policy waits.
    TimedOut(T),
}

/// Why [`Sender::send_timeout`](crate::Sender::send_timeout) gave the value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// There was no room in time.
    TimedOut(T),
    /// The channel was closed, or nobody is left to receive.
    Closed(T),
}

/// Why there is nothing from [`Receiver::try_recv`](crate::Receiver::try_recv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is nothing now.
    Empty,
    /// There is nothing, and nothing will come: closed, or nobody is left to send.
    Closed,
}

/// Why there is nothing from [`Receiver::recv`](crate::Receiver::recv): the channel was closed, or nobody is left to send, and all
/// that was sent was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// Why there is nothing from [`Receiver::recv_timeout`](crate::Receiver::recv_timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// Nothing came in time.
    TimedOut,
    /// Nothing will come.
    Closed,
}

/// The channel was closed, or the other side is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

const CLOSED: &str = "the channel is closed";
const FULL: &str = "the channel is full";
const LATE: &str = "the deadline passed";

impl<T> TrySendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Full(_) => FULL,
            Self::Closed(_) => CLOSED,
        }
    }
}

impl<T> SendError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Closed(value) | Self::Full(value) | Self::TimedOut(value) => value,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::Closed(_) => CLOSED,
            Self::Full(_) => FULL,
            Self::TimedOut(_) => LATE,
        }
    }
}

impl<T> SendTimeoutError<T> {
    /// The value that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::TimedOut(value) | Self::Closed(value) => value,
        }
    }

    fn text(&self) -> &'static str {
        match self {
            Self::TimedOut(_) => LATE,
            Self::Closed(_) => CLOSED,
        }
    }
}

impl TryRecvError {
    fn text(self) -> &'static str {
        match self {
            Self::Empty => "the channel is empty",
            Self::Closed => CLOSED,
        }
    }
}

impl RecvTimeoutError {
    fn text(self) -> &'static str {
        match self {
            Self::TimedOut => LATE,
            Self::Closed => CLOSED,
        }
    }
}

/// Errors that carry a value say nothing of it: it need not be `Debug`.
macro_rules! errors_with_a_value {
    ($($name:ident),*) => {$(
        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(to, "{}({:?})", stringify!($name), self.text())
            }
        }

        impl<T> fmt::Display for $name<T> {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(self.text())
            }
        }

        impl<T> Error for $name<T> {}
    )*};
}

errors_with_a_value!(TrySendError, SendError, SendTimeoutError);

impl fmt::Display for TryRecvError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.text())
    }
}

impl fmt::Display for RecvTimeoutError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.text())
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(CLOSED)
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(CLOSED)
    }
}

impl Error for TryRecvError {}
impl Error for RecvTimeoutError {}
impl Error for RecvError {}
impl Error for Closed {}
