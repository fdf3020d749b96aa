//! The options of a channel.

use std::fmt;
use std::time::Duration;

/// The overflow policy: what [`send`](crate::Sender::send) does when the channel is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Waits until the channel has capacity.
    #[default]
    Block,
    /// Waits for at most this long, then returns the value.
    BlockFor(Duration),
    /// Returns the value at once.
    Fail,
    /// Drops the value that is being sent, and counts it.
    DropNewest,
    /// Drops the oldest value in the channel, and counts it. Only [`mpmc`](crate::mpmc) supports
    /// this.
    DropOldest,
    /// Drops every value in the channel, and counts them, so that the receiver gets the latest
    /// value. Only [`mpmc`](crate::mpmc) supports this.
    Latest,
}

/// The wait strategy: what a blocking call does before it parks its thread, and what a task does
/// before it waits to be woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Spins for at most the cost of a wake-up, learns whether spinning helps, then parks. A task
    /// looks for at most 3 us, and learns, too.
    #[default]
    Adaptive,
    /// Parks at once.
    Park,
    /// Never parks. For threads that have a processor to themselves. On one processor it yields.
    Spin,
}

/// The options of a channel. The default is to block when the channel is full, and to wait
/// adaptively.
///
/// ```
/// use thalweg_queue::{Options, Overflow, mpmc};
/// let options = Options::new().overflow(Overflow::DropOldest);
/// let (sender, receiver) = mpmc::with(2, options).unwrap();
/// for i in 0..5 {
///     sender.send(i).unwrap();
/// }
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [3, 4]);
/// assert_eq!(receiver.stats().dropped_oldest, 3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub(crate) overflow: Overflow,
    pub(crate) wait_strategy: WaitStrategy,
}

impl Options {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the overflow policy.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Sets the wait strategy.
    #[must_use]
    pub fn wait_strategy(mut self, wait_strategy: WaitStrategy) -> Self {
        self.wait_strategy = wait_strategy;
        self
    }

    /// Rejects the policies that remove values, for flavours whose senders cannot do this.
    pub(crate) fn without_eviction(self) -> Result<Self, CreateError> {
        match self.overflow {
            Overflow::DropOldest | Overflow::Latest => Err(CreateError::Overflow(self.overflow)),
            _ => Ok(self),
        }
    }
}

/// Why a channel could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The capacity is invalid or cannot be allocated.
    Capacity(crate::CapacityError),
    /// The senders of this flavour cannot remove the oldest value. Use [`mpmc`](crate::mpmc).
    Overflow(Overflow),
}

impl From<crate::CapacityError> for CreateError {
    fn from(bad: crate::CapacityError) -> Self {
        Self::Capacity(bad)
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity(bad) => bad.fmt(to),
            Self::Overflow(overflow) => {
                write!(to, "only an mpmc channel supports the policy {overflow:?}")
            }
        }
    }
}

impl std::error::Error for CreateError {}
