//! Tests that overflows are reported, and that all other faults end the process as if the handler
//! were not installed.

use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use corosensei::Coroutine;

use super::child::{Ended, in_child};
use super::touch;
use crate::stack::guard::Guards;
use crate::stack::overflow::{AlternateStack, Name, install, set_running_name};
use crate::stack::{Depot, Magazine};

const SIZE: usize = 256 << 10;

thread_local! {
    static NAME: Cell<Option<NonNull<Name>>> = const { Cell::new(None) };
}

/// Uses 1 KiB per level.
fn recurse(depth: usize) -> usize {
    let frame = black_box([depth as u8; 1 << 10]);
    if depth == 0 {
        return 0;
    }
    recurse(depth - 1) + usize::from(frame[depth % frame.len()])
}

/// Runs `body` like a worker runs an actor.
fn run_actor(guards: Guards, name: Option<&Name>, body: impl FnOnce() + 'static) {
    let _alternate = AlternateStack::new().expect("memory");
    let mut magazine = Magazine::new(Depot::apart(SIZE, guards, 100));
    let stack = magazine.take().expect("a stack");
    NAME.set(name.map(NonNull::from));
    set_running_name(Some(|| NAME.get()));
    let mut coroutine = Coroutine::with_stack(stack, |_: &corosensei::Yielder<(), ()>, ()| body());
    coroutine.resume(());
    set_running_name(None);
}

fn overflow(name: &str, guards: Guards, actor: Option<&str>) -> Ended {
    in_child(name, || {
        install().expect("the reporter");
        let name = actor.map(Name::new);
        run_actor(guards, name.as_ref(), || {
            black_box(recurse(100));
            println!("100 KiB are no overflow");
            black_box(recurse(300));
        });
    })
}

#[test]
fn overflow_of_a_named_actor_is_reported() {
    let guards = Guards::probed();
    let ended = overflow(
        "overflowing::overflow_of_a_named_actor_is_reported",
        guards,
        Some("greedy-1"),
    );
    assert_eq!(ended.signal, Some(libc::SIGABRT), "{ended:?}");
    assert!(ended.stdout.contains("100 KiB are no overflow"));
    let line = "thalweg: actor greedy-1 overflowed its stack of 256 KiB\n";
    assert!(ended.stderr.contains(line), "{ended:?}");
}

#[test]
fn overflow_into_a_heavy_guard_is_reported() {
    let name = "overflowing::overflow_into_a_heavy_guard_is_reported";
    let ended = overflow(name, Guards::Heavy, Some("greedy-2"));
    assert_eq!(ended.signal, Some(libc::SIGABRT), "{ended:?}");
    let line = "thalweg: actor greedy-2 overflowed its stack of 256 KiB\n";
    assert!(ended.stderr.contains(line), "{ended:?}");
}

#[test]
fn overflow_of_an_unnamed_actor_is_reported() {
    let name = "overflowing::overflow_of_an_unnamed_actor_is_reported";
    let ended = overflow(name, Guards::probed(), None);
    assert_eq!(ended.signal, Some(libc::SIGABRT), "{ended:?}");
    let line = "thalweg: an actor overflowed its stack of 256 KiB\n";
    assert!(ended.stderr.contains(line), "{ended:?}");
}

#[test]
fn overflow_report_truncates_a_long_name() {
    let name = "overflowing::overflow_report_truncates_a_long_name";
    let ended = overflow(name, Guards::probed(), Some(&"x".repeat(10_000)));
    assert!(
        ended
            .stderr
            .contains("xxx overflowed its stack of 256 KiB\n"),
        "{ended:?}"
    );
}

#[test]
fn overflow_of_a_thread_is_reported_by_std() {
    let ended = in_child(
        "overflowing::overflow_of_a_thread_is_reported_by_std",
        || {
            install().expect("the reporter");
            let thread = std::thread::Builder::new()
                .name("greedy-thread".to_owned())
                .spawn(|| black_box(recurse(100_000)));
            let _ = thread.expect("a thread").join();
        },
    );
    assert_eq!(ended.signal, Some(libc::SIGABRT), "{ended:?}");
    assert!(ended.stderr.contains("greedy-thread"), "{ended:?}");
    assert!(ended.stderr.contains("overflowed its stack"), "{ended:?}");
    assert!(!ended.stderr.contains("thalweg: "), "{ended:?}");
}

extern "C" fn overflow_here(_: libc::c_int) {
    black_box(recurse(100_000));
}

/// The main thread of a test binary waits for its tests; a signal interrupts it.
#[test]
#[cfg(target_os = "linux")]
fn overflow_of_the_main_thread_is_reported_by_std() {
    let name = "overflowing::overflow_of_the_main_thread_is_reported_by_std";
    let ended = in_child(name, || {
        install().expect("the reporter");
        let handler = overflow_here as *const () as usize;
        // SAFETY: an all-zero action is valid. The handler runs while the thread waits, and the
        // process ends in it.
        unsafe {
            let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
            new.sa_sigaction = handler;
            assert_eq!(
                libc::sigaction(libc::SIGUSR1, &new, std::ptr::null_mut()),
                0
            );
            // The main thread's number is that of the process.
            let main = libc::getpid();
            assert_eq!(
                libc::syscall(libc::SYS_tgkill, main, main, libc::SIGUSR1),
                0
            );
        }
        std::thread::sleep(std::time::Duration::from_secs(60));
    });
    assert_eq!(ended.signal, Some(libc::SIGABRT), "{ended:?}");
    assert!(ended.stderr.contains("thread 'main'"), "{ended:?}");
    assert!(ended.stderr.contains("overflowed its stack"), "{ended:?}");
    assert!(!ended.stderr.contains("thalweg: "), "{ended:?}");
}

fn null_dereference() {
    let null = black_box(std::ptr::null_mut::<u8>());
    // SAFETY: the fault is intended, and the process ends with it.
    unsafe { null.write_volatile(1) };
}

fn ended_by_plain_segv(ended: &Ended) {
    assert_eq!(ended.signal, Some(libc::SIGSEGV), "{ended:?}");
    assert!(!ended.stderr.contains("overflowed"), "{ended:?}");
}

#[test]
fn null_dereference_on_a_thread_ends_the_process_as_usual() {
    let name = "overflowing::null_dereference_on_a_thread_ends_the_process_as_usual";
    ended_by_plain_segv(&in_child(name, || {
        install().expect("the reporter");
        null_dereference();
    }));
}

#[test]
fn null_dereference_in_an_actor_ends_the_process_as_usual() {
    let name = "overflowing::null_dereference_in_an_actor_ends_the_process_as_usual";
    ended_by_plain_segv(&in_child(name, || {
        install().expect("the reporter");
        run_actor(Guards::probed(), None, null_dereference);
    }));
}

#[test]
fn wild_pointer_into_a_guard_is_not_reported_as_an_overflow() {
    let name = "overflowing::wild_pointer_into_a_guard_is_not_reported_as_an_overflow";
    ended_by_plain_segv(&in_child(name, || {
        install().expect("the reporter");
        run_actor(Guards::probed(), Some(&Name::new("innocent")), || {
            let other = Magazine::new(Depot::apart(SIZE, Guards::probed(), 100));
            let other = { other }.take().expect("a stack");
            touch(&other, [SIZE - 8 * 1024]);
        });
    }));
}

/// Installs an action directly, as an application does.
fn application(action: usize, flags: libc::c_int) {
    // SAFETY: an all-zero action is valid. The handlers below are async-signal-safe.
    unsafe {
        let mut new: libc::sigaction = MaybeUninit::zeroed().assume_init();
        new.sa_sigaction = action;
        new.sa_flags = flags | libc::SA_ONSTACK;
        assert_eq!(
            libc::sigaction(libc::SIGSEGV, &new, std::ptr::null_mut()),
            0
        );
    }
}

fn say_and_exit(text: &str) -> ! {
    // SAFETY: both are allowed in a signal handler.
    unsafe {
        libc::write(1, text.as_ptr().cast(), text.len());
        libc::_exit(7)
    }
}

extern "C" fn one_argument(signal: libc::c_int) {
    assert_eq!(signal, libc::SIGSEGV);
    say_and_exit("the application's old handler");
}

extern "C" fn three_arguments(
    _: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the description of the signal.
    let address = unsafe { (*info).si_addr() };
    assert!(address.is_null() && !context.is_null());
    say_and_exit("the application's new handler");
}

#[test]
fn application_handler_with_three_arguments_gets_its_faults() {
    let name = "overflowing::application_handler_with_three_arguments_gets_its_faults";
    let ended = in_child(name, || {
        application(three_arguments as *const () as usize, libc::SA_SIGINFO);
        install().expect("the reporter");
        null_dereference();
    });
    assert!(ended.stdout.contains("new handler"), "{ended:?}");
}

#[test]
fn application_handler_with_one_argument_gets_its_faults() {
    let name = "overflowing::application_handler_with_one_argument_gets_its_faults";
    let ended = in_child(name, || {
        application(one_argument as *const () as usize, 0);
        install().expect("the reporter");
        run_actor(Guards::probed(), None, null_dereference);
    });
    assert!(ended.stdout.contains("old handler"), "{ended:?}");
}

fn raise() {
    // SAFETY: the call takes no address.
    unsafe { libc::raise(libc::SIGSEGV) };
}

#[test]
fn ignored_signal_stays_ignored_when_sent() {
    let name = "overflowing::ignored_signal_stays_ignored_when_sent";
    let ended = in_child(name, || {
        application(libc::SIG_IGN, 0);
        install().expect("the reporter");
        raise();
        say_and_exit("went on");
    });
    assert!(ended.stdout.contains("went on"), "{ended:?}");
}

#[test]
fn fault_cannot_be_ignored() {
    let name = "overflowing::fault_cannot_be_ignored";
    ended_by_plain_segv(&in_child(name, || {
        application(libc::SIG_IGN, 0);
        install().expect("the reporter");
        null_dereference();
    }));
}

#[test]
fn sent_signal_with_default_action_ends_the_process() {
    let name = "overflowing::sent_signal_with_default_action_ends_the_process";
    ended_by_plain_segv(&in_child(name, || {
        application(libc::SIG_DFL, 0);
        install().expect("the reporter");
        raise();
    }));
}

#[test]
fn previous_alternate_stack_is_restored() {
    let now = || {
        let mut now = MaybeUninit::zeroed();
        // SAFETY: it writes the thread's setting to the given address.
        unsafe {
            assert_eq!(libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()), 0);
            let now: libc::stack_t = now.assume_init();
            (now.ss_sp.addr(), now.ss_flags)
        }
    };
    let before = now();
    let ours = AlternateStack::new().expect("memory");
    assert_ne!(now(), before);
    drop(ours);
    assert_eq!(now(), before);
}
