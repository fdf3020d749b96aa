//! The two barriers of the wake-up protocol: a light one for those who publish often, a heavy one for those who are about to
//! sleep.
//!
//! Between "I publish, then look whether you sleep" and "I say that I sleep, then look whether there is something" both sides need
//! a store to be visible before a later load. A full fence does it, at 5 to 28 ns a message. Linux offers the whole cost to
//! one side: `membarrier(PRIVATE_EXPEDITED)` makes every running thread of the process pass a full barrier, for 2 to 14 us, and the
//! other side needs no more than the compiler's order.
//!
//! Where the system call is not there (an old kernel, a sandbox, Miri, loom) both sides use fences: [`is_asymmetric`] says which.

use crate::sync::{Ordering, fence};

/// Whether a publisher may use [`light`]; asked once for the process.
pub(crate) fn is_asymmetric() -> bool {
    #[cfg(any(loom, miri, not(target_os = "linux")))]
    return false;
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        static REGISTERED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
    }
}

/// The publisher's side where the sleeper uses [`heavy`]: the compiler keeps the order.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

/// A full fence on this thread.
#[inline(always)]
pub(crate) fn full() {
    fence(Ordering::SeqCst);
}

/// A full barrier on this thread and on every other of the process: what they published before is seen after it, and what this
/// thread stored before is seen by what they load after it. Only where [`is_asymmetric`].
pub(crate) fn heavy() {
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        let failed = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        // A registered process cannot be refused; to sleep without the barrier could be for ever.
        assert_eq!(failed, 0, "membarrier worked when it was registered");
    }
    full();
}

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes two numbers more, and no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
