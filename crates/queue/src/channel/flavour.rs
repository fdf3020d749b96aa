//! What a flavour of channel does: put in and take out without waiting.

use super::Core;

/// A sending handle without its waiting. Flavours of this crate implement it; nobody else can.
pub trait Push {
    /// What is sent.
    type Item;

    /// What all handles of the channel share.
    #[doc(hidden)]
    fn core(&self) -> &Core;

    /// As [`try_push`](Push::try_push) on a channel that is not closed, where nothing has to be looked up for it; gives the value back for any
    /// other reason too. It is what a send costs, so it is short, and calls nothing that comes back to it.
    #[doc(hidden)]
    fn push_fast(&self, value: Self::Item) -> Result<(), Self::Item>;

    /// Puts a value in and wakes who waits for it; gives it back if there is no room.
    #[doc(hidden)]
    fn try_push(&self, value: Self::Item) -> Result<(), Self::Item>;

    /// Puts in as many values from the front as there is room for; how many.
    #[doc(hidden)]
    fn push_some(&self, values: &mut Vec<Self::Item>) -> usize;

    /// Whether a push may succeed now.
    #[doc(hidden)]
    fn has_capacity(&self) -> bool;

    /// A cheap form of [`has_capacity`](Push::has_capacity) for a sender that spins: it may miss room that another handle keeps.
    #[doc(hidden)]
    fn has_visible_capacity(&self) -> bool {
        self.has_capacity()
    }

    /// Takes out the oldest value, where a sender may.
    #[doc(hidden)]
    fn evict(&self) -> Option<Self::Item> {
        None
    }

    /// Values that this handle knows to have gone through.
    #[doc(hidden)]
    fn transferred(&self) -> u64;

    /// Values inside.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// Most values inside.
    #[doc(hidden)]
    fn capacity(&self) -> usize;

    /// Before the core is marked as closed: what the flavour does so that no later push succeeds.
    #[doc(hidden)]
    fn close(&self) {}
}

/// A receiving handle without its waiting. Flavours of this crate implement it; nobody else can.
pub trait Pop {
    /// What is received.
    type Item;

    /// What all handles of the channel share.
    #[doc(hidden)]
    fn core(&self) -> &Core;

    /// As [`try_pop`](Pop::try_pop) where nothing has to be looked up for it; `None` for any other reason too.
    #[doc(hidden)]
    fn pop_fast(&self) -> Option<Self::Item>;

    /// Takes the oldest value out and wakes who waits for room.
    #[doc(hidden)]
    fn try_pop(&self) -> Option<Self::Item>;

    /// Takes out what is there, `most` at most; how many.
    #[doc(hidden)]
    fn pop_some(&self, most: usize, take: impl FnMut(Self::Item)) -> usize;

    /// Whether a pop may succeed now.
    #[doc(hidden)]
    fn has_value(&self) -> bool;

    /// On a closed channel: whether all that was accepted is out.
    #[doc(hidden)]
    fn is_drained(&self) -> bool {
        !self.has_value()
    }

    /// Values that this handle knows to have gone through.
    #[doc(hidden)]
    fn transferred(&self) -> u64;

    /// Values inside.
    #[doc(hidden)]
    fn len(&self) -> usize;

    /// Most values inside.
    #[doc(hidden)]
    fn capacity(&self) -> usize;

    /// As [`Push::close`].
    #[doc(hidden)]
    fn close(&self) {}
}
