//! The time of day, for reports.

use std::time::{Duration, SystemTime};

use thalweg_queue::clock;

/// The time of day at `then` of [`clock`].
pub(crate) fn at(then: u64) -> SystemTime {
    let ago = Duration::from_nanos(clock::now().saturating_sub(then));
    let now = now();
    now.checked_sub(ago).unwrap_or(now)
}

/// In Miri, the time of [`clock`]: Miri offers the time of day only without isolation, and then
/// deadlines depend on the speed of the interpreter.
pub(crate) fn now() -> SystemTime {
    if cfg!(miri) {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(clock::now())
    } else {
        SystemTime::now()
    }
}
