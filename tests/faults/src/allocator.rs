//! The system's allocator, which refuses according to a plan and counts live blocks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::fault;

/// Counts, and asks [`fault`] before each allocation.
#[derive(Clone, Copy, Debug)]
pub struct Refusing;

static LIVE: AtomicI64 = AtomicI64::new(0);
static TRACES: AtomicBool = AtomicBool::new(false);

/// How many allocations live.
pub fn live() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

/// From now on each refused allocation writes its backtrace to standard error: for whoever looks for its place.
pub fn trace() {
    TRACES.store(true, Ordering::Relaxed);
}

/// Keeps `malloc` from asking for mappings: a refused mapping is then one of the library's own requests.
pub fn keep_to_the_heap() {
    // SAFETY: both settings take any number, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
}

#[cold]
fn write_trace(size: usize) {
    // What it allocates itself is not refused.
    fault::disarm();
    let trace = std::backtrace::Backtrace::force_capture();
    eprintln!("refused: {size} bytes\n{trace}");
}

fn is_refused(size: usize) -> bool {
    let refused = fault::is_allocation_refused(size);
    if refused && TRACES.load(Ordering::Relaxed) {
        write_trace(size);
    }
    if refused {
        say(size);
    }
    refused
}

/// Writes the size to standard error, without an allocation: the process may be about to end.
fn say(size: usize) {
    let mut text = *b"refused-bytes=00000000000000000000\n";
    let (mut rest, end) = (size, text.len() - 1);
    for digit in text[end - 20..end].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the bytes are this frame's.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

fn count(block: *mut u8) -> *mut u8 {
    if !block.is_null() {
        LIVE.fetch_add(1, Ordering::Relaxed);
    }
    block
}

// SAFETY: everything is the system allocator's; null is what an allocator gives that has no memory.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        count(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        count(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) };
    }
}
