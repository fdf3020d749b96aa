//! Submissions that wait for capacity in an instance's mailbox, if its bounds allow waiting.
//!
//! 1. A waiter registers, then tries once more to push, then sleeps.
//! 2. A thread that frees capacity does that first, and then looks for waiters.
//! 3. Between the two steps of each there is a fence, so at least one of them sees the other.

use std::task::Waker;

use thalweg_queue::WakerList;
use thalweg_runtime::{WakeReason, wait};

use crate::call::is_past;
use crate::code::{Code, Failure, would_park};
use crate::completion::CallBuffer;
use crate::message_handles::close_unread_streams;
use crate::sync::{AtomicBool, Mutex, Ordering, fence, lock};

/// The list of waiters.
#[derive(Default)]
pub(crate) struct MailboxWaiters {
    has_waiters: AtomicBool,
    wakers: Mutex<WakerList>,
}

impl MailboxWaiters {
    pub(crate) fn register(&self, waker: Waker) {
        lock(&self.wakers).insert(waker);
        self.has_waiters.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Wakes all waiters: there is capacity, or another reason to stop waiting.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        if self.has_waiters.swap(false, Ordering::AcqRel) {
            let wakers = lock(&self.wakers).take();
            wakers.wake();
        }
    }

    /// Waits until `put` accepts the buffer or the call has ended, for example at its deadline.
    ///
    /// # Errors
    /// `would_park` where an actor must not wait, `interrupted`, `shut_down`. The buffer is
    /// returned.
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
                    Code::TimedOut
                        .because("the deadline passed while the call waited for capacity"),
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
