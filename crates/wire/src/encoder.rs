//! Writing: a message that grows, or a record into a place that was given.

use crate::{Handle, MAX_SIZE, MAX_UNSIZED};
use std::fmt;

/// Writes one message or one record.
///
/// It has two modes. [`Encoder::message`] grows a buffer. [`Encoder::fixed`] writes into a slot and a stretch of tail area; it
/// never writes outside, and what finds no room is counted, so that the caller can go back and try again where there is more.
///
/// Everything that is not written is zero: the fixed part from the start, each tail when it is claimed.
#[derive(Debug)]
pub struct Encoder<'a> {
    slots: &'a mut [u8],
    slots_at: u32,
    tails: Tails<'a>,
    /// Offset of the tail area's first byte, at or after the end of the slots.
    tails_at: u32,
    /// Offset of the next free byte; past the end once something found no room, with [`NO_MEMORY`] once the message could not grow.
    next: u64,
    /// Offsets end here.
    limit: u64,
    /// Room in the table of handles, and how many are in it.
    handles: u32,
    handles_used: u32,
    /// Something cannot be written at all, however much room there is.
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
    /// Bytes that it takes: of tails where the place was given; of the message where it grows, for which the allocator had no memory. `None`: it can
    /// never be written, being larger than [`MAX_SIZE`] or having more than [`MAX_UNSIZED`] elements without size.
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
    /// A message that grows: header, room for `handles` handles, a root of `root_size` zero bytes. `buffer` is emptied and its memory used.
    /// Where tails make it grow and there is no memory, it cannot be finished.
    ///
    /// The root stands at [`message::root`](crate::message::root)`(handles)`.
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
            tails: Tails::Grows(buffer),
            tails_at: 0,
            next,
            limit: u64::from(MAX_SIZE),
            handles,
            handles_used: 0,
            impossible: false,
        }
    }

    /// One record: its fixed part fills `slot`, which begins at offset `slot_at`; its tails go into `tails`, which begins at `tails_at`, at or
    /// after the end of the slot. Offsets count from a byte that is aligned to 8.
    ///
    /// Precondition: `slot` is as long as the record's `SIZE`.
    #[inline(always)]
    pub fn fixed(slot: &'a mut [u8], slot_at: u32, tails: &'a mut [u8], tails_at: u32) -> Self {
        slot.fill(0);
        let limit = (u64::from(tails_at) + tails.len() as u64).min(u64::from(MAX_SIZE));
        Encoder {
            slots: slot,
            slots_at: slot_at,
            tails: Tails::Fixed(tails),
            tails_at,
            next: u64::from(tails_at),
            limit,
            handles: 0,
            handles_used: 0,
            impossible: false,
        }
    }

    /// How many bytes of tails a record takes whose tails begin at `tails_at`, which is not 0: counted, and nothing is written. Where the
    /// record is in the compiler's sight nothing is left of this but the sum of its lengths.
    ///
    /// # Errors
    /// It can never be written.
    #[inline(always)]
    pub fn measure<T: crate::Encode + ?Sized>(value: &T, tails_at: u32) -> Result<u32, NoRoom> {
        let mut counting = Encoder::fixed(&mut [], 0, &mut [], 0);
        counting.next = u64::from(tails_at);
        value.encode(&mut counting, 0);
        let used = counting.next - u64::from(tails_at);
        if counting.impossible || counting.next > u64::from(MAX_SIZE) {
            return Err(no_room(true, counting.next, used));
        }
        Ok(used as u32)
    }

    /// Something found no room. Writing may go on: it only counts then.
    #[inline(always)]
    pub fn overflowed(&self) -> bool {
        self.impossible || self.next > self.limit
    }

    /// Why something found no room, in a message.
    pub(crate) fn no_room(&self) -> NoRoom {
        no_room(self.impossible, self.next, self.next)
    }

    /// Ends a record: how many bytes of the tail area it took.
    ///
    /// # Errors
    /// It found no room; slot and tail area hold nothing of use.
    #[inline(always)]
    pub fn finish_record(self) -> Result<u32, NoRoom> {
        let used = self.next - u64::from(self.tails_at);
        if self.overflowed() {
            Err(no_room(self.impossible, self.next, used))
        } else {
            Ok(used as u32)
        }
    }

    /// Ends a message, which is all that the buffer holds.
    ///
    /// # Errors
    /// It is larger than [`MAX_SIZE`], or there was no memory for it; the buffer holds nothing of use.
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

    /// The bytes from `at`, if they are inside.
    #[inline(always)]
    fn place(&mut self, at: u32, size: usize) -> Option<&mut [u8]> {
        // The slot first, and by its own length alone: where the compiler knows that, as in a stream, nothing is left of the check. What
        // lies in the tails is past the slot's end.
        let from = at.wrapping_sub(self.slots_at) as usize;
        if from < self.slots.len() {
            return self.slots.get_mut(from..from + size);
        }
        let from = at.wrapping_sub(self.tails_at) as usize;
        let tails = match &mut self.tails {
            Tails::Grows(tails) => tails.as_mut_slice(),
            Tails::Fixed(tails) => tails,
        };
        tails.get_mut(from..from.checked_add(size)?)
    }

    /// Writes these bytes at `at`: numbers that stand side by side.
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

    /// Writes a string or `list<u8>`: `{offset, length}` at `at`, the bytes as the next tail.
    #[inline(always)]
    pub fn bytes(&mut self, at: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
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
                return;
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

    /// Begins a list: `{offset, length}` at `at`, room for `count` elements as the next tail, zeroed. Returns the offset of the first;
    /// `None` where there is nothing to write: no room, or no element with a size.
    #[inline(always)]
    pub fn list(&mut self, at: u32, count: usize, size: u32, align: u32) -> Option<u32> {
        if count == 0 {
            return None;
        }
        if size == 0 {
            self.impossible |= count > MAX_UNSIZED as usize;
            self.u32(at + 4, count as u32);
            return None;
        }
        let before = self.next;
        let offset = before.next_multiple_of(u64::from(align));
        let room = (count as u64)
            .checked_mul(u64::from(size))
            .and_then(|bytes| offset.checked_add(bytes));
        let Some(end) = room.filter(|end| *end <= u64::from(MAX_SIZE)) else {
            self.impossible = true;
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

    /// The place for `count` elements of `N` bytes from `at`, to be filled in one go. `None`: no room.
    #[inline]
    pub(crate) fn items<const N: usize>(&mut self, at: u32, count: usize) -> Option<&mut [u8]> {
        self.place(at, count * N)
    }

    /// Writes a handle: its place in the table at `at`, itself into the table.
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

/// Past every limit, and more than all tails together.
const NO_MEMORY: u64 = 1 << 62;

/// More is a long copy.
///
/// A C library's `memcpy` leaves those to the processor (`rep movsb`). Some processors take 20 times as long where the target lies up to 31 bytes after the
/// source, multiples of 4,096 aside: 64 KiB took 31 us in place of 1.4 (AMD EPYC, glibc 2.36), and in pieces of this size 1.3. Others never mind, and take a third
/// longer for the pieces, and where source and target are not alike within a line.
const PIECE: usize = 2048;

/// Where a long text begins in a message, which is like its source then within a line: two large blocks of an allocator begin at the same place of
/// their pages. A header of 24 bytes would put it where the slow copies are.
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

/// Appends `bytes` where the buffer must grow for it. Whether there is memory.
#[cold]
#[inline(never)]
fn extend_anew(buffer: &mut Vec<u8>, bytes: &[u8]) -> bool {
    if buffer.try_reserve(bytes.len()).is_err() {
        return false;
    }
    buffer.extend_from_slice(bytes);
    true
}

/// Appends zeros up to `size` where the buffer must grow for it. Whether there is memory.
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

/// From `start` on, behind zeros. Whether there is memory for it.
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

/// Whether a copy in one go may be, with more than one processor's bad case.
fn is_slow(to: *const u8, from: &[u8]) -> bool {
    const PAGE: usize = 4096;
    let after = to.addr().wrapping_sub(from.as_ptr().addr()) % PAGE;
    (1..LINE as usize).contains(&after)
}

/// It takes values: a reference to the encoder would keep all of it in memory.
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
