//! A slot for the waker of one reader. It guarantees that the reader does not miss published data,
//! and that it is woken only if it sleeps.
//!
//! 1. A writer publishes its data and calls [`AtomicWaker::signal`]: a SeqCst fence, then one load.
//!    If the pointer is null, the reader is awake and will check for data, so there is nothing to
//!    do.
//! 2. The reader calls [`AtomicWaker::arm`] with a waker: a store, then a SeqCst fence. Then it
//!    **must check again** for everything that it waits for. Only then may it sleep. The two fences
//!    make it impossible that the writer sees null *and* the reader sees no data.
//! 3. The pointer is the whole state. The side that swaps it for null owns the waker: a writer
//!    wakes it, the reader ([`AtomicWaker::disarm`]) drops it. A waker is therefore woken at most
//!    once per arming, regardless of the number of writers.
//! 4. A wake-up may arrive although the reader has already found its data. Readers must accept
//!    spurious wake-ups.
//! 5. Writers that publish often use [`AtomicWaker::signal_light`], and the reader then uses
//!    [`AtomicWaker::arm_heavy`]. These use the two barriers of [`barrier`] instead of the two
//!    fences. Never combine a light signal with a normal arm, or a normal signal with a heavy arm.

use std::ptr;
use std::task::Waker;

use crate::barrier;
use crate::sync::{AtomicPtr, Ordering, fence};

/// The waker of one reader. The module documents the protocol.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
/// use thalweg_queue::{AtomicWaker, Parker};
///
/// let (gate, data) = (Arc::new(AtomicWaker::new()), Arc::new(AtomicBool::new(false)));
/// let writer = std::thread::spawn({
///     let (gate, data) = (gate.clone(), data.clone());
///     move || {
///         data.store(true, Ordering::Release);
///         gate.signal();
///     }
/// });
/// let parker = Parker::current();
/// while !data.load(Ordering::Acquire) {
///     gate.arm(parker.waker());
///     if data.load(Ordering::Acquire) {
///         gate.disarm();
///         break;
///     }
///     parker.park(None);
/// }
/// writer.join().unwrap();
/// ```
#[derive(Debug)]
pub struct AtomicWaker {
    armed: AtomicPtr<Waker>,
}

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl AtomicWaker {
    /// Creates an empty slot: the reader is awake.
    pub fn new() -> Self {
        Self {
            armed: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Called by the reader. From now on, one `signal` wakes `waker`. The reader must check for
    /// data again before it sleeps (rule 2).
    pub fn arm(&self, waker: Waker) {
        self.set(waker);
        fence(Ordering::SeqCst);
    }

    /// Like [`arm`](Self::arm), for writers that use [`signal_light`](Self::signal_light) (rule 5).
    pub fn arm_heavy(&self, waker: Waker) {
        self.set(waker);
        barrier::heavy_or_full();
    }

    fn set(&self, waker: Waker) {
        let new = Box::into_raw(Box::new(waker));
        let old = self.armed.swap(new, Ordering::AcqRel);
        Self::drop_waker(old);
    }

    /// Called by the reader: removes the waker. Returns `false` if a writer has already taken it,
    /// so that a wake-up is on its way.
    pub fn disarm(&self) -> bool {
        let old = self.armed.swap(ptr::null_mut(), Ordering::AcqRel);
        Self::drop_waker(old);
        !old.is_null()
    }

    /// Called by a writer after it has published data: wakes the reader if it is armed. Returns
    /// whether this call woke it.
    pub fn signal(&self) -> bool {
        fence(Ordering::SeqCst);
        self.wake_if_armed()
    }

    /// Like [`signal`](Self::signal), without a fence if the kernel can execute the barrier for the
    /// reader (rule 5).
    #[inline]
    pub fn signal_light(&self) -> bool {
        barrier::light_or_full();
        self.wake_if_armed()
    }

    #[inline]
    fn wake_if_armed(&self) -> bool {
        !self.armed.load(Ordering::Relaxed).is_null() && self.wake()
    }

    #[cold]
    fn wake(&self) -> bool {
        let waker = self.armed.swap(ptr::null_mut(), Ordering::AcqRel);
        if waker.is_null() {
            return false;
        }
        // SAFETY: rule 3: the swap made this thread the only owner of the box that `arm` leaked.
        let waker = unsafe { Box::from_raw(waker) };
        waker.wake();
        true
    }

    fn drop_waker(waker: *mut Waker) {
        if !waker.is_null() {
            // SAFETY: rule 3: the caller swapped the pointer out and owns the box.
            drop(unsafe { Box::from_raw(waker) });
        }
    }
}

impl Drop for AtomicWaker {
    fn drop(&mut self) {
        self.disarm();
    }
}
