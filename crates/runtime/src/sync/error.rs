//! How a wait ends that did not get what it waited for.

use std::fmt;

/// A wait with a deadline ended without what was waited for. Nothing is lost by it: who was chosen and did not take what it was given has passed it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The deadline passed.
    TimedOut,
    /// The caller is an actor whose runtime stops, or that is being unwound and cannot wait: give up and return. The end of the runtime is said by the wait
    /// that was under way and by one more; after that a wait unwinds the actor. So does a wait of one that a signal ends or whose scope is cancelled, at once.
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

/// A wait ended without what was waited for: at a [`Semaphore`](super::Semaphore) a permit, at a [`watch`](super::watch) a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosableWaitError {
    /// There will be none.
    Closed,
    /// As [`WaitError::TimedOut`].
    TimedOut,
    /// As [`WaitError::Stopping`].
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

/// It was closed: there will be nothing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

/// A permit was not there at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// There are too few, or others are before the caller.
    NoPermits,
    /// The semaphore was closed.
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
