//! The writer's side of a lane.

use super::{Block, LINE, Lane, Writer};
use crate::barrier;
use crate::sync::Ordering;
use std::ptr;

impl Writer {
    /// How many values may be put in, since the beginning.
    pub(crate) fn limit(&self) -> usize {
        self.limit.get()
    }

    /// `limit` is not below what it was.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.set(limit);
    }
}

impl<T> Lane<T> {
    #[inline(always)]
    fn tail(&self) -> usize {
        self.writer_state.tail.load(Ordering::Relaxed)
    }

    /// Whether it is known that there is room for a value.
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

    /// How many values may be put in without asking for more.
    pub(crate) fn granted(&self, writer: &Writer) -> usize {
        writer.limit.get() - self.pushed()
    }

    /// The limit of a bounded lane's writer by rule 3.
    pub(crate) fn newest_limit(&self) -> usize {
        let head = Self::position(self.head.load(Ordering::Acquire));
        head.saturating_add(self.capacity())
    }

    /// Whether there is room for a value; `raise` gives a new limit where the old one is reached.
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
            tail = next.expect("the writer makes the blocks that it needs");
            self.writer_state.tail.store(tail, Ordering::Relaxed);
        }
        self.grant(writer, tail);
        true
    }

    /// Lets the writer go on from `tail` to its limit, or to the end of the block, without asking.
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

    /// Gives the writer a limit that may be lower than the one it has, but not lower than what it put in.
    pub(crate) fn replace_limit(&self, writer: &Writer, limit: usize) {
        writer.limit.set(limit);
        self.grant(writer, self.tail());
    }

    /// Puts a value in.
    ///
    /// # Safety
    /// `writer` is this lane's, the caller is its one user, and [`Lane::has_granted`] or [`Lane::reserve`] said so.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, writer: &Writer, value: T) {
        let (line, tail) = (writer.cursor.line.get(), self.tail());
        // SAFETY: the offset is of a place in the line, and rule 3 says that the reader is done with it.
        unsafe {
            (*Self::cell_at(line, tail)).with_mut(|cell| (*cell).write(value));
            self.publish(line, tail);
        }
    }

    /// Announces a value by the writer's offset, and then puts it in unless `is_revoked`: the value comes back.
    ///
    /// Between the offset and `is_revoked` is a light barrier: a thread that makes `is_revoked` true and then passes the heavy
    /// barrier sees the offset of each value that is put in nevertheless.
    ///
    /// # Safety
    /// As [`Lane::push`].
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
        // SAFETY: as in `push`; the reader looks at the stamp, not at the writer's offset.
        unsafe {
            (*Self::cell_at(line, tail)).with_mut(|cell| (*cell).write(value));
            Self::stamp(line).store(tail, Ordering::Release);
        }
        Ok(())
    }

    /// Rule 1: the places of the line up to `last` are filled.
    ///
    /// # Safety
    /// They are, and `line` is the writer's.
    #[inline(always)]
    unsafe fn publish(&self, line: *mut u8, last: usize) {
        let next = last + Self::STEP;
        self.writer_state.tail.store(next, Ordering::Relaxed);
        // SAFETY: the line is in the writer's block.
        unsafe { Self::stamp(line) }.store(last, Ordering::Release);
    }

    fn next_block(&self, block: *mut Block) -> *mut Block {
        // SAFETY: the writer's block is alive: the reader gives back only what both have left.
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

    /// Puts in what `next` gives, `most` at max, and no more than the limit lets in; how many.
    ///
    /// A line is published when it is full or `next` ends, and also if `next` panics; what else the writer keeps it stores at the end.
    ///
    /// # Safety
    /// `writer` is this lane's, and the caller is its one user.
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
            // Nearly always it is a whole line: a number that the compiler knows, so it unrolls the loop.
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

/// A writer on its way along the lines. It publishes what it put into a line, and stores where it stands, whatever happens.
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

    /// How many values `next` gave, which is fewer than `places` only if it gave no more.
    #[inline(always)]
    fn fill(&mut self, places: usize, next: &mut impl FnMut() -> Option<T>) -> usize {
        let first = Lane::<T>::cell_at(self.line, self.tail);
        for place in 0..places {
            let Some(value) = next() else {
                self.publish();
                return place;
            };
            // SAFETY: the place is in the line, and there is room for it.
            unsafe { (*first.wrapping_add(place)).with_mut(|cell| (*cell).write(value)) };
            self.tail += Lane::<T>::STEP;
        }
        self.publish();
        places
    }

    #[inline(always)]
    fn publish(&mut self) {
        if self.published != self.tail {
            self.published = self.tail;
            // SAFETY: the line is in the writer's block, and filled up to the place before `tail`.
            unsafe { Lane::<T>::stamp(self.line) }
                .store(self.tail - Lane::<T>::STEP, Ordering::Release);
        }
    }

    /// Goes on to the next line; `false`: the limit is reached.
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
