//! What tests need to know of threads: that none hangs, and which of them sleep.

use std::collections::HashMap;
use std::fs;
use std::sync::{LazyLock, Mutex, Once};
use std::time::{Duration, Instant};

/// A test that runs for longer hangs: the slowest takes seconds, and machines may be busy.
const TOO_LONG: Duration = Duration::from_secs(240);

/// `usual`, or `few` under Miri, which is a thousand times slower.
pub const fn scaled(usual: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { usual }
}

/// How much longer than usual random runs last: `THALWEG_TEST_SECONDS`, for each of them.
pub fn seconds() -> Option<Duration> {
    let seconds = std::env::var("THALWEG_TEST_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("a number")))
}

static RUNNING: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

/// Ends the process, with the test's name, if the calling test is not over in time.
pub fn watch() -> Watched {
    static START: Once = Once::new();
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    if !cfg!(miri) {
        RUNNING.lock().unwrap().insert(name.clone(), Instant::now());
        START.call_once(|| {
            std::thread::spawn(abort_what_hangs);
        });
    }
    Watched(name)
}

/// A test that is running.
pub struct Watched(String);

impl Drop for Watched {
    fn drop(&mut self) {
        RUNNING.lock().unwrap().remove(&self.0);
    }
}

fn abort_what_hangs() {
    let limit = TOO_LONG + seconds().unwrap_or_default();
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (name, since) in RUNNING.lock().unwrap().iter() {
            if since.elapsed() > limit {
                eprintln!("{name} hangs");
                std::process::abort();
            }
        }
    }
}

/// Waits until `is_so`.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Gives the calling thread a name that [`asleep`] knows: 15 letters at most.
pub fn named(name: &str) {
    assert!(name.len() < 16);
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: the name is a C string that lives across the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Waits until `count` threads of this name sleep. Under Miri, which has no such files, for a while.
pub fn asleep(name: &str, count: usize) {
    if cfg!(miri) {
        for _ in 0..100 {
            std::thread::yield_now();
        }
        return;
    }
    let mut in_a_row = 0;
    until("threads that sleep", || {
        let threads = of_name(name);
        let sleep = threads.iter().filter(|thread| thread.sleeps).count();
        in_a_row = if sleep == count { in_a_row + 1 } else { 0 };
        // A thread may sleep for another reason on its way to where it is to sleep.
        in_a_row == 5
    });
}

/// A thread of this process.
pub struct Thread {
    sleeps: bool,
    /// Context switches so far.
    pub switches: u64,
}

/// The threads of this name, by the kernel's account.
pub fn of_name(name: &str) -> Vec<Thread> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let threads = status.filter_map(|status| {
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim())
        };
        let count = |key: &str| field(key)?.parse::<u64>().ok();
        (field("Name:") == Some(name)).then(|| Thread {
            sleeps: field("State:").is_some_and(|state| state.starts_with('S')),
            switches: count("voluntary_ctxt_switches:").expect("Linux")
                + count("nonvoluntary_ctxt_switches:").expect("Linux"),
        })
    });
    threads.collect()
}
