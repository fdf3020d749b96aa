//! A queue with one writer and one reader: a chain of cache lines. Each line has several values and
//! one stamp, which tells how many of the values have been written.
//!
//! A **line** has the values of [`Lane::PER_LINE`] positions behind one stamp. For small values,
//! all of this fits in one cache line. Lines are in **blocks**. An **offset** is the position of a
//! side as one number that only grows: 64 per line since the beginning, plus the byte offset of the
//! next slot in its line. Within a line, each value adds [`Lane::STEP`] to the offset.
//!
//! 1. The stamp of a line is the offset of its last filled slot. The writer stores it (Release)
//!    after each value, or once for all values that it wrote into the line.
//! 2. The reader at offset `m` loads the stamp of its line (Acquire): all slots from `m` to the
//!    stamp are filled. A stamp of the previous lap is below `m`, so nothing is filled. A stamp of
//!    the next lap is above the last slot of the line, so all slots are filled. Stamps are
//!    therefore never reset, the reader never writes to a line, and a value costs one transfer of
//!    its line.
//! 3. The reader stores its offset in `head` (Release) after it has removed values. The writer's
//!    limit is the number of values that it may push; its owner raises it.
//! 4. The writer links a new block (Release) before it enters it. The reader follows when it has
//!    drained the old block, and returns the old block through `spare`.
//! 5. A side checks for slots or values only when it has used up those that it knew of. The writer
//!    knows how many whole lines it was granted. The reader loads one stamp per line. A value costs
//!    the writer three stores: value, stamp, offset.
//!
//! ```text
//!   line 0                       line 1                       line 2
//!   stamp 120  a b c d e f g     stamp 152  h i j . . . .     stamp 0  . . . . . . .      u64: slots at 8, 16, .. 56
//!              64+8     64+56               128+8  ^ tail = 160
//! ```
//!
//! The design is based on the slot-state ring of JCTools' `SpscArrayQueue`. One stamp per line
//! instead of per slot is new here; `docs/internals/queue.md` has the figures.

mod owned;
mod reader;
mod writer;

pub(crate) use self::owned::OwnedLane;

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::cache_padded::CachePadded;
use crate::no_preempt::NoPreemptGuard;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, UnsafeCell};

/// The size of a cache line. A line of small values fits into it.
const LINE: usize = 64;

/// The storage of one value.
type ValueCell<T> = UnsafeCell<MaybeUninit<T>>;

/// The head of a block; its lines follow in the same allocation.
struct Block {
    next: AtomicPtr<Block>,
}

/// The part of a lane that the writer and the reader share.
pub(crate) struct Lane<T> {
    /// The reader's offset. Only the reader stores it.
    head: CachePadded<AtomicUsize>,
    writer_state: CachePadded<WriterState>,
    values: PhantomData<T>,
}

/// The writer's data.
struct WriterState {
    /// The writer's offset. Only the writer stores it; other threads read it to compute the length.
    tail: AtomicUsize,
    /// A block that the reader has drained and the writer can fill again.
    spare: AtomicPtr<Block>,
    first: *mut Block,
    lines: usize,
}

// SAFETY: rules 1 to 3 give each value one owner at a time. The stamp and `head` order the
// hand-over.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above. The methods that only one side may call are unsafe.
unsafe impl<T: Send> Sync for Lane<T> {}

/// The current line of a side, the end of its block, and the offset up to which the side may go
/// without checking.
#[derive(Clone)]
struct Cursor {
    line: Cell<*mut u8>,
    end: Cell<*mut u8>,
    until: Cell<usize>,
}

/// The private half of the writer.
pub(crate) struct Writer {
    cursor: Cursor,
    /// How many values may be pushed, counted from the beginning.
    limit: Cell<usize>,
    /// How many whole lines after this one may be filled, at most up to the end of the block.
    lines: Cell<usize>,
}

/// The private half of the reader.
pub(crate) struct Reader {
    cursor: Cursor,
}

// SAFETY: the pointers refer to the lane, which is Send. Moving a half to another thread moves that
// side of the lane.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Send for Reader {}

const fn round_up(size: usize, to: usize) -> usize {
    size.div_ceil(to) * to
}

impl<T> Lane<T> {
    /// Where the values start in a line, behind the stamp.
    const VALUES: usize = round_up(size_of::<AtomicUsize>(), align_of::<ValueCell<T>>());

    /// How many values share a stamp: as many as fit in the line, but at least one.
    pub(crate) const PER_LINE: usize = {
        let room = LINE.saturating_sub(Self::VALUES);
        if size_of::<ValueCell<T>>() == 0 || size_of::<ValueCell<T>>() > room {
            1
        } else {
            room / size_of::<ValueCell<T>>()
        }
    };

    const ALIGN: usize = if align_of::<ValueCell<T>>() > LINE {
        align_of::<ValueCell<T>>()
    } else {
        LINE
    };

    const STRIDE: usize = round_up(
        Self::VALUES + Self::PER_LINE * size_of::<ValueCell<T>>(),
        Self::ALIGN,
    );

    /// Where the lines start in a block.
    const LINES: usize = round_up(size_of::<Block>(), Self::ALIGN);

    /// The difference between the offsets of neighbouring slots. If a line has only one slot, any
    /// step skips it.
    const STEP: usize = if Self::PER_LINE == 1 {
        1
    } else {
        size_of::<ValueCell<T>>()
    };

    /// The offset of the first slot within its line.
    const FIRST: usize = Self::VALUES % LINE;

    /// The difference of offsets from the first slot of a line to its end.
    const FULL: usize = Self::PER_LINE * Self::STEP;

    /// Creates a lane without a limit of its own, in blocks of about `block` values.
    pub(crate) fn unbounded(block: usize) -> Self {
        let lines = block.div_ceil(Self::PER_LINE).max(1);
        Self {
            head: CachePadded::new(AtomicUsize::new(LINE + Self::FIRST)),
            writer_state: CachePadded::new(WriterState {
                tail: AtomicUsize::new(LINE + Self::FIRST),
                spare: AtomicPtr::new(ptr::null_mut()),
                first: Self::allocate_block(lines),
                lines,
            }),
            values: PhantomData,
        }
    }

    fn layout(lines: usize) -> Layout {
        let size = lines
            .checked_mul(Self::STRIDE)
            .and_then(|size| size.checked_add(Self::LINES));
        size.and_then(|size| Layout::from_size_align(size, Self::ALIGN).ok())
            .expect("the size of a block fits")
    }

    /// Allocates zeroed memory, whose pages the system provides when they are touched.
    fn allocate_block(lines: usize) -> *mut Block {
        let layout = Self::layout(lines);
        // The writer has left its line but has not entered the next one.
        let _no_preempt = NoPreemptGuard::enter();
        // SAFETY: the layout is not empty, because it contains the head of the block.
        let block = unsafe { alloc_zeroed(layout) }.cast::<Block>();
        if block.is_null() {
            handle_alloc_error(layout);
        }
        let next = AtomicPtr::new(ptr::null_mut());
        // SAFETY: the memory is new, large enough and aligned for the head. A zeroed atomic is 0,
        // and a value cell accepts any bytes.
        unsafe { block.write(Block { next }) };
        #[cfg(loom)]
        for line in 0..lines {
            let line = Self::first_line(block).wrapping_add(line * Self::STRIDE);
            // SAFETY: as above. loom's types consist of more than their bytes, so they are written
            // one by one.
            unsafe {
                line.cast::<AtomicUsize>().write(AtomicUsize::new(0));
                for slot in 0..Self::PER_LINE {
                    Self::cell(line, slot).write(UnsafeCell::new(MaybeUninit::uninit()));
                }
            }
        }
        block
    }

    /// # Safety
    /// `block` is a block of this lane, and nobody uses it any more.
    unsafe fn free(block: *mut Block, lines: usize) {
        let layout = Self::layout(lines);
        // SAFETY: `allocate_block` created all of these, and the caller ensures that nobody
        // uses them.
        unsafe {
            #[cfg(loom)]
            for line in 0..lines {
                let line = Self::first_line(block).wrapping_add(line * Self::STRIDE);
                line.cast::<AtomicUsize>().drop_in_place();
                for slot in 0..Self::PER_LINE {
                    Self::cell(line, slot).drop_in_place();
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
    fn cell(line: *mut u8, slot: usize) -> *mut ValueCell<T> {
        line.wrapping_add(Self::VALUES)
            .cast::<ValueCell<T>>()
            .wrapping_add(slot)
    }

    /// The slot at an offset in its line. The slots of the following offsets are behind it.
    #[inline(always)]
    fn cell_at(line: *mut u8, offset: usize) -> *mut ValueCell<T> {
        line.wrapping_add(Self::VALUES - Self::FIRST + offset % LINE)
            .cast()
    }

    /// # Safety
    /// `line` is in a block that has not been freed.
    #[inline(always)]
    unsafe fn stamp<'a>(line: *mut u8) -> &'a AtomicUsize {
        // SAFETY: every line starts with its stamp.
        unsafe { &*line.cast::<AtomicUsize>() }
    }

    /// The offset of the first slot of the line that contains `offset` or ends at it.
    fn line_start(offset: usize) -> usize {
        (offset - Self::FIRST) / LINE * LINE + Self::FIRST
    }

    /// The number of values before an offset.
    fn position(offset: usize) -> usize {
        let offset = offset - Self::FIRST;
        (offset / LINE - 1) * Self::PER_LINE + offset % LINE / Self::STEP
    }

    /// The offset behind the last slot of that line.
    fn line_end(offset: usize) -> usize {
        Self::line_start(offset) + Self::FULL
    }

    /// Moves the cursor to the line after the one of `offset`. At the end of the block, `leave`
    /// provides the next block. Returns the offset of the line's first slot, or `None` if `leave`
    /// has no block.
    fn next_line(
        &self,
        cursor: &Cursor,
        offset: usize,
        leave: impl FnOnce(*mut Block) -> Option<*mut Block>,
    ) -> Option<usize> {
        let line = cursor.line.get().wrapping_add(Self::STRIDE);
        if line == cursor.end.get() {
            self.enter(cursor, leave(self.block_before(line))?);
        } else {
            cursor.line.set(line);
        }
        Some(Self::line_start(offset) + LINE)
    }

    fn enter(&self, cursor: &Cursor, block: *mut Block) {
        let first = Self::first_line(block);
        let length = self.writer_state.lines * Self::STRIDE;
        cursor.line.set(first);
        cursor.end.set(first.wrapping_add(length));
    }

    /// The number of lines of the block after the current one.
    fn lines_after(cursor: &Cursor) -> usize {
        (cursor.end.get().addr() - cursor.line.get().addr()) / Self::STRIDE - 1
    }

    /// The block whose lines end at `end`.
    fn block_before(&self, end: *mut u8) -> *mut Block {
        end.wrapping_sub(self.writer_state.lines * Self::STRIDE + Self::LINES)
            .cast()
    }

    fn cursor(&self) -> Cursor {
        let cursor = Cursor {
            line: Cell::new(ptr::null_mut()),
            end: Cell::new(ptr::null_mut()),
            until: Cell::new(LINE + Self::FIRST),
        };
        self.enter(&cursor, self.writer_state.first);
        cursor
    }

    /// Creates the two halves of a new lane. The writer must call [`Lane::reserve`] before it can
    /// push.
    pub(crate) fn halves(&self) -> (Writer, Reader) {
        let writer = Writer {
            cursor: self.cursor(),
            limit: Cell::new(0),
            lines: Cell::new(0),
        };
        let reader = Reader {
            cursor: self.cursor(),
        };
        (writer, reader)
    }

    /// The number of values that have been pushed since the beginning.
    pub(crate) fn pushed(&self) -> usize {
        Self::position(self.writer_state.tail.load(Ordering::Relaxed))
    }

    /// The number of values that have been popped since the beginning.
    pub(crate) fn popped(&self) -> usize {
        Self::position(self.head.load(Ordering::Relaxed))
    }

    /// The number of values in the lane. It may lag behind other threads.
    pub(crate) fn len(&self) -> usize {
        // The reader may advance between the two loads, so the difference saturates.
        let pushed = self.pushed();
        pushed.saturating_sub(self.popped())
    }

    /// Drops the values in the lane and frees its memory.
    ///
    /// # Safety
    /// Nobody else uses the lane, now or later.
    pub(crate) unsafe fn destroy(&self, reader: &Reader) {
        let lines = self.writer_state.lines;
        // SAFETY: the caller has exclusive use of the lane.
        unsafe {
            while let Some(value) = self.try_pop(reader) {
                drop(value);
            }
            let mut block = self.block_before(reader.cursor.end.get());
            while !block.is_null() {
                let next = (*block).next.load(Ordering::Relaxed);
                Self::free(block, lines);
                block = next;
            }
            let spare = self
                .writer_state
                .spare
                .swap(ptr::null_mut(), Ordering::Acquire);
            if !spare.is_null() {
                Self::free(spare, lines);
            }
        }
    }
}
