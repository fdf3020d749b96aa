//! The open or closed state of an object that many threads use and any thread may close: a port, an
//! instance, a call.
//!
//! | bits | meaning |
//! | --- | --- |
//! | 32 to 63 | generation, for memory that is reused: the number of the current use |
//! | 31 | `CLOSED` |
//! | 0 to 30 | number of users |
//!
//! 1. A thread that enters an open object is a user until it leaves. A closed object cannot be
//!    entered.
//! 2. A close is permanent for its generation. Exactly one close succeeds, the first one.
//!    Everything that the closing thread wrote before is visible to every thread that finds the
//!    object closed.
//! 3. The user that leaves a closed object without other users is the last user. There is at most
//!    one last user, and all actions of all users happened before it left. If there are no users at
//!    the close, there is no last user.
//! 4. The last user of a generation may begin the next generation. A thread that has the number of
//!    the old generation cannot enter the new one.
//!
//! The users of a port are its reserved slots. The users of a call are the threads and actors that
//! work for it or hold its result.

use crate::sync::{AtomicU64, Ordering};

const CLOSED: u64 = 1 << 31;
const ENTERED: u64 = CLOSED - 1;
const GENERATION: u64 = 1 << 32;

/// Why an object cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnterError {
    /// Rule 1.
    Closed,
    /// The maximum number of users is reached.
    Full,
    /// Rule 4.
    OtherGeneration,
}

#[derive(Debug)]
pub(crate) struct OpenState(AtomicU64);

impl OpenState {
    /// Open, with generation 0 and no users.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Closed and without users. [`reopen`](Self::reopen) begins the generation after this one.
    pub(crate) fn closed(generation: u32) -> Self {
        Self(AtomicU64::new(
            (u64::from(generation) * GENERATION) | CLOSED,
        ))
    }

    /// Exact only if the caller is a user.
    pub(crate) fn generation(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Enters if there are fewer than `most` users.
    pub(crate) fn enter_below(&self, most: u32) -> Result<(), EnterError> {
        self.enter_up_to(1, most).map(drop)
    }

    /// Adds up to `wanted` users, as long as there are fewer than `most`. Returns their number.
    #[inline]
    pub(crate) fn enter_up_to(&self, wanted: u32, most: u32) -> Result<u32, EnterError> {
        // Rule 2 requires Acquire for a refusal too.
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if word & CLOSED != 0 {
                return Err(EnterError::Closed);
            }
            let room = u64::from(most).saturating_sub(word & ENTERED);
            if room == 0 {
                return Err(EnterError::Full);
            }
            let count = u64::from(wanted).min(room);
            match self.0.compare_exchange_weak(
                word,
                word + count,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return Ok(count as u32),
                Err(now) => word = now,
            }
        }
    }

    /// Enters this generation.
    pub(crate) fn enter_generation(&self, generation: u32) -> Result<(), EnterError> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if (word >> 32) as u32 != generation {
                return Err(EnterError::OtherGeneration);
            }
            if word & CLOSED != 0 {
                return Err(EnterError::Closed);
            }
            match self
                .0
                .compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    /// Adds a user. The caller must be a user.
    pub(crate) fn enter_again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes `count` users. Returns whether they were the last ones (rule 3).
    pub(crate) fn leave(&self, count: u32) -> bool {
        let count = u64::from(count);
        let before = self.0.fetch_sub(count, Ordering::AcqRel);
        debug_assert!(
            before & ENTERED >= count,
            "more users left than had entered"
        );
        before & CLOSED != 0 && before & ENTERED == count
    }

    /// Closes the object. Returns whether it was open (rule 2).
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0
    }

    /// Sets the generation as if the memory had been used that often. It must be closed and without
    /// users.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_generation(&self, generation: u32) {
        let used = Self::closed(generation).0.into_inner();
        self.0.store(used, Ordering::Relaxed);
    }

    /// The number of users. It may change at any time.
    #[cfg(all(test, loom))]
    pub(crate) fn entered(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) & ENTERED) as u32
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether this is the last generation. The memory is then not reused, so that no generation
    /// occurs twice.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.generation() == u32::MAX
    }

    /// Rule 4: the last user begins the next generation and becomes its first user. Returns the new
    /// generation, which is never 0.
    ///
    /// Precondition: this is not the last generation.
    pub(crate) fn reopen(&self) -> u32 {
        debug_assert!(!self.is_exhausted(), "there is no further generation");
        let generation = self.generation() + 1;
        let word = (u64::from(generation) * GENERATION) | 1;
        self.0.store(word, Ordering::Release);
        generation
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{EnterError, OpenState};

    #[test]
    fn enter_when_closed_or_full_or_of_another_generation_is_refused() {
        let state = OpenState::closed(6);
        assert_eq!(state.enter_generation(6), Err(EnterError::Closed));
        assert_eq!(state.reopen(), 7);
        assert_eq!(state.enter_generation(6), Err(EnterError::OtherGeneration));
        assert_eq!(state.enter_generation(7), Ok(()));
        assert_eq!(state.enter_below(2), Err(EnterError::Full));
        assert_eq!(state.enter_below(3), Ok(()));
        assert!(!state.leave(1), "it is open");
        assert!(state.close());
        assert!(!state.close(), "only the first");
        assert_eq!(state.enter_below(9), Err(EnterError::Closed));
        assert!(!state.leave(1));
        assert!(state.leave(1));
    }

    #[test]
    fn open_state_at_the_last_generation_is_exhausted() {
        let state = OpenState::closed(u32::MAX - 1);
        assert!(!state.is_exhausted());
        assert_eq!(state.reopen(), u32::MAX);
        assert!(state.is_exhausted());
    }
}
