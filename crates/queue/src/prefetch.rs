//! Prefetches memory into the cache while other code runs.
//!
//! Without a prefetch, each cache line that another processor has written is fetched when it is
//! read, one after the other. With prefetches, the lines arrive at the same time.

/// The size of a cache line in bytes.
pub const LINE: usize = 64;

/// Prefetches the cache line that contains this byte. The pointer may be invalid: such an access is
/// ignored.
#[inline(always)]
pub fn line(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: a prefetch reads nothing and never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom)))))]
    let _ = line;
}

/// Like [`line`], for a line that this thread will write: the other processors lose their copies
/// now, and not when the write leaves the store buffer.
#[inline(always)]
pub fn line_for_write(line: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
    // SAFETY: as in `line`. Processors without this instruction ignore it. The intrinsic would emit
    // it only if the whole program is compiled for a newer processor.
    unsafe {
        std::arch::asm!(
            "prefetchw [{}]",
            in(reg) line,
            options(readonly, nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(miri, loom)))))]
    let _ = line;
}

/// Prefetches all lines of a value.
///
/// ```
/// let next = Box::new([0u64; 32]);
/// thalweg_queue::prefetch::value(&raw const *next);
/// ```
#[inline(always)]
pub fn value<T>(value: *const T) {
    for at in (0..size_of::<T>()).step_by(LINE) {
        line(value.cast::<u8>().wrapping_add(at));
    }
}
