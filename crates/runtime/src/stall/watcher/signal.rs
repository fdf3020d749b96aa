//! The handler of SIGURG: how it is installed beside those of others.
//!
//! 1. If another handler is installed, it stays, and there are no frames in the report. Nothing is written then. This holds for a handler that was there
//!    before, and for one that took the place of ours.
//! 2. POSIX cannot install a handler on the condition that there is none. So another thread may install one between our look and our installation.
//!    `sigaction` returns the handler that it replaces. That one is **called from then on** for every signal that is not ours. It is not put back: by then
//!    a third one may be there, which calls ours as the one before it.
//! 3. No signal is lost meanwhile: `INSTALLING` is set before ours is installed, and cleared when what it replaced is known. A handler that finds it set waits
//!    for that. The thread that installs has all signals blocked, so it does not wait for itself; one at a time installs, with the sample's claim.
//! 4. Ours is never removed, since that has the same gap, and a later handler may call it. Where nobody is asked it only passes signals on.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::stack::overflow::before;
use crate::stall::report::NoFrames;

pub(super) const SIGNAL: libc::c_int = libc::SIGURG;

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

static INSTALLING: AtomicBool = AtomicBool::new(false);

/// How often a handler gives its processor away for rule 3. What it waits for is a few instructions of another thread; a child that was forked in between would
/// wait for ever.
const PATIENCE: u32 = 1_000;

/// Makes the signal ours, if it is nobody's. The caller has the sample's claim, and all signals blocked.
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
    // SAFETY: all bytes zero are an action.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = ours as usize;
    // An actor's stack may have no room for it.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // Rule 3.
    INSTALLING.store(true, Ordering::SeqCst);
    let replaced = exchange(Some(&action));
    if let Ok(replaced) = &replaced
        && replaced.sa_sigaction != ours as usize
    {
        // Rule 2. Where there was none, one from an earlier time is not called any more.
        before::remember(SIGNAL, *replaced);
    }
    INSTALLING.store(false, Ordering::SeqCst);
    replaced.map(|_| ())
}

fn is_handler(action: &libc::sigaction) -> bool {
    action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}

fn exchange(new: Option<&libc::sigaction>) -> Result<libc::sigaction, NoFrames> {
    before::exchange(SIGNAL, new).map_err(NoFrames::System)
}

/// Whether a thread of this process sent it to this thread alone, as a watcher does. If it was merged with one that somebody else sent before, that one's
/// description is here.
pub(super) fn is_from_here(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes the signal's description, which has a sender where a thread sent it.
    unsafe { (*info).si_code == libc::SI_TKILL && (*info).si_pid() == libc::getpid() }
}

/// Gives a signal to the handler that ours replaced, if there is one.
///
/// # Safety
/// In the handler, with what the kernel passed.
pub(super) unsafe fn forward(
    number: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let mut left = PATIENCE;
    while INSTALLING.load(Ordering::Acquire) && left > 0 {
        left -= 1;
        // SAFETY: it takes no address, and does not fail, so `errno` stays.
        unsafe { libc::sched_yield() };
    }
    // SAFETY: as said.
    unsafe { before::forward(number, info, context) };
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
        // SAFETY: the kernel passes the signal's description.
        SENDER.store(unsafe { (*info).si_pid() }, SeqCst);
    }

    extern "C" fn plain(_: libc::c_int) {
        THEIRS.fetch_add(1, SeqCst);
    }

    /// As a program installs its own.
    fn install_theirs(handler: usize, flags: libc::c_int) {
        // SAFETY: all bytes zero are an action; the handlers do one atomic operation or two.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        exchange(Some(&action)).unwrap();
    }

    fn raise() {
        // SAFETY: there is a handler, or it is ignored.
        unsafe { libc::raise(SIGNAL) };
    }

    /// The process's handler is one for all tests: `body` runs in a process of its own.
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
                    // As if it came after `take` has looked.
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
