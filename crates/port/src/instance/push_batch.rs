//! A submission of several calls: their places in the mailbox are reserved together, and the calls are
//! pushed together.

use std::sync::Arc;

use super::submit::MailboxFull;
use super::{CALLS_PER_TURN, Instance};
use crate::completion::CallBuffer;
use crate::mailbox::Unpushed;

/// The calls. Whoever has them calls [`push`](Self::push) and [`give_back`](Self::give_back) at the end.
pub(super) struct PushBatch {
    /// The number of calls that will follow.
    expected: usize,
    /// Reserved places of the mailbox that no call uses yet.
    places: u32,
    /// Calls with a place.
    unpushed: Unpushed<CallBuffer>,
}

impl PushBatch {
    /// For `count` calls.
    pub(super) fn new(count: usize) -> Self {
        Self {
            expected: count,
            places: 0,
            unpushed: Unpushed::default(),
        }
    }

    /// How many places are reserved together: those of the expected calls, 64 at most.
    pub(super) fn wanted(&self) -> u32 {
        self.expected.clamp(1, CALLS_PER_TURN) as u32
    }

    /// Adds a call to those that are pushed together. Returns whether the caller must schedule a turn,
    /// because the calls were pushed.
    ///
    /// # Errors
    /// The mailbox is full. The buffer is returned.
    pub(super) fn add(
        &mut self,
        instance: &Instance,
        buffer: CallBuffer,
    ) -> Result<bool, (CallBuffer, MailboxFull)> {
        if self.places == 0 {
            match instance.mailbox.reserve(self.wanted()) {
                Ok(places) => self.places = places,
                Err(capacity) => return Err((buffer, MailboxFull::Calls(capacity))),
            }
        }
        if let Err(full) = instance.add_bytes(&buffer) {
            return Err((buffer, full));
        }
        self.places -= 1;
        self.expected = self.expected.saturating_sub(1);
        self.unpushed.add(buffer);
        Ok(self.expected == 0 && self.push(instance))
    }

    /// Pushes the calls. Returns whether the caller must schedule a turn.
    pub(super) fn push(&mut self, instance: &Instance) -> bool {
        !self.unpushed.is_empty() && instance.mailbox.push_all(&mut self.unpushed)
    }

    /// Returns the places that were not used. All calls were pushed.
    pub(super) fn give_back(&mut self, instance: &Arc<Instance>) {
        let places = std::mem::take(&mut self.places);
        if places > 0 {
            instance.free_places(places);
        }
    }
}
