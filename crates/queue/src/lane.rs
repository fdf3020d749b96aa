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

/// Where a side stands: the next place, and where its block ends. The line is found by the place's address.
#[derive(Clone)]
struct Cursor {
    at: Cell<*mut u8>,
    end: Cell<*mut u8>,
}

/// The writer's own half.
pub(crate) struct Writer {
    cursor: Cursor,
    tail: Cell<usize>,
    limit: Cell<usize>,
}

/// The reader's own half.
///
/// How far it came is the lane's `head`.
pub(crate) struct Reader {
    cursor: Cursor,
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
        if size_of::<Place<T>>() == 0 || size_of::<Place<T>>() > room {
            1
        } else {
            room / size_of::<Place<T>>()
        }
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

    #[cfg(loom)]
    fn place(line: *mut u8, place: usize) -> *mut Place<T> {
        line.wrapping_add(Self::VALUES)
            .cast::<Place<T>>()
            .wrapping_add(place)
    }

    /// The line of a place. Where a line has more than one place, it is aligned to its own length.
    #[inline(always)]
    fn line(at: *mut u8) -> *mut u8 {
        let offset = if Self::PER_LINE == 1 {
            Self::VALUES
        } else {
            at.addr() % LINE
        };
        at.wrapping_sub(offset)
    }

    /// The stamp of a place's line.
    ///
    /// # Safety
    /// `at` is a place in a block that is alive.
    #[inline(always)]
    unsafe fn stamp<'a>(at: *mut u8) -> &'a AtomicUsize {
        // SAFETY: every line begins with its stamp.
        unsafe { &*Self::line(at).cast::<AtomicUsize>() }
    }

    /// Places from this one to the end of its line.
    #[inline(always)]
    fn places_left(at: *mut u8) -> usize {
        if Self::PER_LINE == 1 || size_of::<Place<T>>() == 0 {
            return 1;
        }
        Self::PER_LINE - (at.addr() % LINE - Self::VALUES) / size_of::<Place<T>>()
    }

    /// Whether a line ends before this place.
    #[inline(always)]
    fn is_beyond(next: *mut u8) -> bool {
        let end = Self::VALUES + Self::PER_LINE * size_of::<Place<T>>();
        Self::PER_LINE == 1 || next.addr() % LINE == end % LINE
    }

    /// The first place of the line after that of `at`; `None`: the block ends there.
    #[inline(always)]
    fn next_line(cursor: &Cursor, at: *mut u8) -> Option<*mut u8> {
        let line = Self::line(at).wrapping_add(Self::STRIDE);
        (line != cursor.end.get()).then(|| line.wrapping_add(Self::VALUES))
    }

    /// Where the places of `block` begin, and where its lines end.
    fn enter(&self, cursor: &Cursor, block: *mut Block) {
        let first = Self::first_line(block);
        cursor.at.set(first.wrapping_add(Self::VALUES));
        cursor
            .end
            .set(first.wrapping_add(self.lines * Self::STRIDE));
    }

    /// The block whose lines end there.
    fn block_before(&self, end: *mut u8) -> *mut Block {
        end.wrapping_sub(self.lines * Self::STRIDE + Self::LINES)
            .cast()
    }

    fn cursor(&self) -> Cursor {
        let cursor = Cursor {
            at: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
        };
        self.enter(&cursor, self.first);
        cursor
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
            filled: Cell::new(0),
        };
        (writer, reader)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Values inside, for the writer.
    pub(crate) fn len_for_writer(&self, writer: &Writer) -> usize {
        writer.tail.get() - self.head.0.load(Ordering::Relaxed)
    }

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

    // --- The reader ---------------------------------------------------------------------------

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
            while let Some(value) = self.try_pop(reader) {
                drop(value);
            }
            let mut block = self.block_before(reader.cursor.end.get());
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
    /// `reader` is this lane's, and is not used any more.
    pub(crate) unsafe fn leave(&self, reader: &Reader) {
        let reader = Reader {
            cursor: reader.cursor.clone(),
            filled: reader.filled.clone(),
        };
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
