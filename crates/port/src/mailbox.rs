//! The mailbox of an instance. Any thread pushes calls into it, and the instance's turns take them
//! out. A push takes no lock.
//!
//! ```text
//! push --> head: newest -> .. -> oldest          waiting: oldest -> .. -> newest --> take
//!          two bits: SCHEDULED, ATTENTION          (under a lock, usually empty)
//! ```
//!
//! 1. `head` points to the newest call, and each call to the one that was pushed before it. A push
//!    links its call to the head that it saw and replaces the head by CAS (Release). A taker
//!    replaces the head by an empty list (Acquire) and then owns the whole list, so there is no ABA
//!    problem. It reverses the list: calls are taken in the order of their pushes.
//! 2. `places` is the number of calls in the mailbox. A push reserves its place first, so the
//!    capacity is exact. A call that leaves the mailbox frees its place.
//! 3. `SCHEDULED` is set while a turn is scheduled or running. The thread that sets it schedules the
//!    turn, so there is one wake-up each time the idle instance gets work. Only the turn clears it,
//!    by a CAS that fails if there is a call or `ATTENTION`. At most one turn exists, so the service
//!    is never entered twice. A thread that [claims](Mailbox::claim_turn) the bit of an idle, empty
//!    mailbox is the turn itself.
//! 4. `ATTENTION` reports other work for the turn, and calls in `waiting`. A thread stores the work
//!    first and sets the bit afterwards (Release). The turn clears the bit (Acquire) and then looks.
//! 5. Calls in `waiting` are older than those of the head. A thread that moves calls there holds the
//!    lock, and sets `ATTENTION` with the CAS that takes them. A turn that does not find the bit
//!    therefore finds the oldest call in the head, and needs no lock.

use std::mem::ManuallyDrop;
use std::ptr;

use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, lock};

/// An owned value that can be in a [`List`], through its node.
///
/// # Safety
/// `from_node` returns the value that `into_node` was called for.
pub(crate) unsafe trait Linked: Sized {
    type Node;

    fn into_node(self) -> *mut Self::Node;

    /// # Safety
    /// The pointer came from `into_node`, and the caller owns the value.
    unsafe fn from_node(node: *mut Self::Node) -> Self;

    /// The link to the next node. It belongs to the list that contains the value.
    fn next(node: &Self::Node) -> *mut Self::Node;
    fn set_next(node: &Self::Node, next: *mut Self::Node);
}

/// A list that links its values with each other, first in, first out. It allocates nothing.
pub(crate) struct List<T: Linked> {
    first: *mut T::Node,
    /// Valid unless the list is empty.
    last: *mut T::Node,
    len: usize,
}

// SAFETY: the list owns its values.
unsafe impl<T: Linked + Send> Send for List<T> {}

impl<T: Linked> Default for List<T> {
    fn default() -> Self {
        Self {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
            len: 0,
        }
    }
}

impl<T: Linked> List<T> {
    /// The list of a mailbox's head, whose first value is the newest.
    ///
    /// # Safety
    /// The caller owns the values.
    unsafe fn from_newest(newest: *mut T::Node) -> Self {
        let mut list = Self {
            last: newest,
            ..Self::default()
        };
        let mut rest = newest;
        // SAFETY: the values belong to the caller.
        while let Some(node) = unsafe { rest.as_ref() } {
            let older = T::next(node);
            T::set_next(node, list.first);
            (list.first, list.len) = (rest, list.len + 1);
            rest = older;
        }
        list
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// The first node and the one after it.
    pub(crate) fn first_two(&self) -> [Option<&T::Node>; 2] {
        // SAFETY: the list owns its values.
        let first = unsafe { self.first.as_ref() };
        // SAFETY: as above.
        [
            first,
            first.and_then(|node| unsafe { T::next(node).as_ref() }),
        ]
    }

    pub(crate) fn push_back(&mut self, value: T) {
        let node = value.into_node();
        // SAFETY: the list owns the value now.
        T::set_next(unsafe { &*node }, ptr::null_mut());
        if self.first.is_null() {
            self.first = node;
        } else {
            // SAFETY: the list is not empty and owns its values.
            T::set_next(unsafe { &*self.last }, node);
        }
        (self.last, self.len) = (node, self.len + 1);
    }

    #[inline]
    pub(crate) fn push_front(&mut self, value: T) {
        let node = value.into_node();
        // SAFETY: the list owns the value now.
        T::set_next(unsafe { &*node }, self.first);
        if self.first.is_null() {
            self.last = node;
        }
        (self.first, self.len) = (node, self.len + 1);
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        // SAFETY: the list owns its values.
        let node = unsafe { self.first.as_ref() }?;
        let first = std::mem::replace(&mut self.first, T::next(node));
        self.len -= 1;
        // SAFETY: it came from `into_node` and has just left the list.
        Some(unsafe { T::from_node(first) })
    }

    /// Moves all values of `other` behind its own.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.first = other.first;
        } else {
            // SAFETY: the list is not empty and owns its values.
            T::set_next(unsafe { &*self.last }, other.first);
        }
        (self.last, self.len) = (other.last, self.len + other.len);
        (other.first, other.len) = (ptr::null_mut(), 0);
    }

    /// Moves up to `most` values from the front of `other` behind its own.
    fn append_some(&mut self, other: &mut Self, most: usize) {
        if other.len <= most {
            return self.append(other);
        }
        for value in std::iter::from_fn(|| other.pop_front()).take(most) {
            self.push_back(value);
        }
    }
}

impl<T: Linked> Drop for List<T> {
    fn drop(&mut self) {
        while self.pop_front().is_some() {}
    }
}

/// Calls that are pushed together. They are linked as in the head of a mailbox, from the newest to the
/// oldest.
pub(crate) struct Unpushed<T: Linked> {
    newest: *mut T::Node,
    /// Valid unless there is no call.
    oldest: *mut T::Node,
}

impl<T: Linked> Default for Unpushed<T> {
    fn default() -> Self {
        Self {
            newest: ptr::null_mut(),
            oldest: ptr::null_mut(),
        }
    }
}

impl<T: Linked> Unpushed<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_null()
    }

    #[inline]
    pub(crate) fn add(&mut self, call: T) {
        let node = call.into_node();
        // SAFETY: the calls belong to this list.
        T::set_next(unsafe { &*node }, self.newest);
        if self.newest.is_null() {
            self.oldest = node;
        }
        self.newest = node;
    }
}

impl<T: Linked> Drop for Unpushed<T> {
    fn drop(&mut self) {
        // SAFETY: the calls belong to this list.
        drop(unsafe { List::<T>::from_newest(self.newest) });
    }
}

/// Rule 3.
const SCHEDULED: usize = 1;
/// Rule 4.
const ATTENTION: usize = 2;
const BITS: usize = SCHEDULED | ATTENTION;

/// Bit of `places`: no further call is accepted.
const FINISHED: u64 = 1 << 32;

/// The mailbox; see the module documentation.
pub(crate) struct Mailbox<T: Linked> {
    /// Rule 1, with the bits of rules 3 and 4.
    head: AtomicPtr<T::Node>,
    /// Rule 2: the number of calls, and [`FINISHED`].
    places: AtomicU64,
    capacity: u32,
    /// Rule 5.
    waiting: Mutex<List<T>>,
}

/// What a turn finds in the mailbox besides calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Found {
    OnlyCalls,
    /// Rule 4.
    Attention,
}

fn bits_of<N>(head: *mut N) -> usize {
    head.addr() & BITS
}

fn newest_of<N>(head: *mut N) -> *mut N {
    head.map_addr(|at| at & !BITS)
}

fn only_bits<N>(bits: usize) -> *mut N {
    ptr::without_provenance_mut(bits)
}

impl<T: Linked> Mailbox<T> {
    /// An empty mailbox for at most `capacity` calls.
    pub(crate) fn new(capacity: u32) -> Self {
        const { assert!(align_of::<T::Node>() > BITS) };
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            places: AtomicU64::new(0),
            capacity,
            waiting: Mutex::default(),
        }
    }

    /// Number of calls, including those that are being pushed.
    pub(crate) fn len(&self) -> usize {
        (self.places.load(Ordering::Acquire) & !FINISHED) as usize
    }

    /// Whether the mailbox accepts no further call.
    pub(crate) fn is_finished(&self) -> bool {
        self.places.load(Ordering::Acquire) & FINISHED != 0
    }

    /// Accepts no further call.
    pub(crate) fn finish(&self) {
        self.places.fetch_or(FINISHED, Ordering::AcqRel);
    }

    /// Rule 2: reserves up to `wanted` places, and at least one. Returns their number.
    ///
    /// # Errors
    /// The mailbox is full. The error is its capacity, which is 0 if it is finished.
    #[inline]
    pub(crate) fn reserve(&self, wanted: u32) -> Result<u32, u32> {
        let mut places = self.places.load(Ordering::Relaxed);
        loop {
            if places >= u64::from(self.capacity) {
                let is_finished = places & FINISHED != 0;
                return Err(if is_finished { 0 } else { self.capacity });
            }
            let count = u64::from(wanted).min(u64::from(self.capacity) - places);
            let reserve = self.places.compare_exchange_weak(
                places,
                places + count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match reserve {
                Ok(_) => return Ok(count as u32),
                Err(now) => places = now,
            }
        }
    }

    /// Rule 2: frees places.
    pub(crate) fn free(&self, places: usize) {
        self.places.fetch_sub(places as u64, Ordering::Release);
    }

    /// Pushes a call that has a reserved place. Returns whether the caller must schedule a turn.
    #[inline]
    pub(crate) fn push(&self, call: T) -> bool {
        let node = call.into_node();
        // SAFETY: the call belongs to this thread.
        unsafe { self.push_nodes(node, node) }
    }

    /// Pushes calls that have reserved places, and empties `calls`, which is not empty. Returns
    /// whether the caller must schedule a turn.
    pub(crate) fn push_all(&self, calls: &mut Unpushed<T>) -> bool {
        let Unpushed { newest, oldest } = *ManuallyDrop::new(std::mem::take(calls));
        // SAFETY: the calls belong to this thread.
        unsafe { self.push_nodes(newest, oldest) }
    }

    /// # Safety
    /// The caller owns the nodes, which are linked from the newest to the oldest.
    #[inline(always)]
    unsafe fn push_nodes(&self, newest: *mut T::Node, oldest: *mut T::Node) -> bool {
        let before = self.update(|head| {
            // SAFETY: the calls belong to this thread until the CAS succeeds.
            T::set_next(unsafe { &*oldest }, newest_of(head));
            newest.map_addr(|at| at | bits_of(head) | SCHEDULED)
        });
        bits_of(before) & SCHEDULED == 0
    }

    /// Sets `SCHEDULED` if the mailbox is idle and empty. The caller then is the turn, and ends it
    /// by [`end_turn`](Self::end_turn).
    #[inline]
    pub(crate) fn claim_turn(&self) -> bool {
        // Acquire: as for a turn, which sees what the one before it did.
        let claimed = self.head.compare_exchange(
            ptr::null_mut(),
            only_bits(SCHEDULED),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        claimed.is_ok()
    }

    /// Rule 4: reports work that is stored elsewhere. Returns whether the caller must schedule a
    /// turn.
    pub(crate) fn notify(&self) -> bool {
        let before = self.update(|head| head.map_addr(|at| at | BITS));
        bits_of(before) & SCHEDULED == 0
    }

    /// Replaces the head, and returns the previous one.
    #[inline]
    fn update(&self, new: impl Fn(*mut T::Node) -> *mut T::Node) -> *mut T::Node {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            match self.head.compare_exchange_weak(
                head,
                new(head),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return head,
                Err(now) => head = now,
            }
        }
    }

    /// Called by the turn: takes up to `most` calls, and clears `ATTENTION`.
    #[inline(always)]
    pub(crate) fn take(&self, most: usize, calls: &mut List<T>) -> Found {
        let head = self.head.load(Ordering::Relaxed);
        if bits_of(head) & ATTENTION != 0 {
            return self.take_waiting(most, calls);
        }
        let empty = only_bits(SCHEDULED);
        let taken = self
            .head
            .compare_exchange(head, empty, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            // Another call or `ATTENTION` arrived.
            return self.take_waiting(most, calls);
        }
        // SAFETY: rule 1.
        let mut list = unsafe { List::from_newest(newest_of(head)) };
        self.move_to(calls, &mut list, most);
        if !list.is_empty() {
            self.put_back(list);
        }
        Found::OnlyCalls
    }

    /// Puts back the calls that a turn took and does not serve.
    #[cold]
    fn put_back(&self, mut list: List<T>) {
        let mut waiting = lock(&self.waiting);
        // Rule 5: all other calls in it were pushed later.
        list.append(&mut waiting);
        *waiting = list;
        self.update(|head| head.map_addr(|at| at | ATTENTION));
    }

    #[cold]
    fn take_waiting(&self, most: usize, calls: &mut List<T>) -> Found {
        let mut waiting = lock(&self.waiting);
        let before = self.update(|_| only_bits(SCHEDULED));
        // SAFETY: rule 1.
        waiting.append(&mut unsafe { List::from_newest(newest_of(before)) });
        self.move_to(calls, &mut waiting, most);
        if !waiting.is_empty() {
            self.update(|head| head.map_addr(|at| at | ATTENTION));
        }
        if bits_of(before) & ATTENTION == 0 {
            Found::OnlyCalls
        } else {
            Found::Attention
        }
    }

    fn move_to(&self, calls: &mut List<T>, from: &mut List<T>, most: usize) {
        let moved = from.len().min(most);
        calls.append_some(from, most);
        if moved > 0 {
            self.free(moved);
        }
    }

    /// Called by the turn, which then ends. Returns `false` if there is more work (rule 3); the turn
    /// then continues.
    #[inline]
    pub(crate) fn end_turn(&self) -> bool {
        // Release: the next turn sees what this one did.
        let idle = self.head.compare_exchange(
            only_bits(SCHEDULED),
            ptr::null_mut(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        idle.is_ok()
    }

    /// Removes the calls for which `is_unwanted` returns `true`.
    #[cold]
    pub(crate) fn extract(&self, is_unwanted: impl Fn(&T) -> bool) -> List<T> {
        let mut waiting = lock(&self.waiting);
        self.collect(&mut waiting);
        let mut unwanted = List::default();
        let mut kept = List::default();
        while let Some(call) = waiting.pop_front() {
            if is_unwanted(&call) {
                unwanted.push_back(call);
            } else {
                kept.push_back(call);
            }
        }
        *waiting = kept;
        self.free(unwanted.len());
        unwanted
    }

    /// Rule 5: moves the calls of the head to `waiting`, whose lock the caller holds.
    fn collect(&self, waiting: &mut List<T>) {
        let before = self.update(|head| match newest_of(head).is_null() {
            true => head,
            false => only_bits(bits_of(head) | ATTENTION),
        });
        // SAFETY: rule 1.
        waiting.append(&mut unsafe { List::from_newest(newest_of(before)) });
    }
}

impl<T: Linked> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: rule 1. No other thread has the mailbox.
        drop(unsafe { List::<T>::from_newest(newest_of(head)) });
    }
}
