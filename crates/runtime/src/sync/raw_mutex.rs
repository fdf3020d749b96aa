//! A lock without a value: one word and a wait list.
//!
//! | bit | meaning |
//! | --- | --- |
//! | `LOCKED` | the lock is held |
//! | `QUEUED` | the wait list is not empty |
//! | `WAKING` | a waiter was removed from the list and woken, and has not tried again yet |
//! | `HANDOVER` | the next unlock hands the lock itself to the first waiter |
//!
//! 1. A caller that finds the lock free takes it even if there are waiters (barging): a running
//!    actor need not wait until another one runs.
//! 2. An unlock with waiters wakes the first, unless a woken waiter has not tried yet (`WAKING`).
//! 3. **A woken waiter that finds the lock held again is not overtaken any more**: it returns to
//!    the front of the list and sets `HANDOVER`. The next unlock leaves `LOCKED` set and hands the
//!    lock to the first waiter. So no waiter is overtaken twice in a row.
//! 4. `QUEUED` and `HANDOVER` change under the list's lock, and `WAKING` is set under it. While a
//!    thread holds the list's lock and `LOCKED`, nobody else changes the word, so an unlock may
//!    store it.
//! 5. A woken waiter that gives up without trying clears `WAKING`, and wakes the next waiter if the
//!    lock is free. A waiter that gives up after a hand-over unlocks.

use thalweg_queue::WakerList;

use super::wait_future::{AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};
use crate::shim::{AtomicU32, Ordering};

const LOCKED: u32 = 1;
const QUEUED: u32 = 2;
const WAKING: u32 = 4;
const HANDOVER: u32 = 8;

/// The lock was handed over.
const HANDED_OVER: Grant = 1;
/// The waiter was woken and has to try again.
const WOKEN: Grant = 2;

pub(super) struct RawMutex {
    word: AtomicU32,
    wait_list: WaitList<()>,
}

/// Whether the waiter was woken, and is now trying again.
pub(super) struct WasWoken(bool);

impl RawMutex {
    crate::shim::const_fn! {
        pub(super) fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                wait_list: WaitList::new(()),
            }
        }
    }

    #[inline(always)]
    pub(super) fn try_lock(&self) -> bool {
        self.word
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            || self.try_lock_barging()
    }

    /// Rule 1.
    #[cold]
    fn try_lock_barging(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & LOCKED == 0 {
            match self.word.compare_exchange_weak(
                word,
                word | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    pub(super) fn is_locked(&self) -> bool {
        self.word.load(Ordering::Relaxed) & LOCKED != 0
    }

    pub(super) fn lock_future(&self) -> WaitFuture<'_, Self> {
        WaitFuture::new(self, WasWoken(false), 0)
    }

    /// Only the holder may call this.
    #[inline(always)]
    pub(super) fn unlock(&self) {
        if self
            .word
            .compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.unlock_slow();
        }
    }

    #[cold]
    fn unlock_slow(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        // There is no waiter to wake.
        while word & HANDOVER == 0 && (word & QUEUED == 0 || word & WAKING != 0) {
            match self.word.compare_exchange_weak(
                word,
                word & !LOCKED,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        let word = self.word.load(Ordering::Relaxed);
        if word & HANDOVER != 0 && queue.grant_first(HANDED_OVER, &mut wakers) {
            // Rule 3.
            self.store_word(&queue, LOCKED | (word & WAKING));
        } else if word & WAKING == 0 && queue.grant_first(WOKEN, &mut wakers) {
            // Rule 2.
            self.store_word(&queue, WAKING);
        } else {
            self.store_word(&queue, word & WAKING);
        }
        drop(queue);
        wakers.wake();
    }

    /// Rule 4. This also ends a requested hand-over.
    fn store_word(&self, queue: &WaitQueue<()>, bits: u32) {
        let queued = if queue.is_empty() { 0 } else { QUEUED };
        self.word.store(bits | queued, Ordering::Release);
    }
}

impl Primitive for RawMutex {
    type State = ();
    type Request = WasWoken;
    type Output = ();

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        WasWoken(woken): &mut WasWoken,
        _: &mut WakerList,
    ) -> AcquireResult<()> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let is_open = word & LOCKED == 0;
            let mut next = word | if is_open { LOCKED } else { QUEUED };
            if *woken {
                next &= !WAKING;
                if !is_open {
                    next |= HANDOVER;
                }
            }
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) if is_open => return AcquireResult::Done(()),
                Ok(_) if std::mem::take(woken) => return AcquireResult::PushFront,
                Ok(_) => return AcquireResult::PushBack,
                Err(now) => word = now,
            }
        }
    }

    fn accept_grant(&self, grant: Grant, woken: &mut WasWoken) -> Option<()> {
        woken.0 = grant == WOKEN;
        (grant == HANDED_OVER).then_some(())
    }

    /// Rule 5.
    fn on_leave(&self, mut queue: WaitListGuard<'_, ()>, grant: Option<Grant>, _: &WasWoken) {
        match grant {
            Some(HANDED_OVER) => {
                drop(queue);
                self.unlock();
            }
            Some(_) => {
                let mut wakers = WakerList::new();
                self.forward_wake(&mut queue, &mut wakers);
                drop(queue);
                wakers.wake();
            }
            None if queue.is_empty() => {
                self.word.fetch_and(!(QUEUED | HANDOVER), Ordering::Relaxed);
            }
            None => {}
        }
    }
}

impl RawMutex {
    fn forward_wake(&self, queue: &mut WaitQueue<()>, wakers: &mut WakerList) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let wakes_next = word & LOCKED == 0 && !queue.is_empty();
            let next = if wakes_next { word } else { word & !WAKING };
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) if wakes_next => break,
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        queue.grant_first(WOKEN, wakers);
        if queue.is_empty() {
            self.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
    }
}
