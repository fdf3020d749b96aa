//! One writer, one reader: a chain of cache lines, each with the values of some positions and a stamp that says how far it is filled.
//!
//! A **line** holds the values of [`Lane::PER_LINE`] positions behind one stamp, for small values all in one cache line; lines stand in
//! **blocks**. A **offset** says where a side stands in one number that only grows: 64 for each line since the beginning, and how far
//! into its line the next place is. Within a line offsets grow by [`Lane::STEP`] a value.
//!
//! 1. The stamp of a line is the offset of its last place that is filled. The writer stores it (Release) after each value, or once for
//!    all the values that it put into the line.
//! 2. The reader at offset `m` loads the stamp of its line (Acquire): all places from `m` to the stamp are filled. What a line held
//!    a lap ago is below `m` and means: nothing. What the writer put there a lap ahead is above the line's last place: all are filled.
//!    So nobody ever resets a stamp, the reader never writes to a line, and a value costs one transfer of its line.
//! 3. The reader stores its offset as `head` (Release) after it took values out. The writer loads it (Acquire) only when it has
//!    reached the limit that it knew: what was taken, and the capacity.
//! 4. A bounded lane is one block whose next is itself. An unbounded one links a new block (Release) before it enters it; the reader
//!    follows when it has drained the old one, and gives that back through `spare`.
//! 5. A side asks for room or values only when it has used up what it knew of: the writer knows how many whole lines it was granted, the
//!    reader looks at one stamp a line. A value costs the writer three stores: value, stamp, offset.
//!
//! ```text
//!   line 0                       line 1                       line 2
//!   stamp 120  a b c d e f g     stamp 152  h i j . . . .     stamp 0  . . . . . . .      u64: places at 8, 16, .. 56
//!              64+8     64+56               128+8  ^ tail = 160
//! ```
//!
//! After the slot-state ring of JCTools' `SpscArrayQueue`; the stamp per line in place of per slot is ours: `docs/internals/queue.md` has the figures.

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
use crate::error::CapacityError;
use crate::no_preempt::NoPreemptGuard;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, UnsafeCell};

/// A cache line, and what a line of small values is fitted into.
const LINE: usize = 64;

/// One value's place.
type ValueCell<T> = UnsafeCell<MaybeUninit<T>>;

/// The head of a block; its lines follow in the same allocation.
struct Block {
    next: AtomicPtr<Block>,
}

/// What the writer and the reader of a lane share.
pub(crate) struct Lane<T> {
    /// Where the reader stands. Stored by the reader alone.
    head: CachePadded<AtomicUsize>,
    writer_state: CachePadded<WriterState>,
    values: PhantomData<T>,
}

/// What the writer works with.
struct WriterState {
    /// Where the writer stands. Stored by the writer alone, read by others for the length.
    tail: AtomicUsize,
    /// A block that the reader drained, for the writer to fill again.
    spare: AtomicPtr<Block>,
    first: *mut Block,
    lines: usize,
    capacity: usize,
}

// SAFETY: rules 1 to 3 give each value one owner at a time and order the hand-over by the stamp and by `head`.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above; what only one side may do is unsafe to call.
unsafe impl<T: Send> Sync for Lane<T> {}

/// The line in which a side stands, where its block ends, and the offset up to which the side may go without asking.
#[derive(Clone)]
struct Cursor {
    line: Cell<*mut u8>,
    end: Cell<*mut u8>,
    until: Cell<usize>,
}

/// The writer's own half.
pub(crate) struct Writer {
    cursor: Cursor,
    /// So many values may be put in, since the beginning.
    limit: Cell<usize>,
    /// Whole lines after this one that it may fill, up to the end of the block at max.
    lines: Cell<usize>,
}

/// The reader's own half.
pub(crate) struct Reader {
    cursor: Cursor,
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
    const VALUES: usize = round_up(size_of::<AtomicUsize>(), align_of::<ValueCell<T>>());

    /// How many values share a stamp: as many as the line has room for, and one at least.
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

    /// Where the lines begin in a block.
    const LINES: usize = round_up(size_of::<Block>(), Self::ALIGN);

    /// Offsets between one place and the next. A place that is alone in its line is passed by one step of any length.
    const STEP: usize = if Self::PER_LINE == 1 {
        1
    } else {
        size_of::<ValueCell<T>>()
    };

    /// How far into its line's offsets the first place is.
    const FIRST: usize = Self::VALUES % LINE;

    /// Offsets of all places of a line.
    const FULL: usize = Self::PER_LINE * Self::STEP;

    /// A lane for at max `capacity` values.
    ///
    /// # Errors
    /// 0, more than 2^30, and what there is no memory for.
    pub(crate) fn bounded(capacity: usize) -> Result<Self, CapacityError> {
        CapacityError::check(capacity)?;
        let lines = capacity.div_ceil(Self::PER_LINE);
        let first = Self::try_allocate_block(lines).ok_or(CapacityError(capacity))?;
        // SAFETY: the block was just made and is not shared yet.
        unsafe { &*first }.next.store(first, Ordering::Relaxed);
        Ok(Self::with(first, lines, capacity))
    }

    /// A lane without a limit of its own, in blocks for about `block` values.
    pub(crate) fn unbounded(block: usize) -> Self {
        let lines = block.div_ceil(Self::PER_LINE).max(1);
        Self::with(Self::allocate_block(lines), lines, usize::MAX)
    }

    fn with(first: *mut Block, lines: usize, capacity: usize) -> Self {
        Self {
            head: CachePadded::new(AtomicUsize::new(LINE + Self::FIRST)),
            writer_state: CachePadded::new(WriterState {
                tail: AtomicUsize::new(LINE + Self::FIRST),
                spare: AtomicPtr::new(ptr::null_mut()),
                first,
                lines,
                capacity,
            }),
            values: PhantomData,
        }
    }

    fn layout(lines: usize) -> Option<Layout> {
        let size = lines.checked_mul(Self::STRIDE)?.checked_add(Self::LINES)?;
        Layout::from_size_align(size, Self::ALIGN).ok()
    }

    fn allocate_block(lines: usize) -> *mut Block {
        Self::try_allocate_block(lines).unwrap_or_else(|| {
            handle_alloc_error(Self::layout(lines).expect("there is one block of it already"))
        })
    }

    /// Zeroed memory, which the system gives page by page as it is touched; `None` if there is none.
    fn try_allocate_block(lines: usize) -> Option<*mut Block> {
        let layout = Self::layout(lines)?;
        // The writer has left its line.
        let _no_preempt = NoPreemptGuard::enter();
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
                    Self::cell(line, place).write(UnsafeCell::new(MaybeUninit::uninit()));
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
                    Self::cell(line, place).drop_in_place();
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
    fn cell(line: *mut u8, place: usize) -> *mut ValueCell<T> {
        line.wrapping_add(Self::VALUES)
            .cast::<ValueCell<T>>()
            .wrapping_add(place)
    }

    /// The place of a offset in its line; those of the offsets after it follow.
    #[inline(always)]
    fn cell_at(line: *mut u8, offset: usize) -> *mut ValueCell<T> {
        line.wrapping_add(Self::VALUES - Self::FIRST + offset % LINE)
            .cast()
    }

    /// # Safety
    /// `line` is in a block that is alive.
    #[inline(always)]
    unsafe fn stamp<'a>(line: *mut u8) -> &'a AtomicUsize {
        // SAFETY: every line begins with its stamp.
        unsafe { &*line.cast::<AtomicUsize>() }
    }

    /// The offset of the first place of the line that `offset` is in or at the end of.
    fn line_start(offset: usize) -> usize {
        (offset - Self::FIRST) / LINE * LINE + Self::FIRST
    }

    /// How many values come before a offset.
    fn position(offset: usize) -> usize {
        let offset = offset - Self::FIRST;
        (offset / LINE - 1) * Self::PER_LINE + offset % LINE / Self::STEP
    }

    /// The offset behind the last place of that line.
    fn line_end(offset: usize) -> usize {
        Self::line_start(offset) + Self::FULL
    }

    /// Goes to the line after that of `offset`, by `leave` where the block ends; the offset of its first place, or `None` if `leave` has no
    /// block.
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

    /// Lines of the block after this one.
    fn lines_after(cursor: &Cursor) -> usize {
        (cursor.end.get().addr() - cursor.line.get().addr()) / Self::STRIDE - 1
    }

    /// The block whose lines end there.
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

    /// The two halves of a lane that was just made. The writer may put in nothing yet: [`Lane::reserve`].
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

    pub(crate) fn capacity(&self) -> usize {
        self.writer_state.capacity
    }

    /// How many values were put in since the beginning.
    pub(crate) fn pushed(&self) -> usize {
        Self::position(self.writer_state.tail.load(Ordering::Relaxed))
    }

    /// How many values were taken out since the beginning.
    pub(crate) fn popped(&self) -> usize {
        Self::position(self.head.load(Ordering::Relaxed))
    }

    /// Values inside, or a moment ago.
    pub(crate) fn len(&self) -> usize {
        // The reader may be ahead of the first look.
        let pushed = self.pushed();
        pushed.saturating_sub(self.popped())
    }

    /// Drops what is inside, and frees the lane's memory.
    ///
    /// # Safety
    /// Nobody else uses the lane any more, and nobody does after this call.
    pub(crate) unsafe fn destroy(&self, reader: &Reader) {
        let lines = self.writer_state.lines;
        // SAFETY: the caller has the lane alone.
        unsafe {
            while let Some(value) = self.try_pop(reader) {
                drop(value);
            }
            let mut block = self.block_before(reader.cursor.end.get());
            let first = block;
            while !block.is_null() {
                let next = (*block).next.load(Ordering::Relaxed);
                Self::free(block, lines);
                block = if next == first { ptr::null_mut() } else { next };
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
