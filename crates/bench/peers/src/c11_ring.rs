//! `c11_ring`: a ring with cached positions in C, one call per operation; and the same ring inlined
//! into a loop in C.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::channel::{Batches, Channel, Partial, Waiting};
use crate::patience;

/// The opaque `struct ring` of `c/ring.c`.
#[repr(C)]
struct RawRing {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn thalweg_ring_new(capacity: usize) -> *mut RawRing;
    fn thalweg_ring_free(ring: *mut RawRing);
    fn thalweg_ring_push(ring: *mut RawRing, message: u64) -> bool;
    fn thalweg_ring_pop(ring: *mut RawRing, message: *mut u64) -> bool;
    fn thalweg_ring_push_many(ring: *mut RawRing, first: u64, count: usize, whole: bool) -> usize;
    fn thalweg_ring_pop_many(
        ring: *mut RawRing,
        messages: *mut u64,
        count: usize,
        whole: bool,
    ) -> usize;
    fn thalweg_ring_same_thread(ring: *mut RawRing, count: u64) -> u64;
}

/// `c11_ring`.
#[derive(Debug)]
pub struct C11Ring;

/// The ring itself, freed with its last side.
#[derive(Debug)]
struct Ring(NonNull<RawRing>);

// SAFETY: the ring is made for two threads: its positions are atomic, and they determine the side
// that each slot belongs to.
unsafe impl Send for Ring {}
// SAFETY: as above; only `Sender` pushes and only `Receiver` pops, each with a unique reference.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(capacity: usize) -> Self {
        // SAFETY: the function accepts any number.
        let ring = unsafe { thalweg_ring_new(capacity) };
        Self(NonNull::new(ring).expect("a ring's capacity is a power of two"))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it came from `thalweg_ring_new`, and there is no other reference to it.
        unsafe { thalweg_ring_free(self.0.as_ptr()) }
    }
}

/// The pushing side.
#[derive(Debug)]
pub struct Sender(Arc<Ring>);

/// The popping side, and its buffer for batches.
#[derive(Debug)]
pub struct Receiver(Arc<Ring>, Vec<u64>);

impl Channel for C11Ring {
    const NAME: &'static str = "c11_ring";
    const WAITING: Waiting = Waiting::Looks;
    type Sender = Sender;
    type Receiver = Receiver;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let ring = Arc::new(Ring::new(capacity));
        (Sender(Arc::clone(&ring)), Receiver(ring, vec![0; capacity]))
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        patience::until(|| Self::try_send(sender, message).then_some(()));
    }

    #[inline]
    fn receive(receiver: &mut Self::Receiver) -> u64 {
        patience::until(|| Self::try_receive(receiver))
    }

    #[inline]
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
        // SAFETY: the ring is alive, and the unique reference makes this its only producer now.
        unsafe { thalweg_ring_push(sender.0.0.as_ptr(), message) }
    }

    #[inline]
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
        let mut message = 0;
        // SAFETY: the ring is alive, the unique reference makes this its only consumer now, and
        // `message` is valid for writing.
        unsafe { thalweg_ring_pop(receiver.0.0.as_ptr(), &raw mut message) }.then_some(message)
    }
}

impl Batches for C11Ring {
    #[inline]
    fn send_batch(sender: &mut Self::Sender, first: u64, count: usize, rule: Partial) -> usize {
        let whole = rule == Partial::No;
        // SAFETY: as in `try_send`.
        unsafe { thalweg_ring_push_many(sender.0.0.as_ptr(), first, count, whole) }
    }

    #[inline]
    fn receive_batch(
        receiver: &mut Self::Receiver,
        count: usize,
        rule: Partial,
        each: impl FnMut(u64),
    ) -> usize {
        let Receiver(ring, batch) = receiver;
        let (most, whole) = (count.min(batch.len()), rule == Partial::No);
        // SAFETY: as in `try_receive`; the buffer has space for `most` messages.
        let taken =
            unsafe { thalweg_ring_pop_many(ring.0.as_ptr(), batch.as_mut_ptr(), most, whole) };
        batch[..taken].iter().copied().for_each(each);
        taken
    }
}

/// Pushes and pops `count` messages in turn in a C loop that contains the inlined ring; returns
/// whether all of them came back unchanged.
#[must_use]
pub fn same_thread(capacity: usize, count: u64) -> bool {
    let ring = Ring::new(capacity);
    // SAFETY: the ring is alive, and no other thread uses it.
    unsafe { thalweg_ring_same_thread(ring.0.as_ptr(), count) == 0 }
}
