//! Ctrl-C cancels the call. A second one ends the process.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn handle(_: c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Sets the signal handler. The system removes it at the first signal.
pub fn listen() {
    // SAFETY: all bytes of the struct may be zero.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(c_int) as *const () as usize;
    action.sa_flags = libc::SA_RESETHAND;
    // SAFETY: the handler only stores to an atomic. The old action is not requested.
    let code = unsafe { libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut()) };
    debug_assert_eq!(code, 0, "SIGINT may be handled");
}

/// Whether the signal has arrived.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
