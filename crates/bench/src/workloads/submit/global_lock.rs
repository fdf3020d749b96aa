//! `global_lock`: one slot behind one lock. The submitter holds the lock until the consumer has
//! accepted.
//!
//! This is the framework's first ingress. The slot is empty at each submission, so `edge` wakes as
//! often as `always`. As in the original, the acceptance is signalled through an eventfd: with the
//! wake-up this makes two thread switches per request.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::bell::{Bell, Rule};
use super::path::{Entry, Exit, Found, Refused, Structure};
use super::request::{Request, Submitted};

/// See the module.
#[derive(Debug)]
pub struct GlobalLock;

#[derive(Debug)]
struct Slot {
    lock: Mutex<()>,
    request: AtomicPtr<Request>,
    accepted: Bell,
}

/// A producer's end.
#[derive(Debug)]
pub struct SlotEntry(Arc<Slot>);

/// The consumer's end.
#[derive(Debug)]
pub struct SlotExit(Arc<Slot>);

impl Structure for GlobalLock {
    type Entry = SlotEntry;
    type Exit = SlotExit;

    fn open(producers: usize) -> io::Result<(Vec<SlotEntry>, SlotExit)> {
        let slot = Arc::new(Slot {
            lock: Mutex::new(()),
            request: AtomicPtr::new(ptr::null_mut()),
            accepted: Bell::new()?,
        });
        let entries = (0..producers)
            .map(|_| SlotEntry(Arc::clone(&slot)))
            .collect();
        Ok((entries, SlotExit(slot)))
    }
}

impl Entry for SlotEntry {
    #[inline]
    unsafe fn push<R: Rule>(
        &mut self,
        Submitted(request): Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        let slot = &*self.0;
        let held = slot.lock.lock().unwrap_or_else(PoisonError::into_inner);
        slot.request.store(request.as_ptr(), Ordering::Release);
        let woke = R::published(bell, true);
        slot.accepted.wait();
        drop(held);
        Ok(woke)
    }
}

impl Exit for SlotExit {
    fn drain<R: Rule>(&mut self, run: &mut impl FnMut(&Request)) -> Found {
        let taken = self.0.request.swap(ptr::null_mut(), Ordering::Acquire);
        let Some(request) = NonNull::new(taken) else {
            return Found::Nothing;
        };
        self.0.accepted.ring();
        // SAFETY: the request was submitted and is run only here, so it is alive until `run`
        // returns.
        run(unsafe { request.as_ref() });
        Found::Some
    }
}
