//! The settings of a mailbox.

use thalweg_queue::Overflow;

/// The capacity of a mailbox and its overflow policy.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    /// The number of messages that may wait, 1 to 2^31. Default: 1,024.
    pub capacity: u32,
    /// What happens when the mailbox is full. Default: [`Overflow::Block`], the sender waits.
    /// Policies that remove older messages are not allowed.
    pub overflow: Overflow,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            overflow: Overflow::Block,
        }
    }
}

impl Mailbox {
    /// # Panics
    /// If the capacity is 0 or more than 2^31, or the policy removes older messages.
    pub(crate) fn check(&self) {
        let Self { capacity, overflow } = self;
        assert!(
            (1..=1 << 31).contains(capacity),
            "the capacity of a mailbox is 1 to 2^31 messages, not {capacity}"
        );
        assert!(
            !matches!(overflow, Overflow::DropOldest | Overflow::Latest),
            "a mailbox does not remove older messages: {overflow:?}"
        );
    }
}
