//! The memory of tasks and messages. A worker keeps some of the blocks that it frees for those that it
//! needs next, because `malloc` and `free` take 140 instructions together, and 450 after a burst. Most of
//! them go back to the allocator when the worker is idle.
//!
//! Blocks have few sizes, so that values of different types share them. A block that a thread without a
//! worker frees, and one of an unusual size, goes back to the allocator.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::worker;

/// The sizes are the multiples of this one.
const STEP: usize = 64;
const SIZES: usize = 8;
const ALIGN: usize = 16;
/// Maximum bytes of the kept blocks of one size: those of a burst of ten thousand actors.
const MAX_KEPT: usize = 4 << 20;
/// The same, for an idle worker: enough messages for a turn of an actor.
const MAX_KEPT_IDLE: usize = 8 << 10;
/// The number of blocks that [`Blocks::trim`] frees, which takes some microseconds.
const TRIM_STEP: usize = 64;

/// The blocks that a worker keeps.
pub(crate) struct Blocks {
    of: [Kept; SIZES],
    /// Whether the limit of a size is larger than that of an idle worker.
    has_grown: Cell<bool>,
}

/// The kept blocks of one size.
struct Kept {
    /// The first block. Each block contains the address of the next one.
    first: Cell<*mut u8>,
    count: Cell<u32>,
    /// The maximum of `count`: at first 0, then that of an idle worker, then that of a busy one.
    limit: Cell<u32>,
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self {
            of: [const {
                Kept {
                    first: Cell::new(ptr::null_mut()),
                    count: Cell::new(0),
                    limit: Cell::new(0),
                }
            }; SIZES],
            has_grown: Cell::new(false),
        }
    }

    #[inline]
    fn take(&self, size: usize) -> Option<NonNull<u8>> {
        let kept = &self.of[size];
        let first = NonNull::new(kept.first.get())?;
        // SAFETY: `keep` has written it.
        kept.first.set(unsafe { first.cast::<*mut u8>().read() });
        kept.count.set(kept.count.get() - 1);
        Some(first)
    }

    /// Keeps a free block. Returns whether there was space.
    #[inline]
    fn keep(&self, size: usize, block: NonNull<u8>) -> bool {
        let kept = &self.of[size];
        if kept.count.get() >= kept.limit.get() && !self.grow(size) {
            return false;
        }
        #[cfg(debug_assertions)]
        // SAFETY: the block has this size and belongs to the caller.
        unsafe {
            block.write_bytes(0xdb, layout(size).size());
        }
        // SAFETY: as above; blocks are aligned.
        unsafe { block.cast::<*mut u8>().write(kept.first.get()) };
        kept.first.set(block.as_ptr());
        kept.count.set(kept.count.get() + 1);
        true
    }

    /// Raises the limit of this size. Returns `false` if it is at its maximum.
    #[cold]
    fn grow(&self, size: usize) -> bool {
        let limit = &self.of[size].limit;
        let max = count_in(MAX_KEPT, size);
        match limit.get() {
            0 => limit.set(count_in(MAX_KEPT_IDLE, size)),
            now if now < max => {
                limit.set(max);
                self.has_grown.set(true);
            }
            _ => return false,
        }
        true
    }

    /// Whether an idle worker should free some blocks.
    pub(crate) fn needs_trim(&self) -> bool {
        self.has_grown.get()
    }

    /// Frees some of the blocks that an idle worker does not keep. Returns whether there may be more.
    pub(crate) fn trim(&self) -> bool {
        for size in 0..SIZES {
            let kept = &self.of[size];
            let max = count_in(MAX_KEPT_IDLE, size);
            for _ in 0..TRIM_STEP {
                if kept.count.get() <= max {
                    break;
                }
                self.take(size)
                    .into_iter()
                    .for_each(|block| self.release(size, block));
            }
            if kept.count.get() > max {
                return true;
            }
            kept.limit.set(max);
        }
        self.has_grown.set(false);
        false
    }

    fn release(&self, size: usize, block: NonNull<u8>) {
        // SAFETY: `allocate` allocated it with this layout, and it was kept here.
        unsafe { dealloc(block.as_ptr(), layout(size)) };
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        for size in 0..SIZES {
            while let Some(block) = self.take(size) {
                self.release(size, block);
            }
        }
    }
}

/// The index of the size of blocks for a `T`. `None`: it has an unusual size or alignment.
const fn size_index<T>() -> Option<usize> {
    let size = size_of::<T>();
    if cfg!(loom) || size == 0 || size > STEP * SIZES || align_of::<T>() > ALIGN {
        return None;
    }
    Some((size - 1) / STEP)
}

/// The number of blocks of this size in `bytes` bytes.
#[inline]
const fn count_in(bytes: usize, size: usize) -> u32 {
    (bytes / (STEP * (size + 1))) as u32
}

/// The layout of blocks of this size.
const fn layout(size: usize) -> Layout {
    match Layout::from_size_align(STEP * (size + 1), ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("the sizes are small"),
    }
}

#[inline(never)]
fn allocate_new(layout: Layout) -> NonNull<u8> {
    // SAFETY: the size is not 0.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Memory for a `T`, to be freed by [`free`].
#[inline(always)]
pub(crate) fn allocate<T>() -> NonNull<T> {
    const { assert!(size_of::<T>() > 0) };
    let block = match const { size_index::<T>() } {
        None => allocate_new(Layout::new::<T>()),
        Some(size) => worker::current()
            .and_then(|worker| worker.task_blocks.take(size))
            .unwrap_or_else(|| allocate_new(layout(size))),
    };
    block.cast()
}

/// Frees the memory of a `T`.
///
/// # Safety
/// It came from [`allocate`] with this type, and is not used any more. Its value was dropped.
#[inline(always)]
pub(crate) unsafe fn free<T>(block: NonNull<T>) {
    let block = block.cast::<u8>();
    let layout = match const { size_index::<T>() } {
        None => Layout::new::<T>(),
        Some(size) => {
            if worker::current().is_some_and(|worker| worker.task_blocks.keep(size, block)) {
                return;
            }
            layout(size)
        }
    };
    // SAFETY: `allocate` allocated it with this layout.
    unsafe { dealloc(block.as_ptr(), layout) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::ptr::NonNull;

    use super::{
        Blocks, MAX_KEPT, MAX_KEPT_IDLE, SIZES, allocate_new, count_in, layout, size_index,
    };

    #[test]
    fn kept_block_is_taken_once_and_their_number_is_limited() {
        let blocks = Blocks::new();
        assert_eq!(blocks.take(1), None);
        let max = count_in(MAX_KEPT, 1) as usize;
        let all: Vec<NonNull<u8>> = (0..=max).map(|_| allocate_new(layout(1))).collect();
        let kept = all.iter().filter(|block| blocks.keep(1, **block)).count();
        assert_eq!(kept, max);
        assert_eq!(blocks.take(0), None, "it has another size");
        assert_eq!(blocks.take(1), Some(all[max - 1]));
        assert!(blocks.keep(1, all[max]));
        // SAFETY: it was taken, and has this layout.
        unsafe { std::alloc::dealloc(all[max - 1].as_ptr(), layout(1)) };
    }

    #[test]
    fn idle_worker_keeps_few_blocks_of_each_size() {
        let blocks = Blocks::new();
        for size in 0..SIZES {
            for _ in 0..1_000 {
                assert!(blocks.keep(size, allocate_new(layout(size))));
            }
        }
        assert!(blocks.needs_trim());
        while blocks.trim() {}
        assert!(!blocks.needs_trim());
        for size in 0..SIZES {
            let kept = blocks.of[size].count.get();
            assert_eq!(kept, count_in(MAX_KEPT_IDLE, size), "size {size}");
        }
    }

    #[test]
    fn types_of_similar_size_share_blocks() {
        assert_eq!(size_index::<[u64; 9]>(), size_index::<[u64; 16]>());
        assert_eq!(size_index::<u8>(), Some(0));
        assert_eq!(size_index::<[u64; 65]>(), None);
        #[repr(align(64))]
        struct Aligned(#[expect(dead_code, reason = "it has a size")] u8);
        assert_eq!(size_index::<Aligned>(), None);
    }
}
