//! The order in which an actor's messages are handled: by priority, and first in, first out within
//! one priority.
//!
//! 1. System messages (exits, down messages, timers) come first, then high, normal and low
//!    priority.
//! 2. The last message of a turn's budget is one of low priority if any waits, and the last but one
//!    is one of normal priority. A flood of one priority therefore delays the others but does not
//!    starve them.
//! 3. A sender of a high-priority message sets the `SYSTEM` bit after the push, so that a turn
//!    checks the system and high-priority queues only if the bit is set. A turn that leaves
//!    high-priority messages in the queue sets the bit again.

use super::Actor;
use super::envelope_queue::{BoxedEnvelope, EnvelopeQueue};

/// When an actor handles a message, relative to its other messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// When no other message waits, and at least one in 64.
    Low,
    /// After the messages that arrived before it.
    #[default]
    Normal,
    /// Before all waiting messages. They have a capacity of their own, as large as the mailbox's: a
    /// full mailbox does not delay them.
    High,
}

pub(super) struct PriorityQueues<A: Actor> {
    system: EnvelopeQueue<A>,
    /// One queue per priority, indexed by `Priority as usize`.
    levels: [EnvelopeQueue<A>; 3],
}

impl<A: Actor> PriorityQueues<A> {
    pub(super) fn new() -> Self {
        Self {
            system: EnvelopeQueue::new(),
            levels: std::array::from_fn(|_| EnvelopeQueue::new()),
        }
    }

    pub(super) fn push(&self, priority: Priority, envelope: BoxedEnvelope<A>) {
        self.levels[priority as usize].push(envelope);
    }

    pub(super) fn push_system(&self, envelope: BoxedEnvelope<A>) {
        self.system.push(envelope);
    }

    /// # Safety
    /// The caller is the reader.
    pub(super) unsafe fn pop_system(&self) -> Option<BoxedEnvelope<A>> {
        // SAFETY: the caller's contract.
        unsafe { self.system.pop() }
    }

    /// Pops the next message if there is none of high priority. `budget`: how many messages the
    /// turn may still handle.
    ///
    /// # Safety
    /// The caller is the reader.
    #[inline(always)]
    pub(super) unsafe fn pop(&self, budget: u64) -> Option<BoxedEnvelope<A>> {
        let [low, normal, _] = &self.levels;
        // SAFETY: the caller's contract.
        unsafe {
            match budget {
                1 => low.pop().or_else(|| normal.pop()),
                _ => normal.pop().or_else(|| low.pop()),
            }
        }
    }

    /// As [`pop`](Self::pop), including the high priority; and whether a high-priority message is
    /// left.
    ///
    /// # Safety
    /// The caller is the reader.
    pub(super) unsafe fn pop_with_high(&self, budget: u64) -> (Option<BoxedEnvelope<A>>, bool) {
        let [.., high] = &self.levels;
        // SAFETY: the caller's contract.
        unsafe {
            let envelope = match budget {
                1 | 2 => self.pop(budget).or_else(|| high.pop()),
                _ => high.pop().or_else(|| self.pop(budget)),
            };
            (envelope, !high.is_empty())
        }
    }
}
