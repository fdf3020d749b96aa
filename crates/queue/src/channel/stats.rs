//! The statistics of a channel.

/// The statistics of a channel since it was created. The counts of dropped values are exact. The
/// other fields may lag behind other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of values in the channel now.
    pub depth: usize,
    /// The largest number of values that a handle saw in the channel. It is updated when a sender
    /// finds the channel full, after a receiver has waited, and by this query.
    pub high_water: usize,
    /// Values that were dropped instead of being sent:
    /// [`Overflow::DropNewest`](crate::Overflow::DropNewest).
    pub dropped_newest: u64,
    /// Values that were evicted for a newer one:
    /// [`Overflow::DropOldest`](crate::Overflow::DropOldest). On a
    /// [`broadcast`](crate::broadcast) channel: the sum of all [`Lagged`](crate::broadcast::Lagged)
    /// counts that receivers returned.
    pub dropped_oldest: u64,
    /// Values that a later one replaced: [`Overflow::Latest`](crate::Overflow::Latest).
    pub conflated: u64,
    /// How often a waiting receiver was woken.
    pub receiver_wakes: u64,
    /// How often a receiving thread parked.
    pub receiver_parks: u64,
    /// The total time that receiving threads were parked, in nanoseconds.
    pub receiver_parked_ns: u64,
    /// How often a waiting sender was woken.
    pub sender_wakes: u64,
    /// How often a sending thread parked.
    pub sender_parks: u64,
    /// The total time that sending threads were parked, in nanoseconds.
    pub sender_parked_ns: u64,
}
