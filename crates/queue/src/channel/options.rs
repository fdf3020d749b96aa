//! What can be chosen when a channel is made.

use std::fmt;
use std::time::Duration;

/// What [`send`](crate::Sender::send) does where there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Waits until there is room.
    #[default]
    Block,
    /// Waits for at most this long; then the value comes back.
    BlockFor(Duration),
    /// Gives the value back at once.
    Fail,
    /// Drops the value that was to be sent, and counts it.
    DropNewest,
    /// Drops the oldest value in the channel, and counts it. Only [`mpmc`](crate::mpmc) can.
    DropOldest,
    /// Drops every value in the channel, and counts them: the receiver finds the latest. Only [`mpmc`](crate::mpmc) can.
    Latest,
}

/// What a blocked call does before it sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitStrategy {
    /// Spins for no longer than a wake-up costs, learns whether that helps, and sleeps.
    #[default]
    Adaptive,
    /// Sleeps at once.
    Park,
    /// Never sleeps: for threads that have a processor to themselves. Where there is one processor it yields.
    Spin,
}

/// What a channel is made with. The default blocks, and waits adaptively.
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
    /// The default.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this policy for a full channel.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// With this way to wait.
    #[must_use]
    pub fn wait_strategy(mut self, wait_strategy: WaitStrategy) -> Self {
        self.wait_strategy = wait_strategy;
        self
    }

    /// For flavours whose senders cannot take values out.
    pub(crate) fn without_eviction(self) -> Result<Self, CreateError> {
        match self.overflow {
            Overflow::DropOldest | Overflow::Latest => Err(CreateError::Overflow(self.overflow)),
            _ => Ok(self),
        }
    }
}

/// Why a channel cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateError {
    /// The capacity.
    Capacity(crate::CapacityError),
    /// This flavour's senders cannot take the oldest value out: use [`mpmc`](crate::mpmc).
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
                write!(to, "only an mpmc channel can have the policy {overflow:?}")
            }
        }
    }
}

impl std::error::Error for CreateError {}
