//! Writes a message that grows, or a record into a given slot.

use crate::{Handle, MAX_SIZE, MAX_UNSIZED};
use std::fmt;

/// Writes one message or one record.
///
/// It has two modes. [`Encoder::message`] grows a buffer. [`Encoder::fixed`] writes into a slot and
/// a range of the tail area. It never writes outside; it counts the bytes that do not fit, so that
/// the caller can try again with more space.
///
/// All unwritten bytes are zero: those of the fixed part from the start, those of a tail from its
/// allocation. Only a [dense](crate::Decode::IS_DENSE) record's slot is not zero at the start.
#[derive(Debug)]
pub struct Encoder<'a> {
    slots: &'a mut [u8],
    slots_at: u32,
    /// Number of bytes at the beginning of the slots that are initialised: written, or zeroed at the
    /// start. The compiler knows it if it can see the record.
    filled: usize,
    tails: Tails<'a>,
    /// Offset of the first byte of the tail area, at or after the end of the slots.
    tails_at: u32,
    /// Offset of the next free byte. It is past the end after something did not fit, and includes
    /// [`NO_MEMORY`] after the message could not grow.
    next: u64,
    /// The end of the offsets.
    limit: u64,
    /// The capacity of the handle table, and the number of handles in it.
    handles: u32,
    handles_used: u32,
    /// Whether the value can never be written, however much space there is.
    impossible: bool,
}

#[derive(Debug)]
enum Tails<'a> {
    Grows(&'a mut Vec<u8>),
    Fixed(&'a mut [u8]),
}

/// The value does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The number of bytes required: of tails for a given slot, or of the message that could not
    /// grow because there was not enough memory. `None` if the value can never be written, because
    /// it is larger than [`MAX_SIZE`] or has more than [`MAX_UNSIZED`] elements of size 0.
    pub needed: Option<u32>,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.needed {
            Some(needed) => write!(f, "the value takes {needed} bytes and there are fewer"),
            None => write!(
                f,
                "the value is larger than a message may be ({MAX_SIZE} bytes)"
            ),
        }
    }
}

impl std::error::Error for NoRoom {}

impl<'a> Encoder<'a> {
    /// Starts a message that grows: a header, space for `handles` handles, and a root of
    /// `root_size` zero bytes. `buffer` is cleared and its memory is reused. If there is not enough
    /// memory for the tails, the message cannot be finished.
    ///
    /// The root is at [`message::root`](crate::message::root)`(handles)`.
    #[inline(always)]
    pub fn message(layout: u64, handles: u32, root_size: u32, buffer: &'a mut Vec<u8>) -> Self {
        let root = crate::message::root(handles);
        let next = u64::from(root) + u64::from(root_size);
        buffer.clear();
        buffer.resize(next as usize, 0);
        buffer[4..8].copy_from_slice(&(layout as u32).to_le_bytes());
        buffer[8..12].copy_from_slice(&handles.to_le_bytes());
        buffer[12..16].copy_from_slice(&root.to_le_bytes());
        Encoder {
            slots: &mut [],
            slots_at: 0,
            filled: 0,
            tails: Tails::Grows(buffer),
            tails_at: 0,
            next,
            limit: u64::from(MAX_SIZE),
            handles,
            handles_used: 0,
            impossible: false,
        }
    }

    /// Starts one record. Its fixed part fills `slot`, which begins at offset `slot_at`. Its tails
    /// go into `tails`, which begins at `tails_at`, at or after the end of the slot. Offsets count
    /// from a byte that is aligned to 8.
    ///
    /// Precondition: `slot` is as long as the record's `SIZE`.
    #[inline(always)]
    pub fn fixed(slot: &'a mut [u8], slot_at: u32, tails: &'a mut [u8], tails_at: u32) -> Self {
        slot.fill(0);
        let filled = slot.len();
        let limit = (u64::from(tails_at) + tails.len() as u64).min(u64::from(MAX_SIZE));
        Self::with(slot, filled, slot_at, tails, tails_at, limit)
    }

    /// The same for a record whose fixed part is copied as a whole, so that it need not be zeroed first.
    ///
    /// Precondition: `tails` ends at or before [`MAX_SIZE`].
    pub fn copied(slot: &'a mut [u8], slot_at: u32, tails: &'a mut [u8], tails_at: u32) -> Self {
        let limit = u64::from(tails_at) + tails.len() as u64;
        Self::with(slot, 0, slot_at, tails, tails_at, limit)
    }

    /// The same for a record of this type. The slot of a type that writes all of it is not zeroed
    /// first: 50 of the 240 instructions of an event of 488 bytes did that. Such a record must be
    /// written from its first byte to its last, or it cannot be finished.
    ///
    /// Precondition: `tails` ends at or before [`MAX_SIZE`].
    #[inline(always)]
    pub fn record<T: crate::Decode>(
        slot: &'a mut [u8],
        slot_at: u32,
        tails: &'a mut [u8],
        tails_at: u32,
    ) -> Self {
        let mut filled = 0;
        if !T::IS_DENSE {
            slot.fill(0);
            filled = slot.len();
        }
        let limit = u64::from(tails_at) + tails.len() as u64;
        Self::with(slot, filled, slot_at, tails, tails_at, limit)
    }

    #[inline(always)]
    fn with(
        slot: &'a mut [u8],
        filled: usize,
        slot_at: u32,
        tails: &'a mut [u8],
        tails_at: u32,
        limit: u64,
    ) -> Self {
        Encoder {
            slots: slot,
            slots_at: slot_at,
            filled,
            tails: Tails::Fixed(tails),
            tails_at,
            next: u64::from(tails_at),
            limit,
            handles: 0,
            handles_used: 0,
            impossible: false,
        }
    }

    /// Counts the bytes of a record's tails if they begin at `tails_at`, which is not 0. Nothing is
    /// written. If the compiler can see the record, it reduces this to the sum of its lengths.
    ///
    /// # Errors
    /// The record can never be written.
    #[inline(always)]
    pub fn measure<T: crate::Encode + ?Sized>(value: &T, tails_at: u32) -> Result<u32, NoRoom> {
        let counted = Self::count(value, tails_at);
        let used = counted.next - u64::from(tails_at);
        if counted.impossible || counted.next > u64::from(MAX_SIZE) {
            return Err(no_room(true, counted.next, used));
        }
        Ok(used as u32)
    }

    /// Whether a record's tails fit between `tails_at`, which is not 0, and `end`. Like
    /// [`measure`](Self::measure), with fewer comparisons.
    #[inline(always)]
    pub fn fits<T: crate::Encode + ?Sized>(value: &T, tails_at: u32, end: u32) -> bool {
        let counted = Self::count(value, tails_at);
        !counted.impossible && counted.next <= u64::from(end)
    }

    /// An encoder that only counts the bytes of the tails, which begin at `tails_at`, not 0.
    #[inline(always)]
    pub(crate) fn counting(tails_at: u32) -> Encoder<'static> {
        let mut counting = Encoder::fixed(&mut [], 0, &mut [], 0);
        counting.next = u64::from(tails_at);
        counting
    }

    /// The offset after the tails that a counting encoder has counted.
    ///
    /// # Errors
    /// The value can never be written.
    pub(crate) fn counted(&self) -> Result<u32, NoRoom> {
        match u32::try_from(self.next) {
            Ok(end) if !self.impossible && end <= MAX_SIZE => Ok(end),
            _ => Err(no_room(true, self.next, self.next)),
        }
    }

    #[inline(always)]
    fn count<T: crate::Encode + ?Sized>(value: &T, tails_at: u32) -> Encoder<'static> {
        let mut counting = Encoder::counting(tails_at);
        value.encode(&mut counting, 0);
        counting
    }

    /// Whether something did not fit. Writing can continue, but then only counts.
    #[inline(always)]
    pub fn overflowed(&self) -> bool {
        self.impossible || self.next > self.limit
    }

    /// Why a message did not fit.
    pub(crate) fn no_room(&self) -> NoRoom {
        no_room(self.impossible, self.next, self.next)
    }

    /// Ends a record. Returns the number of bytes of the tail area that it takes.
    ///
    /// # Errors
    /// The record did not fit; the contents of the slot and the tail area are unspecified.
    #[inline(always)]
    pub fn finish_record(self) -> Result<u32, NoRoom> {
        let tails_at = self.tails_at;
        Ok(self.finish_record_at()? - tails_at)
    }

    /// Like [`finish_record`](Self::finish_record), but returns the offset of the next free byte.
    ///
    /// # Errors
    /// As [`finish_record`](Self::finish_record).
    #[inline(always)]
    pub fn finish_record_at(self) -> Result<u32, NoRoom> {
        if self.overflowed() {
            let used = self.next - u64::from(self.tails_at);
            Err(no_room(self.impossible, self.next, used))
        } else if self.filled < self.slots.len() {
            // The encoder of the type is wrong, and part of the slot may be uninitialised.
            Err(NoRoom { needed: None })
        } else {
            Ok(self.next as u32)
        }
    }

    /// Ends a message, which is the whole content of the buffer.
    ///
    /// # Errors
    /// The message is larger than [`MAX_SIZE`], or there is not enough memory for it; the contents
    /// of the buffer are unspecified.
    #[inline(always)]
    pub fn finish_message(self) -> Result<(), NoRoom> {
        debug_assert_eq!(
            self.handles_used, self.handles,
            "the table of handles has holes"
        );
        if self.overflowed() {
            return Err(no_room(self.impossible, self.next, self.next));
        }
        let Tails::Grows(bytes) = self.tails else {
            return Err(NoRoom { needed: None });
        };
        bytes[0..4].copy_from_slice(&(self.next as u32).to_le_bytes());
        Ok(())
    }

    /// The bytes from `at` on, if they are inside. The caller writes all of them.
    #[inline(always)]
    fn place(&mut self, at: u32, size: usize) -> Option<&mut [u8]> {
        // The slot is tried first, and compared only with its own length. If the compiler knows the
        // length, as in a stream, it removes the check. Offsets in the tails are past the end of
        // the slot.
        let from = at.wrapping_sub(self.slots_at) as usize;
        if from < self.slots.len() {
            let place = self.slots.get_mut(from..from + size)?;
            if from == self.filled {
                self.filled += size;
            }
            return Some(place);
        }
        let from = at.wrapping_sub(self.tails_at) as usize;
        let tails = match &mut self.tails {
            Tails::Grows(tails) => tails.as_mut_slice(),
            Tails::Fixed(tails) => tails,
        };
        tails.get_mut(from..from.checked_add(size)?)
    }

    /// Writes these bytes at `at`: adjacent numbers.
    #[inline(always)]
    pub fn words<const N: usize>(&mut self, at: u32, bytes: [u8; N]) {
        match self.place(at, N) {
            Some(place) => place.copy_from_slice(&bytes),
            None => debug_assert!(self.overflowed(), "a field outside of what was claimed"),
        }
    }

    /// Writes a byte at `at`.
    #[inline(always)]
    pub fn u8(&mut self, at: u32, value: u8) {
        self.words(at, value.to_le_bytes());
    }

    /// Writes two bytes at `at`.
    #[inline(always)]
    pub fn u16(&mut self, at: u32, value: u16) {
        self.words(at, value.to_le_bytes());
    }

    /// Writes four bytes at `at`.
    #[inline(always)]
    pub fn u32(&mut self, at: u32, value: u32) {
        self.words(at, value.to_le_bytes());
    }

    /// Writes eight bytes at `at`.
    #[inline(always)]
    pub fn u64(&mut self, at: u32, value: u64) {
        self.words(at, value.to_le_bytes());
    }

    /// Writes an empty string or list at `at`. The root of a message is zero already, and so is the
    /// tail of a list.
    #[inline(always)]
    pub(crate) fn empty(&mut self, at: u32) {
        if let Tails::Fixed(_) = self.tails {
            self.u64(at, 0);
        }
    }

    /// Writes a string or `list<u8>`: `{offset, length}` at `at`, and the bytes as the next tail.
    #[inline(always)]
    pub fn bytes(&mut self, at: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.empty(at);
        }
        let mut offset = self.next;
        if bytes.len() > PIECE
            && let Tails::Grows(tails) = &mut self.tails
        {
            offset = offset.next_multiple_of(LINE);
            self.next = offset + bytes.len() as u64;
            if self.next > self.limit {
                return;
            }
            if !extend(tails, (offset - u64::from(self.tails_at)) as usize, bytes) {
                self.next |= NO_MEMORY;
                return;
            }
        } else {
            self.next += bytes.len() as u64;
            if self.next > self.limit {
                // Every path fills the slot, so that the compiler knows how much is filled.
                return self.empty(at);
            }
            match &mut self.tails {
                Tails::Grows(tails) => {
                    if tails.capacity() - tails.len() >= bytes.len() {
                        tails.extend_from_slice(bytes);
                    } else if !extend_anew(tails, bytes) {
                        self.next |= NO_MEMORY;
                        return;
                    }
                }
                Tails::Fixed(tails) => {
                    let start = offset as usize - self.tails_at as usize;
                    let place = &mut tails[start..start + bytes.len()];
                    if bytes.len() > PIECE {
                        copy(place, bytes);
                    } else {
                        place.copy_from_slice(bytes);
                    }
                }
            }
        }
        self.u64(at, offset | (bytes.len() as u64) << 32);
    }

    /// Begins a list: `{offset, length}` at `at`, and a zeroed tail for `count` elements. Returns
    /// the offset of the first element, or `None` if there is nothing to write, because the tail
    /// does not fit or no element has a size.
    #[inline(always)]
    pub fn list(&mut self, at: u32, count: usize, size: u32, align: u32) -> Option<u32> {
        if count == 0 {
            self.empty(at);
            return None;
        }
        if size == 0 {
            self.impossible |= count > MAX_UNSIZED as usize;
            self.u64(at, (count as u64) << 32);
            return None;
        }
        let before = self.next;
        let offset = before.next_multiple_of(u64::from(align));
        let room = (count as u64)
            .checked_mul(u64::from(size))
            .and_then(|bytes| offset.checked_add(bytes));
        let Some(end) = room.filter(|end| *end <= u64::from(MAX_SIZE)) else {
            self.impossible = true;
            self.empty(at);
            return None;
        };
        self.next = end;
        if end <= self.limit {
            let (from, to) = (
                before as usize - self.tails_at as usize,
                end as usize - self.tails_at as usize,
            );
            match &mut self.tails {
                Tails::Grows(tails) => {
                    if tails.capacity() >= to {
                        tails.resize(to, 0);
                    } else if !resize_anew(tails, to) {
                        self.next |= NO_MEMORY;
                        return None;
                    }
                }
                Tails::Fixed(tails) => tails[from..to].fill(0),
            }
        }
        self.u64(at, offset | (count as u64) << 32);
        Some(offset as u32)
    }

    /// Space for `count` elements of `N` bytes from `at` on, to be filled together. `None` if it
    /// does not fit.
    #[inline]
    pub(crate) fn items<const N: usize>(&mut self, at: u32, count: usize) -> Option<&mut [u8]> {
        self.place(at, count * N)
    }

    /// Writes a handle: its index at `at`, and the handle itself into the table.
    pub fn handle(&mut self, at: u32, handle: Handle) {
        let index = self.handles_used;
        self.handles_used += 1;
        if index >= self.handles {
            self.impossible = true;
            return;
        }
        self.u64(crate::message::HEADER + 8 * index, handle.0);
        self.u32(at, index);
    }
}

/// Past every limit, and larger than all tails together.
const NO_MEMORY: u64 = 1 << 62;

/// A longer copy is done in pieces of this size.
///
/// For long copies, the `memcpy` of a C library uses the instruction `rep movsb`. Some processors
/// take 20 times as long if the target is up to 31 bytes after the source, modulo 4,096: 64 KiB
/// took 31 us instead of 1.4 (AMD EPYC, glibc 2.36), and 1.3 in pieces of this size. Other
/// processors are not affected; there, pieces take a third longer, also if source and target have
/// different positions within a line.
const PIECE: usize = 2048;

/// Long texts begin at a multiple of this in a message, so that source and target have the same
/// position within a line. Large blocks of an allocator begin at the same position of their pages,
/// and a header of 24 bytes would cause the slow copies.
const LINE: u64 = 64;

#[cold]
#[inline(never)]
fn copy(to: &mut [u8], from: &[u8]) {
    if !is_slow(to.as_ptr(), from) {
        return to.copy_from_slice(from);
    }
    for (to, from) in to.chunks_mut(PIECE).zip(from.chunks(PIECE)) {
        to.copy_from_slice(from);
    }
}

/// Appends `bytes` to a buffer that must grow. Returns whether there is enough memory.
#[cold]
#[inline(never)]
fn extend_anew(buffer: &mut Vec<u8>, bytes: &[u8]) -> bool {
    if buffer.try_reserve(bytes.len()).is_err() {
        return false;
    }
    buffer.extend_from_slice(bytes);
    true
}

/// Appends zeros up to `size` to a buffer that must grow. Returns whether there is enough memory.
#[cold]
#[inline(never)]
fn resize_anew(buffer: &mut Vec<u8>, size: usize) -> bool {
    if buffer
        .try_reserve(size.saturating_sub(buffer.len()))
        .is_err()
    {
        return false;
    }
    buffer.resize(size, 0);
    true
}

/// Appends zeros and then `bytes` at `start`. Returns whether there is enough memory.
#[cold]
#[inline(never)]
fn extend(to: &mut Vec<u8>, start: usize, from: &[u8]) -> bool {
    if to
        .try_reserve(start.saturating_sub(to.len()) + from.len())
        .is_err()
    {
        return false;
    }
    to.resize(start, 0);
    let pieces = match is_slow(to.spare_capacity_mut().as_ptr().cast(), from) {
        true => PIECE,
        false => from.len(),
    };
    for piece in from.chunks(pieces) {
        to.extend_from_slice(piece);
    }
    true
}

/// Whether one copy could hit the slow case of a processor.
fn is_slow(to: *const u8, from: &[u8]) -> bool {
    const PAGE: usize = 4096;
    let after = to.addr().wrapping_sub(from.as_ptr().addr()) % PAGE;
    (1..LINE as usize).contains(&after)
}

/// It takes values, because a reference to the encoder would force all of it into memory.
#[cold]
fn no_room(impossible: bool, next: u64, needed: u64) -> NoRoom {
    if next >= NO_MEMORY {
        let needed = u32::try_from(needed & !NO_MEMORY);
        return NoRoom {
            needed: Some(needed.unwrap_or(MAX_SIZE)),
        };
    }
    let possible = !impossible && next <= u64::from(MAX_SIZE);
    NoRoom {
        needed: possible.then(|| u32::try_from(needed).ok()).flatten(),
    }
}
