//! One word for the life of what many use and anybody may close: a port, a client's instance, a call.
//!
//! | bits | meaning |
//! | --- | --- |
//! | 32 to 63 | generation: which use of the place it is, for what is used again and again |
//! | 31 | `CLOSED` |
//! | 0 to 30 | inside: how many rely on it |
//!
//! 1. Who enters an open one is inside until it leaves. Nobody enters a closed one.
//! 2. Closing is for ever, of that generation, and one closes it: the first. What the closer wrote before is seen by whoever finds it closed.
//! 3. Who leaves a closed one and leaves nobody inside is the last: once, and all that anybody did inside came before. Where nobody is inside at
//!    the close, nobody is the last.
//! 4. The last one out of a generation may begin the next. Who knows the number of the one before does not enter it.
//!
//! What is inside a port is the places that are promised; inside a call, who works for it or holds its result.

use crate::sync::{AtomicU64, Ordering};

const CLOSED: u64 = 1 << 31;
const ENTERED: u64 = CLOSED - 1;
const GENERATION: u64 = 1 << 32;

/// Why nobody enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnterError {
    /// Rule 1.
    Closed,
    /// As many are inside as may be.
    Full,
    /// Rule 4.
    OtherGeneration,
}

#[derive(Debug)]
pub(crate) struct OpenState(AtomicU64);

impl OpenState {
    /// Open, of generation 0, with nobody inside.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Closed and empty: [`reopen`](Self::renew) opens it as the generation after this one.
    pub(crate) fn closed(generation: u32) -> Self {
        Self(AtomicU64::new(
            (u64::from(generation) * GENERATION) | CLOSED,
        ))
    }

    /// For who is inside, or nothing relies on the answer.
    pub(crate) fn generation(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) >> 32) as u32
    }

    fn try_enter(&self, refuse: impl Fn(u64) -> Option<EnterError>) -> Result<(), EnterError> {
        // Rule 2 is why a refusal is Acquire, too.
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            if let Some(why) = refuse(word) {
                return Err(why);
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

    /// Enters, where fewer than `most` are inside.
    pub(crate) fn enter_below(&self, most: u32) -> Result<(), EnterError> {
        self.try_enter(|word| {
            if word & CLOSED != 0 {
                Some(EnterError::Closed)
            } else if word & ENTERED >= u64::from(most) {
                Some(EnterError::Full)
            } else {
                None
            }
        })
    }

    /// Enters this generation.
    pub(crate) fn enter_generation(&self, generation: u32) -> Result<(), EnterError> {
        self.try_enter(|word| {
            if (word >> 32) as u32 != generation {
                Some(EnterError::OtherGeneration)
            } else if word & CLOSED != 0 {
                Some(EnterError::Closed)
            } else {
                None
            }
        })
    }

    /// One more, by who is inside.
    pub(crate) fn enter_again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Leaves with `count` who are inside. Whether they were the last: rule 3.
    pub(crate) fn leave(&self, count: u32) -> bool {
        let count = u64::from(count);
        let before = self.0.fetch_sub(count, Ordering::AcqRel);
        debug_assert!(before & ENTERED >= count, "more leave than are inside");
        before & CLOSED != 0 && before & ENTERED == count
    }

    /// Whether it was open: rule 2.
    pub(crate) fn close(&self) -> bool {
        self.0.fetch_or(CLOSED, Ordering::AcqRel) & CLOSED == 0
    }

    /// As if it had been used that often: for who is alone with it, closed and empty.
    #[cfg(test)]
    pub(crate) fn set_generation(&self, generation: u32) {
        let used = Self::closed(generation).0.into_inner();
        self.0.store(used, Ordering::Relaxed);
    }

    /// How many are inside, or were a moment ago.
    #[cfg(all(test, loom))]
    pub(crate) fn entered(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) & ENTERED) as u32
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Whether there is no further generation: its place is not used again, so that no number comes again.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.generation() == u32::MAX
    }

    /// Rule 4: the last one out opens the next generation, and is inside. Its number, which is never 0.
    ///
    /// Precondition: it is not used up.
    pub(crate) fn reopen(&self) -> u32 {
        debug_assert!(!self.is_exhausted(), "the generations are used up");
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
    fn nobody_enters_what_is_closed_or_full_or_another() {
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
    fn life_with_the_last_generation_is_used_up() {
        let state = OpenState::closed(u32::MAX - 1);
        assert!(!state.is_exhausted());
        assert_eq!(state.reopen(), u32::MAX);
        assert!(state.is_exhausted());
    }
}
