//! A process-wide pool of segments of dropped streams. Touching memory that the system has just
//! provided for the first time costs as much as some thousand records.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::stream::segment::{Segment, SegmentWriter};

/// Maximum size of the pool in bytes. A stream of 8,192 records of 488 bytes needs 5.6 million.
const MAX_BYTES: usize = 8 << 20;

/// Smaller segments are not kept, because the allocator keeps them itself. The pool therefore has
/// at most 256 segments to search.
const MIN_SEGMENT_BYTES: usize = 32 << 10;

#[derive(Debug)]
struct Pool {
    segments: Vec<Arc<Segment>>,
    bytes: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    segments: Vec::new(),
    bytes: 0,
});

fn lock() -> MutexGuard<'static, Pool> {
    // No code that may panic runs under this lock.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps segments that have no other owner. Above the maximum size, the oldest ones are freed.
pub(super) fn put(segments: impl Iterator<Item = Arc<Segment>>) {
    let unshared = segments.filter_map(|mut segment| {
        let sole = Arc::get_mut(&mut segment)?;
        if !(MIN_SEGMENT_BYTES..=MAX_BYTES).contains(&sole.size()) {
            return None;
        }
        #[cfg(debug_assertions)]
        sole.poison_all();
        Some(segment)
    });
    let mut unshared = unshared.peekable();
    if unshared.peek().is_none() {
        return;
    }
    let mut pool = lock();
    for segment in unshared {
        pool.bytes += segment.size();
        pool.segments.push(segment);
    }
    let mut surplus = 0;
    while pool.bytes > MAX_BYTES {
        pool.bytes -= pool.segments[surplus].size();
        surplus += 1;
    }
    let oldest: Vec<_> = pool.segments.drain(..surplus).collect();
    drop(pool);
    drop(oldest);
}

/// A segment with this layout. The newest is taken first, because it is most likely in the cache.
pub(super) fn take(stride: u32, slots: u32, tails: u32) -> Option<(SegmentWriter, Arc<Segment>)> {
    if (stride as usize * slots as usize) + (tails as usize) < MIN_SEGMENT_BYTES {
        return None;
    }
    let mut pool = lock();
    let index = pool
        .segments
        .iter()
        .rposition(|segment| segment.has_layout(stride, slots, tails))?;
    let segment = pool.segments.remove(index);
    pool.bytes -= segment.size();
    drop(pool);
    SegmentWriter::reuse(segment).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{MAX_BYTES, lock, put, take};
    use crate::stream::segment::Segment;

    /// No other test uses slots of this size.
    const STRIDE: u32 = 1 << 20;

    #[test]
    fn pool_returns_segments_of_the_same_layout_and_is_bounded() {
        // Other tests in this process also fill the pool, but with another layout.
        let made = |slots| Arc::new(Segment::new(STRIDE, slots, 8).unwrap());
        let used = made(2);
        let held = Arc::clone(&used);
        put([used, made(3)].into_iter());
        assert!(take(STRIDE, 2, 8).is_none(), "somebody has it still");
        assert!(take(STRIDE, 3, 16).is_none(), "its tails are shorter");
        let (open, segment) = take(STRIDE, 3, 8).unwrap();
        assert!(open.fits("12345678") && !open.fits("123456789") && !segment.is_sealed());
        assert!(take(STRIDE, 3, 8).is_none(), "it was the only one");
        drop(held);

        put((0..20).map(|_| made(1)));
        let (kept, bytes) = {
            let pool = lock();
            let all: usize = pool.segments.iter().map(|segment| segment.size()).sum();
            assert_eq!(pool.bytes, all);
            (pool.segments.len(), pool.bytes)
        };
        assert!(kept >= 7 && bytes <= MAX_BYTES, "{kept} of {bytes} bytes");
        put([made(9)].into_iter());
        assert!(take(STRIDE, 9, 8).is_none(), "it is more than all");
        put([Arc::new(Segment::new(8, 2, 8).unwrap())].into_iter());
        assert!(take(8, 2, 8).is_none(), "it is smaller than any");
        while take(STRIDE, 1, 8).is_some() {}
    }
}
