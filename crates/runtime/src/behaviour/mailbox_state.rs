//! The state of a mailbox in one word: how many messages it has, whether a turn is scheduled, and
//! whether the actor is ending.
//!
//! | bits | meaning |
//! | --- | --- |
//! | the low 32 | messages that are queued, or that their senders are about to push |
//! | `SCHEDULED` | a turn is queued or running, or this was the last turn. The thread that sets the bit schedules the turn |
//! | `WAITERS` | senders wait for capacity |
//! | `CLOSED` | the last reference was dropped: queued messages are handled, then the turn checks whether there is still no reference (rule 5) |
//! | `STOP` | the actor ends before it handles another message |
//! | `SYSTEM` | there is a system message or a message of high priority, or the actor was killed. This is checked before any other message |
//! | `RESTARTABLE` | another incarnation may follow: `STOP` ends only this one, and messages are still accepted |
//! | `ENDED` | the actor has ended and accepts no message |
//!
//! 1. A sender reserves capacity by incrementing the count (Acquire), and pushes its message if
//!    `ENDED` and `STOP` were clear. The increment also sets `SCHEDULED` if that is clear. `CLOSED`
//!    refuses no sender, since a sender has a reference.
//! 2. Only the running turn pops messages and accesses the state. It clears `SCHEDULED` (Release)
//!    only in the step that finds no work. The thread that sets it again (Acquire) sees what that
//!    turn wrote.
//! 3. Between two incarnations of a restartable actor, `SCHEDULED` stays set, so that no turn is
//!    scheduled. Starting the next incarnation schedules one.
//! 4. The thread that sets `ENDED` pops as many messages as were counted then. Those that are not
//!    queued yet are about to be pushed.
//! 5. References are counted in a word of their own. Dropping the last one then sets `CLOSED`
//!    (Release). Only the running turn can create a reference when there is none
//!    (`Context::actor`). A turn that sees `CLOSED` and no message clears `CLOSED` (Acquire) **and
//!    then** reads the reference count (Acquire). If the count is not 0, the next drop of a last
//!    reference sets `CLOSED` again: a drop before the clear is included in the count that the turn
//!    reads, and a drop after it is visible at the next look at the word. If the count is 0, nobody
//!    can create a reference any more and all messages are counted: the turn sets `CLOSED` again,
//!    and ends the actor if the word that it replaced has no message.

use crate::actor_info::ActorState;
use crate::shim::{AtomicU64, Ordering};

pub(super) const MESSAGES: u64 = (1 << 32) - 1;
const SCHEDULED: u64 = 1 << 32;
const WAITERS: u64 = 1 << 33;
const CLOSED: u64 = 1 << 34;
const STOP: u64 = 1 << 35;
const ENDED: u64 = 1 << 36;
const SYSTEM: u64 = 1 << 37;
const RESTARTABLE: u64 = 1 << 38;

#[derive(Debug)]
pub(crate) struct MailboxState(AtomicU64);

/// The result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveResult {
    /// The caller may push its message.
    Reserved {
        /// Whether the caller must then schedule a turn.
        is_idle: bool,
        /// The number of messages, including the caller's.
        messages: u64,
    },
    Full,
    Closed,
}

/// The next action of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    ReadMessage,
    /// Handle system messages first.
    ReadSystem,
    /// Nothing: the turn is over.
    Idle,
    End,
}

/// Whether messages are refused.
fn is_closed(word: u64) -> bool {
    let stopping = if word & RESTARTABLE != 0 { 0 } else { STOP };
    word & (stopping | ENDED) != 0
}

/// The number of messages. It is 0 after the end, since the thread that set `ENDED` drops them.
fn message_count(word: u64) -> u64 {
    if word & ENDED == 0 {
        word & MESSAGES
    } else {
        0
    }
}

impl MailboxState {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Marks a restartable actor. No incarnation has started (rule 3).
    pub(crate) fn mark_restartable(&self) {
        self.0.store(RESTARTABLE | SCHEDULED, Ordering::Relaxed);
    }

    pub(crate) fn is_restartable(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RESTARTABLE != 0
    }

    /// Rule 1.
    pub(crate) fn reserve(&self, capacity: u64) -> ReserveResult {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if is_closed(word) {
                return ReserveResult::Closed;
            }
            if word & MESSAGES >= capacity {
                return ReserveResult::Full;
            }
            match self.0.compare_exchange_weak(
                word,
                (word + 1) | SCHEDULED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    return ReserveResult::Reserved {
                        is_idle: word & SCHEDULED == 0,
                        messages: (word & MESSAGES) + 1,
                    };
                }
                Err(now) => word = now,
            }
        }
    }

    /// Whether there is capacity, or the mailbox is closed.
    pub(crate) fn has_capacity(&self, capacity: u64) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & MESSAGES < capacity || is_closed(word)
    }

    pub(crate) fn len(&self) -> u64 {
        message_count(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn is_closed(&self) -> bool {
        is_closed(self.0.load(Ordering::Acquire))
    }

    /// The state of the running incarnation, for inspection.
    pub(crate) fn state(&self) -> ActorState {
        let word = self.0.load(Ordering::Relaxed);
        if word & (STOP | CLOSED | ENDED) != 0 {
            ActorState::Ending
        } else if word & SCHEDULED != 0 {
            ActorState::Runnable
        } else {
            ActorState::Idle
        }
    }

    /// The last reference was dropped (rule 5). `true`: the caller schedules a turn.
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// `true`: the caller schedules a turn.
    pub(crate) fn stop(&self) -> bool {
        self.0.fetch_or(STOP | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// There is a system message, or the actor was killed. `true`: the caller schedules a turn.
    pub(crate) fn notify_system(&self) -> bool {
        self.0.fetch_or(SYSTEM | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// As [`notify_system`](Self::notify_system), for a sender that has reserved capacity or for
    /// the running turn: a turn is or will be scheduled.
    pub(crate) fn set_system(&self) {
        self.0.fetch_or(SYSTEM, Ordering::Release);
    }

    /// A sender sets this before it checks for capacity again. Both facts are in one word: either
    /// this check sees the capacity, or the thread that releases capacity sees `WAITERS`.
    pub(crate) fn set_waiters(&self) {
        self.0.fetch_or(WAITERS, Ordering::Relaxed);
    }

    /// The turn's next action (rule 2). `is_referenced` reads the reference count.
    pub(crate) fn next(&self, is_referenced: impl FnOnce() -> bool) -> NextAction {
        let word = self.0.load(Ordering::Acquire);
        if word & SYSTEM != 0 {
            // A later system message sets the bit again.
            self.0.fetch_and(!SYSTEM, Ordering::AcqRel);
            NextAction::ReadSystem
        } else if word & STOP != 0 {
            NextAction::End
        } else if word & MESSAGES != 0 {
            NextAction::ReadMessage
        } else if word & CLOSED != 0 {
            self.check_references(is_referenced)
        } else {
            self.idle_if_unchanged(word)
        }
    }

    /// Rule 5.
    #[cold]
    fn check_references(&self, is_referenced: impl FnOnce() -> bool) -> NextAction {
        self.0.fetch_and(!CLOSED, Ordering::AcqRel);
        if !is_referenced() {
            let before = self.0.fetch_or(CLOSED, Ordering::AcqRel);
            if before & (MESSAGES | SYSTEM) == 0 {
                return NextAction::End;
            }
        }
        // There is more to do: the next look at the word decides.
        NextAction::ReadMessage
    }

    /// Called by a turn that has used up its budget. `true`: there is no work and the turn is over.
    /// No pending bit is cleared.
    pub(crate) fn try_idle(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & (SYSTEM | STOP | CLOSED | MESSAGES) == 0
            && self.idle_if_unchanged(word) == NextAction::Idle
    }

    fn idle_if_unchanged(&self, word: u64) -> NextAction {
        match self
            .0
            .compare_exchange(word, word & !SCHEDULED, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => NextAction::Idle,
            Err(_) => NextAction::ReadMessage,
        }
    }

    /// After [`NextAction::ReadSystem`]: whether the turn may read messages, and there are any.
    pub(crate) fn can_read(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & STOP == 0 && word & MESSAGES != 0
    }

    /// Releases the capacity of this many messages. `true`: senders wait for capacity and must be
    /// woken.
    pub(crate) fn release(&self, count: u64) -> bool {
        // Relaxed: a sender that finds capacity learns nothing else from this. What the turn wrote
        // is published to the next turn by `next`.
        let before = self.0.fetch_sub(count, Ordering::Relaxed);
        before & WAITERS != 0 && self.0.fetch_and(!WAITERS, Ordering::AcqRel) & WAITERS != 0
    }

    /// Starts the next incarnation (rule 3). Requests to end the last incarnation are cleared. The
    /// messages stay, unless the actor had ended. `SYSTEM` is set, because the last incarnation may
    /// have left system messages.
    pub(crate) fn restart(&self) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let messages = message_count(word);
            let flags = word & (WAITERS | RESTARTABLE);
            match self.0.compare_exchange_weak(
                word,
                messages | flags | SCHEDULED | SYSTEM,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// The last step: returns the number of messages that the caller must drop. It is 0 if the
    /// actor had ended already.
    pub(crate) fn end(&self) -> u64 {
        message_count(self.0.fetch_or(ENDED, Ordering::AcqRel))
    }
}
