//! The memory of a stream: slots and the area of their tails, in one allocation.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg_wire::{Decode, Encode, Encoder, NoRoom};

/// Alignment of a segment: a cache line, and more than any record needs.
const ALIGN: usize = 64;

/// In debug builds, what was given back reads so: a view that is kept too long is seen.
#[cfg(debug_assertions)]
const POISON: u8 = 0xdb;

/// Slots, then tails. Offsets count from the first byte.
#[derive(Debug)]
pub(crate) struct Segment {
    memory: NonNull<u8>,
    size: u32,
    stride: u32,
    slots: u32,
    tails_at: u32,
    sealed: AtomicBool,
    committed: Committed,
}

/// `records << 32 | end of tails`: rule 1 of the stream. The writer stores it for each record, so it has a cache line for itself: who
/// reads the geometry does not wait for it.
#[derive(Debug)]
#[repr(align(128))]
struct Committed(AtomicU64);

// SAFETY: rule 1: the one writer touches only what lies beyond `committed`, readers only what lies before it.
unsafe impl Send for Segment {}
// SAFETY: as above; that there is one writer is `SegmentWriter`, which is made once for a segment and is not `Sync`.
unsafe impl Sync for Segment {}

impl Segment {
    /// `None`: no memory, or larger than offsets can say.
    pub(crate) fn new(stride: u32, slots: u32, tails: u32) -> Option<Self> {
        let tails_at = stride.checked_mul(slots)?.checked_next_multiple_of(8)?;
        let size = tails_at.checked_add(tails)?.max(1);
        let layout = Layout::from_size_align(size as usize, ALIGN).ok()?;
        // SAFETY: the size is not 0.
        let memory = NonNull::new(unsafe { alloc(layout) })?;
        Some(Self {
            memory,
            size,
            stride,
            slots,
            tails_at,
            sealed: AtomicBool::new(false),
            committed: Committed(AtomicU64::new(u64::from(tails_at))),
        })
    }

    /// One with `records` that are there already. They go through an encoder, which says how many bytes of tails they took.
    ///
    /// # Errors
    /// The encoder's; that nothing would help, where there is no memory.
    pub(crate) fn written(
        stride: u32,
        records: u32,
        tails: u32,
        write: impl FnOnce(Encoder<'_>) -> Result<u32, NoRoom>,
    ) -> Result<Self, NoRoom> {
        let segment = Self::new(stride, records, tails).ok_or(NoRoom { needed: None })?;
        // SAFETY: both ranges lie inside of the allocation, apart, and nobody else has it.
        let (slots, area) = unsafe {
            (
                std::slice::from_raw_parts_mut(
                    segment.memory.as_ptr(),
                    (stride * records) as usize,
                ),
                std::slice::from_raw_parts_mut(
                    segment.memory.as_ptr().add(segment.tails_at as usize),
                    tails as usize,
                ),
            )
        };
        let used = write(Encoder::fixed(slots, 0, area, segment.tails_at))?;
        let mark = u64::from(records) << 32 | u64::from(segment.tails_at + used);
        segment.committed.0.store(mark, Ordering::Release);
        segment.sealed.store(true, Ordering::Release);
        Ok(segment)
    }

    /// Empty again. Only the sole owner can.
    pub(crate) fn reset(&mut self) {
        *self.committed.0.get_mut() = u64::from(self.tails_at);
        *self.sealed.get_mut() = false;
    }

    /// The reader is through with these records: their slots are poisoned.
    ///
    /// # Safety
    /// They are committed, and nobody reads them any more.
    #[cfg(debug_assertions)]
    pub(crate) unsafe fn poison(&self, from: u32, count: u32) {
        let (at, size) = (from * self.stride, count * self.stride);
        // SAFETY: rule 1: they lie before the mark, so no writer has them; the caller promises that no reader has.
        unsafe {
            let slots = self.memory.as_ptr().add(at as usize);
            slots.write_bytes(POISON, size as usize);
        }
    }

    /// All of it is, tails too. Only the sole owner can.
    #[cfg(debug_assertions)]
    pub(crate) fn poison_all(&mut self) {
        // SAFETY: the allocation is as large, and nobody else has it.
        unsafe { self.memory.write_bytes(POISON, self.size as usize) };
    }

    /// Whether it has the size that the stream's segments usually have.
    pub(crate) fn has_standard_size(&self, slots: u32, tails: u32) -> bool {
        self.slots == slots && self.size - self.tails_at == tails
    }

    /// Whether its slots have this size, too.
    pub(crate) fn has_layout(&self, stride: u32, slots: u32, tails: u32) -> bool {
        self.stride == stride && self.has_standard_size(slots, tails)
    }

    /// Bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// Records that may be read, and where their tails end.
    pub(crate) fn mark(&self) -> (u32, u32) {
        let mark = self.committed.0.load(Ordering::Acquire);
        ((mark >> 32) as u32, mark as u32)
    }

    pub(crate) fn stride(&self) -> u32 {
        self.stride
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// The reader: the slots of records `from .. from + count`, the tails up to `end`, and where these begin.
    ///
    /// # Safety
    /// They are committed: [`mark`](Self::mark) has said at least `from + count` records and `end` since the segment was last empty.
    #[inline]
    pub(crate) unsafe fn read(&self, from: u32, count: u32, end: u32) -> (&[u8], &[u8], u32) {
        let at = from * self.stride;
        // SAFETY: rule 1: both ranges lie before the mark, so nobody writes them while the segment is in use; the caller's borrow
        // keeps it in use.
        unsafe {
            (
                std::slice::from_raw_parts(
                    self.memory.as_ptr().add(at as usize),
                    (count * self.stride) as usize,
                ),
                std::slice::from_raw_parts(
                    self.memory.as_ptr().add(self.tails_at as usize),
                    (end - self.tails_at) as usize,
                ),
                self.tails_at,
            )
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.size as usize, ALIGN)
            .expect("the allocation used the same layout");
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.memory.as_ptr(), layout) };
    }
}

/// The writer's side of a segment. What it has written is visible from [`commit`](Self::commit) on.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    segment: Arc<Segment>,
    records: u32,
    end: u32,
    committed: u32,
}

impl SegmentWriter {
    /// The writer's side of an empty segment, and what goes to the reader. A segment is opened once until it is reset.
    pub(crate) fn new(segment: Segment) -> (Self, Arc<Segment>) {
        Self::reuse(Arc::new(segment))
            .unwrap_or_else(|_| unreachable!("the new segment is not shared"))
    }

    /// The same of a segment that was used before.
    ///
    /// # Errors
    /// Somebody else has it still.
    pub(crate) fn reuse(mut segment: Arc<Segment>) -> Result<(Self, Arc<Segment>), Arc<Segment>> {
        match Arc::get_mut(&mut segment) {
            Some(sole) => sole.reset(),
            None => return Err(segment),
        }
        let open = Self {
            records: 0,
            end: segment.tails_at,
            committed: 0,
            segment: Arc::clone(&segment),
        };
        Ok((open, segment))
    }

    /// Bytes of tails that a record would take here.
    ///
    /// # Errors
    /// It can never be written.
    #[inline(always)]
    pub(crate) fn measure<T: Encode + ?Sized>(&self, value: &T) -> Result<u32, NoRoom> {
        Encoder::measure(value, self.end)
    }

    /// Whether there is a slot, and so many bytes of tails.
    #[inline(always)]
    pub(crate) fn fits(&self, tails: u32) -> bool {
        self.records < self.segment.slots && tails <= self.segment.size - self.end
    }

    /// One more record, not yet visible. Room for it was [seen](Self::has_room).
    ///
    /// # Errors
    /// It takes more of tails than it [measured](Self::measure), or there is no slot.
    #[inline(always)]
    pub(crate) fn write<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), NoRoom> {
        let segment = &*self.segment;
        if self.records == segment.slots {
            return Err(NoRoom { needed: None });
        }
        assert!(<T::As as Decode>::SIZE <= segment.stride);
        let slot_at = self.records * segment.stride;
        // SAFETY: rule 1: both ranges lie beyond the mark and inside the allocation, they do not overlap (the slot ends at or
        // before `tails_at`, the tails begin at or after it), and `SegmentWriter` is the only writer: it is borrowed exclusively.
        let (slot, tails) = unsafe {
            (
                std::slice::from_raw_parts_mut(
                    segment.memory.as_ptr().add(slot_at as usize),
                    <T::As as Decode>::SIZE as usize,
                ),
                std::slice::from_raw_parts_mut(
                    segment.memory.as_ptr().add(self.end as usize),
                    (segment.size - self.end) as usize,
                ),
            )
        };
        let mut encoder = Encoder::fixed(slot, slot_at, tails, self.end);
        value.encode(&mut encoder, slot_at);
        self.end += encoder.finish_record()?;
        self.records += 1;
        Ok(())
    }

    pub(crate) fn segment(&self) -> Arc<Segment> {
        Arc::clone(&self.segment)
    }

    /// Records that were written and are not visible.
    #[inline]
    pub(crate) fn pending(&self) -> u32 {
        self.records - self.committed
    }

    /// What was written may be read.
    #[inline]
    pub(crate) fn commit(&mut self) {
        let mark = u64::from(self.records) << 32 | u64::from(self.end);
        self.segment.committed.0.store(mark, Ordering::Release);
        self.committed = self.records;
    }

    /// Commits; no record will follow. How many there are. The caller holds the queue's lock, so that the reader, who looks under it, is the only one
    /// who has the segment when it sees this.
    pub(crate) fn seal(mut self) -> u64 {
        self.commit();
        self.segment.sealed.store(true, Ordering::Release);
        u64::from(self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, SegmentWriter};
    use thalweg_wire::{Bytes, Decode};

    #[test]
    fn records_are_read_as_they_were_written_until_there_is_no_room() {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 3, 10).unwrap());
        open.write("four").unwrap();
        open.write("sixsix").unwrap();
        assert_eq!(segment.mark().0, 0, "nothing is visible yet");
        // A slot is left, but no tail.
        assert_eq!((open.measure("x"), open.fits(1)), (Ok(1), false));
        assert_eq!(open.write("x").unwrap_err().needed, Some(1));
        assert_eq!((open.measure(""), open.fits(0)), (Ok(0), true));
        open.write("").unwrap();
        assert!(!open.fits(0));
        open.write("").unwrap_err();
        open.commit();
        let (records, end) = segment.mark();
        assert_eq!(records, 3);
        // SAFETY: the mark says so.
        let (slots, tails, tails_at) = unsafe { segment.read(1, 2, end) };
        let bytes = Bytes::batch(slots, 8, tails, tails_at);
        assert_eq!(String::view(bytes, 8), "sixsix");
        assert_eq!(String::view(bytes, 16), "");
    }

    #[test]
    fn a_segment_is_used_again_only_by_who_has_it_alone() {
        let (open, segment) = SegmentWriter::new(Segment::new(8, 3, 10).unwrap());
        let segment = SegmentWriter::reuse(segment).unwrap_err();
        open.seal();
        let (mut open, segment) = SegmentWriter::reuse(segment).unwrap();
        assert!(!segment.is_sealed());
        assert_eq!(segment.mark(), (0, 24));
        open.write("again").unwrap();
        open.commit();
        assert_eq!(segment.mark(), (1, 29));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn what_was_given_back_is_poisoned_and_what_was_not_is_as_it_was() {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 2, 10).unwrap());
        open.write(&7u64).unwrap();
        open.write(&8u64).unwrap();
        open.seal();
        // SAFETY: two are committed, and nobody reads.
        unsafe { segment.poison(0, 1) };
        // SAFETY: two are committed.
        let (slots, ..) = unsafe { segment.read(0, 2, segment.mark().1) };
        assert_eq!(slots[..8], [0xdb; 8]);
        assert_eq!(slots[8..], 8u64.to_le_bytes());
    }
}
