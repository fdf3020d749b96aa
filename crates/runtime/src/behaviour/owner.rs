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
//! | `KEPT` | another incarnation may follow: `STOP` ends this one, and letters are taken all the same |
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

pub(super) const LETTERS: u64 = (1 << 32) - 1;
const SCHEDULED: u64 = 1 << 32;
const WAITERS: u64 = 1 << 33;
const CLOSED: u64 = 1 << 34;
const STOP: u64 = 1 << 35;
const ENDED: u64 = 1 << 36;
const SYSTEM: u64 = 1 << 37;
const KEPT: u64 = 1 << 38;

#[derive(Debug)]
pub(crate) struct Owner(AtomicU64);

/// What became of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// The letter may be put in, and then, if `true`, a turn is to be made.
    In(bool),
    Full,
    Closed,
}

/// What a turn has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Read,
    /// What is in the system lane, first.
    System,
    /// Nothing; the turn is over.
    Rest,
    End,
}

/// Whether nothing is accepted any more.
fn is_closed(seen: u64) -> bool {
    let stopping = if seen & KEPT != 0 { 0 } else { STOP };
    seen & (stopping | ENDED) != 0
}

/// Of one that has ended there are none: who ended it took them out.
fn letters(seen: u64) -> u64 {
    if seen & ENDED == 0 { seen & LETTERS } else { 0 }
}

impl Owner {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Of an actor whose incarnations follow each other. There is none yet: rule 3.
    pub(crate) fn keep(&self) {
        self.0.store(KEPT | SCHEDULED, Ordering::Relaxed);
    }

    /// Rule 1.
    pub(crate) fn count(&self, capacity: u64) -> Counted {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if is_closed(seen) {
                return Counted::Closed;
            }
            if seen & LETTERS >= capacity {
                return Counted::Full;
            }
            match self.0.compare_exchange_weak(
                seen,
                (seen + 1) | SCHEDULED,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Counted::In(seen & SCHEDULED == 0),
                Err(now) => seen = now,
            }
        }
    }

    /// Whether there is room, or will never be any.
    pub(crate) fn has_room(&self, capacity: u64) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        seen & LETTERS < capacity || is_closed(seen)
    }

    pub(crate) fn letters(&self) -> u64 {
        letters(self.0.load(Ordering::Relaxed))
    }

    pub(crate) fn is_over(&self) -> bool {
        is_closed(self.0.load(Ordering::Acquire))
    }

    /// What whoever looks on sees of an incarnation that lives.
    pub(crate) fn state(&self) -> ActorState {
        let seen = self.0.load(Ordering::Relaxed);
        if seen & (STOP | CLOSED | ENDED) != 0 {
            ActorState::Ending
        } else if seen & SCHEDULED != 0 {
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
    pub(crate) fn system(&self) -> bool {
        self.0.fetch_or(SYSTEM | SCHEDULED, Ordering::AcqRel) & SCHEDULED == 0
    }

    /// The same of who has counted a letter, or makes the turn: there is one, or will be.
    pub(crate) fn look_first(&self) {
        self.0.fetch_or(SYSTEM, Ordering::Release);
    }

    /// A sender that waits, before it looks again. One word says both: either this look sees the room, or who makes it sees this.
    pub(crate) fn wait(&self) {
        self.0.fetch_or(WAITERS, Ordering::Relaxed);
    }

    /// The turn: rule 2. `is_referenced` reads the count of references.
    pub(crate) fn next(&self, is_referenced: impl FnOnce() -> bool) -> Next {
        let seen = self.0.load(Ordering::Acquire);
        if seen & SYSTEM != 0 {
            // What is put there from now on sets it again.
            self.0.fetch_and(!SYSTEM, Ordering::AcqRel);
            Next::System
        } else if seen & STOP != 0 {
            Next::End
        } else if seen & LETTERS != 0 {
            Next::Read
        } else if seen & CLOSED != 0 {
            self.closed(is_referenced)
        } else {
            self.rest_after(seen)
        }
    }

    /// Rule 5.
    #[cold]
    fn closed(&self, is_referenced: impl FnOnce() -> bool) -> Next {
        self.0.fetch_and(!CLOSED, Ordering::AcqRel);
        if !is_referenced() {
            let before = self.0.fetch_or(CLOSED, Ordering::AcqRel);
            if before & (LETTERS | SYSTEM) == 0 {
                return Next::End;
            }
        }
        // There is more to do, or there will be: the next look at the word says what.
        Next::Read
    }

    /// The turn, which has had enough: it is over if there is nothing to do. What there is, is still said after.
    pub(crate) fn rest(&self) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        seen & (SYSTEM | STOP | CLOSED | LETTERS) == 0 && self.rest_after(seen) == Next::Rest
    }

    fn rest_after(&self, seen: u64) -> Next {
        match self
            .0
            .compare_exchange(seen, seen & !SCHEDULED, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Next::Rest,
            Err(_) => Next::Read,
        }
    }

    /// The turn, after [`Next::System`]: whether it may read letters, and there are any.
    pub(crate) fn may_read(&self) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        seen & STOP == 0 && seen & LETTERS != 0
    }

    /// The turn has read so many. `true`: senders waited for room, and are to be woken.
    pub(crate) fn has_read(&self, letters: u64) -> bool {
        // Who finds room by this learns nothing else; what the turn wrote is for the next turn (`next`).
        let before = self.0.fetch_sub(letters, Ordering::Relaxed);
        before & WAITERS != 0 && self.0.fetch_and(!WAITERS, Ordering::AcqRel) & WAITERS != 0
    }

    /// Rule 3: the next incarnation begins. What was asked of the last one is not of this one, and letters are there as they were, unless it had
    /// ended. It looks into the system lane, where the last one may have left something.
    pub(crate) fn begin_again(&self) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let letters = letters(seen);
            let kept = seen & (WAITERS | KEPT);
            match self.0.compare_exchange_weak(
                seen,
                letters | kept | SCHEDULED | SYSTEM,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// The turn, last: how many letters there are to be dropped. None, if it had ended.
    pub(crate) fn end(&self) -> u64 {
        letters(self.0.fetch_or(ENDED, Ordering::AcqRel))
    }
}
