//! Errors of waits.

use std::fmt;

/// A wait with a deadline ended without a result. Nothing is lost: a grant that came too late was
/// passed on to the next waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The deadline passed.
    TimedOut,
    /// The caller is an actor whose runtime stops, or that is being unwound and cannot wait. Give
    /// up and return. After the runtime has begun to stop, the current wait and one more return
    /// this error; later waits unwind the actor. In an actor that got an exit signal or whose scope
    /// is cancelled, the wait unwinds at once.
    Stopping,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline passed",
            Self::Stopping => "the actor cannot wait any more",
        })
    }
}

impl std::error::Error for WaitError {}

/// A wait on a primitive that can be closed ended without a result: on a
/// [`Semaphore`](super::Semaphore) without a permit, on a [`watch`](super::watch) without a new
/// value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosableWaitError {
    /// The semaphore is closed, or the watch has no sender.
    Closed,
    /// Like [`WaitError::TimedOut`].
    TimedOut,
    /// Like [`WaitError::Stopping`].
    Stopping,
}

impl From<WaitError> for ClosableWaitError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut,
            WaitError::Stopping => Self::Stopping,
        }
    }
}

impl From<Closed> for ClosableWaitError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl fmt::Display for ClosableWaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => Closed.fmt(f),
            Self::TimedOut => WaitError::TimedOut.fmt(f),
            Self::Stopping => WaitError::Stopping.fmt(f),
        }
    }
}

impl std::error::Error for ClosableWaitError {}

/// The primitive is closed: there will be nothing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

/// The permits could not be acquired without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// Too few permits are available, or there are waiters.
    NoPermits,
    /// The semaphore is closed.
    Closed,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermits => f.write_str("no permits"),
            Self::Closed => Closed.fmt(f),
        }
    }
}

impl std::error::Error for TryAcquireError {}
