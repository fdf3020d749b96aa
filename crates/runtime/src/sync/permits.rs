//! A number of permits, taken any number at a time, in the order in which they were asked for: one word, and a line. A semaphore and the lock for
//! readers and writers are this.
//!
//! 1. The word holds the permits that are there, `QUEUED` (somebody stands in the line) and `CLOSED`.
//! 2. While nobody is queued permits are taken and given back by a CAS of the word. From then on the word changes under the line's lock alone, so
//!    who holds it may store it; and who comes stands behind those who are there, also where there are permits.
//! 3. Permits that are given back stay in the word until there are enough for the first in the line; then it gets them, and so on. So nobody who
//!    wants many is passed over by those who want few, and who leaves the line has nothing to give back.
//! 4. Who leaves the line may have been all that the next ones waited for.
//! 5. What was done before permits were given back is seen by who is given them out of the line: who gives takes up what the word was left with.

use super::error::{Closed, TryAcquireError};
use super::line::{Gift, Held, Line, Queue, Wakes};
use super::waiting::{Ask, Primitive, Waiting};
use crate::shim::{AtomicUsize, Ordering};

const CLOSED: usize = 1;
const QUEUED: usize = 2;
const PERMIT: usize = 4;
/// The word's bits without two.
pub(super) const MOST: usize = usize::MAX >> 2;

/// What it waited for.
const GIVEN: Gift = 1;
/// That there is nothing to be had any more.
const SHUT: Gift = 2;

pub(super) struct Permits {
    word: AtomicUsize,
    line: Line<()>,
}

impl Permits {
    crate::shim::const_fn! {
        /// At most [`MOST`], which the caller has looked at.
        pub(super) fn new(permits: usize) -> Self {
            Self {
                word: AtomicUsize::new(permits * PERMIT),
                line: Line::new(()),
            }
        }
    }

    pub(super) fn available(&self) -> usize {
        self.word.load(Ordering::Relaxed) / PERMIT
    }

    pub(super) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    #[inline(always)]
    pub(super) fn try_acquire(&self, permits: usize) -> Result<(), TryAcquireError> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Err(TryAcquireError::Closed);
            }
            if word & QUEUED != 0 || word / PERMIT < permits {
                return Err(TryAcquireError::NoPermits);
            }
            match self.word.compare_exchange_weak(
                word,
                word - permits * PERMIT,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    pub(super) fn waiting(&self, permits: usize) -> Waiting<'_, Self> {
        Waiting::new(self, permits, permits)
    }

    /// Gives permits back, or new ones. `false`: there would be more than [`MOST`], and nothing was done.
    #[inline(always)]
    pub(super) fn release(&self, permits: usize) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & QUEUED == 0 {
            if MOST - word / PERMIT < permits {
                return false;
            }
            match self.word.compare_exchange_weak(
                word,
                word + permits * PERMIT,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        self.release_to_line(permits)
    }

    #[cold]
    fn release_to_line(&self, permits: usize) -> bool {
        self.give_to_line(self.line.lock(), permits)
    }

    /// Rules 2, 3 and 5.
    fn give_to_line(&self, mut queue: Held<'_, ()>, permits: usize) -> bool {
        let word = self.word.load(Ordering::Acquire);
        if word & QUEUED == 0 {
            drop(queue);
            return self.release(permits);
        }
        let mut there = word / PERMIT;
        if MOST - there < permits {
            return false;
        }
        there += permits;
        let mut wakes = Wakes::default();
        while let Some(wanted) = queue.first_wants().filter(|wanted| *wanted <= there) {
            there -= wanted;
            queue.give_first(GIVEN, &mut wakes);
        }
        let queued = if queue.is_empty() { 0 } else { QUEUED };
        self.word
            .store((there * PERMIT) | queued, Ordering::Release);
        drop(queue);
        wakes.wake();
        true
    }

    /// Takes up to so many for good, not counting those for whom somebody waits. How many it took.
    pub(super) fn take_up_to(&self, permits: usize) -> usize {
        let mut taken = 0;
        // It cannot fail: it is always `Some`.
        let _ = self
            .word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
                taken = match word & QUEUED {
                    0 => permits.min(word / PERMIT),
                    _ => 0,
                };
                Some(word - taken * PERMIT)
            });
        taken
    }

    /// Those who wait, and who come, hear that there is nothing to be had. What was taken can be given back.
    pub(super) fn close(&self) {
        let mut wakes = Wakes::default();
        let mut queue = self.line.lock();
        queue.give_all(SHUT, &mut wakes);
        self.word.fetch_or(CLOSED, Ordering::Release);
        self.word.fetch_and(!QUEUED, Ordering::Release);
        drop(queue);
        wakes.wake();
    }
}

impl Primitive for Permits {
    type State = ();
    /// How many permits.
    type Wish = usize;
    type Output = Result<(), Closed>;

    fn line(&self) -> &Line<()> {
        &self.line
    }

    fn ask(&self, _: &mut Queue<()>, permits: &mut usize, _: &mut Wakes) -> Ask<Self::Output> {
        loop {
            match self.try_acquire(*permits) {
                Ok(()) => return Ask::Done(Ok(())),
                Err(TryAcquireError::Closed) => return Ask::Done(Err(Closed)),
                Err(TryAcquireError::NoPermits) => {}
            }
            let word = self.word.load(Ordering::Relaxed);
            let is_to_wait = word & QUEUED != 0 || word / PERMIT < *permits;
            if word & CLOSED == 0
                && is_to_wait
                && self
                    .word
                    .compare_exchange(word, word | QUEUED, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                return Ask::Behind;
            }
        }
    }

    fn given(&self, gift: Gift, _: &mut usize) -> Option<Self::Output> {
        Some(if gift == GIVEN { Ok(()) } else { Err(Closed) })
    }

    fn left(&self, queue: Held<'_, ()>, gift: Option<Gift>, permits: &usize) {
        match gift {
            Some(GIVEN) => {
                drop(queue);
                self.release(*permits);
            }
            Some(_) => {}
            // Rule 4. It was queued, so the word says so.
            None => {
                self.give_to_line(queue, 0);
            }
        }
    }
}
