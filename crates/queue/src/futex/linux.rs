//! Parking by Linux's futex.
//!
//! The word is EMPTY, PARKED or NOTIFIED. Waking stores NOTIFIED and makes a system call only if
//! the thread was PARKED. Parking consumes NOTIFIED, so at most one wake-up is stored.

use std::sync::atomic::{AtomicU32, Ordering};

use super::ParkResult;

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

#[derive(Debug)]
pub(crate) struct Futex(AtomicU32);

impl Futex {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(EMPTY))
    }

    pub(crate) fn wake(&self) {
        if self.0.swap(NOTIFIED, Ordering::Release) == PARKED {
            futex(&self.0, libc::FUTEX_WAKE, 1, None);
        }
    }

    pub(crate) fn park(&self, deadline: Option<u64>) -> ParkResult {
        let word = &self.0;
        loop {
            match word.compare_exchange(EMPTY, PARKED, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {}
                Err(NOTIFIED) => {
                    word.store(EMPTY, Ordering::Relaxed);
                    // The CAS above loaded with Acquire. It pairs with the waker's Release.
                    return ParkResult::Woken;
                }
                Err(_) => {}
            }
            let failed = futex(word, libc::FUTEX_WAIT_BITSET, PARKED, deadline);
            if word.swap(EMPTY, Ordering::Acquire) == NOTIFIED {
                return ParkResult::Woken;
            }
            match failed {
                Some(libc::ETIMEDOUT) => return ParkResult::TimedOut,
                Some(libc::EINTR) => return ParkResult::Interrupted,
                _ => {}
            }
        }
    }
}

/// Executes one futex call on a word of this process. Returns the error number if the call failed.
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
    // SAFETY: the word and the time live until the call returns. The other arguments are those of
    // FUTEX_WAIT_BITSET (absolute CLOCK_MONOTONIC time) and FUTEX_WAKE, which ignores the last
    // three.
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
