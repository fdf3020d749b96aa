//! The two barriers of the wake-up protocol: a light one for publishers, which run often, and a
//! heavy one for a waiter that is about to sleep.
//!
//! A publisher publishes and then checks whether a waiter sleeps. A waiter announces that it sleeps
//! and then checks for data. On both sides, the store must be visible before the later load. A full
//! fence ensures that and costs 5 to 28 ns per message. Linux can move the whole cost to one side:
//! `membarrier(PRIVATE_EXPEDITED)` makes every running thread of the process execute a full
//! barrier, in 2 to 14 us, and the other side needs only a compiler fence.
//!
//! If the system call is not available (an old kernel, a sandbox, Miri), both sides use fences;
//! [`is_asymmetric`] tells which mode applies. loom's models use fences as well, except the models
//! of these barriers (`model`).
//!
//! A sandbox (a seccomp filter) that is applied later can refuse a call that worked before. The
//! waiter cannot omit the barrier and must not end the process. It waits for as long as other
//! threads can delay their stores, and changes the process to fences:
//!
//! 1. The process has one state: `UNKNOWN`, `ASYMMETRIC`, `CHANGING` or `FENCES`. It only changes
//!    from left to right; the first known state can be `ASYMMETRIC` or `FENCES`.
//! 2. A publisher that uses [`light_or_full`] stores its data, **then** loads the state, then loads
//!    whether a waiter sleeps. The compiler keeps this order. In `CHANGING` and `FENCES`, a full
//!    fence precedes the last load.
//! 3. A waiter that uses [`heavy_or_full`] executes the heavy barrier in `ASYMMETRIC` and
//!    `CHANGING`, and a full fence in `FENCES`.
//! 4. If the system refuses the call, the heavy barrier is: set `CHANGING`, execute a full fence,
//!    **wait for `DRAIN`**, set `FENCES`, execute a full fence.
//! 5. Why waiting is a barrier: a processor can execute a load before an older store only if the
//!    store has retired into the store buffer, or if neither has retired. The hardware drains the
//!    buffer by itself. If the thread loses its processor, instructions that have not retired are
//!    executed again, and a context switch is a full barrier. After the wait, each light barrier
//!    that was in progress is complete: either its load saw the waiter's store from before the
//!    wait, or its published data is visible after the wait. Morrison and Afek show that this delay
//!    is bounded in practice and that algorithms can rely on it: "Temporally Bounding TSO for
//!    Fence-Free Asymmetric Synchronization" (ASPLOS 2015).
//! 6. Why `CHANGING` exists: a publisher that loaded `ASYMMETRIC` may still be within its delay
//!    when the state changes. Until the delay is over, other waiters must not rely on the
//!    publisher's fence, so they wait too in `CHANGING`. In `FENCES`, every publisher that loaded
//!    `ASYMMETRIC` has completed its last load, by rule 5.
//! 7. In some protocols (`waiters`), publishers use [`light`] and read another word instead of the
//!    state. Such a protocol uses the heavy barrier until that word tells its publishers to use a
//!    fence. It may set the word permanently once [`is_asymmetric`] is false.

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
use std::sync::atomic::AtomicU8;

use crate::sync::{Ordering, fence};

/// Rule 5. A store buffer has fewer than a hundred entries, and each takes at most a microsecond on
/// a contended cache line; this is a hundred times that. It is also one tick of Linux's slowest
/// timer, whose interrupt drains the buffer.
#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
const DRAIN: std::time::Duration = std::time::Duration::from_millis(10);

/// Rule 1.
#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
const UNKNOWN: u8 = 0;
#[cfg(not(any(miri, not(target_os = "linux"))))]
const ASYMMETRIC: u8 = 1;
#[cfg(not(any(miri, not(target_os = "linux"))))]
const CHANGING: u8 = 2;
#[cfg(not(any(miri, not(target_os = "linux"))))]
const FENCES: u8 = 3;

/// Whether the kernel executes the heavy barrier for other threads. Once `false`, it stays `false`,
/// and waiters and publishers use fences. Publishers and waiters do not decide by this value alone
/// (rules 2 and 3): they use [`light_or_full`] and [`heavy_or_full`].
#[inline]
pub fn is_asymmetric() -> bool {
    #[cfg(loom)]
    return model::is_asymmetric();
    #[cfg(all(not(loom), any(miri, not(target_os = "linux"))))]
    return false;
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        // The common case first.
        let known = STATE.load(Ordering::Relaxed);
        known == ASYMMETRIC || (known == UNKNOWN && register() == ASYMMETRIC)
    }
}

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
#[inline(always)]
fn state() -> u8 {
    match STATE.load(Ordering::Relaxed) {
        UNKNOWN => register(),
        known => known,
    }
}

/// Registers the process for membarrier. Concurrent callers get the same result.
#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
#[cold]
fn register() -> u8 {
    let works = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    let first = if works { ASYMMETRIC } else { FENCES };
    match STATE.compare_exchange(UNKNOWN, first, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => first,
        Err(known) => known,
    }
}

/// The publisher's side if the waiter uses [`heavy`]: a compiler fence.
#[inline(always)]
pub fn light() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    model::light();
}

/// The publisher's side if the waiter uses [`heavy_or_full`] (rule 2).
#[inline(always)]
pub fn light_or_full() {
    // The state is loaded after the data is published.
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    if is_asymmetric() {
        light();
    } else {
        full();
    }
}

/// A full fence on this thread.
#[inline(always)]
pub fn full() {
    fence(Ordering::SeqCst);
}

/// The waiter's side if publishers use [`light_or_full`] (rule 3).
pub fn heavy_or_full() {
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    let is_heavy = state() != FENCES;
    #[cfg(loom)]
    let is_heavy = model::state() != FENCES;
    #[cfg(all(not(loom), any(miri, not(target_os = "linux"))))]
    let is_heavy = false;
    if is_heavy {
        heavy();
    } else {
        full();
    }
}

/// A full barrier on this thread and on every other thread of the process. Stores of other threads
/// before it are visible after it, and their later loads see the earlier stores of this thread. It
/// takes 10 ms if the system refuses the call (rule 4).
pub fn heavy() {
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    if membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0 {
        heavy_by_waiting();
    }
    #[cfg(loom)]
    model::heavy();
    full();
}

/// Rule 4.
#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
#[cold]
fn heavy_by_waiting() {
    STATE.fetch_max(CHANGING, Ordering::SeqCst);
    full();
    // This loop makes no system call that a sandbox could refuse, except a yield. If the yield is
    // refused, the loop spins.
    let until = crate::clock::deadline(DRAIN);
    while crate::clock::now() < until {
        std::thread::yield_now();
    }
    STATE.fetch_max(FENCES, Ordering::SeqCst);
}

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes two more numbers and no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// A model of the two barriers for loom. `membarrier` makes every thread execute a full barrier at
/// some moment. Of a light barrier and a heavy barrier, one therefore precedes the other, and
/// everything before the earlier one is visible after the later one. Two read-modify-writes of the
/// same word have this effect. Light barriers do not order anything against other light barriers or
/// fences, so each thread has its own word.
#[cfg(loom)]
pub mod model {
    use crate::sync::{AtomicUsize, Ordering};
    use std::cell::Cell;
    use std::sync::atomic;

    const THREADS: usize = 3;

    struct Words {
        state: atomic::AtomicU8,
        given: atomic::AtomicUsize,
        words: [AtomicUsize; THREADS],
    }

    loom::lazy_static! {
        static ref WORDS: Words = Words {
            state: atomic::AtomicU8::new(super::ASYMMETRIC),
            given: atomic::AtomicUsize::new(0),
            words: std::array::from_fn(|_| AtomicUsize::new(0)),
        };
    }

    loom::thread_local! {
        static MINE: usize = WORDS.given.fetch_add(1, atomic::Ordering::Relaxed);
    }

    // loom runs all threads of a model on one thread of the system.
    std::thread_local! {
        static HAS_BOTH: Cell<bool> = const { Cell::new(false) };
        static REFUSES: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs a model in which the two barriers differ. Call it first in the model.
    pub fn use_both(model: impl FnOnce()) {
        HAS_BOTH.set(true);
        // Initialises the words before the model starts threads.
        let _ = &*WORDS;
        model();
        HAS_BOTH.set(false);
    }

    /// Like [`use_both`], in a model where the system refuses the heavy barrier from the start
    /// (rule 4).
    pub fn use_both_refused(model: impl FnOnce()) {
        REFUSES.set(true);
        use_both(model);
        REFUSES.set(false);
    }

    fn has_both() -> bool {
        HAS_BOTH.get()
    }

    pub(super) fn is_asymmetric() -> bool {
        state() == super::ASYMMETRIC
    }

    pub(super) fn state() -> u8 {
        if has_both() {
            WORDS.state.load(Ordering::Relaxed)
        } else {
            super::FENCES
        }
    }

    /// The number of this thread, from 1. It differs between threads only in models that use both
    /// barriers.
    pub(crate) fn this_thread() -> usize {
        if has_both() {
            1 + MINE.with(|mine| *mine)
        } else {
            1
        }
    }

    pub(super) fn light() {
        if has_both() {
            WORDS.words[this_thread() - 1].fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn heavy() {
        if !has_both() {
            return;
        }
        if REFUSES.get() {
            WORDS.state.fetch_max(super::CHANGING, Ordering::SeqCst);
            super::full();
        }
        // The wait of rule 5 has the effect of the system call.
        for word in &WORDS.words {
            word.fetch_add(1, Ordering::AcqRel);
        }
        if REFUSES.get() {
            WORDS.state.fetch_max(super::FENCES, Ordering::SeqCst);
        }
    }
}
