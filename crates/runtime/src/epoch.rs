//! The fork count of the process. A forked child has none of its parent's threads, and must not use
//! objects that wait for them.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static EPOCH: AtomicU64 = AtomicU64::new(0);

extern "C" fn in_child() {
    EPOCH.fetch_add(1, Ordering::SeqCst);
}

/// Makes [`epoch`] count forks from now on. Call it before you create an object that a forked child
/// must not use.
pub fn watch_forks() {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // SAFETY: the handler does one atomic addition, which is allowed in a child of a
        // multi-threaded process.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Returns the number of forks between the first call of [`watch_forks`] and this process: 0, and
/// one more in every forked child. It costs one load.
#[inline]
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}
