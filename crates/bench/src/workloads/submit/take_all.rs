//! `take_all`: a stack of many producers (R. K. Treiber, "Systems programming: coping with
//! parallelism", 1986). Its consumer takes the whole stack and reverses it.
//!
//! One word is the whole state, so there is no ABA problem and no half-linked request. A producer
//! that finds it null made an empty stack non-empty: the edge is exact.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::bell::{Bell, Rule};
use super::path::{Found, Opened, Refused, Structure};
use super::request::{Request, Submitted};

/// The newest request. On its own cache lines, because all threads write it.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct TakeAll(AtomicPtr<Request>);

impl Structure for TakeAll {
    type Entry = ();
    type Exit = ();

    fn open(producers: usize) -> Opened<Self, (), ()> {
        Ok((Self::default(), vec![(); producers], ()))
    }

    #[inline]
    unsafe fn push<R: Rule>(
        &self,
        (): &mut (),
        Submitted(request): Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        let newest = &self.0;
        let mut before = newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the caller keeps the request alive.
            unsafe { request.as_ref() }
                .next
                .store(before, Ordering::Relaxed);
            match newest.compare_exchange_weak(
                before,
                request.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(R::published(bell, before.is_null())),
                Err(now) => before = now,
            }
        }
    }

    fn drain<R: Rule>(&self, (): &mut (), run: &mut impl FnMut(&Request)) -> Found {
        let newest = &self.0;
        // Check first, so that an idle consumer does not take the cache line from the producers.
        if newest.load(Ordering::Relaxed).is_null() {
            return Found::Nothing;
        }
        let mut rest = newest.swap(ptr::null_mut(), Ordering::Acquire);
        let mut oldest = ptr::null_mut();
        while !rest.is_null() {
            // SAFETY: the whole chain was removed here, and none of it was run.
            let link = unsafe { &(*rest).next };
            let before = link.load(Ordering::Relaxed);
            link.store(oldest, Ordering::Relaxed);
            oldest = rest;
            rest = before;
        }
        while !oldest.is_null() {
            // SAFETY: as above; the request is alive until `run` returns.
            let request = unsafe { &*oldest };
            oldest = request.next.load(Ordering::Relaxed);
            run(request);
        }
        Found::Some
    }
}
