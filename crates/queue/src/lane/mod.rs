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

mod owned;
mod reading;
mod writing;

pub(crate) use self::owned::OwnedLane;

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
