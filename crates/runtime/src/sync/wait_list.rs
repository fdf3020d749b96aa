//! A wait list: the waiters of one primitive in the order of their arrival, and the state that is
//! protected by the same lock.
//!
//! 1. Each waiter is a [`Waiter`] node inside the frame or the future of the wait. It does not move
//!    while it is in the list, so a wait does not allocate.
//! 2. A node's `links` belong to the holder of the list's lock, from the push until the removal.
//! 3. A node is removed with a grant. The grant is stored last: after that store, the node belongs
//!    to its owner, which may read the grant without the lock and free the node. Therefore the
//!    waker is taken out first, and nobody but the owner touches a node that has a grant.
//! 4. An owner that gives up before its grant removes the node under the lock. Under the lock,
//!    whether a grant has been stored is settled.
//! 5. Wakers are woken, cloned and dropped without the lock, because they may run arbitrary code.

use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::task::Waker;

use thalweg_queue::WakerList;

use crate::shim::{AtomicU32, Mutex, Ordering, UnsafeCell, lock};

/// The reason for which a node is removed from the list. Each primitive defines its own; none is 0.
pub(super) type Grant = u32;

const NO_GRANT: Grant = 0;

/// The list node of one wait. It is in at most one list.
pub(super) struct Waiter {
    grant: AtomicU32,
    /// The number of permits that the waiter requests. Written before the push.
    pub(super) requested: usize,
    links: UnsafeCell<Links>,
    /// Rule 1: the list has pointers to the node.
    _pinned: PhantomPinned,
    #[cfg(loom)]
    memory: crate::shim::Memory,
}

#[derive(Default)]
struct Links {
    waker: Option<Waker>,
    prev: Option<NonNull<Waiter>>,
    next: Option<NonNull<Waiter>>,
}

impl Waiter {
    pub(super) fn new(requested: usize) -> Self {
        Self {
            grant: AtomicU32::new(NO_GRANT),
            requested,
            links: UnsafeCell::new(Links::default()),
            _pinned: PhantomPinned,
            #[cfg(loom)]
            memory: crate::shim::Memory::new(),
        }
    }

    /// Rule 3, for the owner: takes the grant, if there is one.
    #[inline]
    pub(super) fn take_grant(&self) -> Option<Grant> {
        let grant = self.grant.load(Ordering::Acquire);
        if grant == NO_GRANT {
            return None;
        }
        // Nobody else stores here while the node is in no list.
        self.grant.store(NO_GRANT, Ordering::Relaxed);
        Some(grant)
    }
}

#[cfg(loom)]
impl Drop for Waiter {
    fn drop(&mut self) {
        self.memory.free();
    }
}

/// The first and the last node of the list, and the state of the primitive.
pub(super) struct WaitQueue<S> {
    first: Option<NonNull<Waiter>>,
    last: Option<NonNull<Waiter>>,
    pub(super) state: S,
}

// SAFETY: rules 2 and 3: the lock's holder may touch the nodes from any thread.
unsafe impl<S: Send> Send for WaitQueue<S> {}

pub(super) struct WaitList<S>(Mutex<WaitQueue<S>>);

/// The lock guard of a wait list.
pub(super) type WaitListGuard<'a, S> = crate::shim::LockGuard<'a, WaitQueue<S>>;

impl<S> WaitList<S> {
    crate::shim::const_fn! {
        /// An empty list.
        pub(super) fn new(state: S) -> Self {
            Self(Mutex::new(WaitQueue {
                first: None,
                last: None,
                state,
            }))
        }
    }

    pub(super) fn lock(&self) -> WaitListGuard<'_, S> {
        lock(&self.0)
    }
}

impl<S> WaitQueue<S> {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The number of permits that the first waiter requests.
    pub(super) fn first_requested(&self) -> Option<usize> {
        // SAFETY: rule 1, and the node is in this list.
        self.first.map(|first| unsafe { first.as_ref() }.requested)
    }

    /// # Safety
    /// Rule 1. The node is in no list, and leaves this one before it is freed.
    pub(super) unsafe fn push(&mut self, waiter: &Waiter, waker: Waker, at_front: bool) {
        let entering = NonNull::from(waiter);
        let neighbour = if at_front { self.first } else { self.last };
        Self::with_links(entering, |links| {
            links.waker = Some(waker);
            (links.prev, links.next) = if at_front {
                (None, neighbour)
            } else {
                (neighbour, None)
            };
        });
        let (end, other_end) = if at_front {
            (&mut self.first, &mut self.last)
        } else {
            (&mut self.last, &mut self.first)
        };
        *end = Some(entering);
        match neighbour {
            Some(neighbour) => Self::with_links(neighbour, |links| {
                *(if at_front {
                    &mut links.prev
                } else {
                    &mut links.next
                }) = Some(entering);
            }),
            None => *other_end = Some(entering),
        }
    }

    /// # Safety
    /// The node is in this list.
    unsafe fn unlink(&mut self, waiter: NonNull<Waiter>) -> Option<Waker> {
        let links = Self::with_links(waiter, std::mem::take);
        match links.prev {
            Some(prev) => Self::with_links(prev, |of| of.next = links.next),
            None => self.first = links.next,
        }
        match links.next {
            Some(next) => Self::with_links(next, |of| of.prev = links.prev),
            None => self.last = links.prev,
        }
        links.waker
    }

    /// Rule 4: removes a node, or takes its grant. Returns the grant and the node's waker, if any.
    ///
    /// # Safety
    /// The node was pushed to this list, and its owner has not taken a grant since.
    pub(super) unsafe fn leave(&mut self, waiter: &Waiter) -> (Option<Grant>, Option<Waker>) {
        match waiter.take_grant() {
            Some(grant) => (Some(grant), None),
            // SAFETY: by the caller's promise; without a grant, the node is still in the list.
            None => (None, unsafe { self.unlink(NonNull::from(waiter)) }),
        }
    }

    /// Makes `waker` the node's waker; if the present waker is another one, it is replaced by
    /// `spare`, a clone of `waker`. Returns `false` if there is a grant, or if a spare waker is
    /// needed.
    ///
    /// # Safety
    /// The node was pushed to this list, and its owner has not taken a grant since.
    pub(super) unsafe fn update_waker(
        &mut self,
        waiter: &Waiter,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> bool {
        if waiter.grant.load(Ordering::Relaxed) != NO_GRANT {
            return false;
        }
        Self::with_links(NonNull::from(waiter), |links| {
            if links.waker.as_ref().is_some_and(|has| has.will_wake(waker)) {
                return true;
            }
            let has_spare = spare.is_some();
            if has_spare {
                std::mem::swap(&mut links.waker, spare);
            }
            has_spare
        })
    }

    /// Removes the first node with this grant.
    pub(super) fn grant_first(&mut self, grant: Grant, wakers: &mut WakerList) -> bool {
        let Some(first) = self.first else {
            return false;
        };
        // SAFETY: it is in this list.
        let waker = unsafe { self.unlink(first) };
        // SAFETY: rule 1.
        let waiter = unsafe { first.as_ref() };
        #[cfg(loom)]
        waiter.memory.touch();
        // Rule 3.
        waiter.grant.store(grant, Ordering::Release);
        wakers.extend(waker);
        true
    }

    pub(super) fn grant_all(&mut self, grant: Grant, wakers: &mut WakerList) {
        while self.grant_first(grant, wakers) {}
    }

    fn with_links<R>(waiter: NonNull<Waiter>, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: rule 1: the node is in this list, which the caller has locked, or is being added
        // or removed.
        let waiter = unsafe { waiter.as_ref() };
        #[cfg(loom)]
        waiter.memory.touch();
        // SAFETY: rule 2.
        waiter.links.with_mut(|links| f(unsafe { &mut *links }))
    }
}
