//! Notifications without a value.
//!
//! 1. The word holds the generation, which counts calls of `notify_waiters`, and one of three
//!    states: idle, a stored permit (`PERMIT`), or waiters (`QUEUED`). A permit and waiters exclude
//!    each other.
//! 2. Between idle and `PERMIT`, the word changes by a CAS; while there are waiters, only under the
//!    list's lock.
//! 3. A wait stores the generation in which it was created. It is over as soon as the generation
//!    has changed.
//! 4. A waiter that was woken by [`Notify::notify_one`] and gives up before it returns passes the
//!    notification on.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{WakerList, clock};

use super::error::WaitError;
use super::wait_future::{self, AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};
use crate::shim::{AtomicUsize, Ordering};

const PERMIT: usize = 1;
const QUEUED: usize = 2;
const STATE: usize = PERMIT | QUEUED;
const GENERATION: usize = 4;

const NOTIFY_ONE: Grant = 1;
const NOTIFY_ALL: Grant = 2;

/// Notifies one waiter or all. A notification for one waiter is stored as a permit if there is no
/// waiter, so it is not lost. Like `tokio::sync::Notify`.
///
/// It carries no value: a waiter checks its condition, and waits again.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use thalweg_runtime::{run, spawn, sync::Notify};
///
/// let shared = Arc::new((AtomicBool::new(false), Notify::new()));
/// run(move || {
///     let other = shared.clone();
///     let waits = spawn(move || {
///         while !other.0.load(Ordering::Relaxed) {
///             other.1.wait();
///         }
///     });
///     shared.0.store(true, Ordering::Relaxed);
///     shared.1.notify_one();
///     waits.join().unwrap();
/// });
/// ```
///
/// # Order
/// [`notify_one`](Self::notify_one) wakes the oldest waiter.
pub struct Notify {
    raw: RawNotify,
}

struct RawNotify {
    word: AtomicUsize,
    wait_list: WaitList<()>,
}

impl Notify {
    crate::shim::const_fn! {
        /// Creates a `Notify` without a permit.
        pub fn new() -> Self {
            Self {
                raw: RawNotify {
                    word: AtomicUsize::new(0),
                    wait_list: WaitList::new(()),
                },
            }
        }
    }

    /// Wakes the oldest waiter. Without a waiter, it stores a permit, and the next wait returns at
    /// once. At most one permit is stored.
    pub fn notify_one(&self) {
        self.raw.notify_one();
    }

    /// Wakes all waiters, and every [`Notified`] that exists but does not wait yet. It stores no
    /// permit.
    ///
    /// ```
    /// let notify = thalweg_runtime::sync::Notify::new();
    /// let before = notify.notified();
    /// notify.notify_waiters();
    /// before.wait();
    /// ```
    pub fn notify_waiters(&self) {
        self.raw.notify_waiters();
    }

    /// Waits for a notification, or takes the permit.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    pub fn wait(&self) {
        if !self.raw.take_permit() {
            self.notified().wait();
        }
    }

    /// Like [`wait`](Self::wait), for at most `timeout`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), WaitError> {
        self.wait_until(|| clock::deadline(timeout))
    }

    /// Like [`wait`](Self::wait), until `deadline`.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&self, deadline: Instant) -> Result<(), WaitError> {
        self.wait_until(|| clock::at(deadline))
    }

    fn wait_until(&self, deadline: impl FnOnce() -> u64) -> Result<(), WaitError> {
        if self.raw.take_permit() {
            return Ok(());
        }
        wait_future::block_until(pin!(self.raw.wait_future()), Some(deadline()))
    }

    /// Creates a wait, to await or to [`wait`](Notified::wait) for. It receives every
    /// [`notify_waiters`](Self::notify_waiters) from now on. So create it first, then check the
    /// condition, then wait.
    pub fn notified(&self) -> Notified<'_> {
        Notified {
            future: self.raw.wait_future(),
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify").finish_non_exhaustive()
    }
}

/// A wait for a [`Notify`]. If it is dropped, a notification from [`Notify::notify_one`] that it
/// already got goes to the next waiter.
#[must_use = "it waits when it is polled or asked to"]
pub struct Notified<'a> {
    future: WaitFuture<'a, RawNotify>,
}

impl Notified<'_> {
    /// Waits, like [`Notify::wait`].
    ///
    /// # Panics
    /// As [`Notify::wait`].
    pub fn wait(self) {
        wait_future::block(pin!(self.future));
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: it is the only field, and pinned like `self`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        future.poll(context)
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").finish_non_exhaustive()
    }
}

impl RawNotify {
    /// Rule 3.
    fn wait_future(&self) -> WaitFuture<'_, Self> {
        WaitFuture::new(self, self.word.load(Ordering::Acquire) / GENERATION, 0)
    }

    fn take_permit(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & PERMIT != 0 {
            match self.word.compare_exchange_weak(
                word,
                word & !PERMIT,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    fn notify_one(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & QUEUED != 0 {
                let queue = self.wait_list.lock();
                word = self.word.load(Ordering::Relaxed);
                if word & QUEUED != 0 {
                    return self.wake_first(queue, word);
                }
                continue;
            }
            // A release store even if there is a permit: the taker of the permit sees all that was
            // done before this call.
            match self.word.compare_exchange_weak(
                word,
                word | PERMIT,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    fn wake_first(&self, mut queue: WaitListGuard<'_, ()>, word: usize) {
        let mut wakers = WakerList::new();
        queue.grant_first(NOTIFY_ONE, &mut wakers);
        if queue.is_empty() {
            self.word.store(word & !STATE, Ordering::Release);
        }
        drop(queue);
        wakers.wake();
    }

    fn notify_waiters(&self) {
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        queue.grant_all(NOTIFY_ALL, &mut wakers);
        // The result is always `Ok`: the closure returns `Some`.
        let _ = self
            .word
            .fetch_update(Ordering::Release, Ordering::Relaxed, |word| {
                Some((word & !QUEUED).wrapping_add(GENERATION))
            });
        drop(queue);
        wakers.wake();
    }
}

impl Primitive for RawNotify {
    type State = ();
    /// The generation.
    type Request = usize;
    type Output = ();

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        generation: &mut usize,
        _: &mut WakerList,
    ) -> AcquireResult<()> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if word / GENERATION != *generation {
                return AcquireResult::Done(());
            }
            let (next, done) = match word & STATE {
                PERMIT => (word & !STATE, true),
                QUEUED => return AcquireResult::PushBack,
                _ => (word | QUEUED, false),
            };
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) if done => return AcquireResult::Done(()),
                Ok(_) => return AcquireResult::PushBack,
                Err(now) => word = now,
            }
        }
    }

    fn accept_grant(&self, _: Grant, _: &mut usize) -> Option<()> {
        Some(())
    }

    /// Rule 4.
    fn on_leave(&self, queue: WaitListGuard<'_, ()>, grant: Option<Grant>, _: &usize) {
        match grant {
            Some(NOTIFY_ONE) => {
                drop(queue);
                self.notify_one();
            }
            Some(_) => {}
            None if queue.is_empty() => {
                self.word.fetch_and(!QUEUED, Ordering::Relaxed);
            }
            None => {}
        }
    }
}
