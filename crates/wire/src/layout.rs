//! Arithmetic of the canonical layout, for constants.

/// `at`, or the next multiple of `align` (a power of two) after it.
#[inline]
pub const fn align_up(at: u32, align: u32) -> u32 {
    (at + align - 1) & !(align - 1)
}

/// The larger one.
#[inline]
pub const fn max(a: u32, b: u32) -> u32 {
    if a > b { a } else { b }
}
