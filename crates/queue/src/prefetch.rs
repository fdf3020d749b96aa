//! What is needed next is fetched into the cache while something else runs.
//!
//! Values that were written on another processor come one line after the other where each is asked for when it is read; asked for ahead, they come together.

/// Bytes of a line of the cache.
pub const LINE: usize = 64;

/// The line in which this byte is. Wherever it points: memory that is not there is not fetched.
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

/// All lines of a value.
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
