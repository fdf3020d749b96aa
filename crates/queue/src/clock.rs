//! The monotonic clock. Times and deadlines are nanoseconds of `CLOCK_MONOTONIC`.

/// The current time in nanoseconds. The origin is a moment before the process started.
///
/// ```
/// let before = thalweg_queue::clock::now();
/// assert!(thalweg_queue::clock::now() >= before);
/// ```
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer refers to a local timespec; CLOCK_MONOTONIC cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The deadline `after` from now. It is `u64::MAX` (never) if the sum overflows.
pub fn deadline(after: std::time::Duration) -> u64 {
    u64::try_from(after.as_nanos()).map_or(u64::MAX, |ns| now().saturating_add(ns))
}

/// The deadline at `instant`. If `instant` has passed, the deadline is now.
pub fn at(instant: std::time::Instant) -> u64 {
    deadline(instant.saturating_duration_since(std::time::Instant::now()))
}
