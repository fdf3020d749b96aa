//! Who overflowed a stack: a line on stderr in place of a bare crash.
//!
//! An actor that runs into its stack's guard gets a SIGSEGV (on some systems a SIGBUS). Its stack is full, so the handler
//! runs on an alternate one, which each worker has ([`AlternateStack`]). It reports and aborts if the address lies in a guard
//! of ours **and** the thread's stack pointer lies in the slot of that guard: then it is an overflow and no wild pointer. All else
//! goes to the action that was installed before: `std`'s, which reports the overflow of a thread, or the application's.
//!
//! In the handler there is no allocation, no lock, and no call that POSIX does not list as safe there.

mod alternate;
pub(crate) mod before;
mod name;

use std::io;
use std::sync::OnceLock;

pub(crate) use alternate::AlternateStack;
pub(crate) use name::{Name, current as current_name, set_current};

use super::Shape;
use super::reservation::slot_guarded_at;

/// From now on an actor's overflow is reported, on threads that have an [`AlternateStack`]. Once for the process; later calls say
/// what the first said.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| {
            before::replace(libc::SIGSEGV, on_fault)?;
            before::replace(libc::SIGBUS, on_fault)
        })
        .map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the signal's own description.
    let (address, from_kernel) = unsafe { ((*info).si_addr().addr(), (*info).si_code > 0) };
    if from_kernel
        && let Some((start, shape)) = slot_guarded_at(address)
        && stack_pointer(context).is_none_or(|at| (start..start + shape.size).contains(&at))
    {
        report(shape);
    }
    // SAFETY: these are the arguments that the kernel passed.
    unsafe { before::forward(signal, info, context) };
}

fn report(shape: Shape) -> ! {
    let mut line = Line::new();
    line.push(b"thalweg: ");
    // SAFETY: this is the signal handler of an actor that is running.
    match unsafe { current_name() } {
        Some(name) => {
            line.push(b"actor ");
            line.push(name.as_bytes());
        }
        None => line.push(b"an actor"),
    }
    line.push(b" overflowed its stack of ");
    line.push_number(shape.size >> 10);
    line.push(b" KiB\n");
    line.write();
    // SAFETY: always allowed, also in a signal handler.
    unsafe { libc::abort() }
}

/// Where the interrupted code had its stack pointer, where it is known how to ask.
fn stack_pointer(context: *mut libc::c_void) -> Option<usize> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        // SAFETY: the kernel passes the context of what it interrupted.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        Some(context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize)
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    {
        // SAFETY: the kernel passes the context of what it interrupted.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        Some(context.uc_mcontext.sp as usize)
    }
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    {
        let _ = context;
        None
    }
}

/// One line, put together without allocating.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

/// Bytes that a name may leave of the line for what follows it.
const TAIL: usize = 64;

impl Line {
    fn new() -> Self {
        Self {
            bytes: [0; 512],
            len: 0,
        }
    }

    /// As much of it as there is room for.
    fn push(&mut self, text: &[u8]) {
        let limit = if text.len() > TAIL {
            self.bytes.len() - TAIL
        } else {
            self.bytes.len()
        };
        let room = limit.saturating_sub(self.len);
        for &byte in text.iter().take(room) {
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    fn push_number(&mut self, mut number: usize) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[first..]);
    }

    fn write(&self) {
        // SAFETY: rule 6: the bytes are this frame's. Who closed stderr does not read it.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }
}
