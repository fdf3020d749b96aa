//! Which process a handle belongs to.
//!
//! Loading the package starts no thread. A child of `fork()` has the parent's handles and none of
//! its threads, so each handle stores the epoch of its creation and is refused in another epoch.
//! The core checks the same behind the table. This side needs its own check for its state per
//! thread and per loop, and so that a finalizer in the child calls nothing.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The number of forks between the first process that loaded the package and this one.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Makes every child of this process count one more, including children that C code forks.
pub fn watch() {
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the handler touches one atomic, which is async-signal-safe, and lives as long as
        // the process: an extension module is never unloaded.
        let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert!(status == 0, "pthread_atfork: no memory at import");
    });
}
