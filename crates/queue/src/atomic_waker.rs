//! How one reader goes to sleep without missing what is published meanwhile, and how writers
//! wake it once, and only if it sleeps.
//!
//! 1. A writer publishes its data, then calls [`AtomicWaker::signal`]: a SeqCst fence, then one load. Null: the reader is awake
//!    and will look; nothing more to do.
//! 2. The reader [`AtomicWaker::arm`]s with a waker: a store, then a SeqCst fence. Then it **must look again** at everything
//!    that it waits for, and only then sleep. The two fences make it impossible that the writer sees null *and* the
//!    reader sees no data.
//! 3. The pointer is the whole state. WaiterKind swaps it for null owns the waker: a writer to wake it, the reader
//!    ([`AtomicWaker::disarm`]) to drop it. So a waker is woken at most once an arming, however many writers there are.
//! 4. A wake-up may come when the reader found its data by itself: readers take spurious ones.
//! 5. Writers that publish often use [`AtomicWaker::signal_light`], and the reader then [`AtomicWaker::arm_heavy`]: the two barriers of
//!    [`barrier`] in place of the two fences. Only both or none of them may be.

use std::ptr;
use std::task::Waker;

use crate::barrier;
use crate::sync::{AtomicPtr, Ordering, fence};

/// The sleeping place of one reader. See the module for the protocol.
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
    /// With the reader awake.
    pub fn new() -> Self {
        Self {
            armed: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The reader: from now on `signal` wakes `waker`, once. Look again before sleeping (rule 2).
    pub fn arm(&self, waker: Waker) {
        self.set(waker);
        fence(Ordering::SeqCst);
    }

    /// The same where writers use [`signal_light`](Self::signal_light) (rule 5).
    pub fn arm_heavy(&self, waker: Waker) {
        self.set(waker);
        barrier::heavy_or_full();
    }

    fn set(&self, waker: Waker) {
        let new = Box::into_raw(Box::new(waker));
        let old = self.armed.swap(new, Ordering::AcqRel);
        Self::drop_waker(old);
    }

    /// The reader: takes the waker back. `false` if a writer had it already, and a wake-up is on its way.
    pub fn disarm(&self) -> bool {
        let old = self.armed.swap(ptr::null_mut(), Ordering::AcqRel);
        Self::drop_waker(old);
        !old.is_null()
    }

    /// A writer, after it published: wakes the reader if it is armed. `true` if it was.
    pub fn signal(&self) -> bool {
        fence(Ordering::SeqCst);
        self.wake_if_armed()
    }

    /// The same without a fence, where the kernel can pass it for the reader (rule 5).
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
