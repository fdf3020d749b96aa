//! What is needed next is fetched into the cache while something else runs.
//!
//! A thousand actors' stacks are not in the cache, nor are ten thousand's pages in the processor's table of them; each switch would wait for
//! memory several times, one after the other. A worker knows who comes next, so it asks for all of it at once, one actor ahead.

use thalweg_queue::ahead::LINE;
pub(crate) use thalweg_queue::ahead::fetch;

use crate::task::Task;

/// What a resumed actor reads of its stack at once, up to where it called what put it aside; and what a new one writes.
pub(crate) const FRAMES: usize = 512;

/// `next` runs next, and then what is behind it.
#[inline(always)]
pub(crate) fn fetch_task(next: Option<Task>) {
    let Some(next) = next else { return };
    let header = next.header();
    if let Some(behind) = header.next.get() {
        fetch_header(behind.into_raw().cast());
    }
    if let Some(fiber) = header.fiber.get() {
        fetch(fiber.as_ptr().cast());
        fetch_frames(header.frame.get());
    }
}

/// A job that is looked at next.
#[inline(always)]
pub(crate) fn fetch_header(job: *const u8) {
    fetch(job);
    fetch(job.wrapping_add(LINE));
}

/// A stack from here up.
#[inline(always)]
pub(crate) fn fetch_frames(lowest: *const u8) {
    for line in (0..FRAMES).step_by(LINE) {
        fetch(lowest.wrapping_add(line));
    }
}
