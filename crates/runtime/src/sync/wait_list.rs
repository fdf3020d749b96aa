//! A line: those who wait for one thing, in the order in which they came, and what is known beside them under the same lock.
//!
//! 1. Who waits stands in the line with a [`Node`] of its own frame or future, which stays where it is until it has left: nothing is allocated.
//! 2. A node's `links` belong to who holds the line's lock, from the entering until the node was taken out.
//! 3. A gift is what a node is taken out with. It is stored last: from then on the node is its waiter's alone, who may look at it without the
//!    lock and go. So its waker is taken out before, and nobody but the waiter touches a node that has its gift.
//! 4. Who goes without its gift takes its node out under the lock. Under the lock it is certain whether there is a gift.
//! 5. Wakers are woken, cloned and dropped without the lock: they may be anybody's code.

use std::marker::PhantomPinned;
use std::ptr::NonNull;
use std::task::Waker;

use crate::shim::{AtomicU32, Mutex, Ordering, UnsafeCell, lock};

/// What a node is taken out with; each primitive has its own, and none is 0.
pub(super) type Grant = u32;

const NO_GRANT: Grant = 0;

/// One who waits, or may come to.
pub(super) struct Waiter {
    grant: AtomicU32,
    /// How much it waits for; written before it enters.
    pub(super) requested: usize,
    links: UnsafeCell<Links>,
    /// Rule 1: others point here.
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

    /// Rule 3, for its waiter: takes the gift, if it is there.
    #[inline]
    pub(super) fn take_grant(&self) -> Option<Grant> {
        let grant = self.grant.load(Ordering::Acquire);
        if grant == NO_GRANT {
            return None;
        }
        // Nobody else stores here while it is out of the line.
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

/// Those who stand in line, the first one and the last; and a primitive's own state.
pub(super) struct WaitQueue<S> {
    first: Option<NonNull<Waiter>>,
    last: Option<NonNull<Waiter>>,
    pub(super) state: S,
}

// SAFETY: rules 2 and 3: the nodes it points to may be touched by who has it locked, on whatever thread.
unsafe impl<S: Send> Send for WaitQueue<S> {}

pub(super) struct WaitList<S>(Mutex<WaitQueue<S>>);

/// A line that is locked.
pub(super) type WaitListGuard<'a, S> = crate::shim::LockGuard<'a, WaitQueue<S>>;

impl<S> WaitList<S> {
    crate::shim::const_fn! {
        /// Nobody waits.
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

    /// How much the first one waits for.
    pub(super) fn first_requested(&self) -> Option<usize> {
        // SAFETY: rule 1, and it is in this line.
        self.first.map(|first| unsafe { first.as_ref() }.requested)
    }

    /// # Safety
    /// Rule 1; the node is in no line, and leaves this one before it goes.
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
    /// The node is in this line.
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

    /// Rule 4: takes a node out, or the gift that it has. Whose waker it was.
    ///
    /// # Safety
    /// The node has entered this line, and its waiter has not had its gift.
    pub(super) unsafe fn leave(&mut self, waiter: &Waiter) -> (Option<Grant>, Option<Waker>) {
        match waiter.take_grant() {
            Some(grant) => (Some(grant), None),
            // SAFETY: as said; without a gift it is still in here.
            None => (None, unsafe { self.unlink(NonNull::from(waiter)) }),
        }
    }

    /// Has a node's waiter woken by `waker`, or by `spare` where that is not the one it has. `false`: there is a gift, or no spare waker.
    ///
    /// # Safety
    /// The node has entered this line, and its waiter has not had its gift.
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

    /// Takes the first one out, with this.
    pub(super) fn grant_first(&mut self, grant: Grant, wake_list: &mut WakeList) -> bool {
        let Some(first) = self.first else {
            return false;
        };
        // SAFETY: it is in this line.
        let waker = unsafe { self.unlink(first) };
        // SAFETY: rule 1.
        let waiter = unsafe { first.as_ref() };
        #[cfg(loom)]
        waiter.memory.touch();
        // Rule 3.
        waiter.grant.store(grant, Ordering::Release);
        wake_list.add(waker);
        true
    }

    pub(super) fn grant_all(&mut self, grant: Grant, wake_list: &mut WakeList) {
        while self.grant_first(grant, wake_list) {}
    }

    fn with_links<R>(waiter: NonNull<Waiter>, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: rule 1: it is in this line, which the caller has locked, or enters or leaves it.
        let waiter = unsafe { waiter.as_ref() };
        #[cfg(loom)]
        waiter.memory.touch();
        // SAFETY: rule 2.
        waiter.links.with_mut(|links| f(unsafe { &mut *links }))
    }
}

/// Those to wake when the line is not locked any more: rule 5.
#[derive(Default)]
pub(super) struct WakeList {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl WakeList {
    fn add(&mut self, waker: Option<Waker>) {
        if self.first.is_none() {
            self.first = waker;
        } else {
            self.others.extend(waker);
        }
    }

    /// In the order in which they were taken out.
    pub(super) fn wake(self) {
        if let Some(first) = self.first {
            first.wake();
        }
        self.others.into_iter().for_each(Waker::wake);
    }
}
