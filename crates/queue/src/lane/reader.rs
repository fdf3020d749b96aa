//! The reader's side of a lane.

use super::{Block, LINE, Lane, Reader, ValueCell};
use crate::sync::Ordering;
use std::ptr;

impl<T> Lane<T> {
    #[inline(always)]
    fn head(&self) -> usize {
        self.head.load(Ordering::Relaxed)
    }

    /// Whether there is a value in this line, or in the next one if this one is used up, as far as one look at a stamp tells (rule 2).
    /// It looks at none while it knows of values.
    #[inline(always)]
    pub(crate) fn has_visible_value(&self, reader: &Reader) -> bool {
        self.has_known_value(reader) || self.load_stamp(reader)
    }

    #[inline(always)]
    pub(crate) fn has_known_value(&self, reader: &Reader) -> bool {
        self.head() != reader.cursor.until.get()
    }

    #[inline(always)]
    fn load_stamp(&self, reader: &Reader) -> bool {
        let head = self.head();
        let Some(found) = self.load_stamp_from(reader, head) else {
            return false;
        };
        if found != head {
            // Release like any other: a weaker store would hide the one before from the writer that reads it.
            self.head.store(found, Ordering::Release);
        }
        true
    }

    /// By a reader that knows of no value at `head`: the offset of the next one, if there is one.
    #[inline(always)]
    fn load_stamp_from(&self, reader: &Reader, mut head: usize) -> Option<usize> {
        let cursor = &reader.cursor;
        let mut line = cursor.line.get();
        let is_next = head % LINE == (Self::FIRST + Self::FULL) % LINE;
        if is_next {
            head = head - Self::FULL + LINE;
            line = line.wrapping_add(Self::STRIDE);
            if line == cursor.end.get() {
                return None;
            }
        }
        // SAFETY: the reader's block is alive, and the line is in it.
        let filled = unsafe { Self::stamp(line) }.load(Ordering::Acquire);
        if filled < head {
            return None;
        }
        if is_next {
            cursor.line.set(line);
        }
        // The writer may have come round to this line again.
        cursor
            .until
            .set(Self::line_end(head).min(filled + Self::STEP));
        Some(head)
    }

    /// Whether there is a value; rule 2.
    pub(crate) fn has_value(&self, reader: &Reader) -> bool {
        self.known(reader) > 0
    }

    /// How many values of the reader's line, or the next one, are there for sure: 0 if there are none at all.
    #[inline(always)]
    pub(crate) fn known(&self, reader: &Reader) -> usize {
        if self.has_visible_value(reader) || self.enter_next_block(reader) {
            (reader.cursor.until.get() - self.head()) / Self::STEP
        } else {
            0
        }
    }

    /// Where the reader's block is drained: whether there is a value in the next one.
    #[inline(never)]
    fn enter_next_block(&self, reader: &Reader) -> bool {
        let cursor = &reader.cursor;
        let head = self.head();
        if head != Self::line_end(head) {
            return false;
        }
        let next = self.next_line(cursor, head, |block| self.recycle_block(block));
        let Some(first) = next else { return false };
        self.head.store(first, Ordering::Release);
        cursor.until.set(first);
        self.load_stamp(reader)
    }

    /// Takes a value out.
    ///
    /// # Safety
    /// `reader` is this lane's, the caller is its one user, and [`Lane::has_visible_value`], or a like of it, said so.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, reader: &Reader) -> T {
        let head = self.head();
        let at = Self::cell_at(reader.cursor.line.get(), head);
        // SAFETY: rule 2: the value of this place is there, and nobody else takes it.
        let value = unsafe { (*at).with_mut(|cell| (*cell).assume_init_read()) };
        self.head.store(head + Self::STEP, Ordering::Release);
        value
    }

    /// Takes a value out, if there is one.
    ///
    /// # Safety
    /// `reader` is this lane's, and the caller is its one user.
    #[inline(always)]
    pub(crate) unsafe fn try_pop(&self, reader: &Reader) -> Option<T> {
        // SAFETY: the caller's, and there is a value.
        self.has_value(reader).then(|| unsafe { self.pop(reader) })
    }

    /// The block after this one, which goes back to the writer; `None`: the writer has not left it yet.
    fn recycle_block(&self, block: *mut Block) -> Option<*mut Block> {
        // SAFETY: the reader's block is alive until it is given back below.
        let next = unsafe { (*block).next.load(Ordering::Acquire) };
        if next.is_null() || next == block {
            return (!next.is_null()).then_some(next);
        }
        // SAFETY: both sides have left the block: the link is the last thing of it that the writer touched.
        unsafe { (*block).next.store(ptr::null_mut(), Ordering::Relaxed) };
        let old = self.writer_state.spare.swap(block, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: a spare block is nobody's.
            unsafe { Self::free(old, self.writer_state.lines) };
        }
        Some(next)
    }

    /// Takes out what is there, `most` at max, and hands each value to `take`; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    #[inline]
    pub(crate) unsafe fn pop_some(
        &self,
        reader: &Reader,
        max: usize,
        mut take: impl FnMut(T),
    ) -> usize {
        self.consume_some(reader, max, |at| {
            // SAFETY: rule 2: the value of this place is there, and nobody else takes it.
            take(unsafe { (*at).with_mut(|cell| (*cell).assume_init_read()) })
        })
    }

    /// Looks at what is there, `most` at max, in place, and drops it; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    #[inline]
    pub(crate) unsafe fn peek_some(
        &self,
        reader: &Reader,
        max: usize,
        mut look: impl FnMut(&T),
    ) -> usize {
        self.consume_some(reader, max, |at| {
            // SAFETY: as in `pop_some`.
            let value = unsafe { (*at).with_mut(|cell| (*cell).as_mut_ptr()) };
            let _value = DropInPlace(value);
            // SAFETY: the value is there until the end of this turn.
            look(unsafe { &*value });
        })
    }

    /// Goes through the places that are filled, `most` at max, each of which the reader leaves with its call of `leave`; how many.
    ///
    /// They are given back together, so that a writer that waits for room does not take `head` away at every line.
    #[inline(always)]
    fn consume_some(
        &self,
        reader: &Reader,
        max: usize,
        mut leave: impl FnMut(*mut ValueCell<T>),
    ) -> usize {
        let mut left = max;
        let mut consuming = Consuming {
            lane: self,
            head: self.head(),
        };
        let mut released = consuming.head;
        while left > 0 {
            if consuming.head == reader.cursor.until.get() {
                if let Some(found) = self.load_stamp_from(reader, consuming.head) {
                    consuming.head = found;
                } else {
                    consuming.release();
                    let follows = self.enter_next_block(reader);
                    consuming.head = self.head();
                    if !follows {
                        break;
                    }
                }
                if consuming.head - released > RELEASE_LINES * LINE {
                    consuming.release();
                    released = consuming.head;
                }
            }
            let here = (reader.cursor.until.get() - consuming.head) / Self::STEP;
            let here = here.min(left);
            let line = reader.cursor.line.get();
            // As in `push_some`.
            if here == Self::PER_LINE {
                consuming.consume(line, Self::PER_LINE, &mut leave);
            } else {
                consuming.consume(line, here, &mut leave);
            }
            left -= here;
        }
        max - left
    }
}

/// Lines that are given back together, at max.
const RELEASE_LINES: usize = 16;

/// Gives back the places that the reader has left, whatever happens.
struct Consuming<'a, T> {
    lane: &'a Lane<T>,
    head: usize,
}

impl<T> Consuming<'_, T> {
    #[inline(always)]
    fn consume(&mut self, line: *mut u8, places: usize, leave: &mut impl FnMut(*mut ValueCell<T>)) {
        let first = Lane::<T>::cell_at(line, self.head);
        for place in 0..places {
            self.head += Lane::<T>::STEP;
            leave(first.wrapping_add(place));
        }
    }

    fn release(&self) {
        self.lane.head.store(self.head, Ordering::Release);
    }
}

impl<T> Drop for Consuming<'_, T> {
    fn drop(&mut self) {
        self.release();
    }
}

struct DropInPlace<T>(*mut T);

impl<T> Drop for DropInPlace<T> {
    fn drop(&mut self) {
        // SAFETY: who made it owns the value and uses it no more.
        unsafe { self.0.drop_in_place() };
    }
}
