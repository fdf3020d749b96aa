//! Which process this is, counted in forks: a child has none of its parent's threads, and must not use
//! what waits for them.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static EPOCH: AtomicU64 = AtomicU64::new(0);

extern "C" fn in_child() {
    EPOCH.fetch_add(1, Ordering::SeqCst);
}

/// From now on [`epoch`] grows in every forked child. Who makes something that a child must not use calls this first.
pub fn watch_forks() {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: the handler does one atomic addition, which is allowed in a child of a process with threads.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// 0, and one more in every forked child since [`watch_forks`]. One load.
#[inline]
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}
