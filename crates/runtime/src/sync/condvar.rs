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
use super::line::{Gift, Held, Line, Queue, Wakes};
use super::mutex::MutexGuard;
use super::waiting::{self, Ask, Primitive, Waiting};
use crate::shim::{AtomicBool, Ordering};
use crate::wait;

const ONE: Gift = 1;
const ALL: Gift = 2;

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
    inner: Inner,
}

struct Inner {
    waits: AtomicBool,
    line: Line<()>,
}

impl Condvar {
    crate::shim::const_fn! {
        /// Nobody waits.
        pub fn new() -> Self {
            Self {
                inner: Inner {
                    waits: AtomicBool::new(false),
                    line: Line::new(()),
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
        let mut waiting = pin!(Waiting::new(&self.inner, (), 0));
        enter(waiting.as_mut());
        let mutex = guard.mutex();
        drop(guard);
        let woken = self.inner.woken(waiting::for_ever(waiting));
        let guard = mutex.lock();
        woken.has_seen();
        guard
    }

    /// Waits as long as `is_to_wait` says so, which is asked first and under the lock.
    ///
    /// # Panics
    /// With that of `is_to_wait`, unlocking; and as [`wait`](Self::wait).
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut is_to_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while is_to_wait(&mut guard) {
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
        mut is_to_wait: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        let deadline = clock::deadline(timeout);
        let mut ended = Ok(());
        while is_to_wait(&mut guard) {
            if ended.is_err() {
                return (guard, ended);
            }
            (guard, ended) = self.wait_until(guard, deadline);
        }
        (guard, Ok(()))
    }

    fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: u64,
    ) -> (MutexGuard<'a, T>, Result<(), WaitError>) {
        let mut waiting = pin!(Waiting::new(&self.inner, (), 0));
        enter(waiting.as_mut());
        let mutex = guard.mutex();
        drop(guard);
        let ended = waiting::until(waiting, Some(deadline));
        let woken = ended.map(|gift| self.inner.woken(gift));
        let guard = mutex.lock();
        (guard, woken.map(Woken::has_seen))
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
        let mut waiting = pin!(Waiting::new(&self.inner, (), 0));
        let mut guard = Some(guard);
        let gift = poll_fn(|context| {
            let polled = waiting.as_mut().poll(context);
            // Rule 1.
            drop(guard.take());
            polled
        })
        .await;
        let woken = self.inner.woken(gift);
        let guard = mutex.lock_async().await;
        woken.has_seen();
        guard
    }

    /// As [`wait_while`](Self::wait_while), for a task: see [`wait_async`](Self::wait_async).
    ///
    /// # Panics
    /// With that of `is_to_wait`, unlocking.
    pub async fn wait_while_async<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut is_to_wait: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while is_to_wait(&mut guard) {
            guard = self.wait_async(guard).await;
        }
        guard
    }

    /// Wakes who has waited longest, if anybody waits. Called with the mutex locked or after it was unlocked.
    #[inline]
    pub fn notify_one(&self) {
        if self.inner.waits.load(Ordering::Relaxed) {
            self.inner.notify_one();
        }
    }

    /// Wakes all who wait.
    #[inline]
    pub fn notify_all(&self) {
        if self.inner.waits.load(Ordering::Relaxed) {
            self.inner.notify_all();
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
fn enter(waiting: Pin<&mut Waiting<'_, Inner>>) {
    let entered = waiting.look(&wait::waker());
    debug_assert_eq!(entered, Poll::Pending, "nobody is woken who has not waited");
}

/// One that was woken and is about to lock again: rule 3.
struct Woken<'a> {
    inner: &'a Inner,
    gift: Gift,
}

impl Woken<'_> {
    /// It has the lock.
    fn has_seen(self) {
        std::mem::forget(self);
    }
}

impl Drop for Woken<'_> {
    fn drop(&mut self) {
        if self.gift == ONE {
            self.inner.notify_one();
        }
    }
}

impl Inner {
    fn woken(&self, gift: Gift) -> Woken<'_> {
        Woken { inner: self, gift }
    }

    fn notify_one(&self) {
        let mut wakes = Wakes::default();
        let mut queue = self.line.lock();
        queue.give_first(ONE, &mut wakes);
        self.waits.store(!queue.is_empty(), Ordering::Relaxed);
        drop(queue);
        wakes.wake();
    }

    fn notify_all(&self) {
        let mut wakes = Wakes::default();
        let mut queue = self.line.lock();
        queue.give_all(ALL, &mut wakes);
        self.waits.store(false, Ordering::Relaxed);
        drop(queue);
        wakes.wake();
    }
}

impl Primitive for Inner {
    type State = ();
    type Wish = ();
    type Output = Gift;

    fn line(&self) -> &Line<()> {
        &self.line
    }

    fn ask(&self, _: &mut Queue<()>, (): &mut (), _: &mut Wakes) -> Ask<Gift> {
        self.waits.store(true, Ordering::Relaxed);
        Ask::Behind
    }

    fn given(&self, gift: Gift, (): &mut ()) -> Option<Gift> {
        Some(gift)
    }

    fn left(&self, queue: Held<'_, ()>, gift: Option<Gift>, (): &()) {
        match gift {
            Some(ONE) => {
                drop(queue);
                self.notify_one();
            }
            Some(_) => {}
            None => self.waits.store(!queue.is_empty(), Ordering::Relaxed),
        }
    }
}
