//! Who waits for room in an instance's mailbox, where its bounds say that one waits and is not refused.
//!
//! A waiter says so, then tries once more, then sleeps; who makes room does that first, then looks for waiters. Between the two steps of each is
//! a fence, so that one of them sees the other.

use std::task::Waker;

use thalweg_runtime::{WakeReason, wait};

use crate::call::is_past;
use crate::code::{Code, Failure, would_park};
use crate::completion::{CallBuffer, close_unread_streams};
use crate::sync::{AtomicBool, Mutex, Ordering, fence, lock};

/// Those who wait.
#[derive(Default)]
pub(crate) struct MailboxWaiters {
    has_waiters: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl MailboxWaiters {
    pub(crate) fn register(&self, waker: Waker) {
        lock(&self.wakers).push(waker);
        self.has_waiters.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// There is some now, or a reason not to wait any more.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        if self.has_waiters.swap(false, Ordering::AcqRel) {
            let wakers = std::mem::take(&mut *lock(&self.wakers));
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until `put` took the parcel, or its call has ended, as at its deadline.
    ///
    /// # Errors
    /// `would_park` where an actor must not wait, `interrupted`, `shut_down`: the parcel comes back.
    pub(crate) fn wait(
        &self,
        mut buffer: CallBuffer,
        mut put: impl FnMut(CallBuffer) -> Result<(), CallBuffer>,
    ) -> Result<(), (CallBuffer, Failure)> {
        let deadline = buffer.call().core.deadline();
        loop {
            self.register(wait::waker());
            let call = &buffer.call().core;
            if is_past(deadline) {
                call.stop(
                    Code::TimedOut.because("the deadline passed while the call waited for room"),
                );
            }
            if call.has_ended() {
                close_unread_streams(&buffer.data);
                return Ok(());
            }
            buffer = match put(buffer) {
                Ok(()) => return Ok(()),
                Err(buffer) => buffer,
            };
            let why = if wait::can_park() {
                match wait::park(Some(deadline)) {
                    WakeReason::Woken | WakeReason::TimedOut => continue,
                    WakeReason::Interrupted => Code::Interrupted.because("a signal arrived"),
                    WakeReason::Stopping => Code::ShutDown.because("the runtime stops"),
                }
            } else {
                would_park()
            };
            return Err((buffer, why));
        }
    }
}
