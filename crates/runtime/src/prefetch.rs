//! Prefetching: a worker loads the memory of the next task into the cache while another task runs.
//!
//! The stacks of a thousand actors do not fit into the cache, and the pages of ten thousand do not
//! fit into the TLB. Without prefetching, each switch would wait for memory several times in
//! sequence. A worker knows which task is next, so it requests all of these lines at once, one task
//! ahead.

use thalweg_queue::prefetch::LINE;
pub(crate) use thalweg_queue::prefetch::line as fetch;

/// The part of its stack that a resumed actor reads at once, up to the call that suspended it, and
/// that a new actor writes.
pub(crate) const FRAME_BYTES: usize = 512;

/// Prefetches the header of a task.
#[inline(always)]
pub(crate) fn prefetch_header(task: *const u8) {
    fetch(task);
    fetch(task.wrapping_add(LINE));
}

/// Prefetches a stack from this address upwards.
#[inline(always)]
pub(crate) fn prefetch_frames(lowest: *const u8) {
    for line in (0..FRAME_BYTES).step_by(LINE) {
        fetch(lowest.wrapping_add(line));
    }
}
