//! A condition variable.
//!
//! 1. A waiter enters the list before it unlocks the mutex. So a caller that changes the value
//!    under the mutex and notifies afterwards finds the waiter in the list.
//! 2. `has_waiters` is written under the list's lock. A notifier reads it without the lock: by rule
//!    1, the mutex orders the two.
//! 3. A waiter that was woken by `notify_one` and gives up before it observes the change passes the
//!    notification on. It has observed the change when it has locked the mutex again.
//! 4. The guard is taken by value: an actor that is ended while it waits has no guard to drop, and
//!    does not hold the mutex.

use std::fmt;
use std::future::Future;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use thalweg_queue::{WakerList, clock};

use super::error::WaitError;
use super::mutex::MutexGuard;
use super::wait_future::{self, AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};
use crate::shim::{AtomicBool, Ordering};
use crate::wait;

const NOTIFY_ONE: Grant = 1;
const NOTIFY_ALL: Grant = 2;

/// A condition variable: unlocks a [`Mutex`](super::Mutex), waits for a notification, and locks the
/// mutex again. Like `std::sync::Condvar`, with the mutex of this module.
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
/// It can be used with any number of mutexes.
///
/// # Order
/// [`notify_one`](Self::notify_one) wakes the oldest waiter; then that waiter queues for the mutex
/// like all others.
///
/// # When an actor cannot wait
/// As with [`Mutex`](super::Mutex#when-an-actor-cannot-wait). The mutex is unlocked when the actor
/// is unwound. A wait with a deadline locks the mutex again before it returns, and that wait for
/// the mutex may unwind the actor.
pub struct Condvar {
    raw: RawCondvar,
}

struct RawCondvar {
    has_waiters: AtomicBool,
    wait_list: WaitList<()>,
}

impl Condvar {
    crate::shim::const_fn! {
        /// Creates a condition variable without waiters.
        pub fn new() -> Self {
            Self {
                raw: RawCondvar {
                    has_waiters: AtomicBool::new(false),
                    wait_list: WaitList::new(()),
                },
            }
        }
    }

    /// Unlocks, waits for a notification, and locks again. It does not wake spuriously, but the
    /// condition may have changed again: call it in a loop, or use
    /// [`wait_while`](Self::wait_while).
    ///
    /// # Panics
    /// In a [`NoPark`](crate::preempt::NoPark) section and in [`native`](crate::native()); the
    /// mutex is then unlocked.
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

    /// Waits while `condition` returns `true`. It is called first, and then after each
    /// notification, with the mutex locked.
    ///
    /// # Panics
    /// If `condition` panics; the mutex is unlocked. Also as [`wait`](Self::wait).
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

    /// Like [`wait`](Self::wait), for at most `timeout`; afterwards it waits for the mutex without
    /// a limit. It returns the guard and the result of the wait for the notification.
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

    /// Like [`wait_timeout`](Self::wait_timeout), until `deadline`.
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

    /// Like [`wait_while`](Self::wait_while), for at most `timeout`.
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

    /// Like [`wait`](Self::wait), as a future. If it is dropped, the mutex is unlocked, and a
    /// [`notify_one`](Self::notify_one) that it already got goes to the next waiter. Until its
    /// first poll, it keeps the mutex locked.
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

    /// Like [`wait_while`](Self::wait_while), as a future: see [`wait_async`](Self::wait_async).
    ///
    /// # Panics
    /// If `condition` panics; the mutex is unlocked.
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

    /// Wakes the oldest waiter, if there is one. Call it with the mutex locked or after unlocking
    /// it.
    #[inline]
    pub fn notify_one(&self) {
        if self.raw.has_waiters.load(Ordering::Relaxed) {
            self.raw.notify_one();
        }
    }

    /// Wakes all waiters.
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

/// A notification whose waiter has not locked the mutex yet: rule 3.
struct Notification<'a> {
    raw: &'a RawCondvar,
    grant: Grant,
}

impl Notification<'_> {
    /// The waiter has locked the mutex.
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
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        queue.grant_first(NOTIFY_ONE, &mut wakers);
        self.has_waiters.store(!queue.is_empty(), Ordering::Relaxed);
        drop(queue);
        wakers.wake();
    }

    fn notify_all(&self) {
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        queue.grant_all(NOTIFY_ALL, &mut wakers);
        self.has_waiters.store(false, Ordering::Relaxed);
        drop(queue);
        wakers.wake();
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
        _: &mut WakerList,
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
