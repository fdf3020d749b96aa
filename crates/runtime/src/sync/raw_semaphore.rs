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
use super::wait_future::{AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue, WakeList};
use crate::shim::{AtomicUsize, Ordering};

const CLOSED: usize = 1;
const QUEUED: usize = 2;
const PERMIT: usize = 4;
/// The word's bits without two.
pub(super) const MAX_PERMITS: usize = usize::MAX >> 2;

/// What it waited for.
const GRANTED: Grant = 1;
/// That there is nothing to be had any more.
const REFUSED: Grant = 2;

pub(super) struct RawSemaphore {
    word: AtomicUsize,
    wait_list: WaitList<()>,
}

impl RawSemaphore {
    crate::shim::const_fn! {
        /// At most [`MOST`], which the caller has looked at.
        pub(super) fn new(permits: usize) -> Self {
            Self {
                word: AtomicUsize::new(permits * PERMIT),
                wait_list: WaitList::new(()),
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

    pub(super) fn acquire_future(&self, permits: usize) -> WaitFuture<'_, Self> {
        WaitFuture::new(self, permits, permits)
    }

    /// Gives permits back, or new ones. `false`: there would be more than [`MOST`], and nothing was done.
    #[inline(always)]
    pub(super) fn release(&self, permits: usize) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & QUEUED == 0 {
            if MAX_PERMITS - word / PERMIT < permits {
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
        self.release_to_waiters(permits)
    }

    #[cold]
    fn release_to_waiters(&self, permits: usize) -> bool {
        self.grant_waiters(self.wait_list.lock(), permits)
    }

    /// Rules 2, 3 and 5.
    fn grant_waiters(&self, mut queue: WaitListGuard<'_, ()>, permits: usize) -> bool {
        let word = self.word.load(Ordering::Acquire);
        if word & QUEUED == 0 {
            drop(queue);
            return self.release(permits);
        }
        let mut available = word / PERMIT;
        if MAX_PERMITS - available < permits {
            return false;
        }
        available += permits;
        let mut wake_list = WakeList::default();
        while let Some(requested) = queue
            .first_requested()
            .filter(|requested| *requested <= available)
        {
            available -= requested;
            queue.grant_first(GRANTED, &mut wake_list);
        }
        let queued = if queue.is_empty() { 0 } else { QUEUED };
        self.word
            .store((available * PERMIT) | queued, Ordering::Release);
        drop(queue);
        wake_list.wake();
        true
    }

    /// Takes up to so many for good, not counting those for whom somebody waits. How many it took.
    pub(super) fn forget_up_to(&self, permits: usize) -> usize {
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
        let mut wake_list = WakeList::default();
        let mut queue = self.wait_list.lock();
        queue.grant_all(REFUSED, &mut wake_list);
        self.word.fetch_or(CLOSED, Ordering::Release);
        self.word.fetch_and(!QUEUED, Ordering::Release);
        drop(queue);
        wake_list.wake();
    }
}

impl Primitive for RawSemaphore {
    type State = ();
    /// How many permits.
    type Request = usize;
    type Output = Result<(), Closed>;

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        permits: &mut usize,
        _: &mut WakeList,
    ) -> AcquireResult<Self::Output> {
        loop {
            match self.try_acquire(*permits) {
                Ok(()) => return AcquireResult::Done(Ok(())),
                Err(TryAcquireError::Closed) => return AcquireResult::Done(Err(Closed)),
                Err(TryAcquireError::NoPermits) => {}
            }
            let word = self.word.load(Ordering::Relaxed);
            let must_wait = word & QUEUED != 0 || word / PERMIT < *permits;
            if word & CLOSED == 0
                && must_wait
                && self
                    .word
                    .compare_exchange(word, word | QUEUED, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                return AcquireResult::PushBack;
            }
        }
    }

    fn accept_grant(&self, grant: Grant, _: &mut usize) -> Option<Self::Output> {
        Some(if grant == GRANTED {
            Ok(())
        } else {
            Err(Closed)
        })
    }

    fn on_leave(&self, queue: WaitListGuard<'_, ()>, grant: Option<Grant>, permits: &usize) {
        match grant {
            Some(GRANTED) => {
                drop(queue);
                self.release(*permits);
            }
            Some(_) => {}
            // Rule 4. It was queued, so the word says so.
            None => {
                self.grant_waiters(queue, 0);
            }
        }
    }
}
