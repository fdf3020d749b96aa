//! A descriptor of the caller that the core writes to wake the caller's event loop.
//!
//! 1. The core owns a duplicate, so the caller may close its own descriptor at any time, and a
//!    number that is used again is never written.
//! 2. It writes and never reads. The caller reads what it receives.
//! 3. It never blocks, whether or not the descriptor does. `O_NONBLOCK` belongs to the open file,
//!    which the caller shares, so it is not changed.
//! 4. A write that fails is ignored. If the descriptor is full, the caller has a wake-up to read.
//!    If nobody can read it, nobody can be woken.
//! 5. No write raises SIGPIPE.
//!
//! | descriptor | what is written | how it neither blocks nor raises SIGPIPE |
//! | --- | --- | --- |
//! | connected socket | one byte; a datagram of one byte | `MSG_DONTWAIT`, `MSG_NOSIGNAL` |
//! | pipe, FIFO | one byte | opened again with `O_NONBLOCK`; SIGPIPE is blocked during the write |
//! | eventfd | the number 1, in 8 bytes | if it blocks, it is written only while it can be |
//!
//! No other form of writing is possible for all three: an eventfd takes 8 bytes, and a byte stream
//! takes one byte more easily than 8, because it cannot take one in part.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::code::{Code, Failure};

/// A descriptor to write.
#[derive(Debug)]
pub(crate) struct WakeFd {
    fd: OwnedFd,
    kind: FdKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FdKind {
    Socket,
    Pipe,
    EventFd {
        /// `O_NONBLOCK` was not set.
        blocks: bool,
    },
}

fn refused(fd: RawFd, why: &str) -> Failure {
    Code::Argument.because(format!("descriptor {fd} cannot be woken: {why}"))
}

impl WakeFd {
    /// Duplicates the caller's descriptor.
    ///
    /// # Errors
    /// `argument`: it is not open, or neither a connected socket, nor the writing end of a pipe
    /// that has a reader, nor an eventfd. `overloaded`: no further descriptor can be opened.
    pub(crate) fn new(fd: RawFd) -> Result<Self, Failure> {
        let duplicate = duplicate(fd)?;
        let flags = flags(&duplicate);
        let can_write = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let blocks = flags & libc::O_NONBLOCK == 0;
        match file_type(&duplicate) {
            libc::S_IFSOCK if has_peer(&duplicate) => Ok(Self {
                fd: duplicate,
                kind: FdKind::Socket,
            }),
            libc::S_IFSOCK => Err(refused(fd, "it is a socket that is not connected")),
            libc::S_IFIFO if !can_write => Err(refused(fd, "it is the reading end of a pipe")),
            libc::S_IFIFO if poll(&duplicate) & libc::POLLERR != 0 => {
                Err(refused(fd, "the pipe has no reader"))
            }
            libc::S_IFIFO => {
                let kind = FdKind::Pipe;
                match open_again(&duplicate) {
                    Ok(fd) => Ok(Self { fd, kind }),
                    // There is no /proc.
                    Err(_) if !blocks => Ok(Self {
                        fd: duplicate,
                        kind,
                    }),
                    Err(error) => Err(refused(
                        fd,
                        &format!(
                            "it is a pipe without O_NONBLOCK, and reopening it failed: {error}"
                        ),
                    )),
                }
            }
            // An object of the kernel without a file. Of these, only an eventfd accepts a zero,
            // which leaves its value unchanged.
            0 if can_write && write(&duplicate, &0_u64.to_ne_bytes()) == 8 => Ok(Self {
                fd: duplicate,
                kind: FdKind::EventFd { blocks },
            }),
            libc::S_IFREG => Err(refused(fd, "it is a file")),
            libc::S_IFDIR => Err(refused(fd, "it is a directory")),
            libc::S_IFCHR | libc::S_IFBLK => Err(refused(fd, "it is a device")),
            _ => Err(refused(fd, "it is not a socket, a pipe or an eventfd")),
        }
    }

    /// Makes the descriptor readable at its other end.
    pub(crate) fn wake(&self) {
        match self.kind {
            FdKind::Socket => {
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                let byte = 1_u8;
                // SAFETY: the call reads one byte from a local variable.
                unsafe { libc::send(self.fd.as_raw_fd(), (&raw const byte).cast(), 1, flags) };
            }
            FdKind::Pipe => without_sigpipe(|| write(&self.fd, &[1])),
            FdKind::EventFd { blocks } => {
                if !blocks || poll(&self.fd) & libc::POLLOUT != 0 {
                    write(&self.fd, &1_u64.to_ne_bytes());
                }
            }
        }
    }
}

fn duplicate(fd: RawFd) -> Result<OwnedFd, Failure> {
    // SAFETY: no pointers are passed.
    let duplicate = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if duplicate < 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::EBADF) => refused(fd, "it is not open"),
            _ => Code::Overloaded.because(format!("no descriptor: {error}")),
        });
    }
    // SAFETY: the call above created the descriptor, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}

/// The flags of the open file.
fn flags(fd: &OwnedFd) -> i32 {
    // SAFETY: no pointers are passed.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) }
}

/// `S_IFSOCK`, ..; 0 for an object without a type.
fn file_type(fd: &OwnedFd) -> libc::mode_t {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the call fills a local variable, which is plain data.
    let status = unsafe {
        libc::fstat(fd.as_raw_fd(), status.as_mut_ptr());
        status.assume_init()
    };
    status.st_mode & libc::S_IFMT
}

/// Whether the socket is connected.
fn has_peer(fd: &OwnedFd) -> bool {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::uninit();
    let mut size = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the call fills a local variable of this size.
    unsafe { libc::getpeername(fd.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut size) == 0 }
}

/// Rule 3: the writing end of the same pipe, with flags of its own.
fn open_again(fd: &OwnedFd) -> io::Result<OwnedFd> {
    OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .map(File::into)
}

/// Returns the number of bytes written, or -1.
fn write(fd: &OwnedFd, bytes: &[u8]) -> isize {
    // SAFETY: the call reads these bytes.
    unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) }
}

/// The state of the writing side: POLLOUT if a write does not block, POLLERR for a pipe without a
/// reader.
fn poll(fd: &OwnedFd) -> libc::c_short {
    let mut watched = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: the call gets one pollfd, a local variable.
    unsafe { libc::poll(&raw mut watched, 1, 0) };
    watched.revents
}

/// Rule 5: calls `write` while SIGPIPE is blocked on this thread, and then removes the signal that
/// the call raised.
fn without_sigpipe(write: impl FnOnce() -> isize) {
    // SAFETY: `sigset_t` is plain data that the calls fill; all pointers are to local variables.
    unsafe {
        let (mut sigpipe, mut before, mut pending): (libc::sigset_t, _, _) =
            (zeroed(), zeroed(), zeroed());
        libc::sigemptyset(&raw mut sigpipe);
        libc::sigaddset(&raw mut sigpipe, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const sigpipe, &raw mut before);
        // A signal of the program that waits already is left for the program.
        libc::sigpending(&raw mut pending);
        let is_pending = libc::sigismember(&raw const pending, libc::SIGPIPE) == 1;
        let written = write();
        if written < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EPIPE)
            && !is_pending
        {
            let now = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // The signal of this write was sent to this thread, so it is taken before one that was
            // sent to the process.
            libc::sigtimedwait(&raw const sigpipe, std::ptr::null_mut(), &raw const now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}
