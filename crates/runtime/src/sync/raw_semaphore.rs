//! A counter of permits that are acquired in any number, in FIFO order: one word and a wait list.
//! It implements [`Semaphore`](super::Semaphore) and [`RwLock`](super::RwLock).
//!
//! 1. The word holds the available permits, `QUEUED` (the list is not empty) and `CLOSED`.
//! 2. While `QUEUED` is clear, permits are acquired and released by a CAS of the word. While it is
//!    set, the word changes only under the list's lock, so the lock's holder may store it; and new
//!    callers queue behind the waiters even if permits are available.
//! 3. Released permits stay in the word until there are enough for the first waiter, which then
//!    gets them, and so on. So a large request is not overtaken by small ones, and a waiter that
//!    leaves has nothing to release.
//! 4. A waiter that leaves may have been the only obstacle for the waiters behind it.
//! 5. What happened before a release is visible to the waiter that gets the permits: the grant
//!    reads the word that the release wrote.

use thalweg_queue::WakerList;

use super::error::{Closed, TryAcquireError};
use super::wait_future::{AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};
use crate::shim::{AtomicUsize, Ordering};

const CLOSED: usize = 1;
const QUEUED: usize = 2;
const PERMIT: usize = 4;
/// Two bits of the word are flags.
pub(super) const MAX_PERMITS: usize = usize::MAX >> 2;

/// The waiter has its permits.
const GRANTED: Grant = 1;
/// The semaphore was closed.
const REFUSED: Grant = 2;

pub(super) struct RawSemaphore {
    word: AtomicUsize,
    wait_list: WaitList<()>,
}

impl RawSemaphore {
    crate::shim::const_fn! {
        /// Precondition: at most [`MAX_PERMITS`].
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

    /// Releases permits, or adds new ones. Returns `false`, and does nothing, if there would be
    /// more than [`MAX_PERMITS`].
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
        let mut wakers = WakerList::new();
        while let Some(requested) = queue
            .first_requested()
            .filter(|requested| *requested <= available)
        {
            available -= requested;
            queue.grant_first(GRANTED, &mut wakers);
        }
        let queued = if queue.is_empty() { 0 } else { QUEUED };
        self.word
            .store((available * PERMIT) | queued, Ordering::Release);
        drop(queue);
        wakers.wake();
        true
    }

    /// Removes up to this many available permits for good, and returns the number. Permits that are
    /// collected for a waiter are not available.
    pub(super) fn forget_up_to(&self, permits: usize) -> usize {
        let mut taken = 0;
        // The result is always `Ok`: the closure returns `Some`.
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

    /// Ends all present and future waits with an error. Permits can still be released.
    pub(super) fn close(&self) {
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        queue.grant_all(REFUSED, &mut wakers);
        self.word.fetch_or(CLOSED, Ordering::Release);
        self.word.fetch_and(!QUEUED, Ordering::Release);
        drop(queue);
        wakers.wake();
    }
}

impl Primitive for RawSemaphore {
    type State = ();
    /// The number of permits.
    type Request = usize;
    type Output = Result<(), Closed>;

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        permits: &mut usize,
        _: &mut WakerList,
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
            // Rule 4. `QUEUED` is still set, because the waiter was queued.
            None => {
                self.grant_waiters(queue, 0);
            }
        }
    }
}
