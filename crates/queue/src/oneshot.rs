//! One value, once: the answer to a question.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::oneshot::channel();
//! std::thread::spawn(move || sender.send(42));
//! assert_eq!(receiver.recv(), Ok(42));
//! ```
//!
//! One word says all; whoever changes it knows from what it was before what is left to do.
//!
//! | bit | set by | meaning |
//! | --- | --- | --- |
//! | `ARMED` | receiver | the waker's place is filled |
//! | `ENDED` | sender | it has sent, or is dropped |
//! | `VALUE` | sender, with `ENDED` | the value is there |
//! | `LEFT` | sender, last | it touches nothing any more |
//! | `GONE` | receiver, last | it touches nothing any more |
//!
//! 1. The value is written before `VALUE` is set (Release) and taken after it was seen (Acquire): by the receiver, or, where `GONE` was set before
//!    `ENDED`, by the sender, which has it back.
//! 2. The waker's place is the receiver's while `ARMED` is clear. It takes it back by clearing `ARMED`, unless `ENDED` came first: then the place is
//!    the sender's, if it saw `ARMED` when it set `ENDED`, and the receiver does not touch it again.
//! 3. Who comes last frees the memory: the receiver where it finds `LEFT`, the sender where it finds `GONE`.

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

const ARMED: usize = 1;
const ENDED: usize = 2;
const VALUE: usize = 4;
const LEFT: usize = 8;
const GONE: usize = 16;

struct Shared<T> {
    state: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A channel for one value.
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

/// Sends the value, or is dropped without: then the receiver is told.
pub struct Sender<T> {
    shared: NonNull<Shared<T>>,
}

/// Receives the value. It is a `Future` too.
#[must_use = "a future does nothing until it is awaited"]
pub struct Receiver<T> {
    shared: NonNull<Shared<T>>,
    armed: bool,
    taken: bool,
}

// SAFETY: rules 1 to 3 give the value, the waker and the memory one owner at a time.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above; `&Sender` gives no more than whether it is closed.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above; `&Receiver` gives nothing.
unsafe impl<T: Send> Sync for Receiver<T> {}

/// How the sender's end went.
enum End {
    /// The receiver has the rest, or had it: nothing here is to be touched again.
    Left,
    /// The receiver went meanwhile, with the value: the memory is the sender's to free.
    Last,
    /// The receiver was gone before: value and memory are the sender's.
    Refused,
}

impl<T> Shared<T> {
    /// The sender's end, with what it adds to ENDED.
    fn end(&self, value: usize) -> End {
        let seen = self.state.load(Ordering::Acquire);
        if seen & (ARMED | GONE) == 0 {
            let ended = self.state.compare_exchange(
                seen,
                seen | ENDED | LEFT | value,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if ended.is_ok() {
                return End::Left;
            }
        }
        let before = self.state.fetch_or(ENDED | value, Ordering::AcqRel);
        if before & GONE != 0 {
            return End::Refused;
        }
        if before & ARMED != 0 {
            // SAFETY: rule 2.
            let waker = self.waker.with_mut(|place| unsafe { (*place).take() });
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        if self.state.fetch_or(LEFT, Ordering::AcqRel) & GONE != 0 {
            End::Last
        } else {
            End::Left
        }
    }

    /// # Safety
    /// The caller owns the value by rule 1, and takes it only once.
    unsafe fn take(&self) -> T {
        // SAFETY: as said.
        self.value
            .with_mut(|value| unsafe { (*value).assume_init_read() })
    }
}

/// # Safety
/// Rule 3: the caller came last.
unsafe fn free<T>(shared: NonNull<Shared<T>>) {
    // SAFETY: as said; it was boxed.
    drop(unsafe { Box::from_raw(shared.as_ptr()) });
}

impl<T> Sender<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: rule 3: the sender is here, so the memory is.
        unsafe { self.shared.as_ref() }
    }

    /// Sends the value and wakes the receiver. Never waits.
    ///
    /// # Errors
    /// The value, if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        let shared = this.shared();
        shared.value.with_mut(|place| {
            // SAFETY: rule 1: nobody reads it before VALUE is set.
            unsafe { (*place).write(value) };
        });
        match shared.end(VALUE) {
            End::Left => Ok(()),
            End::Last => {
                // SAFETY: rule 3.
                unsafe { free(this.shared) };
                Ok(())
            }
            End::Refused => {
                // SAFETY: rules 1 and 3.
                unsafe {
                    let value = shared.take();
                    free(this.shared);
                    Err(value)
                }
            }
        }
    }

    /// Whether nobody will receive.
    pub fn is_closed(&self) -> bool {
        self.shared().state.load(Ordering::Acquire) & GONE != 0
    }
}

impl<T> Receiver<T> {
    fn shared(&self) -> &Shared<T> {
        // SAFETY: rule 3: the receiver is here, so the memory is.
        unsafe { self.shared.as_ref() }
    }

    /// The value, if it is there.
    ///
    /// # Errors
    /// It is not there yet, or will never be: the sender is gone, or it was received.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let state = self.shared().state.load(Ordering::Acquire);
        if state & VALUE != 0 && !self.taken {
            self.taken = true;
            // SAFETY: rule 1, and it is remembered now.
            return Ok(unsafe { self.shared().take() });
        }
        if state & ENDED != 0 {
            Err(TryRecvError::Closed)
        } else {
            Err(TryRecvError::Empty)
        }
    }

    /// Rule 2: lets the sender wake `waker`. `false`: it has ended, look again.
    fn arm(&mut self, waker: Waker) -> bool {
        if !self.disarm() {
            return false;
        }
        self.shared().waker.with_mut(|place| {
            // SAFETY: rule 2: ARMED is clear.
            unsafe { *place = Some(waker) };
        });
        self.armed = self.shared().state.fetch_or(ARMED, Ordering::AcqRel) & ENDED == 0;
        self.armed
    }

    /// Rule 2: takes the place back. `false`: the sender has ended.
    fn disarm(&mut self) -> bool {
        !std::mem::take(&mut self.armed)
            || self.shared().state.fetch_and(!ARMED, Ordering::AcqRel) & ENDED == 0
    }

    /// The value; waits until it is there.
    ///
    /// # Errors
    /// The sender is gone, or the value was received.
    pub fn recv(mut self) -> Result<T, RecvError> {
        self.block(None).map_err(|_| RecvError)
    }

    /// The value; waits for at most `timeout`.
    ///
    /// # Errors
    /// It did not come in time, or never will.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.block(Some(clock::deadline(timeout)))
    }

    /// The value; waits until `deadline`.
    ///
    /// # Errors
    /// It did not come in time, or never will.
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
            let sleeper = CallerParker::current();
            let is_there = || self.shared().state.load(Ordering::Acquire) & ENDED != 0;
            if !sleeper.is_actor() && in_time && spin.until(is_there) {
                continue;
            }
            if self.arm(sleeper.waker()) {
                in_time = sleeper.park(deadline);
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
        match self.shared().end(0) {
            End::Left => {}
            // SAFETY: rule 3. There is no value.
            End::Last | End::Refused => unsafe { free(self.shared) },
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared().state.load(Ordering::Acquire);
        let mut value = None;
        loop {
            // Before GONE is set: then the sender may free it at any time.
            if state & VALUE != 0 && !std::mem::replace(&mut self.taken, true) {
                // SAFETY: rule 1, and it is remembered now.
                value = Some(unsafe { self.shared().take() });
            }
            if state & LEFT != 0 {
                // SAFETY: rule 3.
                unsafe { free(self.shared) };
                break;
            }
            match self.shared().state.compare_exchange(
                state,
                state | GONE,
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
