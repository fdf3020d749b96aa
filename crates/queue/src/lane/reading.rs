//! The reader's side of a lane.

use super::{Block, LINE, Lane, Place, Reader};
use crate::sync::Ordering;
use std::ptr;

impl<T> Lane<T> {
    #[inline(always)]
    fn head(&self) -> usize {
        self.head.0.load(Ordering::Relaxed)
    }

    /// Whether there is a value in this line, or in the next one if this one is used up, as far as one look at a stamp tells (rule 2).
    /// It looks at none while it knows of values.
    #[inline(always)]
    pub(crate) fn sees_value(&self, reader: &Reader) -> bool {
        self.knows_value(reader) || self.look(reader)
    }

    #[inline(always)]
    pub(crate) fn knows_value(&self, reader: &Reader) -> bool {
        self.head() != reader.cursor.until.get()
    }

    #[inline(always)]
    fn look(&self, reader: &Reader) -> bool {
        let cursor = &reader.cursor;
        let mut head = self.head();
        let mut line = cursor.line.get();
        let is_next = head % LINE == (Self::FIRST + Self::FULL) % LINE;
        if is_next {
            head = head - Self::FULL + LINE;
            line = line.wrapping_add(Self::STRIDE);
            if line == cursor.end.get() {
                return false;
            }
        }
        // SAFETY: the reader's block is alive, and the line is in it.
        let filled = unsafe { Self::stamp(line) }.load(Ordering::Acquire);
        if filled < head {
            return false;
        }
        if is_next {
            cursor.line.set(line);
            // Release like any other: a weaker store would hide the one before from the writer that reads it.
            self.head.0.store(head, Ordering::Release);
        }
        // The writer may have come round to this line again.
        cursor.until.set(Self::end(head).min(filled + Self::STEP));
        true
    }

    /// Whether there is a value; rule 2.
    pub(crate) fn has_value(&self, reader: &Reader) -> bool {
        self.known(reader) > 0
    }

    /// How many values of the reader's line, or the next one, are there for sure: 0 if there are none at all.
    #[inline(always)]
    pub(crate) fn known(&self, reader: &Reader) -> usize {
        if self.sees_value(reader) || self.follows_the_writer(reader) {
            (reader.cursor.until.get() - self.head()) / Self::STEP
        } else {
            0
        }
    }

    /// Where the reader's block is drained: whether there is a value in the next one.
    #[inline(never)]
    fn follows_the_writer(&self, reader: &Reader) -> bool {
        let cursor = &reader.cursor;
        let head = self.head();
        if head != Self::end(head) {
            return false;
        }
        let next = self.next_line(cursor, head, |block| self.leave_block(block));
        let Some(first) = next else { return false };
        self.head.0.store(first, Ordering::Release);
        cursor.until.set(first);
        self.look(reader)
    }

    /// Takes a value out.
    ///
    /// # Safety
    /// `reader` is this lane's, the caller is its one user, and [`Lane::sees_value`], or a like of it, said so.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, reader: &Reader) -> T {
        let head = self.head();
        let at = Self::at(reader.cursor.line.get(), head);
        // SAFETY: rule 2: the value of this place is there, and nobody else takes it.
        let value = unsafe { (*at).with_mut(|place| (*place).assume_init_read()) };
        self.head.0.store(head + Self::STEP, Ordering::Release);
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
    fn leave_block(&self, block: *mut Block) -> Option<*mut Block> {
        // SAFETY: the reader's block is alive until it is given back below.
        let next = unsafe { (*block).next.load(Ordering::Acquire) };
        if next.is_null() || next == block {
            return (!next.is_null()).then_some(next);
        }
        // SAFETY: both sides have left the block: the link is the last thing of it that the writer touched.
        unsafe { (*block).next.store(ptr::null_mut(), Ordering::Relaxed) };
        let old = self.writing.0.spare.swap(block, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: a spare block is nobody's.
            unsafe { Self::free(old, self.writing.0.lines) };
        }
        Some(next)
    }

    /// Takes out what is there, `most` at most, and hands each value to `take`; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    #[inline]
    pub(crate) unsafe fn pop_some(
        &self,
        reader: &Reader,
        most: usize,
        mut take: impl FnMut(T),
    ) -> usize {
        let mut count = 0;
        while count < most {
            let here = self.known(reader).min(most - count);
            if here == 0 {
                break;
            }
            let mut drained = Drained::of(self, reader);
            while drained.count < here {
                let at = drained.next();
                // SAFETY: rule 2: the value of this place is there, and nobody else takes it.
                take(unsafe { (*at).with_mut(|place| (*place).assume_init_read()) });
            }
            count += here;
        }
        count
    }

    /// Looks at what is there, `most` at most, in place, and drops it; how many.
    ///
    /// # Safety
    /// As [`Lane::try_pop`].
    #[inline]
    pub(crate) unsafe fn peek_some(
        &self,
        reader: &Reader,
        most: usize,
        mut look: impl FnMut(&T),
    ) -> usize {
        let mut count = 0;
        while count < most {
            let here = self.known(reader).min(most - count);
            if here == 0 {
                break;
            }
            let mut drained = Drained::of(self, reader);
            while drained.count < here {
                let at = drained.next();
                // SAFETY: as in `pop_some`.
                let value = unsafe { (*at).with_mut(|place| (*place).as_mut_ptr()) };
                let _value = DropInPlace(value);
                // SAFETY: the value is there until the end of this turn.
                look(unsafe { &*value });
            }
            count += here;
        }
        count
    }
}

/// Gives back the places of a line that the reader has left, whatever happens.
struct Drained<'a, T> {
    lane: &'a Lane<T>,
    line: *mut u8,
    head: usize,
    count: usize,
}

impl<'a, T> Drained<'a, T> {
    fn of(lane: &'a Lane<T>, reader: &Reader) -> Self {
        Self {
            lane,
            line: reader.cursor.line.get(),
            head: lane.head(),
            count: 0,
        }
    }

    /// The next place, which the caller leaves in this turn.
    #[inline(always)]
    fn next(&mut self) -> *mut Place<T> {
        let mark = self.head + self.count * Lane::<T>::STEP;
        self.count += 1;
        Lane::<T>::at(self.line, mark)
    }
}

impl<T> Drop for Drained<'_, T> {
    fn drop(&mut self) {
        let head = self.head + self.count * Lane::<T>::STEP;
        self.lane.head.0.store(head, Ordering::Release);
    }
}

struct DropInPlace<T>(*mut T);

impl<T> Drop for DropInPlace<T> {
    fn drop(&mut self) {
        // SAFETY: who made it owns the value and uses it no more.
        unsafe { self.0.drop_in_place() };
    }
}
