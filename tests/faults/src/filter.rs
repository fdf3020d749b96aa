//! Refuses system calls according to the plan, by a seccomp filter that consults a thread of this
//! process.
//!
//! Thalweg makes its calls through `libc`, through `rustix` (without any C function) and inside
//! glibc, as `pthread_create` does. A filter sees all of them; replacing functions of libc would
//! not.
//!
//! The kernel stops a thread at a filtered call and notifies the listener, a thread that was
//! started before the filter and is therefore not filtered. The listener answers with an error or
//! allows the call.

use std::io;
use std::sync::mpsc;

use crate::fault::{self, Resource};

/// The system calls that request a resource, and the error that refuses them.
fn calls(resource: Resource) -> (&'static [libc::c_long], i32) {
    match resource {
        Resource::Allocation | Resource::Stack => (&[], 0),
        Resource::Thread => (&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN),
        Resource::Mmap => (&[libc::SYS_mmap], libc::ENOMEM),
        Resource::Mprotect => (&[libc::SYS_mprotect], libc::ENOMEM),
        Resource::Madvise => (&[libc::SYS_madvise], libc::ENOMEM),
        Resource::Eventfd => (&[libc::SYS_eventfd2], libc::EMFILE),
        Resource::Epoll => (
            &[libc::SYS_epoll_create1, libc::SYS_epoll_ctl],
            libc::ENOSPC,
        ),
        Resource::Membarrier => (&[libc::SYS_membarrier], libc::EPERM),
    }
}

/// From now on, the calls of this resource are filtered on this thread and on the threads that it
/// starts.
///
/// # Errors
/// The kernel does not support such a filter, or forbids it.
pub fn install(resource: Resource) -> io::Result<()> {
    let (calls, error) = calls(resource);
    if calls.is_empty() {
        return Ok(());
    }
    let (listeners, listener) = mpsc::channel::<i32>();
    std::thread::Builder::new()
        .name("listener".into())
        .spawn(move || {
            if let Ok(listener) = listener.recv() {
                listen(listener, resource, error);
            }
        })?;
    let listener = filter(calls)?;
    listeners
        .send(listener)
        .map_err(|_| io::Error::other("the listener has ended"))
}

/// Filters these calls of this thread. Returns the file descriptor of the listener.
fn filter(calls: &[libc::c_long]) -> io::Result<i32> {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    // The number of the call is the first field of `seccomp_data`.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in calls {
        program.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: *call as u32,
        });
        program.push(statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_USER_NOTIF,
        ));
    }
    program.push(statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_ALLOW,
    ));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the call gets numbers and a program that lives during the call, which copies it.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    match listener {
        -1 => Err(io::Error::last_os_error()),
        listener => Ok(listener as i32),
    }
}

/// Answers until the process ends. It allocates nothing.
fn listen(listener: i32, resource: Resource, error: i32) {
    loop {
        // SAFETY: the struct contains only numbers, for which 0 is valid. The kernel requires it to
        // be zeroed.
        let mut request: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor of the listener is never closed, and the kernel fills a local
        // struct.
        if unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut request) } != 0 {
            // The thread that made the call was interrupted or has ended.
            continue;
        }
        let refused = fault::is_refused(resource);
        let mut answer = libc::seccomp_notif_resp {
            id: request.id,
            val: 0,
            error: if refused { -error } else { 0 },
            flags: if refused {
                0
            } else {
                libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32
            },
        };
        // SAFETY: as above. It fails if the thread that made the call has ended, which needs no
        // answer.
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }
}
