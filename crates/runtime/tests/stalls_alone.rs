//! Effects of a watcher on its process; the tests run one after the other.
//!
//! A process of its own: it installs signal handlers, and counts the threads of the process.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, thalweg_threads))
))]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use thalweg_runtime::stall::{self, NoFrames, Stall};
use thalweg_runtime::{Builder, Config, Runtime, runtime};

const LIMIT: Duration = Duration::from_millis(20);
/// Exceeded only by a failure, not by a machine under load.
const FOR_EVER: Duration = Duration::from_secs(120);

/// The threads with this name, as folders of `/proc/self/task`.
fn threads(name: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc/self/task").unwrap();
    let folders = all.map(|thread| thread.unwrap().path());
    folders
        .filter(|folder| {
            let known = std::fs::read_to_string(folder.join("comm"));
            known.is_ok_and(|known| known.trim() == name)
        })
        .collect()
}

fn wait_until(over: impl Fn() -> bool) {
    let began = Instant::now();
    while !over() {
        assert!(began.elapsed() < FOR_EVER, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs an actor on a runtime of its own, which computes until it is reported. Returns the report.
fn stall_once() -> Stall {
    let (told, hears) = mpsc::channel();
    let told = Mutex::new(told);
    stall::set_hook(move |stall| told.lock().unwrap().send(stall.clone()).unwrap());
    let stall = runtime::init(Config::with_workers(1).stall(LIMIT))
        .unwrap()
        .run(move || {
            let began = Instant::now();
            loop {
                match hears.try_recv() {
                    Ok(stall) => return stall,
                    Err(_) => assert!(began.elapsed() < FOR_EVER, "nobody says anything"),
                }
            }
        });
    stall::take_hook();
    stall
}

fn switched_off_there_is_no_thread() {
    runtime::init(Config::with_workers(1).stall(None))
        .unwrap()
        .run(|| {
            // A thread sets its name some time after it began.
            std::thread::sleep(Duration::from_millis(200));
            assert_eq!(threads("tw-watcher").len(), 0);
        });
    runtime::init(Config::with_workers(1).stall(LIMIT))
        .unwrap()
        .run(|| wait_until(|| threads("tw-watcher").len() == 1));
    // A joined thread may stay in the list a moment longer.
    wait_until(|| threads("tw-watcher").is_empty());
}

fn action() -> libc::sigaction {
    // SAFETY: plain data that the call fills.
    unsafe {
        let mut action = std::mem::zeroed();
        assert_eq!(
            libc::sigaction(libc::SIGURG, std::ptr::null(), &mut action),
            0
        );
        action
    }
}

static HEARD: AtomicUsize = AtomicUsize::new(0);

extern "C" fn hear(_: libc::c_int) {
    HEARD.fetch_add(1, SeqCst);
}

fn a_handler_of_the_application_stays() {
    let ours = hear as extern "C" fn(_) as libc::sighandler_t;
    // SAFETY: the handler does one atomic addition.
    unsafe { libc::signal(libc::SIGURG, ours) };
    let stall = stall_once();
    assert!(
        matches!(stall.frames, Err(NoFrames::SignalTaken)),
        "{stall}"
    );
    assert!(stall.actor.is_some());
    assert_eq!(action().sa_sigaction, ours);
    assert_eq!(HEARD.load(SeqCst), 0, "it was sent a signal");
    // SAFETY: this restores the default action.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
}

fn the_signal_is_taken_by_the_first_stall_and_not_before() {
    runtime::init(Config::with_workers(1).stall(LIMIT))
        .unwrap()
        .run(|| assert_eq!(action().sa_sigaction, libc::SIG_DFL));
    let stall = stall_once();
    assert!(stall.frames.is_ok_and(|frames| !frames.is_empty()));
    assert_ne!(action().sa_sigaction, libc::SIG_DFL);
    // Nobody requested this signal.
    // SAFETY: `raise` takes no pointer.
    unsafe { libc::raise(libc::SIGURG) };
}

fn a_handler_that_the_application_installs_later_stays() {
    let first = stall_once();
    assert!(first.frames.is_ok());
    let theirs = hear as extern "C" fn(_) as libc::sighandler_t;
    // SAFETY: the handler does one atomic addition.
    unsafe { libc::signal(libc::SIGURG, theirs) };
    let heard = HEARD.load(SeqCst);
    let second = stall_once();
    assert!(
        matches!(second.frames, Err(NoFrames::SignalTaken)),
        "{second}"
    );
    assert_eq!(action().sa_sigaction, theirs);
    // SAFETY: `raise` takes no pointer.
    unsafe { libc::raise(libc::SIGURG) };
    assert_eq!(HEARD.load(SeqCst), heard + 1);
    // SAFETY: this restores the default action.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
}

/// According to `/proc`, the thread is in a wait (its only system call) whose fourth argument, the
/// deadline, is null.
fn sleeps_without_a_deadline(thread: &Path) -> bool {
    let call = std::fs::read_to_string(thread.join("syscall")).unwrap();
    let arguments: Vec<_> = call.split_whitespace().collect();
    arguments.get(4) == Some(&"0x0")
}

fn switches(thread: &Path) -> String {
    let status = std::fs::read_to_string(thread.join("status")).unwrap();
    let lines = status.lines();
    let counts: Vec<_> = lines
        .filter(|line| line.contains("ctxt_switches"))
        .collect();
    counts.join(" ")
}

fn it_sleeps_while_the_workers_do_and_wakes_with_them() {
    let runtime = Runtime::start(Config::with_workers(2).stall(LIMIT)).unwrap();
    let waits = runtime.handle().spawn(|| {
        thalweg_runtime::wait::park(None);
    });
    wait_until(|| threads("tw-watcher").len() == 1);
    let watcher = &threads("tw-watcher")[0];
    // A worker that has just begun may wake the watcher once more.
    wait_until(|| {
        wait_until(|| sleeps_without_a_deadline(watcher));
        let before = switches(watcher);
        std::thread::sleep(Duration::from_secs(1));
        switches(watcher) == before
    });

    static REPORTED: AtomicBool = AtomicBool::new(false);
    stall::set_hook(|_| REPORTED.store(true, SeqCst));
    let stuck = runtime.handle().spawn(|| {
        let began = Instant::now();
        while !REPORTED.load(SeqCst) && began.elapsed() < FOR_EVER {
            std::hint::spin_loop();
        }
    });
    stuck.join().unwrap();
    assert!(REPORTED.load(SeqCst), "it sleeps through a stall");
    stall::take_hook();
    wait_until(|| sleeps_without_a_deadline(watcher));
    drop(runtime);
    // A joined thread may stay in the system's list a moment longer.
    wait_until(|| threads("tw-watcher").is_empty());
    assert!(waits.join().is_ok());
}

/// The end of the runtime waits until the hook has returned.
fn a_runtime_ends_while_its_watcher_reports() {
    static IN_HOOK: AtomicBool = AtomicBool::new(false);
    static GOES_ON: AtomicBool = AtomicBool::new(false);
    static OUT: AtomicBool = AtomicBool::new(false);
    stall::set_hook(|_| {
        IN_HOOK.store(true, SeqCst);
        wait_until(|| GOES_ON.load(SeqCst));
        OUT.store(true, SeqCst);
    });
    let runtime = Runtime::start(Config::with_workers(1).stall(LIMIT)).unwrap();
    let stuck = Builder::new().spawn_on(runtime.handle(), || {
        let began = Instant::now();
        while !IN_HOOK.load(SeqCst) && began.elapsed() < FOR_EVER {
            std::hint::spin_loop();
        }
    });
    stuck.join().unwrap();
    let ends = std::thread::spawn(move || {
        drop(runtime);
        OUT.load(SeqCst)
    });
    wait_until(|| threads("tw-worker-0").is_empty());
    assert!(!ends.is_finished());
    GOES_ON.store(true, SeqCst);
    assert!(ends.join().unwrap(), "it did not wait for the report");
    stall::take_hook();
}

/// The hook drops its runtime, whose end would otherwise wait for the hook itself.
fn a_hook_may_end_the_runtime_and_may_panic() {
    static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);
    static ENDING: AtomicBool = AtomicBool::new(false);
    static ENDED: AtomicBool = AtomicBool::new(false);
    stall::set_hook(|_| {
        ENDING.store(true, SeqCst);
        drop(RUNTIME.lock().unwrap().take());
        ENDED.store(true, SeqCst);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    let runtime = Runtime::start(Config::with_workers(1).stall(LIMIT)).unwrap();
    let handle = runtime.handle().clone();
    *RUNTIME.lock().unwrap() = Some(runtime);
    let stuck = handle.spawn(|| {
        let began = Instant::now();
        while !ENDING.load(SeqCst) && began.elapsed() < FOR_EVER {
            std::hint::spin_loop();
        }
    });
    stuck.join().unwrap();
    wait_until(|| threads("tw-watcher").is_empty());
    assert!(ENDED.load(SeqCst));
    stall::take_hook();
}

#[test]
fn without_a_hook_it_goes_to_standard_error() {
    const CHILD: &str = "THALWEG_TEST_STALLS";
    if std::env::var_os(CHILD).is_some() {
        let stuck = Builder::new().name("printed");
        runtime::init(Config::with_workers(1)).unwrap().run(|| {
            let stuck = stuck.spawn(|| std::thread::sleep(FOR_EVER));
            stuck.join().unwrap();
        });
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["without_a_hook", "--nocapture"])
        .env(CHILD, "yes")
        .env("THALWEG_STALL", "20ms")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    // Reads until the report is printed, or the child has ended.
    while !said.contains("sleep") {
        let read = std::io::BufRead::read_line(&mut lines, &mut said);
        assert_ne!(read.unwrap(), 0, "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.contains("thalweg: actor "), "{said}");
    assert!(said.contains(" (printed) has kept worker 0 for "), "{said}");
}

#[test]
fn what_a_watcher_does_to_its_process() {
    switched_off_there_is_no_thread();
    the_signal_is_taken_by_the_first_stall_and_not_before();
    // SAFETY: this restores the default action.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
    a_handler_of_the_application_stays();
    a_handler_that_the_application_installs_later_stays();
    it_sleeps_while_the_workers_do_and_wakes_with_them();
    a_runtime_ends_while_its_watcher_reports();
    a_hook_may_end_the_runtime_and_may_panic();
}
