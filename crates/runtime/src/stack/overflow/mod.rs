//! Stack overflow reports: a line on standard error that names the actor, in place of a bare crash.
//!
//! An actor that reaches its stack's guard gets a SIGSEGV (on some systems a SIGBUS). Its stack is
//! full, so the handler runs on an alternate stack, which each worker has ([`AlternateStack`]). The
//! handler reports and aborts if the address is in a guard of this crate **and** the thread's stack
//! pointer is in the slot of that guard; then the cause is an overflow and not a wild pointer. All
//! other faults go to the action that was installed before: that of `std`, which reports the
//! overflow of a thread, or the application's.
//!
//! The handler does not allocate, takes no lock, and only makes calls that POSIX lists as
//! async-signal-safe.

mod alternate;
mod name;
pub(crate) mod previous;

use std::io;
use std::sync::OnceLock;

pub(crate) use alternate::AlternateStack;
pub(crate) use name::{Name, current as current_name, set_running_name};

use super::SlotLayout;
use super::reservation::slot_guarded_at;

/// Enables overflow reports on threads that have an [`AlternateStack`]. This happens once per
/// process; later calls return the result of the first.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| {
            previous::replace(libc::SIGSEGV, on_fault)?;
            previous::replace(libc::SIGBUS, on_fault)
        })
        .map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the description of the signal.
    let (address, from_kernel) = unsafe { ((*info).si_addr().addr(), (*info).si_code > 0) };
    if from_kernel
        && let Some((start, layout)) = slot_guarded_at(address)
        && stack_pointer(context).is_none_or(|at| (start..start + layout.size).contains(&at))
    {
        report(layout);
    }
    // SAFETY: these are the arguments that the kernel passed.
    unsafe { previous::forward(signal, info, context) };
}

fn report(layout: SlotLayout) -> ! {
    let mut line = Line::new();
    line.push(b"thalweg: ");
    // SAFETY: this is the signal handler of a running actor.
    match unsafe { current_name() } {
        Some(name) => {
            line.push(b"actor ");
            line.push(name.as_bytes());
        }
        None => line.push(b"an actor"),
    }
    line.push(b" overflowed its stack of ");
    line.push_number(layout.size >> 10);
    line.push(b" KiB\n");
    line.write();
    // SAFETY: always allowed, also in a signal handler.
    unsafe { libc::abort() }
}

/// Returns the stack pointer of the interrupted code, if the platform is supported.
fn stack_pointer(context: *mut libc::c_void) -> Option<usize> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        // SAFETY: the kernel passes the context of the interrupted code.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        Some(context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize)
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    {
        // SAFETY: the kernel passes the context of the interrupted code.
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

/// One line of output, built without allocating.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

/// The number of bytes that a name leaves for the rest of the line.
const TAIL: usize = 64;

impl Line {
    fn new() -> Self {
        Self {
            bytes: [0; 512],
            len: 0,
        }
    }

    /// Appends the text, or as much of it as fits.
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
        // SAFETY: rule 6. The bytes are in this frame. If stderr is closed, the line is lost.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }
}
