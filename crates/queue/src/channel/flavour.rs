//! The traits of a channel flavour: push and pop without waiting.

use super::Core;
use crate::exchange::Exchange;

/// The sending half of a flavour. It never waits. Only this crate implements it.
pub trait Push {
    /// The type of the values.
    type Item;

    /// The state that all handles of the channel share.
    #[doc(hidden)]
    fn core(&self) -> &Core;

    /// A rendezvous: a send waits until a receiver has taken the value.
    #[doc(hidden)]
    #[inline(always)]
    fn exchange(&self) -> Option<&Exchange<Self::Item>> {
        None
    }

    /// The fast path of [`try_push`](Push::try_push) for an open channel. It may return the value
    /// for any reason, for example because it would have to read the other side's position. The
    /// cost of a send is the cost of this method, so it is short and is not recursive.
    #[doc(hidden)]
    fn push_fast(&self, value: Self::Item) -> Result<(), Self::Item>;

    /// Pushes a value and wakes a waiting receiver. Returns the value if the queue is full.
    #[doc(hidden)]
    fn try_push(&self, value: Self::Item) -> Result<(), Self::Item>;

    /// Pushes as many values as fit, from the front. Returns their number.
    #[doc(hidden)]
    fn push_some(&self, values: &mut Vec<Self::Item>) -> usize;

    /// Whether a push may succeed now.
    #[doc(hidden)]
    fn has_capacity(&self) -> bool;

    /// A cheap form of [`has_capacity`](Push::has_capacity) for a spinning sender. It may miss
    /// capacity that another handle has reserved.
    #[doc(hidden)]
    fn has_visible_capacity(&self) -> bool {
        self.has_capacity()
    }

    /// Removes the oldest value, if senders of this flavour can.
    #[doc(hidden)]
    fn evict(&self) -> Option<Self::Item> {
        None
    }

    /// The number of values that have passed through the channel, as far as this handle knows.
    #[doc(hidden)]
    fn transferred(&self) -> u64;

    /// The number of values in the channel.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// The capacity of the channel.
    #[doc(hidden)]
    fn capacity(&self) -> usize;

    /// Called before the core is marked as closed, so that no later push succeeds.
    #[doc(hidden)]
    fn close(&self) {}
}

/// The receiving half of a flavour. It never waits. Only this crate implements it.
pub trait Pop {
    /// The type of the values.
    type Item;

    /// Whether each receiver gets every value. A send then wakes all receivers that wait, and no
    /// receiver wakes another. The channel stays open without receivers.
    #[doc(hidden)]
    const IS_BROADCAST: bool = false;

    /// The state that all handles of the channel share.
    #[doc(hidden)]
    fn core(&self) -> &Core;

    /// Like [`Push::exchange`]. A receiver commits to it before it blocks.
    #[doc(hidden)]
    #[inline(always)]
    fn exchange(&self) -> Option<&Exchange<Self::Item>> {
        None
    }

    /// The fast path of [`try_pop`](Pop::try_pop). It may return `None` for any reason.
    #[doc(hidden)]
    fn pop_fast(&self) -> Option<Self::Item>;

    /// Pops the oldest value and wakes a waiting sender.
    #[doc(hidden)]
    fn try_pop(&self) -> Option<Self::Item>;

    /// Pops at most `most` values and appends them to `values`. Returns their number.
    #[doc(hidden)]
    fn pop_into(&self, most: usize, values: &mut Vec<Self::Item>) -> usize;

    /// Whether a pop may succeed now.
    #[doc(hidden)]
    fn has_value(&self) -> bool;

    /// On a closed channel: whether all accepted values have been received.
    #[doc(hidden)]
    fn is_drained(&self) -> bool {
        !self.has_value()
    }

    /// The number of values that have passed through the channel, as far as this handle knows.
    #[doc(hidden)]
    fn transferred(&self) -> u64;

    /// The number of values in the channel.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// The capacity of the channel.
    #[doc(hidden)]
    fn capacity(&self) -> usize;

    /// Like [`Push::close`].
    #[doc(hidden)]
    fn close(&self) {}
}
