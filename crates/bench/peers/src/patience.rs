//! Waiting on a peer that cannot wait by itself: look again, with a spin hint between.
//!
//! Where the threads of a cell outnumber the processors they may use, a thread that spins keeps the one it waits for
//! from running, so after a few looks it yields. The lab says which of the two holds before it starts the threads; the
//! answer is read only after a look has failed, so that it costs nothing where there is nothing to wait for.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::yield_now;

static CROWDED: AtomicBool = AtomicBool::new(false);

/// Looks between two yields, in a crowd: about a microsecond.
const LOOKS: u32 = 64;

/// Says whether threads outnumber processors from now on, for the whole process.
pub fn set_crowded(crowded: bool) {
    CROWDED.store(crowded, Ordering::Relaxed);
}

/// Looks until `look` finds something.
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
