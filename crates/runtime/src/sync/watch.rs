//! A value whose readers need only the newest version: each receiver learns that the value has
//! changed, and may miss versions in between. Like `tokio::sync::watch`.
//!
//! ```
//! use thalweg_runtime::{run, spawn, sync::watch};
//!
//! let (sender, mut receiver) = watch::channel("starting");
//! run(move || {
//!     let waits = spawn(move || {
//!         receiver.wait_for(|state| *state == "ready").map(|state| state.len())
//!     });
//!     sender.send("loading").unwrap();
//!     sender.send("ready").unwrap();
//!     assert_eq!(waits.join().unwrap(), Ok(5));
//! });
//! ```
//!
//! # Implementation
//!
//! 1. The value is in an [`RwLock`]; its version changes while that is locked for writing. So the
//!    holder of a read lock can read the version of the value that it sees.
//! 2. The version changes, and is closed, under the list's lock, and a waiter checks it under that
//!    lock. So no change is missed.

use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::{SendError, WakerList, clock};

use super::error::{ClosableWaitError, Closed};
use super::rwlock::{RwLock, RwLockReadGuard};
use super::wait_future::{self, AcquireResult, Primitive, WaitFuture};
use super::wait_list::{Grant, WaitList, WaitListGuard, WaitQueue};
use crate::shim::{AtomicUsize, Ordering};

/// A bit of the version: there is no sender.
const CLOSED: usize = 1;
const VERSION_STEP: usize = 2;

const CHANGED: Grant = 1;

struct Shared<T> {
    value: RwLock<T>,
    version: Version,
    senders: AtomicUsize,
    receivers: ReceiverCount,
}

/// Counts the changes of the value.
struct Version {
    word: AtomicUsize,
    wait_list: WaitList<()>,
}

/// The number of receivers. A wait ends when it is 0.
struct ReceiverCount {
    count: AtomicUsize,
    wait_list: WaitList<()>,
}

/// Creates a watched value, with its first sender and its first receiver.
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        value: RwLock::new(value),
        version: Version {
            word: AtomicUsize::new(0),
            wait_list: WaitList::new(()),
        },
        senders: AtomicUsize::new(1),
        receivers: ReceiverCount {
            count: AtomicUsize::new(1),
            wait_list: WaitList::new(()),
        },
    });
    let receiver = Receiver {
        shared: Arc::clone(&shared),
        seen: 0,
    };
    (Sender { shared }, receiver)
}

/// Changes the value. Clones change the same value.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Replaces the value and notifies all receivers. Waits until there is no [`Ref`].
    ///
    /// # Errors
    /// There is no receiver; the value is returned.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.receiver_count() == 0 {
            return Err(SendError::Closed(value));
        }
        self.send_replace(value);
        Ok(())
    }

    /// Replaces the value even if there is no receiver. Returns the old value.
    pub fn send_replace(&self, value: T) -> T {
        let mut old = value;
        self.send_modify(|value| std::mem::swap(value, &mut old));
        old
    }

    /// Changes the value in place and notifies all receivers. If `change` panics, no receiver is
    /// notified.
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// Changes the value in place and notifies all receivers if `change` returns `true`. Returns
    /// the result of `change`.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let mut value = self.shared.value.write();
        let changed = change(&mut value);
        if changed {
            self.shared.version.increment();
        }
        changed
    }

    /// The newest value.
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref {
            value: self.shared.value.read(),
            changed: false,
        }
    }

    /// Creates a receiver that has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.shared.receivers.count.fetch_add(1, Ordering::Relaxed);
        Receiver {
            seen: self.shared.version.now(),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers.count.load(Ordering::Acquire)
    }

    /// Waits until there is no receiver.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    pub fn closed(&self) {
        wait_future::block(pin!(self.closed_future()));
    }

    /// Like [`closed`](Self::closed), as a future.
    pub async fn closed_async(&self) {
        self.closed_future().await;
    }

    fn closed_future(&self) -> WaitFuture<'_, ReceiverCount> {
        WaitFuture::new(&self.shared.receivers, (), 0)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.version.close();
        }
    }
}

/// Reads the newest value, and tracks which version it has seen. A clone has seen the same version.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: usize,
}

impl<T> Receiver<T> {
    /// The newest value. It is not marked as seen.
    ///
    /// # Panics
    /// If a sender is changing the value or waits to do so, in a [`NoPark`](crate::preempt::NoPark)
    /// section or in [`native`](crate::native()).
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let changed = self.shared.version.now() != self.seen;
        Ref { value, changed }
    }

    /// The newest value. It is marked as seen.
    ///
    /// # Panics
    /// As [`borrow`](Self::borrow).
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        borrow_newest(&self.shared, &mut self.seen)
    }

    /// Whether there is a value that this receiver has not seen.
    ///
    /// # Errors
    /// There is none, and there is no sender.
    pub fn has_changed(&self) -> Result<bool, Closed> {
        let version = self.shared.version.word.load(Ordering::Acquire);
        match version & !CLOSED != self.seen {
            false if version & CLOSED != 0 => Err(Closed),
            changed => Ok(changed),
        }
    }

    /// Waits until there is a value that this receiver has not seen, and marks it as seen.
    ///
    /// # Errors
    /// [`ClosableWaitError::Closed`] if there is no sender, or [`ClosableWaitError::Stopping`].
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section or in
    /// [`native`](crate::native()).
    pub fn changed(&mut self) -> Result<(), ClosableWaitError> {
        self.changed_until(None)
    }

    /// Like [`changed`](Self::changed), for at most `timeout`.
    ///
    /// # Errors
    /// [`ClosableWaitError`].
    ///
    /// # Panics
    /// As [`changed`](Self::changed).
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<(), ClosableWaitError> {
        self.changed_until(Some(clock::deadline(timeout)))
    }

    /// Like [`changed`](Self::changed), until `deadline`.
    ///
    /// # Errors
    /// [`ClosableWaitError`].
    ///
    /// # Panics
    /// As [`changed`](Self::changed).
    pub fn changed_deadline(&mut self, deadline: Instant) -> Result<(), ClosableWaitError> {
        self.changed_until(Some(clock::at(deadline)))
    }

    fn changed_until(&mut self, deadline: Option<u64>) -> Result<(), ClosableWaitError> {
        if self.has_changed()? {
            self.seen = self.shared.version.now();
        } else {
            let future = WaitFuture::new(&self.shared.version, self.seen, 0);
            self.seen = wait_future::block_until(pin!(future), deadline)??;
        }
        Ok(())
    }

    /// Like [`changed`](Self::changed), as a future.
    ///
    /// # Errors
    /// There is no sender.
    pub async fn changed_async(&mut self) -> Result<(), Closed> {
        let future = WaitFuture::new(&self.shared.version, self.seen, 0);
        self.seen = future.await?;
        Ok(())
    }

    /// Waits for a value for which `predicate` returns `true`, beginning with the present one. Each
    /// value that it checks is marked as seen.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    ///
    /// # Panics
    /// If `predicate` panics. Also as [`borrow`](Self::borrow) and [`changed`](Self::changed).
    pub fn wait_for(
        &mut self,
        predicate: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, ClosableWaitError> {
        self.wait_until(None, predicate)
    }

    /// Like [`wait_for`](Self::wait_for), for at most `timeout`.
    ///
    /// # Errors
    /// [`ClosableWaitError`].
    ///
    /// # Panics
    /// As [`wait_for`](Self::wait_for).
    pub fn wait_for_timeout(
        &mut self,
        timeout: Duration,
        predicate: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, ClosableWaitError> {
        self.wait_until(Some(clock::deadline(timeout)), predicate)
    }

    fn wait_until(
        &mut self,
        deadline: Option<u64>,
        mut predicate: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, ClosableWaitError> {
        let Self { shared, seen } = self;
        loop {
            let newest = borrow_newest(shared, seen);
            if predicate(&newest) {
                return Ok(newest);
            }
            drop(newest);
            let future = WaitFuture::new(&shared.version, *seen, 0);
            *seen = wait_future::block_until(pin!(future), deadline)??;
        }
    }
}

/// Rule 1.
fn borrow_newest<'a, T>(shared: &'a Shared<T>, seen: &mut usize) -> Ref<'a, T> {
    let value = shared.value.read();
    let version = shared.version.now();
    let changed = std::mem::replace(seen, version) != version;
    Ref { value, changed }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.receivers.count.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.receivers.decrement();
    }
}

/// A read guard of the value. While it exists, senders wait. So do not keep it for long, and do not
/// call [`borrow`](Receiver::borrow) again in the same actor while it exists.
#[must_use = "the value may change when this is dropped"]
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    changed: bool,
}

impl<T> Ref<'_, T> {
    /// Whether the receiver had not seen this value before.
    pub fn has_changed(&self) -> bool {
        self.changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("value", &self.shared.value)
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("value", &self.shared.value)
            .finish()
    }
}

impl Version {
    fn now(&self) -> usize {
        self.word.load(Ordering::Acquire) & !CLOSED
    }

    fn increment(&self) {
        self.update(|word| word.wrapping_add(VERSION_STEP));
    }

    fn close(&self) {
        self.update(|word| word | CLOSED);
    }

    /// Rule 2.
    fn update(&self, change: impl Fn(usize) -> usize) {
        let mut wakers = WakerList::new();
        let mut queue = self.wait_list.lock();
        let word = self.word.load(Ordering::Relaxed);
        self.word.store(change(word), Ordering::Release);
        queue.grant_all(CHANGED, &mut wakers);
        drop(queue);
        wakers.wake();
    }
}

impl Primitive for Version {
    type State = ();
    /// The version that the receiver has seen.
    type Request = usize;
    type Output = Result<usize, Closed>;

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        seen: &mut usize,
        _: &mut WakerList,
    ) -> AcquireResult<Self::Output> {
        let word = self.word.load(Ordering::Acquire);
        if word & !CLOSED != *seen {
            AcquireResult::Done(Ok(word & !CLOSED))
        } else if word & CLOSED != 0 {
            AcquireResult::Done(Err(Closed))
        } else {
            AcquireResult::PushBack
        }
    }

    fn accept_grant(&self, _: Grant, _: &mut usize) -> Option<Self::Output> {
        None
    }

    fn on_leave(&self, _: WaitListGuard<'_, ()>, _: Option<Grant>, _: &usize) {}
}

impl ReceiverCount {
    fn decrement(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            let mut wakers = WakerList::new();
            self.wait_list.lock().grant_all(CHANGED, &mut wakers);
            wakers.wake();
        }
    }
}

impl Primitive for ReceiverCount {
    type State = ();
    type Request = ();
    type Output = ();

    fn wait_list(&self) -> &WaitList<()> {
        &self.wait_list
    }

    fn acquire_or_queue(
        &self,
        _: &mut WaitQueue<()>,
        (): &mut (),
        _: &mut WakerList,
    ) -> AcquireResult<()> {
        match self.count.load(Ordering::Acquire) {
            0 => AcquireResult::Done(()),
            _ => AcquireResult::PushBack,
        }
    }

    fn accept_grant(&self, _: Grant, (): &mut ()) -> Option<()> {
        None
    }

    fn on_leave(&self, _: WaitListGuard<'_, ()>, _: Option<Grant>, (): &()) {}
}
