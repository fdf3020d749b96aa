//! A wake-up that an event loop can watch: readable once somebody woke it, until it is reset.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A Linux eventfd, non-blocking and closed on exec.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
    /// Written since the last reset: saves the read where there is nothing to read.
    signalled: AtomicBool,
}

impl EventFd {
    /// A new one, not readable.
    ///
    /// # Errors
    /// The system's: no more file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: the call above made the descriptor, and nobody else knows it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            signalled: AtomicBool::new(false),
        })
    }

    /// Makes it readable. One system call, none if it is readable already.
    pub fn signal(&self) {
        if self.signalled.swap(true, Ordering::AcqRel) {
            return;
        }
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. The count is at most 1 here, so the write cannot block.
        unsafe {
            libc::write(
                self.fd.as_raw_fd(),
                std::ptr::from_ref(&one).cast(),
                size_of::<u64>(),
            );
        }
    }

    /// Makes it unreadable. No system call if it was. One that meets a signal may leave it readable, or about to be.
    pub fn reset(&self) {
        if !self.signalled.load(Ordering::Acquire) {
            return;
        }
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`; the descriptor does not block.
        let read = unsafe {
            libc::read(
                self.fd.as_raw_fd(),
                std::ptr::from_mut(&mut count).cast(),
                size_of::<u64>(),
            )
        };
        if read < 0 {
            // Somebody has set the flag and is about to write. The flag stays, and the next reset reads what was written; were it
            // cleared, the descriptor would be readable from then on, and no reset would read it.
            return;
        }
        // After the read: a signal between the two finds the flag set and does not write, which is why the owner must
        // look for data after a reset. `AtomicWaker::arm` comes after it and demands just that.
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
        // SAFETY: one pollfd, of ours.
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
