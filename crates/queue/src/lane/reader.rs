//! The reader's side of a lane.

use super::{Block, LINE, Lane, Reader, ValueCell};
use crate::prefetch;
use crate::sync::Ordering;
use std::ptr;

/// How many lines ahead of its own the reader prefetches.
const PREFETCHED_LINES: usize = 4;

impl<T> Lane<T> {
    #[inline(always)]
    fn head(&self) -> usize {
        self.head.load(Ordering::Relaxed)
    }

    /// Whether there is a value in this line, or in the next line if this one is used up. It loads
    /// at most one stamp (rule 2), and none while the reader knows of values.
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
            // Release, like every other store of `head`: a weaker store would hide the previous one
            // from a writer that reads it.
            self.head.store(found, Ordering::Release);
        }
        true
    }

    /// For a reader that knows of no value at `head`: the offset of the next value, if there is
    /// one.
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
        // SAFETY: the reader's block has not been freed, and the line is in it.
        let filled = unsafe { Self::stamp(line) }.load(Ordering::Acquire);
        if filled < head {
            return None;
        }
        if is_next {
            cursor.line.set(line);
            let ahead = line.wrapping_add(PREFETCHED_LINES * Self::STRIDE);
            if ahead < cursor.end.get() {
                prefetch::line(ahead);
            }
        }
        // The stamp may belong to the next lap, so it is limited to the end of the line.
        cursor
            .until
            .set(Self::line_end(head).min(filled + Self::STEP));
        Some(head)
    }

    /// Whether there is a value (rule 2).
    pub(crate) fn has_value(&self, reader: &Reader) -> bool {
        self.known(reader) > 0
    }

    /// How many values of the reader's line, or of the next one, are known to be there. 0 if the
    /// lane is empty.
    #[inline(always)]
    pub(crate) fn known(&self, reader: &Reader) -> usize {
        if self.has_visible_value(reader) || self.enter_next_block(reader) {
            (reader.cursor.until.get() - self.head()) / Self::STEP
        } else {
            0
        }
    }

    /// At the end of a drained block: enters the next block and returns whether it has a value.
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

    /// Pops a value.
    ///
    /// # Safety
    /// `reader` belongs to this lane, the caller is its only user, and [`Lane::has_visible_value`]
    /// or an equivalent method has returned that there is a value.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, reader: &Reader) -> T {
        let head = self.head();
        let at = Self::cell_at(reader.cursor.line.get(), head);
        // SAFETY: rule 2: the slot is filled, and this is the only reader.
        let value = unsafe { (*at).with_mut(|cell| (*cell).assume_init_read()) };
        self.head.store(head + Self::STEP, Ordering::Release);
        value
    }

    /// Pops a value, if there is one.
    ///
    /// # Safety
    /// `reader` belongs to this lane, and the caller is its only user.
    #[inline(always)]
    pub(crate) unsafe fn try_pop(&self, reader: &Reader) -> Option<T> {
        // SAFETY: guaranteed by the caller, and there is a value.
        self.has_value(reader).then(|| unsafe { self.pop(reader) })
    }

    /// Returns the block after `block` and gives `block` back to the writer. `None` if the writer
    /// has not left it yet.
    fn recycle_block(&self, block: *mut Block) -> Option<*mut Block> {
        // SAFETY: the reader's block stays allocated until it is returned below.
        let next = unsafe { (*block).next.load(Ordering::Acquire) };
        if next.is_null() {
            return None;
        }
        // SAFETY: both sides have left the block. The link was the last part that the writer
        // accessed.
        unsafe { (*block).next.store(ptr::null_mut(), Ordering::Relaxed) };
        let old = self.writer_state.spare.swap(block, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: nobody uses a spare block.
            unsafe { Self::free(old, self.writer_state.lines) };
        }
        Some(next)
    }

    /// Pops at most `max` values and passes each to `take`. Returns their number.
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
            // SAFETY: rule 2: the slot is filled, and this is the only reader.
            take(unsafe { (*at).with_mut(|cell| (*cell).assume_init_read()) })
        })
    }

    /// Visits at most `max` filled slots. The reader leaves each slot when it calls `consume`.
    /// Returns their number.
    ///
    /// The slots are released together, so that a writer that waits for capacity does not take the
    /// cache line of `head` away at every line.
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
            // See `push_some`.
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

/// How many lines are released together, at most.
const RELEASE_LINES: usize = 16;

/// Releases the slots that the reader has consumed, also after a panic.
struct Consuming<'a, T> {
    lane: &'a Lane<T>,
    head: usize,
}

impl<T> Consuming<'_, T> {
    #[inline(always)]
    fn consume(&mut self, line: *mut u8, slots: usize, visit: &mut impl FnMut(*mut ValueCell<T>)) {
        let first = Lane::<T>::cell_at(line, self.head);
        for slot in 0..slots {
            self.head += Lane::<T>::STEP;
            visit(first.wrapping_add(slot));
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
