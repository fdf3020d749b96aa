//! The memory of a stream: slots and the area of their tails, in one allocation.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thalweg_wire::{Bytes, Encode, Encoder, NoRoom};

/// Alignment of a segment: a cache line, and more than any record needs.
const ALIGN: usize = 64;

/// Slots, then tails. Offsets count from the first byte.
#[derive(Debug)]
pub(crate) struct Segment {
    memory: NonNull<u8>,
    size: u32,
    stride: u32,
    slots: u32,
    tails_at: u32,
    /// `records << 32 | end of tails`: rule 1 of the stream.
    committed: AtomicU64,
    sealed: AtomicBool,
}

// SAFETY: rule 1: the one writer touches only what lies beyond `committed`, readers only what lies before it.
unsafe impl Send for Segment {}
// SAFETY: as above; that there is one writer at a time is the lane's lock.
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
            committed: AtomicU64::new(u64::from(tails_at)),
            sealed: AtomicBool::new(false),
        })
    }

    /// Empty again. Only the sole owner can.
    pub(crate) fn reset(&mut self) {
        *self.committed.get_mut() = u64::from(self.tails_at);
        *self.sealed.get_mut() = false;
    }

    /// Whether it has the size that the stream's segments usually have.
    pub(crate) fn is_usual(&self, slots: u32, tails: u32) -> bool {
        self.slots == slots && self.size - self.tails_at == tails
    }

    /// Records that may be read, and where their tails end.
    fn mark(&self) -> (u32, u32) {
        let mark = self.committed.load(Ordering::Acquire);
        ((mark >> 32) as u32, mark as u32)
    }

    pub(crate) fn records(&self) -> u32 {
        self.mark().0
    }

    pub(crate) fn stride(&self) -> u32 {
        self.stride
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    /// Bytes from the base on that are committed.
    pub(crate) fn readable(&self) -> u32 {
        self.mark().1
    }

    /// No record will follow those that are committed.
    pub(crate) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    /// The writer: one more record. `NoRoom::needed` is of tails, and `Some(0)` where a slot is wanting.
    pub(crate) fn write<T: Encode + ?Sized>(&self, value: &T) -> Result<(), NoRoom> {
        let (records, end) = self.mark();
        if records == self.slots {
            return Err(NoRoom { needed: Some(0) });
        }
        let slot_at = records * self.stride;
        // SAFETY: rule 1: both ranges lie beyond the mark and inside the allocation, they do not overlap (the slot ends at or
        // before `tails_at`, the tails begin at or after it), and the lane's lock keeps other writers out.
        let (slot, tails) = unsafe {
            (
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(slot_at as usize),
                    self.stride as usize,
                ),
                std::slice::from_raw_parts_mut(
                    self.memory.as_ptr().add(end as usize),
                    (self.size - end) as usize,
                ),
            )
        };
        let mut encoder = Encoder::fixed(slot, slot_at, tails, end);
        value.encode(&mut encoder, slot_at);
        let used = encoder.finish_record()?;
        let mark = u64::from(records + 1) << 32 | u64::from(end + used);
        self.committed.store(mark, Ordering::Release);
        Ok(())
    }

    /// The reader: records `from .. from + count`, which must be committed.
    pub(crate) fn read(&self, from: u32, count: u32) -> Bytes<'_> {
        let (records, end) = self.mark();
        assert!(from + count <= records, "only what is committed is read");
        let at = from * self.stride;
        // SAFETY: rule 1: both ranges lie before the mark, so nobody writes them while the segment is in use; the caller's borrow
        // keeps it in use.
        let (slots, tails) = unsafe {
            (
                std::slice::from_raw_parts(
                    self.memory.as_ptr().add(at as usize),
                    (count * self.stride) as usize,
                ),
                std::slice::from_raw_parts(
                    self.memory.as_ptr().add(self.tails_at as usize),
                    (end - self.tails_at) as usize,
                ),
            )
        };
        Bytes::batch(slots, at, tails, self.tails_at)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.size as usize, ALIGN)
            .expect("it was a layout when it was allocated");
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.memory.as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::Segment;
    use thalweg_wire::Decode;

    #[test]
    fn records_are_read_as_they_were_written_until_there_is_no_room() {
        let segment = Segment::new(8, 3, 10).unwrap();
        segment.write("four").unwrap();
        segment.write("sixsix").unwrap();
        // A slot is left, but no tail.
        assert_eq!(segment.write("x").unwrap_err().needed, Some(1));
        segment.write("").unwrap();
        assert_eq!(segment.write("").unwrap_err().needed, Some(0));
        let bytes = segment.read(1, 2);
        assert_eq!(String::view(bytes, 8), "sixsix");
        assert_eq!(String::view(bytes, 16), "");
        assert_eq!(segment.records(), 3);
    }
}
