//! `global_lock`: one slot behind one lock. The submitter holds the lock until the consumer has
//! accepted.
//!
//! This is the framework's first ingress. The slot is empty at each submission, so `edge` wakes as
//! often as `always`. As in the original, the acceptance is signalled through an eventfd: with the
//! wake-up this makes two thread switches per request.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use super::bell::{Bell, Rule};
use super::path::{Found, Opened, Refused, Structure};
use super::request::{Request, Submitted};

/// See the module.
#[derive(Debug)]
pub struct GlobalLock {
    lock: Mutex<()>,
    request: AtomicPtr<Request>,
    accepted: Bell,
}

impl Structure for GlobalLock {
    type Entry = ();
    type Exit = ();

    fn open(producers: usize) -> Opened<Self, (), ()> {
        let slot = Self {
            lock: Mutex::new(()),
            request: AtomicPtr::new(ptr::null_mut()),
            accepted: Bell::new()?,
        };
        Ok((slot, vec![(); producers], ()))
    }

    #[inline]
    unsafe fn push<R: Rule>(
        &self,
        (): &mut (),
        Submitted(request): Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.request.store(request.as_ptr(), Ordering::Release);
        let woke = R::published(bell, true);
        self.accepted.wait();
        drop(held);
        Ok(woke)
    }

    fn drain<R: Rule>(&self, (): &mut (), run: &mut impl FnMut(&Request)) -> Found {
        let taken = self.request.swap(ptr::null_mut(), Ordering::Acquire);
        let Some(request) = NonNull::new(taken) else {
            return Found::Nothing;
        };
        self.accepted.ring();
        // SAFETY: the request was submitted and is run only here, so it is alive until `run`
        // returns.
        run(unsafe { request.as_ref() });
        Found::Some
    }
}
