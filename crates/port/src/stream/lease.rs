//! The lease of a stream's callback: its only writer calls it without the queue's lock.
//!
//! 1. A writer that finds its stream empty takes the callback out of its slot and puts it into the
//!    lease. This is done under the queue's lock, as are all other transitions, except those of
//!    rule 2.
//! 2. The holder brackets each call with [`Lease::enter`] and [`Lease::leave`]: it stores `running`
//!    and then loads `revoked`. The side that revokes stores `revoked` and then loads `running`. The
//!    holder executes a light barrier between the two, and the revoker the heavy one of
//!    [`barrier`], which is a fence on both sides where the system has none. So either the holder
//!    sees that it lost the lease, or the revoker sees that a call runs.
//! 3. The callback belongs to the holder between a successful `enter` and the next `leave`. Without
//!    a running call, it belongs to the thread that revoked the lease. With one, the holder notices
//!    it in `leave`, or in the `enter` that failed, and puts the callback back.
//! 4. The number of delivered records is written only by the holder, and read by everyone. It is
//!    added to the counts of the stream when they are read, and when the lease ends.

use thalweg_queue::barrier;

use crate::sync::{AtomicBool, AtomicU64, Ordering, UnsafeCell};

/// A thread or actor that runs a callback; never 0.
pub(crate) type Runner = u64;

/// No call is running.
const NOBODY: Runner = 0;

pub(crate) struct Lease<C> {
    running: AtomicU64,
    revoked: AtomicBool,
    /// Rule 4.
    delivered: AtomicU64,
    /// Rule 3.
    callback: UnsafeCell<Option<C>>,
}

// SAFETY: rule 3: one thread at a time accesses the callback, which it may have received from
// another one.
unsafe impl<C: Send> Sync for Lease<C> {}

impl<C> Default for Lease<C> {
    fn default() -> Self {
        Self {
            running: AtomicU64::new(NOBODY),
            revoked: AtomicBool::new(true),
            delivered: AtomicU64::new(0),
            callback: UnsafeCell::new(None),
        }
    }
}

impl<C> Lease<C> {
    /// Lends the callback, under the lock (rule 1).
    ///
    /// # Safety
    /// The lease is not held.
    pub(crate) unsafe fn grant(&self, callback: C) {
        self.callback.with_mut(|place| {
            // SAFETY: there is no holder, and the lock excludes other revokers.
            unsafe { *place = Some(callback) }
        });
        self.delivered.store(0, Ordering::Relaxed);
        self.revoked.store(false, Ordering::Relaxed);
    }

    /// For the holder: begins a call, unless the lease was revoked (rule 2).
    #[inline(always)]
    pub(crate) fn enter(&self, runner: Runner) -> bool {
        self.running.store(runner, Ordering::Relaxed);
        barrier::light_or_full();
        if self.revoked.load(Ordering::Acquire) {
            self.running.store(NOBODY, Ordering::Release);
            return false;
        }
        true
    }

    /// Calls `f` with the callback.
    ///
    /// # Safety
    /// The caller is between [`enter`](Self::enter) and [`leave`](Self::leave), and `f` does not
    /// call this again.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.callback.with_mut(|place| {
            // SAFETY: rule 3, which the caller keeps.
            unsafe { (*place).as_mut().map(f) }
        })
    }

    /// For the holder: ends a call. Returns whether the lease is still held (rule 2).
    #[inline(always)]
    pub(crate) fn leave(&self) -> bool {
        self.running.store(NOBODY, Ordering::Release);
        barrier::light_or_full();
        !self.revoked.load(Ordering::Acquire)
    }

    /// For the holder: counts a record, and returns the number of those before it (rule 4).
    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        let before = self.delivered.load(Ordering::Relaxed);
        self.delivered.store(before + 1, Ordering::Relaxed);
        before
    }

    /// Number of records that the holder has delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Ends a lease that is held, under the lock.
    ///
    /// # Errors
    /// A call is running: this runner will take the callback back.
    pub(crate) fn revoke(&self) -> Result<Option<C>, Runner> {
        self.revoked.store(true, Ordering::Release);
        barrier::heavy_or_full();
        match self.running.load(Ordering::Acquire) {
            // SAFETY: rule 3: no call is running, and none begins.
            NOBODY => Ok(unsafe { self.take() }),
            runner => Err(runner),
        }
    }

    /// The callback of a lease that was revoked during a call, under the lock.
    ///
    /// # Safety
    /// The caller was the holder, and its call is over.
    pub(crate) unsafe fn take(&self) -> Option<C> {
        self.callback.with_mut(|place| {
            // SAFETY: rule 3, which the caller keeps.
            unsafe { (*place).take() }
        })
    }
}
