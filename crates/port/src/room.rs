//! Who waits for room in an instance's mailbox, where its bounds say that one waits and is not refused.
//!
//! A waiter says so, then tries once more, then sleeps; who makes room does that first, then looks for waiters. Between the two steps of each is
//! a fence, so that one of them sees the other.

use std::task::Waker;

use thalweg_runtime::{WakeReason, wait};

use crate::call::is_past;
use crate::code::{Code, Failure, would_park};
use crate::parcel::{Parcel, close_unread};
use crate::sync::{AtomicBool, Mutex, Ordering, fence, lock};

/// Those who wait.
#[derive(Default)]
pub(crate) struct Room {
    is_wanted: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Room {
    pub(crate) fn want(&self, waker: Waker) {
        lock(&self.waiting).push(waker);
        self.is_wanted.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// There is some now, or a reason not to wait any more.
    pub(crate) fn is_there(&self) {
        fence(Ordering::SeqCst);
        if self.is_wanted.swap(false, Ordering::AcqRel) {
            let waiting = std::mem::take(&mut *lock(&self.waiting));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until `put` took the parcel, or its call has ended, as at its deadline.
    ///
    /// # Errors
    /// `would_park` where an actor must not wait, `interrupted`, `shut_down`: the parcel comes back.
    pub(crate) fn wait(
        &self,
        mut parcel: Parcel,
        mut put: impl FnMut(Parcel) -> Result<(), Parcel>,
    ) -> Result<(), (Parcel, Failure)> {
        let deadline = parcel.call().core.deadline();
        loop {
            self.want(wait::waker());
            let call = &parcel.call().core;
            if is_past(deadline) {
                call.stop(
                    Code::TimedOut.because("the deadline passed while the call waited for room"),
                );
            }
            if call.has_ended() {
                close_unread(&parcel.data);
                return Ok(());
            }
            parcel = match put(parcel) {
                Ok(()) => return Ok(()),
                Err(parcel) => parcel,
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
            return Err((parcel, why));
        }
    }
}
