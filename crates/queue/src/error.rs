//! The errors of channels. Each operation has its own type.

use std::error::Error;
use std::fmt;

/// The capacity is 0 or more than 2^30, or there is not enough memory for it.
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
            write!(
                to,
                "the capacity {capacity} is invalid: it must be 1 to 2^30"
            )
        } else {
            write!(to, "not enough memory for a queue of {capacity}")
        }
    }
}

impl Error for CapacityError {}

/// The error of [`Sender::try_send`](crate::Sender::try_send). It returns the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel is full.
    Full(T),
    /// The channel is closed, or there is no receiver left.
    Closed(T),
}

/// The error of [`Sender::send`](crate::Sender::send). It returns the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// The channel is closed, or there is no receiver left.
    Closed(T),
    /// The channel is full, and its policy is [`Overflow::Fail`](crate::Overflow::Fail).
    Full(T),
    /// The channel stayed full for as long as its policy
    /// [`Overflow::BlockFor`](crate::Overflow::BlockFor) waits.
    TimedOut(T),
}

/// The error of [`Sender::send_timeout`](crate::Sender::send_timeout). It returns the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The channel stayed full until the deadline.
    TimedOut(T),
    /// The channel is closed, or there is no receiver left.
    Closed(T),
}

/// The error of [`Receiver::try_recv`](crate::Receiver::try_recv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// The channel is empty now.
    Empty,
    /// The channel is empty and closed, or there is no sender left.
    Closed,
}

/// The error of [`Receiver::recv`](crate::Receiver::recv): the channel is closed or has no sender
/// left, and every value has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// The error of [`Receiver::recv_timeout`](crate::Receiver::recv_timeout).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// No value arrived before the deadline.
    TimedOut,
    /// The channel is closed, and every value has been received.
    Closed,
}

/// The channel is closed, or the other side is gone.
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

/// Errors that carry a value do not print it, because the value need not be `Debug`.
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
