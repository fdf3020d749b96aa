//! A channel's figures, for the asking.

/// What a channel did so far. Counts of drops are exact; the rest may lag behind other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Values inside now.
    pub depth: usize,
    /// Most values inside, as far as a handle saw it: when a sender found no room, when a receiver had waited, and now.
    pub high_water: usize,
    /// Values that were to be sent and were dropped: [`Overflow::DropNewest`](crate::Overflow::DropNewest).
    pub dropped_newest: u64,
    /// Values that made room: [`Overflow::DropOldest`](crate::Overflow::DropOldest).
    pub dropped_oldest: u64,
    /// Values that a later one replaced: [`Overflow::Latest`](crate::Overflow::Latest).
    pub conflated: u64,
    /// How often a sleeping receiver was woken.
    pub receiver_wakes: u64,
    /// How often a receiving thread slept.
    pub receiver_parks: u64,
    /// How long, all together, in nanoseconds.
    pub receiver_parked_ns: u64,
    /// How often a sleeping sender was woken.
    pub sender_wakes: u64,
    /// How often a sending thread slept.
    pub sender_parks: u64,
    /// How long, all together, in nanoseconds.
    pub sender_parked_ns: u64,
}
