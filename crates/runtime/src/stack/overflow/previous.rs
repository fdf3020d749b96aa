//! The signal actions that were installed before those of this crate. Signals that do not concern
//! this crate are forwarded to them.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The previous action of one signal.
struct PreviousAction {
    action: libc::sigaction,
    /// The action asked to be called once (`SA_RESETHAND`), and was.
    spent: AtomicBool,
    /// The action that was recorded before. It is never read; leak detectors find the older records
    /// through it.
    _older: *const PreviousAction,
}

static OF_SEGV: AtomicPtr<PreviousAction> = AtomicPtr::new(std::ptr::null_mut());
static OF_BUS: AtomicPtr<PreviousAction> = AtomicPtr::new(std::ptr::null_mut());
static OF_URG: AtomicPtr<PreviousAction> = AtomicPtr::new(std::ptr::null_mut());

fn place(signal: libc::c_int) -> &'static AtomicPtr<PreviousAction> {
    match signal {
        libc::SIGBUS => &OF_BUS,
        libc::SIGURG => &OF_URG,
        _ => &OF_SEGV,
    }
}

/// Replaces the action of `signal` by `handler`. The error is the error number of the system.
pub(super) fn replace(signal: libc::c_int, handler: Handler) -> Result<(), i32> {
    // Recorded before it is replaced, because a fault may occur in between.
    let known = exchange(signal, None)?;
    remember(signal, known);
    // SAFETY: an all-zero action is valid: the default one.
    let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    ours.sa_sigaction = handler as usize;
    // Signals that the previous action blocks, and its interruption flags, stay as the previous
    // action requested.
    ours.sa_mask = known.sa_mask;
    let kept = known.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART);
    ours.sa_flags = kept | libc::SA_SIGINFO | libc::SA_ONSTACK;
    let replaced = exchange(signal, Some(&ours))?;
    if replaced.sa_sigaction != known.sa_sigaction {
        // Another thread installed an action in between.
        remember(signal, replaced);
    }
    Ok(())
}

/// Sets the action to which [`forward`] passes signals. The record is never freed, because a handler
/// may be reading it (rule 4). An action that is recorded already is not recorded again, so that a
/// program whose handler comes and goes does not use more and more memory.
pub(crate) fn remember(signal: libc::c_int, action: libc::sigaction) {
    let older = place(signal).load(Ordering::Acquire);
    // SAFETY: rule 4: the record is never freed.
    if unsafe { older.as_ref() }.is_some_and(|older| older.is_same(&action)) {
        return;
    }
    let before = Box::leak(Box::new(PreviousAction {
        action,
        spent: AtomicBool::new(false),
        _older: older,
    }));
    place(signal).store(before, Ordering::Release);
}

impl PreviousAction {
    /// Whether a signal that is forwarded to `other` is handled in the same way.
    fn is_same(&self, other: &libc::sigaction) -> bool {
        let once = other.sa_flags & libc::SA_RESETHAND != 0;
        let (handler, flags) = (self.action.sa_sigaction, self.action.sa_flags);
        !once && (handler, flags) == (other.sa_sigaction, other.sa_flags)
    }
}

/// Does what the previous action would have done.
///
/// # Safety
///
/// Call it in the handler of that signal, with the arguments that the kernel passed.
pub(crate) unsafe fn forward(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: rule 4. The action is never freed, and it was stored before the handler was
    // installed.
    let Some(before) = (unsafe { place(signal).load(Ordering::Acquire).as_ref() }) else {
        return by_default(signal, false);
    };
    // SAFETY: the caller got it from the kernel.
    let from_kernel = unsafe { (*info).si_code > 0 };
    let once = before.action.sa_flags & libc::SA_RESETHAND != 0;
    let handler = before.action.sa_sigaction;
    if handler == libc::SIG_DFL || (once && before.spent.swap(true, Ordering::Relaxed)) {
        by_default(signal, !from_kernel);
    } else if handler == libc::SIG_IGN {
        // A fault cannot be ignored: the kernel ends the process even if the action is to ignore
        // it.
        if from_kernel {
            by_default(signal, false);
        }
    } else if before.action.sa_flags & libc::SA_SIGINFO != 0 {
        // SAFETY: the flag shows that the handler takes three arguments; they are the kernel's.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without the flag, the handler takes one argument.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
        handler(signal);
    }
}

/// Ends the process like the default action: a fault occurs again when the handler returns, and a
/// signal that was sent is sent again. The default action of SIGURG is to ignore it.
fn by_default(signal: libc::c_int, sent: bool) {
    if signal == libc::SIGURG {
        return;
    }
    // SAFETY: an all-zero action is the default action.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let _ = exchange(signal, Some(&default));
    if sent {
        // SAFETY: allowed in a signal handler. The signal is blocked here, so it arrives when the
        // handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Returns the current action of `signal`, and replaces it if `new` is given.
pub(crate) fn exchange(
    signal: libc::c_int,
    new: Option<&libc::sigaction>,
) -> Result<libc::sigaction, i32> {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: rule 6. The new action is the default one, or a handler that is async-signal-safe.
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
    // SAFETY: the kernel filled it, and it was all-zero before.
    Ok(unsafe { old.assume_init() })
}
