//! The writer's side of a lane.

use super::{Block, Cursor, Lane, Place, Writer};
use crate::sync::Ordering;
use std::ptr;

impl<T> Lane<T> {
    /// Values inside, for the writer.
    pub(crate) fn len_for_writer(&self, writer: &Writer) -> usize {
        writer.tail.get() - self.head.0.load(Ordering::Relaxed)
    }

    /// How many values were put in since the beginning.
    #[inline(always)]
    pub(crate) fn put(&self, writer: &Writer) -> usize {
        let _ = self;
        writer.tail.get()
    }

    /// Whether there is room for a value; rule 3.
    #[inline(always)]
    pub(crate) fn has_room(&self, writer: &Writer) -> bool {
        writer.tail.get() < writer.limit.get() || self.look_for_room(writer)
    }

    #[inline(never)]
    fn look_for_room(&self, writer: &Writer) -> bool {
        let head = self.head.0.load(Ordering::Acquire);
        writer.limit.set(head.saturating_add(self.capacity));
        writer.tail.get() < writer.limit.get()
    }

    /// Room for how many of `wanted` values.
    pub(crate) fn room(&self, writer: &Writer, wanted: usize) -> usize {
        let known = writer.limit.get() - writer.tail.get();
        if known < wanted {
            self.look_for_room(writer);
        }
        wanted.min(writer.limit.get() - writer.tail.get())
    }

    /// Puts a value in.
    ///
    /// # Safety
    /// `writer` is this lane's, the caller is its one user, and [`Lane::has_room`] said so.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, writer: &Writer, value: T) {
        // Before the value is written: what it may overwrite for all the compiler knows need not be read again.
        let (at, tail) = (writer.cursor.at.get(), writer.tail.get() + 1);
        // SAFETY: the cursor is within the lane, and rule 3 says that the reader is done with this place.
        unsafe {
            (*at.cast::<Place<T>>()).with_mut(|place| (*place).write(value));
            self.publish(writer, at, tail);
        }
    }

    /// Stamps the line of `last` with `tail`.
    ///
    /// # Safety
    /// As [`Lane::push`], and the places of that line hold values, from the cursor to `last`.
    #[inline(always)]
    unsafe fn publish(&self, writer: &Writer, last: *mut u8, tail: usize) {
        let cursor = &writer.cursor;
        // SAFETY: the place is in the writer's block.
        let stamp = unsafe { Self::stamp(last) };
        let next = last.wrapping_add(size_of::<Place<T>>());
        if !Self::is_beyond(next) {
            cursor.at.set(next);
        } else if let Some(next) = Self::next_line(cursor, last) {
            cursor.at.set(next);
        } else {
            // Before the last value of a block is published the way on from it must be there (rule 4).
            self.writer_leaves_block(cursor);
        }
        writer.tail.set(tail);
        stamp.store(tail, Ordering::Release);
    }

    #[inline(never)]
    fn writer_leaves_block(&self, cursor: &Cursor) {
        let next = self.next_block(self.block_before(cursor.end.get()));
        self.enter(cursor, next);
    }

    fn next_block(&self, block: *mut Block) -> *mut Block {
        // SAFETY: the writer's block is alive: the reader gives back only what both have left.
        let link = unsafe { &(*block).next };
        let next = link.load(Ordering::Relaxed);
        if !next.is_null() {
            return next;
        }
        let mut next = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        if next.is_null() {
            next = Self::another_block(self.lines);
        }
        link.store(next, Ordering::Release);
        next
    }

    /// Puts in what `next` gives, `most` at most, and no more than there is room for; how many.
    ///
    /// A line is published when it is full or `next` ends, and also if `next` panics.
    ///
    /// # Safety
    /// As [`Lane::push`], but for the room.
    pub(crate) unsafe fn push_some(
        &self,
        writer: &Writer,
        most: usize,
        mut next: impl FnMut() -> Option<T>,
    ) -> usize {
        let most = self.room(writer, most);
        let mut done = 0;
        while done < most {
            let mut filling = Filling {
                lane: self,
                writer,
                count: 0,
            };
            let first = writer.cursor.at.get();
            let here = Self::places_left(first).min(most - done);
            while filling.count < here {
                let Some(value) = next() else {
                    return done + filling.count;
                };
                let at = first.wrapping_add(filling.count * size_of::<Place<T>>());
                // SAFETY: the place is in the line, and there is room for it.
                unsafe { (*at.cast::<Place<T>>()).with_mut(|place| (*place).write(value)) };
                filling.count += 1;
            }
            done += here;
        }
        done
    }
}

/// Publishes what was put into a line, whatever happens.
struct Filling<'a, T> {
    lane: &'a Lane<T>,
    writer: &'a Writer,
    count: usize,
}

impl<T> Drop for Filling<'_, T> {
    fn drop(&mut self) {
        if self.count > 0 {
            let size = size_of::<Place<T>>();
            let last = self.writer.cursor.at.get();
            let last = last.wrapping_add((self.count - 1) * size);
            let tail = self.writer.tail.get() + self.count;
            // SAFETY: `count` places of the line were filled.
            unsafe { self.lane.publish(self.writer, last, tail) };
        }
    }
}
