//! A wake-up that an event loop can poll. It is readable from the first signal until it is reset.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A Linux eventfd, non-blocking and close-on-exec.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
    /// Whether it was written since the last reset. Saves the read if there is nothing to read.
    signalled: AtomicBool,
}

impl EventFd {
    /// Creates an eventfd that is not readable.
    ///
    /// # Errors
    /// The error of the system: the limit of file descriptors is reached.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the call above created the descriptor, and this is its only owner.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            signalled: AtomicBool::new(false),
        })
    }

    /// Makes it readable. Executes one system call, or none if it is already readable.
    pub fn signal(&self) {
        if self.signalled.swap(true, Ordering::AcqRel) {
            return;
        }
        let one = 1u64;
        // SAFETY: the call reads eight bytes from `one`. The count is at most 1 here, so the write
        // cannot block.
        unsafe {
            libc::write(
                self.fd.as_raw_fd(),
                std::ptr::from_ref(&one).cast(),
                size_of::<u64>(),
            );
        }
    }

    /// Makes it unreadable. Executes no system call if it was unreadable. If a signal arrives at
    /// the same time, it may stay readable or become readable.
    pub fn reset(&self) {
        if !self.signalled.load(Ordering::Acquire) {
            return;
        }
        let mut count = 0u64;
        // SAFETY: the call writes eight bytes to `count`; the descriptor does not block.
        let read = unsafe {
            libc::read(
                self.fd.as_raw_fd(),
                std::ptr::from_mut(&mut count).cast(),
                size_of::<u64>(),
            )
        };
        if read < 0 {
            // Another thread has set the flag and is about to write. Keep the flag, so that the
            // next reset reads what it wrote. If the flag were cleared, the descriptor would stay
            // readable, because no reset would read it.
            return;
        }
        // This store follows the read. A signal between the two sees the flag set and does not
        // write, so the owner must check for data after a reset. `AtomicWaker::arm`, which follows
        // a reset, requires this check.
        self.signalled.store(false, Ordering::Release);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl std::task::Wake for EventFd {
    fn wake(self: Arc<Self>) {
        self.signal();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.signal();
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::EventFd;
    use std::os::fd::{AsFd, AsRawFd};

    fn readable(event: &EventFd) -> bool {
        let mut poll = libc::pollfd {
            fd: event.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the call gets one pollfd, a local variable.
        unsafe { libc::poll(&mut poll, 1, 0) == 1 }
    }

    #[test]
    fn it_is_readable_from_the_signal_to_the_reset() {
        let event = EventFd::new().unwrap();
        assert!(!readable(&event));
        event.signal();
        event.signal();
        assert!(readable(&event));
        event.reset();
        assert!(!readable(&event));
        event.reset();
        event.signal();
        assert!(readable(&event));
    }
}
