//! Batches: consecutive slots are filled or emptied and then published together.

use std::ptr;

use super::ring::{Ring, Side, Slot};
use crate::sync::AtomicU64;

/// A batch publishes its slots in parts of this many at most, so that the other side can start
/// before a large batch ends.
const MAX_PART: usize = 64;

impl<T> Side<T> {
    /// After a part of `len` slots, where `wanted` slots were wanted: whether the other side has
    /// granted no more. If not, the part ended with the lap or was as large as parts are.
    #[inline(always)]
    fn is_exhausted(&self, len: usize, wanted: usize) -> bool {
        len < wanted.min(MAX_PART) && self.position != self.lap_end
    }
}

impl<T> Ring<T> {
    /// Pushes the values that `next` returns, at most `most` and at most as many as fit. Returns
    /// their number. If `next` panics, the values before are pushed.
    ///
    /// # Safety
    /// `writer` belongs to this ring, and the caller is its only user.
    #[inline]
    pub(crate) unsafe fn push_some(
        &self,
        writer: &Side<T>,
        most: usize,
        mut next: impl FnMut() -> Option<T>,
    ) -> usize {
        // A reader that is as fast as `next` would otherwise keep this loop going.
        let most = most.min(self.capacity());
        let mut left = most;
        while left > 0 {
            let mut part = self.free_part(writer, left);
            while part.done < part.len {
                let Some(value) = next() else {
                    return most - left + part.done;
                };
                // SAFETY: rule 2: the slot is free.
                unsafe { (*part.slot()).with_mut(|slot| (*slot).write(value)) };
                part.done += 1;
            }
            let len = part.len;
            drop(part);
            if writer.is_exhausted(len, left) {
                return most - left + len;
            }
            left -= len;
        }
        most
    }

    /// Moves values from the front of `values` into the ring, as many as fit. Returns their number.
    ///
    /// # Safety
    /// As [`Ring::push_some`].
    pub(crate) unsafe fn push_from(&self, writer: &Side<T>, values: &mut Vec<T>) -> usize {
        let all = values.len();
        // SAFETY: until the end, the vector has no elements, and the ring owns those that it moved.
        unsafe { values.set_len(0) };
        let mut moved = 0;
        while moved < all {
            let mut part = self.free_part(writer, all - moved);
            while part.done < part.len {
                // SAFETY: the value is behind those that were moved.
                let value = unsafe { values.as_ptr().add(moved + part.done).read() };
                // SAFETY: rule 2: the slot is free.
                unsafe { (*part.slot()).with_mut(|slot| (*slot).write(value)) };
                part.done += 1;
            }
            let len = part.len;
            drop(part);
            let is_exhausted = writer.is_exhausted(len, all - moved);
            moved += len;
            if is_exhausted {
                break;
            }
        }
        let rest = all - moved;
        // SAFETY: the elements from `moved` on still belong to the vector.
        unsafe {
            let start = values.as_mut_ptr();
            ptr::copy(start.add(moved), start, rest);
            values.set_len(rest);
        }
        moved
    }

    /// Pops values and appends them to `values`, at most `most` and at most as many as the ring has
    /// slots. Returns their number.
    ///
    /// # Safety
    /// `reader` belongs to this ring, and the caller is its only user.
    pub(crate) unsafe fn pop_into(
        &self,
        reader: &Side<T>,
        most: usize,
        values: &mut Vec<T>,
    ) -> usize {
        // A writer that is as fast would otherwise keep this loop going.
        let most = most.min(self.capacity());
        let mut left = most;
        while left > 0 {
            let mut part = self.filled_part(reader, left);
            values.reserve(part.len);
            let end = values.spare_capacity_mut().as_mut_ptr();
            while part.done < part.len {
                // SAFETY: rule 2: the slot is filled.
                let value = unsafe { (*part.slot()).with_mut(|slot| (*slot).assume_init_read()) };
                // SAFETY: the vector has reserved space for the part.
                unsafe { (*end.add(part.done)).write(value) };
                part.done += 1;
            }
            let len = part.len;
            drop(part);
            // SAFETY: these values were written.
            unsafe { values.set_len(values.len() + len) };
            if reader.is_exhausted(len, left) {
                return most - left + len;
            }
            left -= len;
        }
        most
    }

    /// Passes values to `look` in place, at most `most` and at most as many as the ring has slots, and
    /// drops each. Returns their number.
    ///
    /// # Safety
    /// As [`Ring::pop_into`].
    #[inline]
    pub(crate) unsafe fn peek_some(
        &self,
        reader: &Side<T>,
        most: usize,
        mut look: impl FnMut(&T),
    ) -> usize {
        let most = most.min(self.capacity());
        let mut left = most;
        while left > 0 {
            let mut part = self.filled_part(reader, left);
            while part.done < part.len {
                let slot = part.slot();
                // The slot no longer belongs to the ring, also if `look` panics.
                part.done += 1;
                // SAFETY: rule 2: the slot is filled.
                let value = unsafe { (*slot).with_mut(|slot| (*slot).as_mut_ptr()) };
                let _value = DropInPlace(value);
                // SAFETY: the value is valid until the end of this iteration.
                look(unsafe { &*value });
            }
            let len = part.len;
            drop(part);
            if reader.is_exhausted(len, left) {
                return most - left + len;
            }
            left -= len;
        }
        most
    }

    /// The next free slots, at most `most` of them.
    #[inline(always)]
    fn free_part<'a>(&'a self, writer: &'a Side<T>, most: usize) -> Part<'a, T> {
        let len = most.min(MAX_PART);
        if writer.known() < len {
            self.grant(writer);
        }
        Part {
            side: writer,
            first: writer.slot(),
            shared: &self.writer_state.tail,
            len: writer.known().min(len),
            done: 0,
        }
    }

    /// The next filled slots, at most `most` of them.
    #[inline(always)]
    fn filled_part<'a>(&'a self, reader: &'a Side<T>, most: usize) -> Part<'a, T> {
        let len = most.min(MAX_PART);
        if reader.known() < len {
            reader.start_lap();
            self.find(reader);
        }
        Part {
            side: reader,
            first: reader.slot(),
            shared: &self.head,
            len: reader.known().min(len),
            done: 0,
        }
    }
}

/// Consecutive slots of one side. It publishes those that are done, also after a panic.
struct Part<'a, T> {
    side: &'a Side<T>,
    /// A copy, because the compiler has to assume that a value overwrites the side.
    first: *mut Slot<T>,
    shared: &'a AtomicU64,
    len: usize,
    done: usize,
}

impl<T> Part<'_, T> {
    /// The first slot that is not done.
    #[inline(always)]
    fn slot(&self) -> *mut Slot<T> {
        self.first.wrapping_add(self.done)
    }
}

impl<T> Drop for Part<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.done > 0 {
            self.side.advance(self.done, self.shared);
        }
    }
}

struct DropInPlace<T>(*mut T);

impl<T> Drop for DropInPlace<T> {
    fn drop(&mut self) {
        // SAFETY: the creator of this guard owns the value and does not use it again.
        unsafe { self.0.drop_in_place() };
    }
}
