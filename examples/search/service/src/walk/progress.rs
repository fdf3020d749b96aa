//! The progress of the searches of one plan, and its subscribers.
//!
//! There is no thread and no timer: the searchers publish the progress.
//! 1. Counters only grow. They are increased after each file, and while a large file is read.
//! 2. `requests` is the number of publications that were requested since the last one began. The
//!    searcher that raises it from 0 publishes, and repeats until there is no new request. The
//!    others leave the publication to it.
//! 3. A subscriber is called without a lock, because the call may let other actors run on this
//!    thread. During a publication, the publisher therefore owns the list, and the shared list
//!    contains only later subscribers.
//! 4. A subscriber is in the list before its first publication is requested, so it sees a state at
//!    or after its subscription, and every final state.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// At most one publication in this time, but for the first and those at the end of a search. Fifty
/// a second are as many as an eye can follow.
pub const INTERVAL: Duration = Duration::from_millis(20);

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files searched.
    pub files: u64,
    /// Bytes read from them.
    pub bytes: u64,
    /// Lines that matched.
    pub matches: u64,
    /// Files and directories that could not be read, or not to their end.
    pub unreadable: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Counts) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.matches += other.matches;
        self.unreadable += other.unreadable;
    }
}

/// Called with the counts and the last problem; `false`: not interested any more.
type Subscriber = Box<dyn FnMut(&Counts, Option<&str>) -> bool + Send>;

/// The counters of one plan's searches, and their subscribers.
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
    matches: AtomicU64,
    unreadable: AtomicU64,
    problem: Mutex<Option<String>>,
    requests: AtomicU32,
    /// Nanoseconds since `epoch` before which nothing is published in passing.
    quiet_until: AtomicU64,
    epoch: Instant,
    /// Somebody subscribed and did not leave: spares the searchers the clock.
    watched: AtomicBool,
    subscribers: Mutex<Vec<Subscriber>>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            matches: AtomicU64::new(0),
            unreadable: AtomicU64::new(0),
            problem: Mutex::new(None),
            requests: AtomicU32::new(0),
            quiet_until: AtomicU64::new(0),
            epoch: Instant::now(),
            watched: AtomicBool::new(false),
            subscribers: Mutex::new(Vec::new()),
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().fmt(f)
    }
}

impl Progress {
    /// The counts so far, of all searches of the plan.
    pub fn counts(&self) -> Counts {
        Counts {
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            matches: self.matches.load(Ordering::Relaxed),
            unreadable: self.unreadable.load(Ordering::Relaxed),
        }
    }

    /// The last thing that could not be read, and why.
    pub fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Calls `subscriber` soon with the state as it is, then at most every [`INTERVAL`] while a
    /// search goes on, and at the end of each search, until it returns `false` or the plan is
    /// dropped. It runs in a searcher and must not wait.
    pub fn subscribe(
        &self,
        subscriber: impl FnMut(&Counts, Option<&str>) -> bool + Send + 'static,
    ) {
        {
            let mut subscribers = lock(&self.subscribers);
            subscribers.push(Box::new(subscriber));
            self.watched.store(true, Ordering::Relaxed);
        }
        self.publish();
    }

    /// Adds what a searcher has done since it last did so.
    pub(super) fn add(&self, counts: &Counts) {
        let add = |counter: &AtomicU64, n| {
            if n != 0 {
                counter.fetch_add(n, Ordering::Relaxed);
            }
        };
        add(&self.files, counts.files);
        add(&self.bytes, counts.bytes);
        add(&self.matches, counts.matches);
        add(&self.unreadable, counts.unreadable);
        if self.watched.load(Ordering::Relaxed) {
            self.publish_in_passing();
        }
    }

    /// Notes why something could not be read.
    pub(super) fn note(&self, problem: String) {
        *lock(&self.problem) = Some(problem);
    }

    /// Publishes at the end of a search, whatever the time.
    pub(super) fn ended(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.publish();
        }
    }

    fn publish_in_passing(&self) {
        let now = self.epoch.elapsed().as_nanos() as u64;
        let quiet_until = self.quiet_until.load(Ordering::Relaxed);
        let next = now + INTERVAL.as_nanos() as u64;
        // One searcher wins the interval, the others go on.
        if now >= quiet_until
            && self
                .quiet_until
                .compare_exchange(quiet_until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.publish();
        }
    }

    fn publish(&self) {
        if self.requests.fetch_add(1, Ordering::AcqRel) != 0 {
            return;
        }
        let turn = Turn(&self.requests);
        loop {
            let answered = self.requests.load(Ordering::Acquire);
            let mut subscribers = mem::take(&mut *lock(&self.subscribers));
            let (counts, problem) = (self.counts(), self.problem());
            subscribers.retain_mut(|subscriber| subscriber(&counts, problem.as_deref()));
            {
                let mut shared = lock(&self.subscribers);
                subscribers.append(&mut shared);
                *shared = subscribers;
                self.watched.store(!shared.is_empty(), Ordering::Relaxed);
            }
            let answered =
                self.requests
                    .compare_exchange(answered, 0, Ordering::AcqRel, Ordering::Relaxed);
            if answered.is_ok() {
                mem::forget(turn);
                return;
            }
        }
    }
}

/// Gives the publisher's turn back if a subscriber panicked: rule 2 would otherwise silence all to
/// come.
struct Turn<'a>(&'a AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A panic elsewhere leaves nothing half done under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
