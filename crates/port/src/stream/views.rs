//! An iterator over the records of a batch, in place.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::slice::ChunksExact;

use thalweg_wire::{Bytes, Decode};

/// Views of a batch's records, in order.
///
/// `next` is always inlined: a view contains all fields of a record, and the compiler then omits
/// the loads of fields that the caller does not use. Without inlining, a view would be copied
/// twice.
#[derive(Debug)]
pub struct Views<'a, T> {
    slots: ChunksExact<'a, u8>,
    /// Offset of the next record.
    at: u32,
    tails: &'a [u8],
    tails_at: u32,
    record: PhantomData<fn() -> T>,
}

impl<'a, T: Decode> Views<'a, T> {
    /// The slots of the records, all tails, and the offsets of both.
    pub(super) fn new(slots: &'a [u8], at: u32, tails: &'a [u8], tails_at: u32) -> Self {
        Self {
            // Each record reads only its own slot, whose length is a compile-time constant.
            slots: slots.chunks_exact(T::SIZE.max(1) as usize),
            at,
            tails,
            tails_at,
            record: PhantomData,
        }
    }
}

impl<'a, T: Decode> Iterator for Views<'a, T> {
    type Item = T::View<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let slot = self.slots.next()?;
        let at = self.at;
        self.at += T::SIZE.max(1);
        let slot = &slot[..T::SIZE as usize];
        Some(T::view(
            Bytes::batch(slot, at, self.tails, self.tails_at),
            at,
        ))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<T: Decode> ExactSizeIterator for Views<'_, T> {}

impl<T: Decode> FusedIterator for Views<'_, T> {}
