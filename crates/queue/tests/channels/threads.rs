//! Thread helpers: a watchdog for tests that hang, and a check for which threads sleep.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, Once};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A test that runs longer counts as hung. The slowest test takes seconds, and machines may be
/// busy.
const TOO_LONG: Duration = Duration::from_secs(240);

/// `usual`, or `few` under Miri, which is a thousand times slower.
pub const fn scaled(usual: usize, few: usize) -> usize {
    if cfg!(miri) { few } else { usual }
}

/// The duration of each random run, from `THALWEG_TEST_SECONDS`.
pub fn seconds() -> Option<Duration> {
    let seconds = std::env::var("THALWEG_TEST_SECONDS").ok()?;
    Some(Duration::from_secs(seconds.parse().expect("a number")))
}

static RUNNING: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

/// Aborts the process with the name of the calling test if the test does not finish in time.
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

/// A running test.
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
                // `eprintln!` would write to the test's captured output, which the abort loses.
                let _ = writeln!(std::io::stderr(), "{name} hangs");
                std::process::abort();
            }
        }
    }
}

/// Waits until `is_so` returns true.
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

/// A group of threads that share a thread name.
#[derive(Clone)]
pub struct Crew(String);

impl Crew {
    /// Creates an empty group.
    pub fn new() -> Self {
        static CREWS: AtomicUsize = AtomicUsize::new(0);
        Self(format!("crew-{}", CREWS.fetch_add(1, Ordering::Relaxed)))
    }

    /// Adds the calling thread to the group. Miri does not support thread names.
    pub fn join(&self) {
        if cfg!(miri) {
            return;
        }
        let name = std::ffi::CString::new(self.0.as_str()).unwrap();
        // SAFETY: the name is a C string that lives until the call returns.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }

    /// Spawns a thread in the group.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let crew = self.clone();
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let thread = thread.spawn(move || {
            crew.join();
            work()
        });
        thread.expect("the system has threads")
    }

    /// Waits until the group has `count` threads and all of them sleep. Miri has no such files, so
    /// there it waits for a fixed time.
    pub fn asleep(&self, count: usize) {
        if cfg!(miri) {
            for _ in 0..100 {
                std::thread::yield_now();
            }
            return;
        }
        let mut in_a_row = 0;
        until("threads that sleep", || {
            let threads = self.threads();
            let all = threads.len() == count && threads.iter().all(|thread| thread.sleeps);
            in_a_row = if all { in_a_row + 1 } else { 0 };
            // A thread may sleep briefly for another reason before it reaches its wait.
            in_a_row == 4
        });
    }

    /// The number of threads in the group.
    pub fn count(&self) -> usize {
        self.threads().len()
    }

    /// How many context switches all threads of the group have had.
    pub fn switches(&self) -> u64 {
        self.threads().iter().map(|thread| thread.switches).sum()
    }

    fn threads(&self) -> Vec<Thread> {
        let tasks = fs::read_dir("/proc/self/task").expect("Linux");
        let tasks = tasks.map(|task| task.expect("Linux").path());
        // A thread that has ended meanwhile has no files any more.
        let mine = tasks.filter(|task| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == self.0)
        });
        let status = mine.filter_map(|task| fs::read_to_string(task.join("status")).ok());
        status.filter_map(|status| Thread::parse(&status)).collect()
    }
}

struct Thread {
    sleeps: bool,
    switches: u64,
}

impl Thread {
    fn parse(status: &str) -> Option<Self> {
        let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let count = |key: &str| field(key)?.trim().parse::<u64>().ok();
        Some(Self {
            sleeps: field("State:")?.trim().starts_with('S'),
            switches: count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?,
        })
    }
}
