//! A thread that sleeps: woken, timed out, or interrupted by a signal.
//!
//! The word is EMPTY, PARKED or NOTIFIED. Waking sets NOTIFIED and makes a system call only if the
//! thread was PARKED; parking consumes NOTIFIED. One token at most is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody woke the thread, perhaps before it slept.
    Woken,
    /// The deadline passed.
    TimedOut,
    /// A signal was handled on this thread: run what waits for it, then go on waiting.
    Interrupted,
}

#[derive(Debug)]
struct Word(AtomicU32);

impl std::task::Wake for Word {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.0.swap(NOTIFIED, Ordering::Release) == PARKED {
            futex(&self.0, libc::FUTEX_WAKE, 1, None);
        }
    }
}

/// A place for one thread to sleep in.
#[derive(Clone, Debug)]
pub struct Parker {
    word: Arc<Word>,
    waker: Waker,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

thread_local! {
    static CURRENT: Parker = Parker::new();
}

impl Parker {
    /// A new one; only one thread at a time may [`park`](Self::park) on it.
    pub fn new() -> Self {
        let word = Arc::new(Word(AtomicU32::new(EMPTY)));
        let waker = Waker::from(Arc::clone(&word));
        Self { word, waker }
    }

    /// The calling thread's own.
    pub fn current() -> Self {
        // A thread whose thread-locals are gone already gets one for this once.
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// What wakes the thread that parks here.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Wakes the thread that parks here, now or at its next parking.
    pub fn unpark(&self) {
        self.waker.wake_by_ref();
    }

    /// Sleeps until woken, until `deadline` ([`crate::clock`]; `None` and `u64::MAX`: for ever), or until a signal was
    /// handled. Spurious wake-ups do not occur, stale ones do.
    pub fn park(&self, deadline: Option<u64>) -> Wake {
        let word = &self.word.0;
        loop {
            match word.compare_exchange(EMPTY, PARKED, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {}
                Err(NOTIFIED) => {
                    word.store(EMPTY, Ordering::Relaxed);
                    // Pairs with the waker's Release: the load is the CAS above.
                    return Wake::Woken;
                }
                Err(_) => {}
            }
            let failed = futex(word, libc::FUTEX_WAIT_BITSET, PARKED, deadline);
            if word.swap(EMPTY, Ordering::Acquire) == NOTIFIED {
                return Wake::Woken;
            }
            match failed {
                Some(libc::ETIMEDOUT) => return Wake::TimedOut,
                Some(libc::EINTR) => return Wake::Interrupted,
                _ => {}
            }
        }
    }
}

/// One futex call on a word of this process; the error number if it failed.
fn futex(
    word: &AtomicU32,
    operation: libc::c_int,
    value: u32,
    deadline: Option<u64>,
) -> Option<i32> {
    let time = deadline
        .filter(|ns| *ns != u64::MAX)
        .map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
    let time = time
        .as_ref()
        .map_or(std::ptr::null(), |time| time as *const libc::timespec);
    // SAFETY: the word and the time live across the call; the other arguments are those of
    // FUTEX_WAIT_BITSET (absolute CLOCK_MONOTONIC time) and FUTEX_WAKE, which ignores the last three.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            time,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    (result < 0).then(|| {
        std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or_default()
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Parker, Wake};
    use crate::clock;
    use std::time::Duration;

    #[test]
    fn a_wake_before_the_sleep_is_not_lost_and_counts_once() {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        assert_eq!(parker.park(None), Wake::Woken);
        let soon = clock::deadline(Duration::from_millis(5));
        assert_eq!(parker.park(Some(soon)), Wake::TimedOut);
        assert!(clock::now() >= soon);
    }

    #[test]
    fn a_deadline_in_the_past_does_not_sleep() {
        assert_eq!(Parker::new().park(Some(0)), Wake::TimedOut);
    }

    #[test]
    fn another_thread_wakes_it() {
        let parker = Parker::new();
        let waker = parker.waker();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            waker.wake();
        });
        assert_eq!(parker.park(None), Wake::Woken);
        thread.join().unwrap();
    }
}
