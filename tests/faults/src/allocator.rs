//! The system allocator with two additions: it refuses allocations according to a plan, and counts
//! live blocks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::fault;

/// Counts allocations, and consults [`fault`] before each.
#[derive(Clone, Copy, Debug)]
pub struct Refusing;

static LIVE: AtomicI64 = AtomicI64::new(0);
static TRACES: AtomicBool = AtomicBool::new(false);

/// The number of live allocations.
pub fn live() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

/// From now on, each refused allocation writes its backtrace to standard error, for debugging.
pub fn trace() {
    TRACES.store(true, Ordering::Relaxed);
}

/// Prevents `malloc` from creating mappings, so that a refused mapping is always a request of the
/// library.
pub fn keep_to_the_heap() {
    // SAFETY: both settings accept any number, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
}

#[cold]
fn write_trace(size: usize) {
    // Allocations of the backtrace itself are not refused.
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

/// Writes the size to standard error without an allocation, because the process may be about to
/// end.
fn say(size: usize) {
    let mut text = *b"refused-bytes=00000000000000000000\n";
    let (mut rest, end) = (size, text.len() - 1);
    for digit in text[end - 20..end].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: the bytes are a local variable.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

fn count(block: *mut u8) -> *mut u8 {
    if !block.is_null() {
        LIVE.fetch_add(1, Ordering::Relaxed);
    }
    block
}

// SAFETY: every call is forwarded to the system allocator. An allocator may return null when there
// is not enough memory.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        count(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        count(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(block, layout) };
    }
}
