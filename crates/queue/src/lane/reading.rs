//! The reader's side of a lane.

use super::{Cursor, Lane, Place, Reader};
use crate::sync::Ordering;
use std::ptr;

impl<T> Lane<T> {
    /// Values inside, for the reader: it looks at the stamps ahead of it.
    pub(crate) fn len_for_reader(&self, reader: &Reader) -> usize {
        let cursor = reader.cursor.clone();
        let head = self.taken();
        let mut position = head;
        loop {
            let at = cursor.at.get();
            let left = Self::places_left(at);
            // SAFETY: the reader's block is alive, and so is every block after it.
            let stamp = unsafe { Self::stamp(at) }.load(Ordering::Acquire);
            if stamp < position + left {
                return stamp.max(position) - head;
            }
            position += left;
            if position - head >= self.capacity {
                return self.capacity;
            }
            if let Some(next) = Self::next_line(&cursor, at) {
                cursor.at.set(next);
            } else {
                let block = self.block_before(cursor.end.get());
                // SAFETY: as above; rule 4: a filled block is linked.
                let next = unsafe { (*block).next.load(Ordering::Acquire) };
                self.enter(&cursor, next);
            }
        }
    }

    /// Whether there is a value; rule 2.
    #[inline(always)]
    pub(crate) fn has_value(&self, reader: &Reader) -> bool {
        self.taken() < reader.filled.get() || self.look_for_values(reader, self.taken())
    }

    #[inline(always)]
    fn look_for_values(&self, reader: &Reader, head: usize) -> bool {
        // SAFETY: the reader's block is alive.
        let stamp = unsafe { Self::stamp(reader.cursor.at.get()) };
        let filled = stamp.load(Ordering::Acquire);
        if filled <= head {
            return false;
        }
        reader.filled.set(filled);
        true
    }

    /// How many values are there for sure, `most` at most.
    #[inline(always)]
    fn known(&self, reader: &Reader, most: usize) -> usize {
        if !self.has_value(reader) {
            return 0;
        }
        most.min(reader.filled.get() - self.taken())
    }

    /// Takes a value out, if there is one.
    ///
    /// # Safety
    /// `reader` is this lane's, and the caller is its one user.
    #[inline(always)]
    pub(crate) unsafe fn try_pop(&self, reader: &Reader) -> Option<T> {
        let head = self.taken();
        if head >= reader.filled.get() && !self.look_for_values(reader, head) {
            return None;
        }
        // SAFETY: there is a value.
        Some(unsafe { self.pop(reader, head) })
    }

    /// Takes the value of position `head` out.
    ///
    /// # Safety
    /// As [`Lane::try_pop`], the reader stands at `head`, and the value is there.
    #[inline(always)]
    unsafe fn pop(&self, reader: &Reader, head: usize) -> T {
        let at = reader.cursor.at.get();
        // SAFETY: rule 2: the value of this position is there, and nobody else takes it.
        let value =
            unsafe { (*at.cast::<Place<T>>()).with_mut(|place| (*place).assume_init_read()) };
        self.advance(reader, at, head);
        value
    }

    /// Goes on from `at`, the place of position `head`.
    #[inline(always)]
    fn advance(&self, reader: &Reader, at: *mut u8, head: usize) {
        let next = at.wrapping_add(size_of::<Place<T>>());
        if !Self::is_beyond(next) {
            reader.cursor.at.set(next);
        } else if let Some(next) = Self::next_line(&reader.cursor, at) {
            reader.cursor.at.set(next);
        } else {
            self.reader_leaves_block(&reader.cursor);
        }
        self.head.0.store(head + 1, Ordering::Release);
    }

    #[inline(never)]
    fn reader_leaves_block(&self, cursor: &Cursor) {
        let block = self.block_before(cursor.end.get());
        // SAFETY: the reader's block is alive until it is given back below. Rule 4: the link was stored before the
        // last stamp of the block.
        let next = unsafe { (*block).next.load(Ordering::Acquire) };
        self.enter(cursor, next);
        if next == block {
            return;
        }
        // SAFETY: both sides have left the block: the writer linked the next one when it did.
        unsafe { (*block).next.store(ptr::null_mut(), Ordering::Relaxed) };
        let old = self.spare.swap(block, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: a spare block is nobody's.
            unsafe { Self::free(old, self.lines) };
        }
    }

    /// Takes out what is there, `most` at most, and hands each value to `take`; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    pub(crate) unsafe fn pop_some(
        &self,
        reader: &Reader,
        most: usize,
        mut take: impl FnMut(T),
    ) -> usize {
        let mut count = 0;
        while count < most {
            let here = self.known(reader, most - count);
            if here == 0 {
                break;
            }
            for _ in 0..here {
                // SAFETY: as in `pop`, and there are that many.
                take(unsafe { self.pop(reader, self.taken()) });
            }
            count += here;
        }
        count
    }

    /// Looks at what is there, `most` at most, in place, and drops it; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    pub(crate) unsafe fn peek_some(
        &self,
        reader: &Reader,
        most: usize,
        mut look: impl FnMut(&T),
    ) -> usize {
        let mut count = 0;
        while count < most {
            let here = self.known(reader, most - count);
            if here == 0 {
                break;
            }
            for _ in 0..here {
                let at = reader.cursor.at.get().cast::<Place<T>>();
                // SAFETY: as in `pop`.
                let value = unsafe { (*at).with_mut(|place| (*place).as_mut_ptr()) };
                // First the value goes, then its place: the writer may take the block when the reader has left it.
                let _advance = Advance { lane: self, reader };
                let _value = DropInPlace(value);
                // SAFETY: the value is there until the end of this turn.
                look(unsafe { &*value });
            }
            count += here;
        }
        count
    }

    /// How many values were taken out since the beginning.
    #[inline(always)]
    pub(crate) fn taken(&self) -> usize {
        self.head.0.load(Ordering::Relaxed)
    }
}

struct Advance<'a, T> {
    lane: &'a Lane<T>,
    reader: &'a Reader,
}

impl<T> Drop for Advance<'_, T> {
    fn drop(&mut self) {
        let at = self.reader.cursor.at.get();
        self.lane.advance(self.reader, at, self.lane.taken());
    }
}

struct DropInPlace<T>(*mut T);

impl<T> Drop for DropInPlace<T> {
    fn drop(&mut self) {
        // SAFETY: who made it owns the value and uses it no more.
        unsafe { self.0.drop_in_place() };
    }
}
