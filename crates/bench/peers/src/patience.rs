//! Waiting for a peer that has no blocking calls: retry, with a spin hint between the tries.
//!
//! If a cell has more threads than processors, a spinning thread can keep the thread that it waits
//! for from running. In this case it yields after a few tries. The lab sets the mode before it
//! starts the threads. The mode is read only after a failed try, so it costs nothing when there is
//! nothing to wait for.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;

static CROWDED: AtomicBool = AtomicBool::new(false);

/// Tries between two yields, if there are more threads than processors: about a microsecond.
const LOOKS: u32 = 64;

/// Sets whether there are more threads than processors from now on, for the whole process.
pub fn set_crowded(crowded: bool) {
    CROWDED.store(crowded, Ordering::Relaxed);
}

/// Retries until `look` returns a value.
#[inline]
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    if let Some(found) = look() {
        return found;
    }
    let mut looks: u32 = 0;
    loop {
        spin_loop();
        if let Some(found) = look() {
            return found;
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) && CROWDED.load(Ordering::Relaxed) {
            yield_now();
        }
    }
}
