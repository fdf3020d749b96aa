//! One writer, one reader: a chain of cache lines, each with the values of some positions and a stamp that says how far it is filled.
//!
//! Positions count values since the beginning. A **line** holds the values of [`Lane::PER_LINE`] positions behind one stamp, for
//! small values all in one cache line; lines stand in **blocks**.
//!
//! 1. The stamp is the position after the last one that is filled. The writer stores it (Release) after each value, or once for
//!    all the values that it put into the line.
//! 2. The reader at position `h` loads the stamp of `h`'s line (Acquire): all positions below it are there, also those in
//!    lines that it did not look at yet, since the writer goes in order. What a line held a lap ago is `<= h` and means: nothing.
//!    So nobody ever resets a stamp, the reader never writes to a line, and a value costs one transfer of its line.
//! 3. The reader stores `head` (Release) after it took values out. The writer loads it (Acquire) only when it has
//!    reached the limit that it knew: `head + capacity`.
//! 4. A bounded lane is one block whose next is itself. An unbounded one links a new block (Release) before it fills its first
//!    value; the reader gives drained blocks back through `spare`.
//!
//! ```text
//!   line 0                 line 1                 line 2
//!   stamp 7  a b c d e f g | stamp 10  h i j . . . . | stamp 0  . . . .
//!                  ^ head = 4            ^ tail = 10
//! ```
//!
//! After the slot-state ring of JCTools' `SpscArrayQueue`; the stamp per line in place of per slot is ours: `docs/internals/queue.md` has the figures.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::error::BadCapacity;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, Padded, UnsafeCell};

/// A cache line, and what a line of small values is fitted into.
const LINE: usize = 64;

/// One value's place.
type Place<T> = UnsafeCell<MaybeUninit<T>>;

/// The head of a block; its lines follow in the same allocation.
struct Block {
    next: AtomicPtr<Block>,
}

/// What the writer and the reader of a lane share.
pub(crate) struct Lane<T> {
    /// How many values the reader took out. Stored by the reader alone.
    head: Padded<AtomicUsize>,
    /// How many the writer put in, as of when it last said so: only for [`Lane::len`].
    tail: Padded<AtomicUsize>,
    /// Blocks that the reader drained, for the writer to fill again.
    spare: AtomicPtr<Block>,
    first: *mut Block,
    lines: usize,
    capacity: usize,
    values: PhantomData<T>,
}

// SAFETY: rules 1 to 3 give each value one owner at a time and order the hand-over by the stamp and by `head`.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above; what only one side may do is unsafe to call.
unsafe impl<T: Send> Sync for Lane<T> {}

/// Where a side stands: a block, a line in it, a place in that.
struct Cursor {
    block: Cell<*mut Block>,
    line: Cell<*mut u8>,
    /// Lines left in the block, this one included.
    lines: Cell<usize>,
    place: Cell<usize>,
}

/// The writer's own half.
pub(crate) struct Writer {
    cursor: Cursor,
    tail: Cell<usize>,
    limit: Cell<usize>,
}

/// The reader's own half.
pub(crate) struct Reader {
    cursor: Cursor,
    head: Cell<usize>,
    /// All positions below are known to be filled.
    filled: Cell<usize>,
}

// SAFETY: the pointers lead into the lane, which is Send; whoever moves a half to another thread hands over that side of the lane.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Send for Reader {}

const fn round_up(size: usize, to: usize) -> usize {
    size.div_ceil(to) * to
}

impl<T> Lane<T> {
    /// Where the values begin in a line, behind the stamp.
    const VALUES: usize = round_up(size_of::<AtomicUsize>(), align_of::<Place<T>>());

    /// How many values share a stamp: as many as the line has room for, and one at least.
    pub(crate) const PER_LINE: usize = {
        let room = LINE.saturating_sub(Self::VALUES);
        let size = if size_of::<Place<T>>() == 0 {
            1
        } else {
            size_of::<Place<T>>()
        };
        if room / size == 0 { 1 } else { room / size }
    };

    const ALIGN: usize = if align_of::<Place<T>>() > LINE {
        align_of::<Place<T>>()
    } else {
        LINE
    };

    const STRIDE: usize = round_up(
        Self::VALUES + Self::PER_LINE * size_of::<Place<T>>(),
        Self::ALIGN,
    );

    /// Where the lines begin in a block.
    const LINES: usize = round_up(size_of::<Block>(), Self::ALIGN);

    /// A lane for at most `capacity` values.
    ///
    /// # Errors
    /// 0, more than 2^30, and what there is no memory for.
    pub(crate) fn bounded(capacity: usize) -> Result<Self, BadCapacity> {
        BadCapacity::check(capacity)?;
        let lines = capacity.div_ceil(Self::PER_LINE);
        let first = Self::block(lines).ok_or(BadCapacity(capacity))?;
        // SAFETY: the block was just made and is not shared yet.
        unsafe { &*first }.next.store(first, Ordering::Relaxed);
        Ok(Self::with(first, lines, capacity))
    }

    /// A lane without a limit of its own, in blocks for about `block` values.
    pub(crate) fn unbounded(block: usize) -> Self {
        let lines = block.div_ceil(Self::PER_LINE).max(1);
        Self::with(Self::another_block(lines), lines, usize::MAX)
    }

    fn with(first: *mut Block, lines: usize, capacity: usize) -> Self {
        Self {
            head: Padded(AtomicUsize::new(0)),
            tail: Padded(AtomicUsize::new(0)),
            spare: AtomicPtr::new(ptr::null_mut()),
            first,
            lines,
            capacity,
            values: PhantomData,
        }
    }

    fn layout(lines: usize) -> Option<Layout> {
        let size = lines.checked_mul(Self::STRIDE)?.checked_add(Self::LINES)?;
        Layout::from_size_align(size, Self::ALIGN).ok()
    }

    fn another_block(lines: usize) -> *mut Block {
        Self::block(lines).unwrap_or_else(|| {
            handle_alloc_error(Self::layout(lines).expect("there is one block of it already"))
        })
    }

    /// Zeroed memory, which the system gives page by page as it is touched; `None` if there is none.
    fn block(lines: usize) -> Option<*mut Block> {
        let layout = Self::layout(lines)?;
        // SAFETY: the layout is not empty: it has the block's head.
        let block = unsafe { alloc_zeroed(layout) }.cast::<Block>();
        if block.is_null() {
            return None;
        }
        let next = AtomicPtr::new(ptr::null_mut());
        // SAFETY: the memory is ours, large enough and aligned for the head. Zeros are an atomic of 0, and a place takes any bytes.
        unsafe { block.write(Block { next }) };
        #[cfg(loom)]
        for line in 0..lines {
            let line = Self::first_line(block).wrapping_add(line * Self::STRIDE);
            // SAFETY: as above; loom's types are more than their bytes.
            unsafe {
                line.cast::<AtomicUsize>().write(AtomicUsize::new(0));
                for place in 0..Self::PER_LINE {
                    Self::place(line, place).write(UnsafeCell::new(MaybeUninit::uninit()));
                }
            }
        }
        Some(block)
    }

    /// # Safety
    /// `block` is one of this lane's, and nobody uses it any more.
    unsafe fn free(block: *mut Block, lines: usize) {
        let layout = Self::layout(lines).expect("it was made by this layout");
        // SAFETY: `block` made all of these, and the caller says that nobody uses them.
        unsafe {
            #[cfg(loom)]
            for line in 0..lines {
                let line = Self::first_line(block).wrapping_add(line * Self::STRIDE);
                line.cast::<AtomicUsize>().drop_in_place();
                for place in 0..Self::PER_LINE {
                    Self::place(line, place).drop_in_place();
                }
            }
            block.drop_in_place();
            dealloc(block.cast(), layout);
        }
    }

    #[inline(always)]
    fn first_line(block: *mut Block) -> *mut u8 {
        block.cast::<u8>().wrapping_add(Self::LINES)
    }

    #[inline(always)]
    fn place(line: *mut u8, place: usize) -> *mut Place<T> {
        line.wrapping_add(Self::VALUES)
            .cast::<Place<T>>()
            .wrapping_add(place)
    }

    fn cursor(&self) -> Cursor {
        Cursor {
            block: Cell::new(self.first),
            line: Cell::new(Self::first_line(self.first)),
            lines: Cell::new(self.lines),
            place: Cell::new(0),
        }
    }

    /// The two halves of a lane that was just made.
    pub(crate) fn halves(&self) -> (Writer, Reader) {
        let writer = Writer {
            cursor: self.cursor(),
            tail: Cell::new(0),
            limit: Cell::new(self.capacity),
        };
        let reader = Reader {
            cursor: self.cursor(),
            head: Cell::new(0),
            filled: Cell::new(0),
        };
        (writer, reader)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Values inside, as of when both sides last said so.
    pub(crate) fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Relaxed);
        let tail = self.tail.0.load(Ordering::Relaxed);
        tail.saturating_sub(head).min(self.capacity)
    }

    // --- The writer ---------------------------------------------------------------------------

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
        let cursor = &writer.cursor;
        let tail = writer.tail.get() + 1;
        // SAFETY: the cursor is within the lane, and rule 3 says that the reader is done with this place.
        unsafe {
            (*Self::place(cursor.line.get(), cursor.place.get()))
                .with_mut(|place| (*place).write(value));
            self.publish(writer, tail, 1);
        }
    }

    /// Stamps the line for all up to `tail`, `count` of them new and in this line.
    ///
    /// # Safety
    /// As [`Lane::push`], and the `count` places from the cursor on hold values.
    #[inline(always)]
    unsafe fn publish(&self, writer: &Writer, tail: usize, count: usize) {
        let cursor = &writer.cursor;
        // SAFETY: every line begins with its stamp.
        let stamp = unsafe { &*cursor.line.get().cast::<AtomicUsize>() };
        // Before the last value of a line is published the way on from it must be there (rule 4).
        let full = cursor.place.get() + count == Self::PER_LINE;
        if full {
            self.writer_on(writer, stamp, tail);
        } else {
            stamp.store(tail, Ordering::Release);
            cursor.place.set(cursor.place.get() + count);
        }
        writer.tail.set(tail);
        self.tail.0.store(tail, Ordering::Relaxed);
    }

    #[inline(always)]
    fn writer_on(&self, writer: &Writer, stamp: &AtomicUsize, tail: usize) {
        let cursor = &writer.cursor;
        cursor.place.set(0);
        if cursor.lines.get() > 1 {
            stamp.store(tail, Ordering::Release);
            cursor.lines.set(cursor.lines.get() - 1);
            cursor
                .line
                .set(cursor.line.get().wrapping_add(Self::STRIDE));
        } else {
            let next = self.next_block(cursor.block.get());
            stamp.store(tail, Ordering::Release);
            cursor.enter::<T>(next, self.lines);
        }
    }

    #[inline(never)]
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
            let first = writer.cursor.place.get();
            let here = (Self::PER_LINE - first).min(most - done);
            while filling.count < here {
                let Some(value) = next() else {
                    return done + filling.count;
                };
                // SAFETY: the place is in the line, and there is room for it.
                unsafe {
                    (*Self::place(writer.cursor.line.get(), first + filling.count))
                        .with_mut(|place| (*place).write(value));
                }
                filling.count += 1;
            }
            done += here;
        }
        done
    }

    // --- The reader ---------------------------------------------------------------------------

    /// Whether there is a value; rule 2.
    #[inline(always)]
    pub(crate) fn has_value(&self, reader: &Reader) -> bool {
        reader.head.get() < reader.filled.get() || self.look_for_values(reader)
    }

    #[inline(always)]
    fn look_for_values(&self, reader: &Reader) -> bool {
        // SAFETY: every line begins with its stamp.
        let stamp = unsafe { &*reader.cursor.line.get().cast::<AtomicUsize>() };
        let filled = stamp.load(Ordering::Acquire);
        if filled <= reader.head.get() {
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
        most.min(reader.filled.get() - reader.head.get())
    }

    /// Takes a value out.
    ///
    /// # Safety
    /// `reader` is this lane's, the caller is its one user, and [`Lane::has_value`] said so.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self, reader: &Reader) -> T {
        let cursor = &reader.cursor;
        // SAFETY: rule 2: the value of this position is there, and nobody else takes it.
        let value = unsafe {
            (*Self::place(cursor.line.get(), cursor.place.get()))
                .with_mut(|place| (*place).assume_init_read())
        };
        self.advance(reader, 1);
        self.head.0.store(reader.head.get(), Ordering::Release);
        value
    }

    /// Goes on by `count` places, all of them in this line.
    #[inline(always)]
    fn advance(&self, reader: &Reader, count: usize) {
        let cursor = &reader.cursor;
        reader.head.set(reader.head.get() + count);
        let place = cursor.place.get() + count;
        if place < Self::PER_LINE {
            cursor.place.set(place);
            return;
        }
        cursor.place.set(0);
        if cursor.lines.get() > 1 {
            cursor.lines.set(cursor.lines.get() - 1);
            cursor
                .line
                .set(cursor.line.get().wrapping_add(Self::STRIDE));
        } else {
            self.reader_leaves_block(cursor);
        }
    }

    #[inline(never)]
    fn reader_leaves_block(&self, cursor: &Cursor) {
        let block = cursor.block.get();
        // SAFETY: the reader's block is alive until it is given back below. Rule 4: the link was stored before the
        // last stamp of the block.
        let next = unsafe { (*block).next.load(Ordering::Acquire) };
        cursor.enter::<T>(next, self.lines);
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

    /// Takes out what is there, `most` at most, and hands each value to `take`; how many. What was handed over is out, also
    /// if `take` panics.
    ///
    /// # Safety
    /// As [`Lane::pop`], but for the value.
    pub(crate) unsafe fn pop_some(
        &self,
        reader: &Reader,
        most: usize,
        mut take: impl FnMut(T),
    ) -> usize {
        let mut drained = Draining {
            lane: self,
            reader,
            count: 0,
        };
        while drained.count < most {
            let here = self
                .known(reader, most - drained.count)
                .min(Self::PER_LINE - reader.cursor.place.get());
            if here == 0 {
                break;
            }
            for _ in 0..here {
                let cursor = &reader.cursor;
                // SAFETY: as in `pop`.
                let value = unsafe {
                    (*Self::place(cursor.line.get(), cursor.place.get()))
                        .with_mut(|place| (*place).assume_init_read())
                };
                self.advance(reader, 1);
                drained.count += 1;
                take(value);
            }
        }
        drained.count
    }

    /// Looks at what is there, `most` at most, in place; how many.
    ///
    /// # Safety
    /// As [`Lane::pop_some`].
    pub(crate) unsafe fn peek_some(
        &self,
        reader: &Reader,
        most: usize,
        mut look: impl FnMut(&T),
    ) -> usize {
        let mut drained = Draining {
            lane: self,
            reader,
            count: 0,
        };
        while drained.count < most {
            let here = self
                .known(reader, most - drained.count)
                .min(Self::PER_LINE - reader.cursor.place.get());
            if here == 0 {
                break;
            }
            for _ in 0..here {
                let cursor = &reader.cursor;
                let place = Self::place(cursor.line.get(), cursor.place.get());
                // SAFETY: as in `pop`.
                let value = unsafe { (*place).with_mut(|place| (*place).as_mut_ptr()) };
                drained.count += 1;
                // First the value goes, then its place: the writer may take the block when the reader has left it.
                let _advance = Advance { lane: self, reader };
                let _value = DropInPlace(value);
                // SAFETY: the value is there until the end of this turn.
                look(unsafe { &*value });
            }
        }
        drained.count
    }

    /// How many values were taken out since the beginning.
    pub(crate) fn taken(&self, reader: &Reader) -> usize {
        let _ = self;
        reader.head.get()
    }

    /// How many values were put in since the beginning.
    #[inline(always)]
    pub(crate) fn put(&self, writer: &Writer) -> usize {
        let _ = self;
        writer.tail.get()
    }

    /// Drops what is inside, and frees the lane's memory.
    ///
    /// # Safety
    /// Nobody else uses the lane any more, and nobody does after this call.
    pub(crate) unsafe fn destroy(&self, reader: &Reader) {
        // SAFETY: the caller has the lane alone.
        unsafe {
            while self.has_value(reader) {
                drop(self.pop(reader));
            }
            let mut block = reader.cursor.block.get();
            let first = block;
            while !block.is_null() {
                let next = (*block).next.load(Ordering::Relaxed);
                Self::free(block, self.lines);
                block = if next == first { ptr::null_mut() } else { next };
            }
            let spare = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
            if !spare.is_null() {
                Self::free(spare, self.lines);
            }
        }
    }
}

/// A lane that frees its memory when everybody has let go of it.
pub(crate) struct OwnedLane<T> {
    lane: Lane<T>,
    /// The reader's half, when the reader is gone.
    left: UnsafeCell<Option<Reader>>,
}

// SAFETY: `left` is written once, by the reader when it goes, and read when nobody has the lane any more.
unsafe impl<T: Send> Sync for OwnedLane<T> {}

impl<T> OwnedLane<T> {
    /// The lane and its two halves.
    pub(crate) fn new(lane: Lane<T>) -> (Self, Writer, Reader) {
        let (writer, reader) = lane.halves();
        let left = UnsafeCell::new(None);
        (Self { lane, left }, writer, reader)
    }

    /// Gives back the reader's half: what is left inside is dropped with the lane.
    ///
    /// # Safety
    /// `reader` is this lane's.
    pub(crate) unsafe fn leave(&self, reader: Reader) {
        self.left.with_mut(|left| {
            // SAFETY: there is one reader, and this is its end.
            unsafe { *left = Some(reader) };
        });
    }
}

impl<T> std::ops::Deref for OwnedLane<T> {
    type Target = Lane<T>;

    #[inline(always)]
    fn deref(&self) -> &Lane<T> {
        &self.lane
    }
}

impl<T> Drop for OwnedLane<T> {
    fn drop(&mut self) {
        self.left.with_mut(|left| {
            // SAFETY: nobody else has the lane.
            unsafe {
                if let Some(reader) = (*left).take() {
                    self.lane.destroy(&reader);
                }
            }
        });
    }
}

impl Cursor {
    #[inline(always)]
    fn enter<T>(&self, block: *mut Block, lines: usize) {
        self.block.set(block);
        self.line.set(Lane::<T>::first_line(block));
        self.lines.set(lines);
        self.place.set(0);
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
            let tail = self.writer.tail.get() + self.count;
            // SAFETY: `count` places of the line were filled.
            unsafe { self.lane.publish(self.writer, tail, self.count) };
        }
    }
}

/// Says how far the reader came, whatever happens.
struct Draining<'a, T> {
    lane: &'a Lane<T>,
    reader: &'a Reader,
    count: usize,
}

impl<T> Drop for Draining<'_, T> {
    fn drop(&mut self) {
        if self.count > 0 {
            let head = self.reader.head.get();
            self.lane.head.0.store(head, Ordering::Release);
        }
    }
}

struct Advance<'a, T> {
    lane: &'a Lane<T>,
    reader: &'a Reader,
}

impl<T> Drop for Advance<'_, T> {
    fn drop(&mut self) {
        self.lane.advance(self.reader, 1);
    }
}

struct DropInPlace<T>(*mut T);

impl<T> Drop for DropInPlace<T> {
    fn drop(&mut self) {
        // SAFETY: who made it owns the value and uses it no more.
        unsafe { self.0.drop_in_place() };
    }
}
