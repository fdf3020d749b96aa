//! Waiting, with a lock open meanwhile, until somebody says that what it guards has changed.
//!
//! 1. Who waits enters the line before it unlocks. So who changes the value under the lock and says so afterwards finds it there.
//! 2. `waits` is written under the line's lock. Who says that something changed reads it without: by rule 1 the mutex orders the two.
//! 3. Who was woken as the one of `notify_one` and goes without having seen it passes it on; it has seen it when it has the lock again.
//! 4. The guard is taken by value: an actor that is ended while it waits has none to drop, and the lock is not its own then.

use std::fmt;
use std::future::Future;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::error::WaitError;
use super::mutex::MutexGuard;
use super::wait_future::{self, AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue, WakeList};
use crate::shim::{AtomicBool, Ordering};
use crate::wait;

const NOTIFY_ONE: Grant = 1;
const NOTIFY_ALL: Grant = 2;

/// Waits, with a [`Mutex`](super::Mutex) open meanwhile, until somebody says that its value has changed. As `std::sync::Condvar`, with our mutex.
///
/// ```
/// use std::sync::Arc;
/// use thalweg_runtime::{run, spawn, sync::{Condvar, Mutex}};
///
/// let shared = Arc::new((Mutex::new(0), Condvar::new()));
/// run(move || {
///     let other = shared.clone();
///     let waits = spawn(move || {
///         let (value, changed) = &*other;
///         *changed.wait_while(value.lock(), |value| *value < 3)
///     });
///     for _ in 0..3 {
///         *shared.0.lock() += 1;
///         shared.1.notify_one();
///     }
///     assert_eq!(waits.join().unwrap(), 3);
/// });
/// ```
///
/// It may be used with any number of mutexes.
///
/// # Order
/// [`notify_one`](Self::notify_one) wakes who has waited longest; then it queues for the mutex like all others.
///
/// # Waits that cannot be
/// As at a [`Mutex`](super::Mutex), with the lock open when the actor is unwound. A wait with a deadline has the lock again when it returns, so it
/// may be a wait for the mutex that unwinds.
pub struct Condvar {
    raw: RawCondvar,
}

struct RawCondvar {
    has_waiters: AtomicBool,
    wait_list: WaitList<()>,
}

impl Condvar {
    crate::shim::const_fn! {
        /// Nobody waits.
        pub fn new() -> Self {
            Self {
                raw: RawCondvar {
                    has_waiters: AtomicBool::new(false),
                    wait_list: WaitList::new(()),
                },
            }
        }
    }

    /// Unlocks, waits until woken, and locks again. It does not return without a notification; but what was waited for may have changed again, so it
    /// is called in a loop, as [`wait_while`](Self::wait_while) does.
    ///
    /// # Panics
    /// In a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()), with the lock open.
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mut future = pin!(WaitFuture::new(&self.raw, (), 0));
        enqueue(future.as_mut());
        let mutex = guard.mutex();
        drop(guard);
        let notification = self.raw.notification(wait_future::block(future));
        let guard = mutex.lock();
        notification.consume();
        guard
    }

    /// Waits as long as `condition` says so, which is asked first and under the lock.
    ///
    /// # Panics
    /// With that of `condition`, unlocking; and as [`wait`](Self::wait).
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// As [`wait`](Self::wait), for at most `timeout`; then it waits for the lock for as long as it takes. With the guard comes how the wait for the
    /// notification ended.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::sync::{Condvar, Mutex, WaitError};
    ///
    /// let (value, changed) = (Mutex::new(1), Condvar::new());
    /// let (guard, woken) = changed.wait_timeout(value.lock(), Duration::from_millis(1));
    /// assert_eq!((*guard, woken), (1, Err(WaitError::TimedOut)));
    /// ```
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        self.wait_until(guard, clock::deadline(timeout))
    }

    /// As [`wait_timeout`](Self::wait_timeout), until `deadline`.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_deadline<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Instant,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        self.wait_until(guard, clock::at(deadline))
    }

    /// As [`wait_while`](Self::wait_while), for at most `timeout`.
    ///
    /// # Panics
    /// As [`wait_while`](Self::wait_while).
    pub fn wait_while_timeout<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        let deadline = clock::deadline(timeout);
        let mut result = Ok(());
        while condition(&mut guard) {
            if result.is_err() {
                return (guard, result);
            }
            (guard, result) = self.wait_until(guard, deadline);
        }
        (guard, Ok(()))
    }

    fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: u64,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        let mut future = pin!(WaitFuture::new(&self.raw, (), 0));
        enqueue(future.as_mut());
        let mutex = guard.mutex();
        drop(guard);
        let result = wait_future::block_until(future, Some(deadline));
        let notification = result.map(|grant| self.raw.notification(grant));
        let guard = mutex.lock();
        (guard, notification.map(Notification::consume))
    }

    /// As [`wait`](Self::wait), for a task. Dropped, the future has left the lock open, and a [`notify_one`](Self::notify_one) that it may have been
    /// given goes to the next; before it is polled it has done no more than to keep the lock.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use thalweg_runtime::{block_on, run, spawn, sync::{Condvar, Mutex}};
    ///
    /// let shared = Arc::new((Mutex::new(0), Condvar::new()));
    /// run(move || {
    ///     let other = shared.clone();
    ///     spawn(move || {
    ///         *other.0.lock() = 3;
    ///         other.1.notify_one();
    ///     });
    ///     let seen = block_on(async {
    ///         let mut value = shared.0.lock_async().await;
    ///         while *value == 0 {
    ///             value = shared.1.wait_async(value).await;
    ///         }
    ///         *value
    ///     });
    ///     assert_eq!(seen, 3);
    /// });
    /// ```
    pub async fn wait_async<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = guard.mutex();
        let mut future = pin!(WaitFuture::new(&self.raw, (), 0));
        let mut guard = Some(guard);
        let grant = poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            // Rule 1.
            drop(guard.take());
            polled
        })
        .await;
        let notification = self.raw.notification(grant);
        let guard = mutex.lock_async().await;
        notification.consume();
        guard
    }

    /// As [`wait_while`](Self::wait_while), for a task: see [`wait_async`](Self::wait_async).
    ///
    /// # Panics
    /// With that of `condition`, unlocking.
    pub async fn wait_while_async<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait_async(guard).await;
        }
        guard
    }

    /// Wakes who has waited longest, if anybody waits. Called with the mutex locked or after it was unlocked.
    #[inline]
    pub fn notify_one(&self) {
        if self.raw.has_waiters.load(Ordering::Relaxed) {
            self.raw.notify_one();
        }
    }

    /// Wakes all who wait.
    #[inline]
    pub fn notify_all(&self) {
        if self.raw.has_waiters.load(Ordering::Relaxed) {
            self.raw.notify_all();
        }
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

/// Rule 1.
fn enqueue(future: Pin<&mut WaitFuture<'_, RawCondvar>>) {
    let polled = future.poll_waker(&wait::waker());
    debug_assert_eq!(polled, Poll::Pending, "a new wait future has no grant");
}

/// One that was woken and is about to lock again: rule 3.
struct Notification<'a> {
    raw: &'a RawCondvar,
    grant: Grant,
}

impl Notification<'_> {
    /// It has the lock.
    fn consume(self) {
        std::mem::forget(self);
    }
}

impl Drop for Notification<'_> {
    fn drop(&mut self) {
        if self.grant == NOTIFY_ONE {
            self.raw.notify_one();
        }
    }
}

impl RawCondvar {
    fn notification(&self, grant: Grant) -> Notification<'_> {
        Notification { raw: self, grant }
    }

    fn notify_one(&self) {
        let mut wake_list = WakeList::default();
        let mut queue = self.wait_list.lock();
        queue.grant_first(NOTIFY_ONE, &mut wake_list);
        self.has_waiters.store(!queue.is_empty(), Ordering::Relaxed);
        drop(queue);
        wake_list.wake();
    }

    fn notify_all(&self) {
        let mut wake_list = WakeList::default();
        let mut queue = self.wait_list.lock();
        queue.grant_all(NOTIFY_ALL, &mut wake_list);
        self.has_waiters.store(false, Ordering::Relaxed);
        drop(queue);
        wake_list.wake();
    }
}

impl Primitive for RawCondvar {
    type State = ();
    type Request = ();
    type Output = Grant;

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        (): &mut (),
        _: &mut WakeList,
    ) -> AcquireResult<Grant> {
        self.has_waiters.store(true, Ordering::Relaxed);
        AcquireResult::PushBack
    }

    fn accept_grant(&self, grant: Grant, (): &mut ()) -> Option<Grant> {
        Some(grant)
    }

    fn on_leave(&self, queue: WaitListGuard<'_, ()>, grant: Option<Grant>, (): &()) {
        match grant {
            Some(NOTIFY_ONE) => {
                drop(queue);
                self.notify_one();
            }
            Some(_) => {}
            None => self.has_waiters.store(!queue.is_empty(), Ordering::Relaxed),
        }
    }
}
