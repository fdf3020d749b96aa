//! One value, once: the answer to a question.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::oneshot::channel();
//! std::thread::spawn(move || sender.send(42));
//! assert_eq!(receiver.recv(), Ok(42));
//! ```
//!
//! 1. The state is EMPTY until exactly one of three things happens: the value is SENT, the SENDER_GONE without it, or the RECEIVER_GONE.
//! 2. The sender writes the value before it sets SENT (Release); the receiver reads it after it saw SENT (Acquire), once.
//! 3. A sender that finds RECEIVER_GONE has the value back; a receiver that leaves and finds SENT drops the value.
//! 4. The receiver sleeps by the [`gate`](crate::gate)'s protocol.

use std::fmt;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::clock;
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::gate::Gate;
use crate::sleeper::Sleeper;
use crate::spin::Spin;
use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

const EMPTY: usize = 0;
const SENT: usize = 1;
const SENDER_GONE: usize = 2;
const RECEIVER_GONE: usize = 3;
const TAKEN: usize = 4;

struct Shared<T> {
    state: AtomicUsize,
    gate: Gate,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: rules 1 and 2 give the value one owner at a time.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// A channel for one value.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: AtomicUsize::new(EMPTY),
        gate: Gate::new(),
        value: UnsafeCell::new(MaybeUninit::uninit()),
    });
    let sender = Sender {
        shared: Arc::clone(&shared),
    };
    (sender, Receiver { shared })
}

/// Sends the value, or is dropped without: then the receiver is told.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Receives the value. It is a `Future` too.
#[must_use = "a future does nothing until it is awaited"]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Shared<T> {
    /// What ends EMPTY, by the sender; `false` if the receiver was faster.
    fn settle(&self, state: usize) -> bool {
        let settled = self
            .state
            .compare_exchange(EMPTY, state, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if settled {
            self.gate.signal();
        }
        settled
    }

    /// # Safety
    /// The caller owns the value by rule 2 or 3, and takes it only once.
    unsafe fn take(&self) -> T {
        // SAFETY: as said.
        self.value
            .with_mut(|value| unsafe { (*value).assume_init_read() })
    }
}

impl<T> Sender<T> {
    /// Sends the value and wakes the receiver. Never waits.
    ///
    /// # Errors
    /// The value, if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        self.shared.value.with_mut(|place| {
            // SAFETY: rule 1: nobody reads it before SENT is set.
            unsafe { (*place).write(value) };
        });
        if self.shared.settle(SENT) {
            return Ok(());
        }
        // SAFETY: rule 3.
        Err(unsafe { self.shared.take() })
    }

    /// Whether nobody will receive.
    pub fn is_closed(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) == RECEIVER_GONE
    }
}

impl<T> Receiver<T> {
    /// The value, if it is there.
    ///
    /// # Errors
    /// It is not there yet, or will never be: the sender is gone, or it was received.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.shared.state.load(Ordering::Acquire) {
            EMPTY => Err(TryRecvError::Empty),
            SENT => {
                self.shared.state.store(TAKEN, Ordering::Relaxed);
                // SAFETY: rule 2, and the state says now that it was taken.
                Ok(unsafe { self.shared.take() })
            }
            _ => Err(TryRecvError::Closed),
        }
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
        let mut spin = Spin::new();
        let mut in_time = true;
        loop {
            match self.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
                Err(TryRecvError::Empty) if !in_time => return Err(RecvTimeoutError::TimedOut),
                Err(TryRecvError::Empty) => {}
            }
            let sleeper = Sleeper::current();
            let is_there = || self.shared.state.load(Ordering::Acquire) != EMPTY;
            if !sleeper.is_hosted() && in_time && spin.until(is_there) {
                continue;
            }
            self.shared.gate.arm(sleeper.waker());
            if self.shared.state.load(Ordering::Acquire) == EMPTY {
                in_time = sleeper.park(deadline);
            }
            self.shared.gate.disarm();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for armed in [false, true] {
            if armed {
                self.shared.gate.arm(context.waker().clone());
            }
            match self.try_recv() {
                Ok(value) => return Poll::Ready(Ok(value)),
                Err(TryRecvError::Closed) => return Poll::Ready(Err(RecvError)),
                Err(TryRecvError::Empty) => {}
            }
        }
        Poll::Pending
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.settle(SENDER_GONE);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.gate.disarm();
        if self.shared.state.swap(RECEIVER_GONE, Ordering::AcqRel) == SENT {
            // SAFETY: rule 3.
            drop(unsafe { self.shared.take() });
        }
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
