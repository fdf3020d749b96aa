//! A wrapper that keeps a value off the cache lines of its neighbours.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines, so that writes to its neighbours do not slow down its users
/// (false sharing).
///
/// The alignment is 128 bytes, because x86 prefetches cache lines of 64 bytes in pairs.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use thalweg_queue::CachePadded;
///
/// let counters = [(); 2].map(|()| CachePadded::new(AtomicUsize::new(0)));
/// counters[1].fetch_add(1, Ordering::Relaxed);
/// assert_eq!(size_of_val(&counters), 256);
/// ```
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T> {
    value: T,
}

impl<T> CachePadded<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self { value }
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
