//! `mutex_shards`: sixteen FIFOs, each behind a mutex. A producer always uses the same one.
//!
//! This is the ingress of the framework that the workload comes from, with its rules. A producer
//! appends to its shard under the shard's lock. The edge belongs to the shard, so one idle consumer
//! may be woken up to sixteen times. The consumer takes the shards' lists one after another,
//! splices them into one, and runs that.
//!
//! Two details are cheaper than in the original: later producers do not move the others to new
//! shards, and the lock is `std`'s, which is one word and makes no system call when it is free.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use super::bell::{Bell, Rule};
use super::path::{Found, Opened, Refused, Structure};
use super::request::{Request, Submitted};

/// The same number as in the original.
const SHARDS: usize = 16;

/// A chain of requests, oldest first; both pointers are null if it is empty.
#[derive(Debug)]
struct Chain {
    oldest: *mut Request,
    newest: *mut Request,
}

// SAFETY: it points to requests that the owner of the chain may link and read, on any thread.
unsafe impl Send for Chain {}

impl Chain {
    const EMPTY: Self = Self {
        oldest: ptr::null_mut(),
        newest: ptr::null_mut(),
    };

    /// Appends `other`, which must not be empty.
    fn append(&mut self, other: &Self) {
        if self.newest.is_null() {
            self.oldest = other.oldest;
        } else {
            // SAFETY: a request in a chain was submitted and has not been run, so it is alive.
            unsafe { &*self.newest }
                .next
                .store(other.oldest, Ordering::Relaxed);
        }
        self.newest = other.newest;
    }
}

/// On its own two cache lines, like the original's padding.
#[repr(align(128))]
#[derive(Debug)]
struct Shard(Mutex<Chain>);

impl Shard {
    fn with<A>(&self, work: impl FnOnce(&mut Chain) -> A) -> A {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module.
#[derive(Debug)]
pub struct MutexShards([Shard; SHARDS]);

impl Structure for MutexShards {
    /// The number of the producer's shard.
    type Entry = usize;
    type Exit = ();

    fn open(producers: usize) -> Opened<Self, usize, ()> {
        let shards = Self([const { Shard(Mutex::new(Chain::EMPTY)) }; SHARDS]);
        let entries = (0..producers).map(|producer| producer % SHARDS);
        Ok((shards, entries.collect(), ()))
    }

    #[inline]
    unsafe fn push<R: Rule>(
        &self,
        mine: &mut usize,
        Submitted(request): Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        let one = Chain {
            oldest: request.as_ptr(),
            newest: request.as_ptr(),
        };
        let was_empty = self.0[*mine].with(|chain| {
            let was_empty = chain.newest.is_null();
            chain.append(&one);
            was_empty
        });
        Ok(R::published(bell, was_empty))
    }

    fn drain<R: Rule>(&self, (): &mut (), run: &mut impl FnMut(&Request)) -> Found {
        let mut all = Chain::EMPTY;
        for shard in &self.0 {
            shard.with(|chain| {
                if !chain.oldest.is_null() {
                    all.append(chain);
                    *chain = Chain::EMPTY;
                }
            });
        }
        let Some(mut next) = NonNull::new(all.oldest) else {
            return Found::Nothing;
        };
        loop {
            // SAFETY: the request was submitted and is run only here, so it is alive until `run`
            // returns.
            let request = unsafe { next.as_ref() };
            let after = request.next.load(Ordering::Relaxed);
            run(request);
            match NonNull::new(after) {
                Some(after) => next = after,
                None => return Found::Some,
            }
        }
    }
}
