//! One word: how many letters an actor has, whether one of its turns is under way, and whether it ends.
//!
//! | bits | meaning |
//! | --- | --- |
//! | the low 32 | letters that are in the lane, or that their senders are putting there |
//! | `SCHEDULED` | a turn is in some worker's queue, or runs, or was the last: who sets it makes that turn |
//! | `WAITERS` | senders wait for room |
//! | `CLOSED` | the last reference was dropped: what is there is read, then the turn looks whether there is still none (rule 5) |
//! | `STOP` | it ends before it reads another letter, however many there are |
//! | `SYSTEM` | there is something in the system lane, a letter of high priority, or it is doomed: that comes before any other letter |
//! | `RESTARTABLE` | another incarnation may follow: `STOP` ends this one, and letters are taken all the same |
//! | `ENDED` | it has ended: nothing is put in any more |
//!
//! 1. A sender counts its letter (Acquire), and puts it in if `ENDED` and `STOP` were clear. Who counts sets `SCHEDULED` if it is clear. `CLOSED` refuses
//!    no sender: one that sends has a reference.
//! 2. The running turn is the only reader of the lane and the only one who touches the state. It clears `SCHEDULED` (Release) only in the step in
//!    which it sees that there is nothing to do; who sets it again (Acquire) sees what that turn wrote.
//! 3. Of an actor that is kept, `SCHEDULED` stays set between two incarnations, so that no turn is made: who begins the next one makes it.
//! 4. Who sets `ENDED` takes out as many letters as were counted then: those that are not in yet are on their way.
//! 5. References are counted in a word of their own. Whoever drops the last one sets `CLOSED` after that (Release). Only the running turn can make one
//!    where there is none (`Context::actor`). A turn that sees `CLOSED` and no letter clears `CLOSED` (Acquire) **and then** reads the count (Acquire). If that is
//!    not 0, whoever drops the last one sets `CLOSED` again: a drop that came before the clear is in the count that is read, and one that comes after it is
//!    seen by the next look at the word. If it is 0, nobody can make a reference from then on, and all letters are counted: the turn sets `CLOSED` again, and
//!    ends the actor if the word that it replaced has no letter.

use crate::inspect::ActorState;
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

/// What became of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReserveResult {
    /// The letter may be put in, and then, if `true`, a turn is to be made.
    Reserved(bool),
    Full,
    Closed,
}

/// What a turn has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    ReadMessage,
    /// What is in the system lane, first.
    ReadSystem,
    /// Nothing; the turn is over.
    Idle,
    End,
}

/// Whether nothing is accepted any more.
fn is_closed(word: u64) -> bool {
    let stopping = if word & RESTARTABLE != 0 { 0 } else { STOP };
    word & (stopping | ENDED) != 0
}

/// Of one that has ended there are none: who ended it took them out.
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

    /// Of an actor whose incarnations follow each other. There is none yet: rule 3.
    pub(crate) fn mark_restartable(&self) {
        self.0.store(RESTARTABLE | SCHEDULED, Ordering::Relaxed);
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
                Ok(_) => return ReserveResult::Reserved(word & SCHEDULED == 0),
                Err(now) => word = now,
            }
        }
    }

    /// Whether there is room, or will never be any.
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

    /// What whoever looks on sees of an incarnation that lives.
    pub(crate) fn state(&self) -> ActorState {
        let word = self.0.load(Ordering::Relaxed);
        if word & (STOP | CLOSED | ENDED) != 0 {
            ActorState::Ending
        } else if word & SCHEDULED != 0 {
            ActorState::Runnable
        } else {
            ActorState::Resting
        }
    }

    /// The last reference was dropped: rule 5. `true`: a turn is to be made.
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// `true`: a turn is to be made.
    pub(crate) fn stop(&self) -> bool {
        self.0.fetch_or(STOP | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// Something was put into the system lane, or it is doomed. `true`: a turn is to be made.
    pub(crate) fn notify_system(&self) -> bool {
        self.0.fetch_or(SYSTEM | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// The same of who has counted a letter, or makes the turn: there is one, or will be.
    pub(crate) fn set_system(&self) {
        self.0.fetch_or(SYSTEM, Ordering::Release);
    }

    /// A sender that waits, before it looks again. One word says both: either this look sees the room, or who makes it sees this.
    pub(crate) fn set_waiters(&self) {
        self.0.fetch_or(WAITERS, Ordering::Relaxed);
    }

    /// The turn: rule 2. `is_referenced` reads the count of references.
    pub(crate) fn next(&self, is_referenced: impl FnOnce() -> bool) -> NextAction {
        let word = self.0.load(Ordering::Acquire);
        if word & SYSTEM != 0 {
            // What is put there from now on sets it again.
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
        // There is more to do, or there will be: the next look at the word says what.
        NextAction::ReadMessage
    }

    /// The turn, which has had enough: it is over if there is nothing to do. What there is, is still said after.
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

    /// The turn, after [`NextAction::ReadSystem`]: whether it may read letters, and there are any.
    pub(crate) fn can_read(&self) -> bool {
        let word = self.0.load(Ordering::Acquire);
        word & STOP == 0 && word & MESSAGES != 0
    }

    /// The turn has read so many. `true`: senders waited for room, and are to be woken.
    pub(crate) fn release(&self, count: u64) -> bool {
        // Who finds room by this learns nothing else; what the turn wrote is for the next turn (`next`).
        let before = self.0.fetch_sub(count, Ordering::Relaxed);
        before & WAITERS != 0 && self.0.fetch_and(!WAITERS, Ordering::AcqRel) & WAITERS != 0
    }

    /// Rule 3: the next incarnation begins. What was asked of the last one is not of this one, and letters are there as they were, unless it had
    /// ended. It looks into the system lane, where the last one may have left something.
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

    /// The turn, last: how many letters there are to be dropped. None, if it had ended.
    pub(crate) fn end(&self) -> u64 {
        message_count(self.0.fetch_or(ENDED, Ordering::AcqRel))
    }
}
