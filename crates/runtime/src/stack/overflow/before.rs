//! The actions that were installed before ours, and how they are treated as if ours were not there.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// What one signal did before.
struct Before {
    action: libc::sigaction,
    /// It wanted to be called once (`SA_RESETHAND`), and was.
    spent: AtomicBool,
}

static OF_SEGV: AtomicPtr<Before> = AtomicPtr::new(std::ptr::null_mut());
static OF_BUS: AtomicPtr<Before> = AtomicPtr::new(std::ptr::null_mut());
static OF_URG: AtomicPtr<Before> = AtomicPtr::new(std::ptr::null_mut());

fn place(signal: libc::c_int) -> &'static AtomicPtr<Before> {
    match signal {
        libc::SIGBUS => &OF_BUS,
        libc::SIGURG => &OF_URG,
        _ => &OF_SEGV,
    }
}

/// Puts ours in the place of the action that `signal` has; the error is the system's number.
pub(super) fn replace(signal: libc::c_int, handler: Handler) -> Result<(), i32> {
    // Remembered before it is replaced: a fault may come between.
    let known = exchange(signal, None)?;
    remember(signal, known);
    // SAFETY: all bytes zero are an action: the default one.
    let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    ours.sa_sigaction = handler as usize;
    // What is blocked and what is interrupted while the other runs stays as it asked for.
    ours.sa_mask = known.sa_mask;
    let kept = known.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    ours.sa_flags = kept | libc::SA_SIGINFO | libc::SA_ONSTACK;
    let replaced = exchange(signal, Some(&ours))?;
    if replaced.sa_sigaction != known.sa_sigaction {
        // Another thread installed one meanwhile.
        remember(signal, replaced);
    }
    Ok(())
}

/// Signals that are not ours go there from now on ([`forward`]). Leaked: a handler may be reading it (rule 4).
pub(crate) fn remember(signal: libc::c_int, action: libc::sigaction) {
    let before = Box::leak(Box::new(Before {
        action,
        spent: AtomicBool::new(false),
    }));
    place(signal).store(before, Ordering::Release);
}

/// Does what the action from before would have done.
///
/// # Safety
///
/// In the handler of that signal, with what the kernel passed to it.
pub(crate) unsafe fn forward(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: rule 4: what was put there is never freed; it was put there before our handler was installed.
    let Some(before) = (unsafe { place(signal).load(Ordering::Acquire).as_ref() }) else {
        return by_default(signal, false);
    };
    // SAFETY: the caller has it from the kernel.
    let from_kernel = unsafe { (*info).si_code > 0 };
    let once = before.action.sa_flags & libc::SA_RESETHAND != 0;
    let handler = before.action.sa_sigaction;
    if handler == libc::SIG_DFL || (once && before.spent.swap(true, Ordering::Relaxed)) {
        by_default(signal, !from_kernel);
    } else if handler == libc::SIG_IGN {
        // A fault cannot be ignored: the kernel ends the process, whatever it was told.
        if from_kernel {
            by_default(signal, false);
        }
    } else if before.action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the flag says that the handler takes three arguments; they are the kernel's.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag the handler takes one.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
        handler(signal);
    }
}

/// Ends the process as the default action does: the fault comes again when the handler returns, and what was sent is sent again. SIGURG is ignored by
/// default.
fn by_default(signal: libc::c_int, sent: bool) {
    if signal == libc::SIGURG {
        return;
    }
    // SAFETY: all bytes zero are the default action.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let _ = exchange(signal, Some(&default));
    if sent {
        // SAFETY: allowed in a signal handler. It is blocked here, and so comes when the handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// The action of `signal` until now, after the new one, if any, took its place.
pub(crate) fn exchange(
    signal: libc::c_int,
    new: Option<&libc::sigaction>,
) -> Result<libc::sigaction, i32> {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: rule 6; the new action is the default one or a handler that keeps to what a handler may do.
    let result = unsafe {
        libc::sigaction(
            signal,
            new.map_or(std::ptr::null(), std::ptr::from_ref),
            old.as_mut_ptr(),
        )
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    // SAFETY: filled in by the kernel, and all bytes zero before.
    Ok(unsafe { old.assume_init() })
}
