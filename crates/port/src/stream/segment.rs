//! The memory of a stream: slots and the area of their tails, in one allocation.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg_wire::prepared::PreparedType;
use thalweg_wire::{Bytes, Decode, Encode, Encoder, MAX_SIZE, NoRoom};

/// Alignment of a segment: a cache line, which is more than any record needs.
const ALIGN: usize = 64;

/// Value of released memory in debug builds, which makes the use of a released view visible.
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

/// `records << 32 | end of tails`: rule 1 of the stream. The writer stores it for each record, so
/// it has its own cache line, and threads that read the other fields do not wait for it.
#[derive(Debug)]
#[repr(align(128))]
struct Committed(AtomicU64);

// SAFETY: rule 1: the only writer accesses memory beyond `committed`, and readers access memory
// before it.
unsafe impl Send for Segment {}
// SAFETY: as above. `SegmentWriter`, which is created once per segment and is not `Sync`,
// guarantees that there is one writer.
unsafe impl Sync for Segment {}

impl Segment {
    /// `None` if there is no memory, or if the size exceeds the range of offsets.
    pub(crate) fn new(stride: u32, slots: u32, tails: u32) -> Option<Self> {
        let tails_at = stride.checked_mul(slots)?.checked_next_multiple_of(8)?;
        let size = tails_at.checked_add(tails)?.max(1);
        if size > MAX_SIZE {
            return None;
        }
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

    /// A sealed segment with `records` records. `write` encodes them and returns the number of tail
    /// bytes.
    ///
    /// # Errors
    /// The error of the encoder; one without a needed size if there is no memory.
    pub(crate) fn written(
        stride: u32,
        records: u32,
        tails: u32,
        write: impl FnOnce(Encoder<'_>) -> Result<u32, NoRoom>,
    ) -> Result<Self, NoRoom> {
        let segment = Self::new(stride, records, tails).ok_or(NoRoom { needed: None })?;
        // SAFETY: both ranges are inside the allocation and do not overlap, and the segment is not
        // shared yet.
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

    /// Empties the segment. Requires exclusive ownership.
    pub(crate) fn reset(&mut self) {
        *self.committed.0.get_mut() = u64::from(self.tails_at);
        *self.sealed.get_mut() = false;
    }

    /// Poisons the slots of released records.
    ///
    /// # Safety
    /// No reader reads the records any more.
    #[cfg(debug_assertions)]
    pub(crate) unsafe fn poison(&self, from: u32, count: u32) {
        let (at, size) = (from * self.stride, count * self.stride);
        // SAFETY: rule 1: they are before the mark, so no writer accesses them, or the writer is the
        // caller. The caller promises that no reader does.
        unsafe {
            let slots = self.memory.as_ptr().add(at as usize);
            slots.write_bytes(POISON, size as usize);
        }
    }

    /// Poisons the whole memory. Requires exclusive ownership.
    #[cfg(debug_assertions)]
    pub(crate) fn poison_all(&mut self) {
        // SAFETY: the allocation has this size, and `&mut self` is the only access.
        unsafe { self.memory.write_bytes(POISON, self.size as usize) };
    }

    /// Whether it has the standard size of the stream's segments.
    pub(crate) fn has_standard_size(&self, slots: u32, tails: u32) -> bool {
        self.slots == slots && self.size - self.tails_at == tails
    }

    /// Whether it has the standard size and this stride.
    pub(crate) fn has_layout(&self, stride: u32, slots: u32, tails: u32) -> bool {
        self.stride == stride && self.has_standard_size(slots, tails)
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size as usize
    }

    /// Number of readable records, and the end of their tails.
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

    /// For the reader: the slots of records `from .. from + count`, the tails up to `end`, and the
    /// offset of the tails.
    ///
    /// # Safety
    /// The records are committed: [`mark`](Self::mark) has returned at least `from + count` records
    /// and `end` since the segment was last empty.
    #[inline]
    pub(crate) unsafe fn read(&self, from: u32, count: u32, end: u32) -> (&[u8], &[u8], u32) {
        let at = from * self.stride;
        // SAFETY: rule 1: both ranges are before the mark, so they are not written while the
        // segment is in use. The caller's borrow keeps it in use.
        unsafe {
            (
                std::slice::from_raw_parts(
                    self.memory.as_ptr().add(at as usize),
                    // This cannot overflow, so that the compiler divides it by the stride.
                    count as usize * self.stride as usize,
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

/// The writer's side of a segment. [`commit`](Self::commit) makes the written records visible.
///
/// By default it has no segment, and no slot either. A writer therefore does not ask for each record
/// whether it has a segment.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    segment: Option<Arc<Segment>>,
    /// Copies of the segment's fields, which the writer needs for each record.
    memory: NonNull<u8>,
    stride: u32,
    slots: u32,
    size: u32,
    records: u32,
    /// End of the tails.
    end: u32,
    /// Number of visible records, or [`UNANNOUNCED`].
    committed: u32,
}

/// Places for the next records, in the memory of their stream. Offsets count from `base`, in the records,
/// too.
#[derive(Clone, Copy, Debug)]
pub struct RecordSpace {
    /// The first byte of the memory.
    pub base: *mut u8,
    /// Offset of the next record.
    pub first: u32,
    /// Distance in bytes from one record to the next.
    pub stride: u32,
    /// Number of records that fit.
    pub count: u32,
    /// Offset of the free space for strings and lists.
    pub tails: u32,
    /// The end of that space.
    pub tails_end: u32,
}

/// A checked value in the memory of foreign code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribedRecord<'a> {
    pub(crate) ty: &'a PreparedType<'static>,
    pub(crate) from: Bytes<'a>,
    pub(crate) at: u32,
}

/// The slot that a [`SegmentWriter`] writes next. Its record is not visible, and may be written in
/// several parts.
#[derive(Debug)]
pub(crate) struct NextSlot {
    /// The segment's first byte, from which offsets count.
    memory: NonNull<u8>,
    at: u32,
    stride: u32,
    /// Size of the segment.
    size: u32,
    /// End of the tails so far.
    pub(crate) end: u32,
}

// SAFETY: a slot has one writer, as its segment has.
unsafe impl Send for NextSlot {}

impl NextSlot {
    /// Writes a value at an offset of the slot, and its tails after the tails so far.
    ///
    /// # Errors
    /// There are too few tail bytes.
    ///
    /// # Safety
    /// The segment has this slot and is alive. The slot is the next one of its writer, which writes
    /// nothing meanwhile. The value ends inside the slot.
    #[inline(always)]
    pub(crate) unsafe fn fill<T: Encode + ?Sized>(
        &mut self,
        offset: u32,
        value: &T,
    ) -> Result<(), NoRoom> {
        debug_assert!(offset + <T::As as Decode>::SIZE <= self.stride);
        debug_assert!(self.end <= self.size);
        let (at, end) = (self.at + offset, self.end);
        // SAFETY: rule 1: both ranges are beyond the mark and inside the allocation. They do not
        // overlap: the slot ends at or before `tails_at`, and the tails begin at or after it. The
        // caller promises that there is no other writer.
        let (place, tails) = unsafe {
            (
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(at as usize),
                    <T::As as Decode>::SIZE as usize,
                ),
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(end as usize),
                    // In 64 bits, so that the compiler sees that the tails end at `size`.
                    self.size as usize - end as usize,
                ),
            )
        };
        let mut encoder = Encoder::record::<T::As>(place, at, tails, end);
        value.encode(&mut encoder, at);
        self.end = encoder.finish_record_at()?;
        Ok(())
    }

    /// Writes a checked value of a described type into the slot, and its tails after the tails so far.
    ///
    /// # Errors
    /// There are too few tail bytes.
    ///
    /// # Safety
    /// As [`fill`](Self::fill); the slot holds a record of this type.
    pub(crate) unsafe fn copy(&mut self, record: &DescribedRecord<'_>) -> Result<(), NoRoom> {
        let size = record.ty.size();
        debug_assert!(size <= self.stride);
        // SAFETY: as in `fill`.
        let (place, tails) = unsafe {
            (
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(self.at as usize),
                    size as usize,
                ),
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(self.end as usize),
                    self.size as usize - self.end as usize,
                ),
            )
        };
        let to = Encoder::copied(place, self.at, tails, self.end);
        self.end = record.ty.copy(record.from, record.at, to, self.at)?;
        Ok(())
    }

    /// Sets a range of the slot to 0.
    ///
    /// # Safety
    /// As [`fill`](Self::fill). The range is inside the slot.
    #[inline(always)]
    pub(crate) unsafe fn clear(&mut self, bytes: Range<u32>) {
        debug_assert!(bytes.start <= bytes.end && bytes.end <= self.stride);
        // SAFETY: as in `fill`.
        unsafe {
            let place = self.memory.as_ptr().add((self.at + bytes.start) as usize);
            place.write_bytes(0, (bytes.end - bytes.start) as usize);
        }
    }

    /// Sets the whole slot to 0.
    ///
    /// # Safety
    /// As [`fill`](Self::fill).
    pub(crate) unsafe fn clear_all(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.clear(0..self.stride) };
    }
}

/// The readers were not told of the segment yet. The distance from this value to the number of
/// records is larger than any batch, so that a writer needs one comparison to find out whether it
/// has to do anything after a record.
const UNANNOUNCED: u32 = 0x8000_0000;

/// Maximum number of records that a writer makes visible together.
pub(crate) const MAX_BATCH: u32 = UNANNOUNCED;

// SAFETY: `memory` is that of the segment, which is `Send` and alive as long as this.
unsafe impl Send for SegmentWriter {}

impl Default for SegmentWriter {
    fn default() -> Self {
        Self {
            segment: None,
            memory: NonNull::dangling(),
            stride: 0,
            slots: 0,
            size: 0,
            records: 0,
            end: 0,
            committed: 0,
        }
    }
}

impl SegmentWriter {
    /// The writer's side of an empty segment, and the segment for the reader. A segment has one
    /// writer until it is reset.
    pub(crate) fn new(segment: Segment) -> (Self, Arc<Segment>) {
        Self::reuse(Arc::new(segment))
            .unwrap_or_else(|_| unreachable!("the new segment is not shared"))
    }

    /// Reuses a segment.
    ///
    /// # Errors
    /// The segment has another owner.
    pub(crate) fn reuse(mut segment: Arc<Segment>) -> Result<(Self, Arc<Segment>), Arc<Segment>> {
        match Arc::get_mut(&mut segment) {
            Some(sole) => sole.reset(),
            None => return Err(segment),
        }
        let open = Self {
            memory: segment.memory,
            stride: segment.stride,
            slots: segment.slots,
            size: segment.size,
            records: 0,
            end: segment.tails_at,
            committed: UNANNOUNCED,
            segment: Some(Arc::clone(&segment)),
        };
        Ok((open, segment))
    }

    /// Whether there is a free slot, and space for the tails of the record.
    #[inline(always)]
    pub(crate) fn fits<T: Encode + ?Sized>(&self, value: &T) -> bool {
        self.records < self.slots && Encoder::fits(value, self.end, self.size)
    }

    /// Whether there is a free slot, and space for `tails` bytes of tails.
    #[inline(always)]
    pub(crate) fn has_space(&self, tails: u32) -> bool {
        self.records < self.slots && tails <= self.size - self.end
    }

    /// Writes one more record, which is not visible yet.
    ///
    /// # Errors
    /// There is no free slot, or there are too few tail bytes.
    pub(crate) fn write<T: Encode + ?Sized>(&mut self, value: &T) -> Result<(), NoRoom> {
        if self.records == self.slots {
            return Err(NoRoom { needed: None });
        }
        assert!(<T::As as Decode>::SIZE <= self.stride);
        let mut slot = self.next_slot();
        // SAFETY: checked above.
        unsafe { slot.fill(0, value)? };
        self.add_record(slot.end);
        Ok(())
    }

    /// The next slot. It remains the next one until [`add_record`](Self::add_record).
    #[inline(always)]
    pub(crate) fn next_slot(&self) -> NextSlot {
        NextSlot {
            memory: self.memory,
            at: self.records * self.stride,
            stride: self.stride,
            size: self.size,
            end: self.end,
        }
    }

    /// Adds the record in the next slot to the written ones. `end` is the end of its tails.
    #[inline(always)]
    pub(crate) fn add_record(&mut self, end: u32) {
        self.records += 1;
        self.end = end;
    }

    /// The free slots and the free space for tails, which foreign code may fill.
    pub(crate) fn free_space(&self) -> RecordSpace {
        RecordSpace {
            base: self.memory.as_ptr(),
            first: self.records * self.stride,
            stride: self.stride,
            count: self.slots - self.records,
            tails: self.end,
            tails_end: self.size,
        }
    }

    /// Adds `count` records that were written into [`free_space`](Self::free_space) to the written ones. `end`
    /// is the end of their tails.
    pub(crate) fn add_records(&mut self, count: u32, end: u32) {
        debug_assert!(count <= self.slots - self.records && end <= self.size);
        self.records += count;
        self.end = end;
    }

    /// Whether it has a segment.
    pub(crate) fn is_open(&self) -> bool {
        self.segment.is_some()
    }

    /// The segment, for its reader.
    ///
    /// # Panics
    /// There is none.
    pub(crate) fn segment(&self) -> Arc<Segment> {
        Arc::clone(self.open_segment())
    }

    fn open_segment(&self) -> &Arc<Segment> {
        let segment = self.segment.as_ref();
        segment.expect("records are written into a segment")
    }

    /// Number of written records that are not visible yet; more than any batch in a segment that is
    /// not announced.
    #[inline]
    pub(crate) fn pending(&self) -> u32 {
        self.records.wrapping_sub(self.committed)
    }

    /// The value of [`pending`](Self::pending) with one more record.
    #[inline(always)]
    pub(crate) fn pending_with_next(&self) -> u32 {
        (self.records + 1).wrapping_sub(self.committed)
    }

    /// Whether the readers were told of the segment: [`announce`](Self::announce).
    #[inline]
    pub(crate) fn is_announced(&self) -> bool {
        self.committed != UNANNOUNCED
    }

    /// From here on, [`pending`](Self::pending) is the number of records that are not visible.
    pub(crate) fn announce(&mut self) {
        self.committed = 0;
    }

    /// Poisons the next slot, whose record was read in place.
    #[cfg(debug_assertions)]
    pub(crate) fn poison_next(&mut self) {
        // SAFETY: the slot is not visible, so that only this writer accesses it.
        unsafe { self.open_segment().poison(self.records, 1) };
    }

    /// Makes the written records visible.
    #[inline]
    pub(crate) fn commit(&mut self) {
        let mark = u64::from(self.records) << 32 | u64::from(self.end);
        if let Some(segment) = &self.segment {
            segment.committed.0.store(mark, Ordering::Release);
        }
        self.committed = self.records;
    }

    /// Commits the last records and seals the segment. Returns the number of records. The caller
    /// holds the queue's lock, so that the reader, which checks the flag under the lock, is the
    /// only owner when it sees the flag.
    pub(crate) fn seal(mut self) -> u64 {
        self.commit();
        if let Some(segment) = &self.segment {
            segment.sealed.store(true, Ordering::Release);
        }
        u64::from(self.records)
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, SegmentWriter};
    use thalweg_wire::{Bytes, Decode};

    #[test]
    fn segment_returns_written_records_until_it_is_full() {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 3, 10).unwrap());
        open.write("four").unwrap();
        open.write("sixsix").unwrap();
        assert_eq!(segment.mark().0, 0, "nothing is visible yet");
        // A slot is free, but no tail byte.
        assert!(!open.fits("x"));
        assert_eq!(open.write("x").unwrap_err().needed, Some(1));
        assert!(open.fits(""));
        open.write("").unwrap();
        assert!(!open.fits(""));
        open.write("").unwrap_err();
        open.commit();
        let (records, end) = segment.mark();
        assert_eq!(records, 3);
        // SAFETY: the mark has three records.
        let (slots, tails, tails_at) = unsafe { segment.read(1, 2, end) };
        let bytes = Bytes::batch(slots, 8, tails, tails_at);
        assert_eq!(String::view(bytes, 8), "sixsix");
        assert_eq!(String::view(bytes, 16), "");
    }

    #[test]
    fn slot_is_filled_in_parts_and_is_visible_once_its_record_was_added() {
        let (mut open, segment) = SegmentWriter::new(Segment::new(16, 2, 10).unwrap());
        for number in 0..2_u64 {
            assert!(open.has_space(4) && !open.has_space(11));
            let mut slot = open.next_slot();
            // SAFETY: the slot has 16 bytes, and nothing else is written.
            unsafe {
                slot.clear_all();
                slot.fill(0, &u64::MAX).unwrap();
                slot.clear(0..8);
                slot.fill(0, &number).unwrap();
                assert_eq!(slot.fill(8, "eleven byte").unwrap_err().needed, Some(11));
                slot.fill(8, "four").unwrap();
            }
            open.commit();
            assert_eq!(u64::from(segment.mark().0), number);
            open.add_record(slot.end);
        }
        assert!(!open.has_space(0), "no slot is free");
        open.commit();
        let (records, end) = segment.mark();
        // SAFETY: the mark has these records.
        let (slots, tails, tails_at) = unsafe { segment.read(0, records, end) };
        let bytes = Bytes::batch(slots, 0, tails, tails_at);
        for number in 0..2 {
            assert_eq!(u64::view(bytes, number * 16), number.into());
            assert_eq!(String::view(bytes, number * 16 + 8), "four");
        }
    }

    #[test]
    fn writer_without_a_segment_has_no_space() {
        let open = SegmentWriter::default();
        assert!(!open.is_open() && !open.has_space(0) && !open.fits(""));
        assert_eq!(open.pending(), 0);
    }

    #[test]
    fn segment_is_reused_only_by_its_sole_owner() {
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
    fn poison_overwrites_only_released_records() {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 2, 10).unwrap());
        open.write(&7u64).unwrap();
        open.write(&8u64).unwrap();
        open.seal();
        // SAFETY: two records are committed, and no reader exists.
        unsafe { segment.poison(0, 1) };
        // SAFETY: two records are committed.
        let (slots, ..) = unsafe { segment.read(0, 2, segment.mark().1) };
        assert_eq!(slots[..8], [0xdb; 8]);
        assert_eq!(slots[8..], 8u64.to_le_bytes());
    }
}
