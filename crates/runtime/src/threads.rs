//! Starting the threads of the core.

use std::thread::{Builder, JoinHandle};

use thalweg_queue::NoPreemptGuard;

/// The stack size of a worker's thread, which [`native`](crate::native) documents.
const WORKER_STACK_SIZE: usize = 8 << 20;

/// Starts a thread on which actors run.
pub(crate) fn spawn_worker<R: Send + 'static>(
    name: String,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<JoinHandle<R>> {
    start(
        Builder::new().name(name).stack_size(WORKER_STACK_SIZE),
        body,
    )
}

/// Starts a thread of the core. It blocks all asynchronous signals, so that the host's threads get
/// them.
pub(crate) fn spawn<R: Send + 'static>(
    name: String,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<JoinHandle<R>> {
    start(Builder::new().name(name), body)
}

fn start<R: Send + 'static>(
    builder: Builder,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::io::Result<JoinHandle<R>> {
    // The signals are blocked here, and `std` holds locks.
    let _no_preempt = NoPreemptGuard::enter();
    // The new thread inherits the mask, so no signal arrives before it can block signals itself.
    let before = signals::block();
    let thread = builder.spawn(body);
    signals::restore(&before);
    thread
}

/// Miri does not support signals.
#[cfg(miri)]
mod signals {
    pub(super) fn block() {}

    pub(super) fn restore((): &()) {}
}

#[cfg(not(miri))]
mod signals {
    /// Blocks all signals on this thread, except those that a fault of its own raises.
    pub(super) fn block() -> libc::sigset_t {
        // SAFETY: `sigset_t` is plain data that the calls fill; all pointers are to locals.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut set);
            for fault in [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGABRT,
                libc::SIGSYS,
            ] {
                libc::sigdelset(&mut set, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &set, &mut before);
            before
        }
    }

    pub(super) fn restore(before: &libc::sigset_t) {
        // SAFETY: the mask came from `block`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}
