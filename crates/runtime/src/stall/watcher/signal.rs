//! The handler of SIGURG, and how it coexists with other handlers.
//!
//! 1. If another handler is installed, it stays, and the report has no frames. Nothing is written
//!    in this case. This applies to a handler that was installed before, and to one that replaced
//!    that of this crate.
//! 2. POSIX cannot install a handler on the condition that there is none. Another thread may
//!    therefore install one between the check and the installation. `sigaction` returns the handler
//!    that it replaced. That handler is **called from then on** for every signal that is not this
//!    crate's. It is not reinstalled, because by then a third handler may be installed that calls
//!    this crate's handler.
//! 3. No signal is lost meanwhile. `INSTALLING` is set before the handler is installed, and cleared
//!    when the replaced handler is known. A handler that finds it set waits. The installing thread
//!    has all signals blocked, so it does not wait for itself. Only one thread installs at a time,
//!    because it has the claim of the sample.
//! 4. The handler is never removed: a removal has the same race, and a later handler may call this
//!    one. When no sample is requested, it only forwards signals.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stack::overflow::previous;
use crate::stall::report::NoFrames;

pub(super) const SIGNAL: libc::c_int = libc::SIGURG;

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

static INSTALLING: AtomicBool = AtomicBool::new(false);

/// How often a handler yields its processor for rule 3. It waits for a few instructions of another
/// thread. In a child that was forked in between, it would otherwise wait forever.
const PATIENCE: u32 = 1_000;

/// Installs `ours` if no other handler is installed. The caller has the claim of the sample, and
/// all signals blocked.
pub(super) fn take(ours: Handler) -> Result<(), NoFrames> {
    let known = exchange(None)?;
    if known.sa_sigaction == ours as usize {
        return Ok(());
    }
    // Rule 1.
    if is_handler(&known) {
        return Err(NoFrames::SignalTaken);
    }
    install(ours)
}

fn install(ours: Handler) -> Result<(), NoFrames> {
    // SAFETY: an all-zero action is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = ours as usize;
    // An actor's stack may have too little space for the handler.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // Rule 3.
    INSTALLING.store(true, Ordering::SeqCst);
    let replaced = exchange(Some(&action));
    if let Ok(replaced) = &replaced
        && replaced.sa_sigaction != ours as usize
    {
        // Rule 2. If there was no handler, an earlier one is not called any more.
        previous::remember(SIGNAL, *replaced);
    }
    INSTALLING.store(false, Ordering::SeqCst);
    replaced.map(|_| ())
}

fn is_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

fn exchange(new: Option<&libc::sigaction>) -> Result<libc::sigaction, NoFrames> {
    previous::exchange(SIGNAL, new).map_err(NoFrames::System)
}

/// Whether a thread of this process sent the signal to this thread alone, like a watcher does. If
/// it was merged with an earlier signal from another sender, the description is that of the earlier
/// one.
pub(super) fn is_from_here(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes the description of the signal, which has a sender if a thread sent
    // it.
    unsafe { (*info).si_code == libc::SI_TKILL && (*info).si_pid() == libc::getpid() }
}

/// Forwards a signal to the handler that was replaced, if there is one.
///
/// # Safety
/// Call it in the handler, with the arguments that the kernel passed.
pub(super) unsafe fn forward(
    number: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let mut left = PATIENCE;
    while INSTALLING.load(Ordering::Acquire) && left > 0 {
        left -= 1;
        // SAFETY: the call takes no address. It does not fail, so `errno` is preserved.
        unsafe { libc::sched_yield() };
    }
    // SAFETY: the caller's contract.
    unsafe { previous::forward(number, info, context) };
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

    use super::{SIGNAL, exchange, install, is_handler, take};
    use crate::stall::report::NoFrames;

    static OURS: AtomicUsize = AtomicUsize::new(0);
    static THEIRS: AtomicUsize = AtomicUsize::new(0);
    static SENDER: AtomicI32 = AtomicI32::new(0);

    extern "C" fn ours(
        number: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        OURS.fetch_add(1, SeqCst);
        // SAFETY: these are the arguments that the kernel passed.
        unsafe { super::forward(number, info, context) };
    }

    extern "C" fn theirs(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        THEIRS.fetch_add(1, SeqCst);
        // SAFETY: the kernel passes the description of the signal.
        SENDER.store(unsafe { (*info).si_pid() }, SeqCst);
    }

    extern "C" fn plain(_: libc::c_int) {
        THEIRS.fetch_add(1, SeqCst);
    }

    /// Installs a handler like a program does.
    fn install_theirs(handler: usize, flags: libc::c_int) {
        // SAFETY: an all-zero action is valid. The handlers do one or two atomic operations.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        exchange(Some(&action)).unwrap();
    }

    fn raise() {
        // SAFETY: the signal is handled or ignored.
        unsafe { libc::raise(SIGNAL) };
    }

    /// Runs `body` in a process of its own, because the handler belongs to the whole process.
    fn alone(name: &str, body: fn()) {
        const CHILD: &str = "THALWEG_SIGNAL_TEST";
        if std::env::var(CHILD).as_deref() == Ok(name) {
            return body();
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg(format!("stall::watcher::signal::tests::{name}"))
            .env(CHILD, name)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
    }

    #[test]
    fn handler_installed_before_stays() {
        alone("handler_installed_before_stays", || {
            install_theirs(theirs as *const () as usize, libc::SA_SIGINFO);
            assert_eq!(take(ours), Err(NoFrames::SignalTaken));
            raise();
            assert_eq!((OURS.load(SeqCst), THEIRS.load(SeqCst)), (0, 1));
        });
    }

    #[test]
    fn handler_installed_between_look_and_installation_is_called() {
        alone(
            "handler_installed_between_look_and_installation_is_called",
            || {
                for (handler, flags) in [
                    (theirs as *const () as usize, libc::SA_SIGINFO),
                    (plain as *const () as usize, 0),
                ] {
                    THEIRS.store(0, SeqCst);
                    // As if it were installed after the check of `take`.
                    install_theirs(handler, flags);
                    assert_eq!(install(ours), Ok(()));
                    raise();
                    raise();
                    assert_eq!(THEIRS.load(SeqCst), 2);
                    assert_eq!(take(ours), Ok(()));
                    raise();
                    assert_eq!(THEIRS.load(SeqCst), 3);
                }
                assert_eq!(OURS.load(SeqCst), 6);
                assert_eq!(u32::try_from(SENDER.load(SeqCst)), Ok(std::process::id()));
            },
        );
    }

    #[test]
    fn handler_installed_later_stays_and_may_call_ours() {
        alone("handler_installed_later_stays_and_may_call_ours", || {
            assert_eq!(take(ours), Ok(()));
            let first = exchange(None).unwrap();
            assert_eq!(first.sa_sigaction, ours as *const () as usize);
            install_theirs(theirs as *const () as usize, libc::SA_SIGINFO);
            assert_eq!(take(ours), Err(NoFrames::SignalTaken));
            let now = exchange(None).unwrap();
            assert_eq!(now.sa_sigaction, theirs as *const () as usize);
            raise();
            assert_eq!((OURS.load(SeqCst), THEIRS.load(SeqCst)), (0, 1));
        });
    }

    #[test]
    fn handler_that_was_removed_is_not_called_again() {
        alone("handler_that_was_removed_is_not_called_again", || {
            install_theirs(theirs as *const () as usize, libc::SA_SIGINFO);
            assert_eq!(install(ours), Ok(()));
            install_theirs(libc::SIG_IGN, 0);
            assert!(!is_handler(&exchange(None).unwrap()));
            assert_eq!(take(ours), Ok(()));
            raise();
            assert_eq!((OURS.load(SeqCst), THEIRS.load(SeqCst)), (1, 0));
        });
    }

    #[test]
    fn signal_without_another_handler_is_ignored() {
        alone("signal_without_another_handler_is_ignored", || {
            assert_eq!(take(ours), Ok(()));
            raise();
            assert_eq!(OURS.load(SeqCst), 1);
            assert!(is_handler(&exchange(None).unwrap()));
        });
    }
}
