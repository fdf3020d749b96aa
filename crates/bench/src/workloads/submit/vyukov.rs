//! `vyukov`: Dmitry Vyukov's intrusive queue of many producers and one consumer ("Intrusive MPSC node-based queue", 1024cores).
//!
//! 1. A producer swaps in its request as the newest, then links the previous newest to it. Between
//!    the two steps the chain is broken: the consumer detects this ([`Found::Unlinked`]) and must
//!    not sleep.
//! 2. A stub keeps the chain from ever being empty. The consumer inserts it again when it is about
//!    to take the last request.
//! 3. The edge: a producer that finds the stub as the newest made an empty queue non-empty. It also
//!    finds the stub there when the stub has just been inserted behind other requests, and then
//!    wakes a consumer that is awake.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::bell::{Bell, Rule};
use super::path::{Found, Opened, Refused, Structure};
use super::request::{Request, Submitted};

/// On its own cache lines, because every producer writes it.
#[repr(align(128))]
#[derive(Debug)]
struct Newest(AtomicPtr<Request>);

/// See the module. The stub has its own allocation, so that its address stays the same.
#[derive(Debug)]
pub struct Vyukov {
    newest: Newest,
    stub: Box<Request>,
}

/// The oldest request, which only the consumer uses.
#[derive(Debug)]
pub struct Oldest(*mut Request);

// SAFETY: it points into the queue, whose requests may be read on any thread.
unsafe impl Send for Oldest {}

impl Vyukov {
    fn stub(&self) -> *mut Request {
        (&raw const *self.stub).cast_mut()
    }

    /// Links a request; returns whether the stub was the newest.
    ///
    /// # Safety
    /// The request must be alive until it is taken out, and must be in the queue only once.
    #[inline]
    unsafe fn link(&self, request: *mut Request) -> bool {
        // SAFETY: the caller guarantees that the request is alive.
        unsafe { &*request }
            .next
            .store(std::ptr::null_mut(), Ordering::Relaxed);
        let before = self.newest.0.swap(request, Ordering::AcqRel);
        // SAFETY: a request that has no successor is never taken out, so the previous one is alive.
        unsafe { &*before }.next.store(request, Ordering::Release);
        before == self.stub()
    }

    fn next_of(request: *mut Request) -> *mut Request {
        // SAFETY: it is either in the queue and not taken out, or the stub; both are alive.
        unsafe { &*request }.next.load(Ordering::Acquire)
    }

    fn pop(&self, oldest: &mut *mut Request) -> Result<*mut Request, Found> {
        let stub = self.stub();
        let mut next = Self::next_of(*oldest);
        if *oldest == stub {
            if next.is_null() {
                let empty = self.newest.0.load(Ordering::Acquire) == stub;
                return Err(if empty {
                    Found::Nothing
                } else {
                    Found::Unlinked
                });
            }
            *oldest = next;
            next = Self::next_of(next);
        }
        if next.is_null() {
            if self.newest.0.load(Ordering::Acquire) != *oldest {
                return Err(Found::Unlinked);
            }
            // SAFETY: the stub lives as long as the queue, and the consumer has taken it out
            // before.
            unsafe { self.link(stub) };
            next = Self::next_of(*oldest);
            if next.is_null() {
                return Err(Found::Unlinked);
            }
        }
        Ok(std::mem::replace(oldest, next))
    }
}

impl Structure for Vyukov {
    type Entry = ();
    type Exit = Oldest;

    fn open(producers: usize) -> Opened<Self, (), Oldest> {
        let queue = Self {
            newest: Newest(AtomicPtr::default()),
            stub: Box::new(Request::blank()),
        };
        queue.newest.0.store(queue.stub(), Ordering::Relaxed);
        let oldest = Oldest(queue.stub());
        Ok((queue, vec![(); producers], oldest))
    }

    #[inline]
    unsafe fn push<R: Rule>(
        &self,
        (): &mut (),
        Submitted(request): Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        // SAFETY: the caller upholds the contract of `Ingress::submit`.
        let was_empty = unsafe { self.link(request.as_ptr()) };
        Ok(R::published(bell, was_empty))
    }

    fn drain<R: Rule>(&self, oldest: &mut Oldest, run: &mut impl FnMut(&Request)) -> Found {
        let mut found = Found::Nothing;
        loop {
            match self.pop(&mut oldest.0) {
                Ok(request) => {
                    // SAFETY: the request was submitted and is run only here, so it is alive until
                    // `run` returns.
                    run(unsafe { &*request });
                    found = Found::Some;
                }
                Err(_) if found == Found::Some => return found,
                Err(nothing) => return nothing,
            }
        }
    }
}
