//! The lease of a stream's callback: its only writer calls it without the queue's lock.
//!
//! 1. A writer that finds its stream empty takes the callback out of its slot and puts it into the
//!    lease. This is done under the queue's lock, as are all other transitions, except those of
//!    rule 2.
//! 2. The holder brackets each call with [`Lease::enter`] and [`Lease::leave`]: it stores `running`
//!    and then loads `state`. The side that revokes stores `state` and then loads `running`. In the
//!    state `HELD`, the holder executes a light barrier between the two, and the revoker the heavy
//!    one of [`barrier`]. In `HELD_WITH_FENCES`, both execute a fence. The state is chosen once per
//!    lease (rule 7 of `barrier`). So either the holder sees that it lost the lease, or the revoker
//!    sees that a call runs.
//! 3. The callback belongs to the holder between a successful `enter` and the next `leave`. Without
//!    a running call, it belongs to the thread that revoked the lease. With one, the holder notices
//!    it in `leave`, or in the `enter` that failed, and puts the callback back.
//! 4. The sequence number of the next record is written only by the holder, and read by everyone.
//!    The records since it was last read are added to the counts of the stream when they are read,
//!    and when the lease ends.

use thalweg_queue::barrier;

use crate::sync::{AtomicU8, AtomicU64, Ordering, UnsafeCell};

/// A thread or actor that runs a callback; never 0.
pub(crate) type Runner = u64;

/// No call is running.
const NOBODY: Runner = 0;

/// The states of a lease (rule 2).
const HELD: u8 = 0;
const HELD_WITH_FENCES: u8 = 1;
const REVOKED: u8 = 2;

pub(crate) struct Lease<C> {
    running: AtomicU64,
    state: AtomicU8,
    /// Rule 4.
    sequence: AtomicU64,
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
            state: AtomicU8::new(REVOKED),
            sequence: AtomicU64::new(0),
            callback: UnsafeCell::new(None),
        }
    }
}

impl<C> Lease<C> {
    /// Lends the callback, under the lock (rule 1). `sequence` is the number of the first record.
    ///
    /// # Safety
    /// The lease is not held.
    pub(crate) unsafe fn grant(&self, callback: C, sequence: u64) {
        self.callback.with_mut(|place| {
            // SAFETY: there is no holder, and the lock excludes other revokers.
            unsafe { *place = Some(callback) }
        });
        self.sequence.store(sequence, Ordering::Relaxed);
        let state = match barrier::is_asymmetric() {
            true => HELD,
            false => HELD_WITH_FENCES,
        };
        self.state.store(state, Ordering::Relaxed);
    }

    /// For the holder: begins a call, unless the lease was revoked (rule 2).
    #[inline(always)]
    pub(crate) fn enter(&self, runner: Runner) -> bool {
        // A thread that revokes the lease now may read the record.
        self.running.store(runner, Ordering::Release);
        let is_held = self.is_held();
        if !is_held {
            self.running.store(NOBODY, Ordering::Release);
        }
        is_held
    }

    /// For the holder, after it has stored `running` (rule 2).
    #[inline(always)]
    fn is_held(&self) -> bool {
        barrier::light();
        match self.state.load(Ordering::Acquire) {
            HELD => true,
            state => self.is_held_with_fences(state),
        }
    }

    #[cold]
    fn is_held_with_fences(&self, state: u8) -> bool {
        if state == HELD_WITH_FENCES {
            barrier::full();
        }
        self.state.load(Ordering::Acquire) == HELD_WITH_FENCES
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
        self.is_held()
    }

    /// For the holder: counts a record, and returns its sequence number (rule 4).
    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Relaxed);
        sequence
    }

    /// Sequence number of the holder's next record.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Relaxed)
    }

    /// Ends a lease that is held, under the lock.
    ///
    /// # Errors
    /// A call is running: this runner will take the callback back.
    pub(crate) fn revoke(&self) -> Result<Option<C>, Runner> {
        // Only the holders of the lock write the state.
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(REVOKED, Ordering::Release);
        match state {
            HELD => barrier::heavy(),
            _ => barrier::full(),
        }
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
