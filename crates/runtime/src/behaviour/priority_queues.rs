//! In which order an actor's letters are read: by priority, and by age within one.
//!
//! 1. What the core sends (ends, exits, timers) comes before all; then high, normal and low.
//! 2. Of the letters that a turn may read, the last is a low one if any waits, and the last but one a normal one: a flood of one priority delays the
//!    others and does not starve them.
//! 3. Who puts in a high letter says so after it, in the bit that also says that there is something in the system lane. So a turn looks for neither
//!    unless there is one. A turn that leaves high letters where they are sets the bit again.

use super::Actor;
use super::envelope_queue::{BoxedEnvelope, EnvelopeQueue};

/// How soon an actor handles a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// When no other waits, and one in 64.
    Low,
    /// In the order in which they come.
    #[default]
    Normal,
    /// Before those that wait. There is as much room again for them: a mailbox that is full of others does not delay them.
    High,
}

pub(super) struct PriorityQueues<A: Actor> {
    system: EnvelopeQueue<A>,
    /// Each priority's, at its place.
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
        // SAFETY: the caller's.
        unsafe { self.system.pop() }
    }

    /// The next one, where there is no high one, if the turn may read `budget` more.
    ///
    /// # Safety
    /// The caller is the reader.
    #[inline(always)]
    pub(super) unsafe fn pop(&self, budget: u64) -> Option<BoxedEnvelope<A>> {
        let [low, normal, _] = &self.levels;
        // SAFETY: the caller's.
        unsafe {
            match budget {
                1 => low.pop().or_else(|| normal.pop()),
                _ => normal.pop().or_else(|| low.pop()),
            }
        }
    }

    /// The same where there may be a high one; and whether another one is left.
    ///
    /// # Safety
    /// The caller is the reader.
    pub(super) unsafe fn pop_with_high(&self, budget: u64) -> (Option<BoxedEnvelope<A>>, bool) {
        let [.., high] = &self.levels;
        // SAFETY: the caller's.
        unsafe {
            let envelope = match budget {
                1 | 2 => self.pop(budget).or_else(|| high.pop()),
                _ => high.pop().or_else(|| self.pop(budget)),
            };
            (envelope, !high.is_empty())
        }
    }
}
