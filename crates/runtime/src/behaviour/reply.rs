//! The reply to a call: one value from the actor's turn to the caller, which waits for it.
//!
//! 1. The cell has two owners, the sender and the receiver. The state is `WAITING` until the sender
//!    replaces it by `SENT` or `DROPPED`, or the receiver by `ABANDONED`, each with one swap. A
//!    sender that finds `ABANDONED`, and a receiver that finds one of the other two, is the last
//!    owner, and frees the cell.
//! 2. The value is written before `SENT` is set (Release) and taken after it is seen (Acquire).
//! 3. The waker belongs to the sender from the start. The sender wakes the caller after its swap,
//!    when it does not use the cell any more. If the caller has found the reply by then, that
//!    wake-up is a spurious one for its next wait.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;
use std::task::Waker;

use thalweg_queue::{AdaptiveSpin, oneshot};

use super::CallError;
use crate::shim::{AtomicU32, Ordering, UnsafeCell};
use crate::task::blocks;
use crate::wake_reason::WakeReason;
use crate::{wait, worker};

/// Receives the reply to a message.
pub(super) trait ReplyTo<R>: Send + 'static {
    /// Whether the sender of the message waits for the reply.
    const IS_AWAITED: bool = true;

    fn send(self, value: R);
}

/// The reply to a cast is dropped.
impl<R> ReplyTo<R> for () {
    const IS_AWAITED: bool = false;

    fn send(self, _: R) {}
}

impl<R: Send + 'static> ReplyTo<R> for oneshot::Sender<R> {
    fn send(self, value: R) {
        // The future of the call may have been dropped.
        let _ = self.send(value);
    }
}

impl<R: Send + 'static> ReplyTo<R> for ReplySender<R> {
    #[inline(always)]
    fn send(self, value: R) {
        self.send(value);
    }
}

const WAITING: u32 = 0;
const SENT: u32 = 1;
const DROPPED: u32 = 2;
const ABANDONED: u32 = 3;

struct ReplyCell<R> {
    state: AtomicU32,
    value: UnsafeCell<MaybeUninit<R>>,
    #[cfg(loom)]
    memory: crate::shim::Memory,
}

/// Sends the reply. If it is dropped instead, the caller learns that there is none.
pub(crate) struct ReplySender<R> {
    cell: NonNull<ReplyCell<R>>,
    /// Taken once, by `finish`.
    waker: ManuallyDrop<Waker>,
}

/// Waits for the reply. If it is dropped, the reply is dropped too.
pub(crate) struct ReplyReceiver<R> {
    cell: NonNull<ReplyCell<R>>,
}

// SAFETY: by rules 1 and 2, the value and the memory have one owner at a time.
unsafe impl<R: Send> Send for ReplySender<R> {}
// SAFETY: as above.
unsafe impl<R: Send> Send for ReplyReceiver<R> {}

/// Creates the two ends. `waker` wakes the caller.
pub(crate) fn reply_cell<R>(waker: Waker) -> (ReplySender<R>, ReplyReceiver<R>) {
    let cell = blocks::allocate::<ReplyCell<R>>();
    // SAFETY: the memory is for this type.
    unsafe {
        cell.write(ReplyCell {
            state: AtomicU32::new(WAITING),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            #[cfg(loom)]
            memory: crate::shim::Memory::new(),
        });
    }
    let waker = ManuallyDrop::new(waker);
    (ReplySender { cell, waker }, ReplyReceiver { cell })
}

impl<R> ReplyCell<R> {
    /// # Safety
    /// Rule 1: the caller is an owner while the reference exists.
    #[inline(always)]
    unsafe fn of<'a>(this: NonNull<Self>) -> &'a Self {
        // SAFETY: the caller's contract.
        let cell = unsafe { this.as_ref() };
        #[cfg(loom)]
        cell.memory.touch();
        cell
    }

    /// # Safety
    /// Rule 1: the caller is the last owner.
    #[inline(always)]
    unsafe fn free(this: NonNull<Self>) {
        // The memory is leaked, so that loom detects a later use.
        #[cfg(loom)]
        // SAFETY: the caller's contract.
        unsafe { this.as_ref() }.memory.free();
        #[cfg(not(loom))]
        // SAFETY: the caller's contract. The cell has nothing to drop.
        unsafe {
            blocks::free(this);
        }
    }

    /// Takes the value and frees the cell.
    ///
    /// # Safety
    /// Rules 1 and 2: the caller is the last owner, and `SENT` was set.
    unsafe fn take(this: NonNull<Self>) -> R {
        // SAFETY: the caller's contract.
        unsafe {
            let place = &Self::of(this).value;
            let value = place.with_mut(|value| (*value).assume_init_read());
            Self::free(this);
            value
        }
    }
}

impl<R> ReplySender<R> {
    pub(crate) fn send(self, value: R) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: rules 1 and 2: the cell exists until the swap, and nobody reads the value before
        // it.
        unsafe {
            let place = &ReplyCell::of(this.cell).value;
            place.with_mut(|place| (*place).write(value));
        }
        // SAFETY: the destructor does not run.
        if unsafe { this.finish(SENT) } {
            // SAFETY: rule 1.
            drop(unsafe { ReplyCell::take(this.cell) });
        }
    }

    /// Sets the state, and wakes the caller. Returns `true` if the sender is the last owner.
    ///
    /// # Safety
    /// It is called once.
    #[inline(always)]
    unsafe fn finish(&mut self, state: u32) -> bool {
        // SAFETY: the caller's contract.
        let waker = unsafe { ManuallyDrop::take(&mut self.waker) };
        // SAFETY: rule 1: the sender owns the cell until here.
        let cell = unsafe { ReplyCell::of(self.cell) };
        let is_last = cell.state.swap(state, Ordering::AcqRel) == ABANDONED;
        if is_last {
            drop(waker);
        } else {
            waker.wake();
        }
        is_last
    }
}

impl<R> Drop for ReplySender<R> {
    fn drop(&mut self) {
        // SAFETY: this is the destructor, and `send` does not run it.
        if unsafe { self.finish(DROPPED) } {
            // SAFETY: rule 1. There is no value.
            unsafe { ReplyCell::free(self.cell) };
        }
    }
}

impl<R> ReplyReceiver<R> {
    fn state(&self) -> u32 {
        // SAFETY: rule 1: the receiver owns the cell.
        unsafe { ReplyCell::of(self.cell) }
            .state
            .load(Ordering::Acquire)
    }

    /// Waits for the reply until `deadline`. The caller is the one that the waker wakes.
    /// `is_later`: the deadline is more than a few turns of other actors away, so it is not
    /// compared with the clock first.
    ///
    /// # Errors
    /// There is no reply, or not in time.
    pub(crate) fn recv(self, deadline: u64, is_later: bool) -> Result<R, CallError> {
        let mut spin = AdaptiveSpin::new();
        loop {
            let state = self.state();
            if state != WAITING {
                return self.finish(state);
            }
            let woke = match wait::actor() {
                Some((worker, task)) => {
                    if worker.scheduler.is_stopping() {
                        worker.before_wait(task);
                    }
                    if is_later {
                        worker.park_until_later(deadline)
                    } else {
                        wait::park(Some(deadline))
                    }
                }
                None if spin.until(|| self.state() != WAITING) => continue,
                None => wait::park(Some(deadline)),
            };
            if let WakeReason::TimedOut | WakeReason::Stopping = woke {
                return self.give_up();
            }
        }
    }

    /// Takes the reply. `state` is the sender's.
    #[inline(always)]
    fn finish(self, state: u32) -> Result<R, CallError> {
        let this = ManuallyDrop::new(self);
        if state == SENT {
            // SAFETY: rule 1.
            return Ok(unsafe { ReplyCell::take(this.cell) });
        }
        // SAFETY: rule 1. There is no value.
        unsafe { ReplyCell::free(this.cell) };
        Err(CallError::Ended)
    }

    #[cold]
    fn give_up(self) -> Result<R, CallError> {
        let state = self.state();
        if state != WAITING {
            return self.finish(state);
        }
        drop(self);
        worker::raise_if_due();
        Err(CallError::TimedOut)
    }
}

impl<R> Drop for ReplyReceiver<R> {
    fn drop(&mut self) {
        // SAFETY: rule 1: the receiver owns the cell until the swap.
        let before = unsafe { ReplyCell::of(self.cell) }
            .state
            .swap(ABANDONED, Ordering::AcqRel);
        match before {
            WAITING => {}
            // SAFETY: rule 1.
            SENT => drop(unsafe { ReplyCell::take(self.cell) }),
            // SAFETY: rule 1. There is no value.
            _ => unsafe { ReplyCell::free(self.cell) },
        }
    }
}
