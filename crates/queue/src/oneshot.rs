//! A channel for one value, for example the answer to a request.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::oneshot::channel();
//! std::thread::spawn(move || sender.send(42));
//! assert_eq!(receiver.recv(), Ok(42));
//! ```

// One word is the whole state. A side that changes it learns from the old value what is left to do.
//
// | bit | set by | meaning |
// | --- | --- | --- |
// | `RX_WAKER_SET` | receiver | the waker is stored |
// | `TX_DONE` | sender | it has sent, or was dropped |
// | `VALUE_SENT` | sender, with `TX_DONE` | the value is stored |
// | `TX_DETACHED` | sender, last | it accesses nothing any more |
// | `RX_CLOSED` | receiver, last | it accesses nothing any more |
//
// 1. The value is written before `VALUE_SENT` is set (Release) and taken after `VALUE_SENT` is seen
//    (Acquire). The receiver takes it, or the sender takes it back if `RX_CLOSED` was set before
//    `TX_DONE`.
// 2. The waker cell belongs to the receiver while `RX_WAKER_SET` is clear. The receiver gets it
//    back by clearing `RX_WAKER_SET`, unless `TX_DONE` was set first. In that case the cell belongs
//    to the sender, if it saw `RX_WAKER_SET` when it set `TX_DONE`, and the receiver does not
//    access it again.
// 3. The side that comes last frees the memory: the receiver if it finds `TX_DETACHED`, the sender
//    if it finds `RX_CLOSED`.

use std::fmt;
use std::future::Future;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::clock;
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::park_hooks::{CallerParker, timed_out};
use crate::spin::AdaptiveSpin;
use crate::sync::{AtomicUsize, Ordering, UnsafeCell};

const RX_WAKER_SET: usize = 1;
const TX_DONE: usize = 2;
const VALUE_SENT: usize = 4;
const TX_DETACHED: usize = 8;
const RX_CLOSED: usize = 16;

struct Shared<T> {
    state: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// Creates a channel for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = NonNull::from(Box::leak(Box::new(Shared {
        state: AtomicUsize::new(0),
        waker: UnsafeCell::new(None),
        value: UnsafeCell::new(MaybeUninit::uninit()),
    })));
    let receiver = Receiver {
        shared,
        armed: false,
        taken: false,
    };
    (Sender { shared }, receiver)
}

/// Sends the value. If it is dropped without sending, the receiver gets an error.
pub struct Sender<T> {
    shared: NonNull<Shared<T>>,
}

/// Receives the value. It is also a `Future`.
#[must_use = "a future does nothing until it is awaited"]
pub struct Receiver<T> {
    shared: NonNull<Shared<T>>,
    armed: bool,
    taken: bool,
}

// SAFETY: rules 1 to 3 give the value, the waker and the memory one owner at a time.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above. `&Sender` only reveals whether the channel is closed.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above. `&Receiver` has no methods that access the channel.
unsafe impl<T: Send> Sync for Receiver<T> {}

/// What is left for the sender to do after it has finished.
enum Finish {
    /// Nothing: the receiver owns the rest, or has already freed it.
    Detached,
    /// Free the memory: the receiver has gone meanwhile and taken the value.
    FreesMemory,
    /// Take the value back and free the memory: the receiver had already gone.
    KeepsValue,
}

impl<T> Shared<T> {
    /// Ends the sender's part: sets TX_DONE together with `value`.
    ///
    /// The parameter is a pointer and not `&self`: the receiver may free the memory before this
    /// function returns, and a reference in a parameter must stay valid until then.
    ///
    /// # Safety
    /// The sender exists and calls this only once.
    unsafe fn finish(this: NonNull<Self>, value: usize) -> Finish {
        let this = this.as_ptr();
        // SAFETY: rule 3: the memory is not freed before TX_DETACHED is set below. The reference is
        // not used after that.
        let state = unsafe { &(*this).state };
        let seen = state.load(Ordering::Acquire);
        if seen & (RX_WAKER_SET | RX_CLOSED) == 0 {
            let finished = state.compare_exchange(
                seen,
                seen | TX_DONE | TX_DETACHED | value,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if finished.is_ok() {
                return Finish::Detached;
            }
        }
        let before = state.fetch_or(TX_DONE | value, Ordering::AcqRel);
        if before & RX_CLOSED != 0 {
            return Finish::KeepsValue;
        }
        if before & RX_WAKER_SET != 0 {
            // SAFETY: rule 3, as above.
            let waker = unsafe { &(*this).waker };
            // SAFETY: rule 2.
            let waker = waker.with_mut(|cell| unsafe { (*cell).take() });
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        if state.fetch_or(TX_DETACHED, Ordering::AcqRel) & RX_CLOSED != 0 {
            Finish::FreesMemory
        } else {
            Finish::Detached
        }
    }

    /// # Safety
    /// The caller owns the value by rule 1 and takes it only once.
    unsafe fn take(&self) -> T {
        // SAFETY: guaranteed by the caller.
        self.value
            .with_mut(|value| unsafe { (*value).assume_init_read() })
    }
}

/// # Safety
/// Rule 3: the caller comes last.
unsafe fn free<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: guaranteed by the caller. The memory was allocated as a box.
    drop(unsafe { Box::from_raw(shared.as_ptr()) });
}

impl<T> Sender<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: rule 3: the sender exists, so the memory is not freed.
        unsafe { self.shared.as_ref() }
    }

    /// Sends the value and wakes the receiver. Never waits.
    ///
    /// # Errors
    /// Returns the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        this.shared().value.with_mut(|cell| {
            // SAFETY: rule 1: nobody reads the value before VALUE_SENT is set.
            unsafe { (*cell).write(value) };
        });
        // SAFETY: `ManuallyDrop` keeps the sender's destructor from calling it again.
        match unsafe { Shared::finish(this.shared, VALUE_SENT) } {
            Finish::Detached => Ok(()),
            Finish::FreesMemory => {
                // SAFETY: rule 3.
                unsafe { free(this.shared) };
                Ok(())
            }
            Finish::KeepsValue => {
                // SAFETY: rules 1 and 3.
                unsafe {
                    let value = this.shared().take();
                    free(this.shared);
                    Err(value)
                }
            }
        }
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.shared().state.load(Ordering::Acquire) & RX_CLOSED != 0
    }
}

impl<T> Receiver<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: rule 3: the receiver exists, so the memory is not freed.
        unsafe { self.shared.as_ref() }
    }

    /// Returns the value, if it has been sent.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty) if it has not been sent yet. [`Closed`](TryRecvError::Closed)
    /// if the sender is gone or the value was already received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let state = self.shared().state.load(Ordering::Acquire);
        if state & VALUE_SENT != 0 && !self.taken {
            self.taken = true;
            // SAFETY: rule 1. `taken` records that the value is gone.
            return Ok(unsafe { self.shared().take() });
        }
        if state & TX_DONE != 0 {
            Err(TryRecvError::Closed)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Rule 2: lets the sender wake `waker`. Returns `false` if the sender has finished: check
    /// again.
    fn arm(&mut self, waker: Waker) -> bool {
        if !self.disarm() {
            return false;
        }
        self.shared().waker.with_mut(|cell| {
            // SAFETY: rule 2: RX_WAKER_SET is clear.
            unsafe { *cell = Some(waker) };
        });
        self.armed = self.shared().state.fetch_or(RX_WAKER_SET, Ordering::AcqRel) & TX_DONE == 0;
        self.armed
    }

    /// Rule 2: takes the waker cell back. Returns `false` if the sender has finished.
    fn disarm(&mut self) -> bool {
        !std::mem::take(&mut self.armed)
            || self
                .shared()
                .state
                .fetch_and(!RX_WAKER_SET, Ordering::AcqRel)
                & TX_DONE
                == 0
    }

    /// Waits for the value and returns it.
    ///
    /// # Errors
    /// The sender is gone, or the value was already received.
    pub fn recv(mut self) -> Result<T, RecvError> {
        self.block(None).map_err(|_| RecvError)
    }

    /// Waits at most `timeout` for the value and returns it.
    ///
    /// # Errors
    /// The value was not sent in time, the sender is gone, or the value was already received.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.block(Some(clock::deadline(timeout)))
    }

    /// Waits until `deadline` for the value and returns it.
    ///
    /// # Errors
    /// The value was not sent in time, the sender is gone, or the value was already received.
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.block(Some(clock::at(deadline)))
    }

    fn block(&mut self, deadline: Option<u64>) -> Result<T, RecvTimeoutError> {
        let mut spin = AdaptiveSpin::new();
        let mut in_time = true;
        loop {
            match self.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
                Err(TryRecvError::Empty) if !in_time => {
                    timed_out();
                    return Err(RecvTimeoutError::TimedOut);
                }
                Err(TryRecvError::Empty) => {}
            }
            let caller = CallerParker::current();
            let is_there = || self.shared().state.load(Ordering::Acquire) & TX_DONE != 0;
            if !caller.is_actor() && in_time && spin.until(is_there) {
                continue;
            }
            if self.arm(caller.waker()) {
                in_time = caller.park(deadline);
            }
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match self.try_recv() {
                Ok(value) => return Poll::Ready(Ok(value)),
                Err(TryRecvError::Closed) => return Poll::Ready(Err(RecvError)),
                Err(TryRecvError::Empty) => {}
            }
            if self.arm(context.waker().clone()) {
                return Poll::Pending;
            }
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // SAFETY: this is the sender's destructor, and `send` does not run it.
        match unsafe { Shared::finish(self.shared, 0) } {
            Finish::Detached => {}
            // SAFETY: rule 3. There is no value.
            Finish::FreesMemory | Finish::KeepsValue => unsafe { free(self.shared) },
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared().state.load(Ordering::Acquire);
        let mut value = None;
        loop {
            // The value is taken before RX_CLOSED is set. After that, the sender may free the
            // memory at any time.
            if state & VALUE_SENT != 0 && !std::mem::replace(&mut self.taken, true) {
                // SAFETY: rule 1. `taken` records that the value is gone.
                value = Some(unsafe { self.shared().take() });
            }
            if state & TX_DETACHED != 0 {
                // SAFETY: rule 3.
                unsafe { free(self.shared) };
                break;
            }
            match self.shared().state.compare_exchange(
                state,
                state | RX_CLOSED,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        drop(value);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("oneshot::Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("oneshot::Receiver")
    }
}
