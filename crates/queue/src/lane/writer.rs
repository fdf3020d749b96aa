//! The writer's side of a lane.

use super::{Block, LINE, Lane, Writer};
use crate::barrier;
use crate::sync::Ordering;
use std::ptr;

impl Writer {
    /// How many values may be pushed, counted from the beginning.
    pub(crate) fn limit(&self) -> usize {
        self.limit.get()
    }

    /// Raises the limit. `limit` must not be below the old one.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.set(limit);
    }
}

impl<T> Lane<T> {
    #[inline(always)]
    fn tail(&self) -> usize {
        self.writer_state.tail.load(Ordering::Relaxed)
    }

    /// Whether the writer knows of a free slot.
    #[inline(always)]
    pub(crate) fn has_granted(&self, writer: &Writer) -> bool {
        let tail = self.tail();
        tail != writer.cursor.until.get() || self.next_granted_line(writer, tail)
    }

    #[inline(always)]
    fn next_granted_line(&self, writer: &Writer, tail: usize) -> bool {
        let lines = writer.lines.get();
        if lines == 0 {
            return false;
        }
        writer.lines.set(lines - 1);
        let line = writer.cursor.line.get();
        writer.cursor.line.set(line.wrapping_add(Self::STRIDE));
        let first = tail - Self::FULL + LINE;
        self.writer_state.tail.store(first, Ordering::Relaxed);
        writer.cursor.until.set(first + Self::FULL);
        true
    }

    /// How many values can be pushed without reserving more.
    pub(crate) fn granted(&self, writer: &Writer) -> usize {
        writer.limit.get() - self.pushed()
    }

    /// Whether there is a free slot. When the old limit is reached, `raise` returns a new one.
    #[inline(always)]
    pub(crate) fn reserve(&self, writer: &Writer, raise: impl FnOnce(usize) -> usize) -> bool {
        self.has_granted(writer) || self.reserve_slow(writer, raise)
    }

    #[inline(never)]
    fn reserve_slow(&self, writer: &Writer, raise: impl FnOnce(usize) -> usize) -> bool {
        let mut tail = self.tail();
        let position = Self::position(tail);
        if position == writer.limit.get() {
            writer.limit.set(raise(position));
            if position == writer.limit.get() {
                return false;
            }
        }
        if tail == Self::line_end(tail) {
            let next = self.next_line(&writer.cursor, tail, |block| Some(self.next_block(block)));
            tail = next.expect("the writer allocates every block that it needs");
            self.writer_state.tail.store(tail, Ordering::Relaxed);
        }
        self.grant(writer, tail);
        true
    }

    /// Lets the writer advance from `tail` to its limit, or to the end of the block, without
    /// checking.
    fn grant(&self, writer: &Writer, tail: usize) {
        let (granted, left) = (
            self.granted(writer),
            (Self::line_end(tail) - tail) / Self::STEP,
        );
        writer
            .cursor
            .until
            .set(tail + granted.min(left) * Self::STEP);
        let lines = granted.saturating_sub(left) / Self::PER_LINE;
        writer
            .lines
            .set(lines.min(Self::lines_after(&writer.cursor)));
    }

    /// Sets the writer's limit. It may be below the old one, but not below the number of pushed
    /// values.
    pub(crate) fn replace_limit(&self, writer: &Writer, limit: usize) {
        writer.limit.set(limit);
        self.grant(writer, self.tail());
    }

    /// Announces a value by storing the writer's offset, then pushes it. If `is_revoked` returns
    /// true, the value is returned instead.
    ///
    /// A light barrier separates the offset from `is_revoked`. A thread that makes `is_revoked`
    /// true and then executes the heavy barrier sees the offset of every value that is pushed
    /// nevertheless.
    ///
    /// # Safety
    /// `writer` belongs to this lane, the caller is its only user, and [`Lane::has_granted`] or
    /// [`Lane::reserve`] has returned true.
    #[inline(always)]
    pub(crate) unsafe fn push_unless(
        &self,
        writer: &Writer,
        value: T,
        is_revoked: impl FnOnce() -> bool,
    ) -> Result<(), T> {
        let (line, tail) = (writer.cursor.line.get(), self.tail());
        let next = tail + Self::STEP;
        self.writer_state.tail.store(next, Ordering::Relaxed);
        barrier::light();
        if is_revoked() {
            self.writer_state.tail.store(tail, Ordering::Relaxed);
            return Err(value);
        }
        // SAFETY: the offset is that of a slot in the line, and the reader has not seen it yet. The
        // reader uses the stamp, not the writer's offset.
        unsafe {
            (*Self::cell_at(line, tail)).with_mut(|cell| (*cell).write(value));
            Self::stamp(line).store(tail, Ordering::Release);
        }
        Ok(())
    }

    fn next_block(&self, block: *mut Block) -> *mut Block {
        // SAFETY: the writer's block has not been freed: the reader returns only blocks that both
        // have left.
        let link = unsafe { &(*block).next };
        let next = link.load(Ordering::Relaxed);
        if !next.is_null() {
            return next;
        }
        let mut next = (self.writer_state.spare).swap(ptr::null_mut(), Ordering::Acquire);
        if next.is_null() {
            next = Self::allocate_block(self.writer_state.lines);
        }
        link.store(next, Ordering::Release);
        next
    }

    /// Pushes the values that `next` returns, at most `max` and at most up to the limit. Returns
    /// their number.
    ///
    /// A line is published when it is full or `next` ends, also if `next` panics. The rest of the
    /// writer's state is stored at the end.
    ///
    /// # Safety
    /// `writer` belongs to this lane, and the caller is its only user.
    #[inline]
    pub(crate) unsafe fn push_some(
        &self,
        writer: &Writer,
        max: usize,
        mut next: impl FnMut() -> Option<T>,
    ) -> usize {
        let mut left = max;
        let mut filling = Filling::of(self, writer);
        while left > 0 && (filling.tail != filling.until || filling.next_line()) {
            let here = ((filling.until - filling.tail) / Self::STEP).min(left);
            // `here` is nearly always a whole line. The constant lets the compiler unroll the loop.
            let filled = if here == Self::PER_LINE {
                filling.fill(Self::PER_LINE, &mut next)
            } else {
                filling.fill(here, &mut next)
            };
            left -= filled;
            if filled < here {
                break;
            }
        }
        max - left
    }
}

/// A writer that fills several lines. It publishes the values of each line and stores its state,
/// also after a panic.
struct Filling<'a, T> {
    lane: &'a Lane<T>,
    writer: &'a Writer,
    line: *mut u8,
    published: usize,
    tail: usize,
    until: usize,
    lines: usize,
}

impl<'a, T> Filling<'a, T> {
    #[inline(always)]
    fn of(lane: &'a Lane<T>, writer: &'a Writer) -> Self {
        let mut filling = Self {
            lane,
            writer,
            line: ptr::null_mut(),
            published: 0,
            tail: 0,
            until: 0,
            lines: 0,
        };
        filling.load();
        filling
    }

    #[inline(always)]
    fn load(&mut self) {
        self.line = self.writer.cursor.line.get();
        self.tail = self.lane.tail();
        self.published = self.tail;
        self.until = self.writer.cursor.until.get();
        self.lines = self.writer.lines.get();
    }

    #[inline(always)]
    fn store(&self) {
        self.writer.cursor.line.set(self.line);
        self.lane
            .writer_state
            .tail
            .store(self.tail, Ordering::Relaxed);
        self.writer.cursor.until.set(self.until);
        self.writer.lines.set(self.lines);
    }

    /// Returns how many values `next` provided. It is less than `slots` only if `next` ended.
    #[inline(always)]
    fn fill(&mut self, slots: usize, next: &mut impl FnMut() -> Option<T>) -> usize {
        let first = Lane::<T>::cell_at(self.line, self.tail);
        for slot in 0..slots {
            let Some(value) = next() else {
                self.publish();
                return slot;
            };
            // SAFETY: the slot is in the line and is free.
            unsafe { (*first.wrapping_add(slot)).with_mut(|cell| (*cell).write(value)) };
            self.tail += Lane::<T>::STEP;
        }
        self.publish();
        slots
    }

    #[inline(always)]
    fn publish(&mut self) {
        if self.published != self.tail {
            self.published = self.tail;
            // SAFETY: the line is in the writer's block, and it is filled up to the slot before
            // `tail`.
            unsafe { Lane::<T>::stamp(self.line) }
                .store(self.tail - Lane::<T>::STEP, Ordering::Release);
        }
    }

    /// Moves to the next line. Returns `false` if the limit is reached.
    #[inline(always)]
    fn next_line(&mut self) -> bool {
        if self.lines == 0 {
            return self.reserve_slow();
        }
        self.lines -= 1;
        self.line = self.line.wrapping_add(Lane::<T>::STRIDE);
        self.tail += LINE - Lane::<T>::FULL;
        self.published = self.tail;
        self.until = self.tail + Lane::<T>::FULL;
        true
    }

    #[cold]
    fn reserve_slow(&mut self) -> bool {
        self.store();
        let granted = self.lane.reserve_slow(self.writer, |position| position);
        self.load();
        granted
    }
}

impl<T> Drop for Filling<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.publish();
        self.store();
    }
}
