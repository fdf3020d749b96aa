//! The memory of calls that have ended, for reuse by the next calls of the same instance.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::call::{Call, CallCore, CallRef};
use crate::completion::{CallBuffer, Outcome};
use crate::mailbox::Linked;
use crate::queued_bytes::SPARE_BYTES;
use crate::spare_list::SpareList;

/// Maximum capacity in bytes of a message buffer that is kept with its call.
pub(crate) const MAX_BUFFER_BYTES: usize = 256 << 10;
/// Maximum total capacity in bytes of the kept buffers that are larger than [`SPARE_BYTES`]. It is
/// enough for 50 answers of 100 KiB. See "Large answers" in `docs/internals/port.md`.
const MAX_LARGE_BYTES: usize = 8 << 20;
/// So many calls are kept for each port, even if the mailbox holds fewer.
const MIN_KEPT: usize = 4_096;
/// Number of lists for the calls that complete on ports.
const PORT_LISTS: u32 = 64;

/// The memory of a call and of its buffer, while no call uses it. If it is dropped, the memory is
/// freed.
pub(crate) struct SpareCall(ManuallyDrop<Box<Outcome>>);

impl SpareCall {
    /// New memory, or the memory of a call that its last user has left without a buffer.
    #[cold]
    pub(crate) fn new(core: Arc<CallCore>) -> Self {
        let mut outcome = Outcome::new();
        let core = CallRef::of_core(core);
        outcome.call = Some(Call { core });
        Self::of_outcome(outcome)
    }

    /// The memory of a call and of its buffer `outcome`, which has a reference to the call. The
    /// caller has left the call as its last user.
    #[inline(always)]
    pub(crate) fn of_outcome(outcome: Box<Outcome>) -> Self {
        Self(ManuallyDrop::new(outcome))
    }

    /// The memory of a call that has ended, if the caller is its last user. The caller has the buffer
    /// `outcome`, which counts as one user, and counts as another one.
    #[inline]
    pub(crate) fn reclaim(mut outcome: Box<Outcome>, call: CallRef) -> Option<Self> {
        let core = call.into_core();
        if core.leave_as_last(2) {
            // `outcome` has a reference of its own.
            drop(core);
            return Some(Self::of_outcome(outcome));
        }
        if let Some(call) = outcome.call.take() {
            // Both references have left.
            drop(call.core.into_core());
        }
        None
    }

    #[inline(always)]
    fn into_outcome(self) -> Box<Outcome> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, because `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Arc<CallCore> {
        let call = self.call.as_ref().expect("the memory has a call");
        call.core.core()
    }

    /// The buffer of a call that has begun.
    #[inline(always)]
    pub(crate) fn into_buffer(self) -> CallBuffer {
        CallBuffer::of_outcome(self.into_outcome())
    }

    /// Separates the call from its buffer, after the call has begun.
    pub(crate) fn into_parts(self) -> (CallRef, Box<Outcome>) {
        let mut outcome = self.into_outcome();
        let call = outcome.call.take().expect("the memory has a call");
        (call.core, outcome)
    }
}

impl Deref for SpareCall {
    type Target = Outcome;

    #[inline(always)]
    fn deref(&self) -> &Outcome {
        &self.0
    }
}

impl DerefMut for SpareCall {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Outcome {
        &mut self.0
    }
}

impl Drop for SpareCall {
    #[cold]
    fn drop(&mut self) {
        // SAFETY: it is taken once, because this is the drop.
        let mut outcome = unsafe { ManuallyDrop::take(&mut self.0) };
        if let Some(call) = outcome.call.take() {
            call.core.into_core().retire();
        }
    }
}

// SAFETY: the box becomes a pointer and a box again.
unsafe impl Linked for SpareCall {
    type Node = Outcome;

    #[inline(always)]
    fn into_node(self) -> *mut Outcome {
        Box::into_raw(self.into_outcome())
    }

    #[inline(always)]
    unsafe fn from_node(node: *mut Outcome) -> Self {
        // SAFETY: the caller's contract.
        Self::of_outcome(unsafe { Box::from_raw(node) })
    }

    #[inline(always)]
    fn next(node: &Outcome) -> *mut Outcome {
        CallBuffer::next(node)
    }

    #[inline(always)]
    fn set_next(node: &Outcome, next: *mut Outcome) {
        CallBuffer::set_next(node, next);
    }
}

/// The list to which the memory of a call always returns. Calls of one port share a list, so they
/// are rarely registered with another port, and threads with ports of their own do not disturb each
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpareKey(u32);

impl SpareKey {
    /// Of calls that complete on no port.
    pub(crate) const WAITERS: Self = Self(0);

    /// Of the calls of the port with this number.
    pub(crate) fn of_port(number: u32) -> Self {
        Self(1 + number % PORT_LISTS)
    }
}

/// The memory of calls that ended.
pub(crate) struct SpareCalls {
    of_waiters: SpareList<SpareCall>,
    /// Made by the first call that completes on a port.
    of_ports: OnceLock<Box<[SpareList<SpareCall>]>>,
    /// Maximum number of calls in each list.
    most: usize,
    /// Total capacity of the large buffers.
    large_bytes: AtomicUsize,
}

impl SpareCalls {
    /// The mailbox holds `capacity` calls, so that many may be kept.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            of_waiters: SpareList::default(),
            of_ports: OnceLock::new(),
            most: MIN_KEPT.max(capacity as usize),
            large_bytes: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn list(&self, SpareKey(key): SpareKey) -> Option<&SpareList<SpareCall>> {
        match key.checked_sub(1) {
            None => Some(&self.of_waiters),
            Some(index) => self.of_ports.get()?.get(index as usize),
        }
    }

    /// Makes the list for this key. Called before the first call with the key is made.
    #[cold]
    pub(crate) fn make_list(&self, key: SpareKey) {
        if key != SpareKey::WAITERS {
            self.of_ports
                .get_or_init(|| (0..PORT_LISTS).map(|_| SpareList::default()).collect());
        }
    }

    #[inline(always)]
    pub(crate) fn take(&self, key: SpareKey) -> Option<SpareCall> {
        let call = self.list(key)?.take()?;
        if call.data.capacity() > SPARE_BYTES {
            self.forget_bytes(&call);
        }
        Some(call)
    }

    /// Keeps the memory of a call, unless the instance is closed or there is enough of it.
    #[inline(always)]
    pub(crate) fn put(&self, mut call: SpareCall, is_closed: impl Fn() -> bool) {
        if call.data.capacity() > SPARE_BYTES {
            self.count_bytes(&mut call);
        }
        let kept = match self.list(call.core().spare_key) {
            Some(list) => list.put(call, self.most, is_closed),
            None => Err(call),
        };
        if let Err(refused) = kept {
            self.refuse(refused);
        }
    }

    /// Frees the memory of all calls. The instance is closed.
    pub(crate) fn free_all(&self) {
        self.of_waiters.free_all();
        if let Some(lists) = self.of_ports.get() {
            lists.iter().for_each(SpareList::free_all);
        }
    }

    /// Counts a large buffer, or frees it if there are enough of them.
    #[cold]
    fn count_bytes(&self, call: &mut SpareCall) {
        let large = call.data.capacity();
        let before = self.large_bytes.fetch_add(large, Ordering::Relaxed);
        if before + large > MAX_LARGE_BYTES {
            self.large_bytes.fetch_sub(large, Ordering::Relaxed);
            call.data = Vec::new();
        }
    }

    #[cold]
    fn forget_bytes(&self, call: &SpareCall) {
        let large = call.data.capacity();
        self.large_bytes.fetch_sub(large, Ordering::Relaxed);
    }

    #[cold]
    fn refuse(&self, call: SpareCall) {
        if call.data.capacity() > SPARE_BYTES {
            self.forget_bytes(&call);
        }
    }
}
