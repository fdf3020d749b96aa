//! The two barriers of the wake-up protocol: a light one for those who publish often, a heavy one for those who are about to
//! sleep.
//!
//! Between "I publish, then look whether you sleep" and "I say that I sleep, then look whether there is something" both sides need
//! a store to be visible before a later load. A full fence does it, at 5 to 28 ns a message. Linux offers the whole cost to
//! one side: `membarrier(PRIVATE_EXPEDITED)` makes every running thread of the process pass a full barrier, for 2 to 14 us, and the
//! other side needs no more than the compiler's order.
//!
//! Where the system call is not there (an old kernel, a sandbox, Miri) both sides use fences: [`is_asymmetric`] says which. loom's models use fences
//! too, but for those that are about these barriers (`model`).
//!
//! A sandbox (a seccomp filter) that is applied later may refuse a call that worked before. A sleeper that is refused can neither do without the barrier nor
//! end the process for it. It waits for as long as other threads can delay their stores, and changes the process to fences:
//!
//! 1. The process is in one state: `UNKNOWN`, `ASYMMETRIC`, `CHANGING`, `FENCES`. It goes from left to right, and each of the last three may be the first.
//! 2. A publisher that uses [`light_or_full`] makes its data visible, **then** loads the state, then loads whether anybody sleeps. The compiler keeps these
//!    three in order. In `ASYMMETRIC` that is all; in `CHANGING` and `FENCES` a full fence comes before the last load.
//! 3. A sleeper that uses [`heavy_or_full`] passes the heavy barrier in `ASYMMETRIC` and `CHANGING`, and a full fence in `FENCES`.
//! 4. Where the system refuses, the heavy barrier is: set `CHANGING`, pass a full fence, **wait for [`DRAIN`]**, set `FENCES`, and pass a full fence.
//! 5. Why waiting is a barrier: a processor runs a load ahead of an older store in one way only: the store has retired, and is in the store buffer, or both are
//!    still to retire. The hardware empties the buffer by itself, whatever the thread does meanwhile; what has not retired when the thread loses its
//!    processor is done again, and a switch of threads is a full barrier. So after the wait each light barrier that was under way is over: either its load
//!    saw what the sleeper stored before the wait, or what it published is seen after the wait. That the delay has a bound in practice, and that
//!    algorithms can rest on it, is shown by Morrison and Afek, "Temporally Bounding TSO for Fence-Free Asymmetric Synchronization" (ASPLOS 2015).
//! 6. Why `CHANGING`: a publisher that loaded `ASYMMETRIC` may be within its delay when the state changes. Until that is over, other sleepers
//!    must not rely on its fence: in `CHANGING` they wait too. In `FENCES` every publisher that loaded `ASYMMETRIC` is past its last load, by rule 5.
//! 7. A protocol in which publishers read another word than the state, and use [`light`] (`waiters`), keeps to the heavy barrier until that word tells them to
//!    pass a fence. It may set the word for good where [`is_asymmetric`] is no longer true.

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
use std::sync::atomic::AtomicU8;

use crate::sync::{Ordering, fence};

/// Rule 5. A store buffer has under a hundred entries, and each takes a microsecond at the most contended line: a hundred times that. It is a tick of the
/// slowest timer of Linux, too, which empties the buffers of the processors that have one.
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

/// Whether the process has a heavy barrier that the kernel passes for other threads. Once it is `false` it stays so: sleepers and publishers then use fences. A
/// publisher and a sleeper do not decide by this word alone (rules 2 and 3): they use [`light_or_full`] and [`heavy_or_full`].
#[inline]
pub fn is_asymmetric() -> bool {
    #[cfg(loom)]
    return model::is_asymmetric();
    #[cfg(all(not(loom), any(miri, not(target_os = "linux"))))]
    return false;
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        // The common answer first.
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

/// The first question of the process. Threads that ask at once get one answer.
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

/// The publisher's side where the sleeper uses [`heavy`]: the compiler keeps the order.
#[inline(always)]
pub fn light() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    model::light();
}

/// The publisher's side where the sleeper uses [`heavy_or_full`] (rule 2).
#[inline(always)]
pub fn light_or_full() {
    // The state is loaded after what was published.
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

/// The sleeper's side where publishers use [`light_or_full`] (rule 3).
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

/// A full barrier on this thread and on every other of the process: what they published before is seen after it, and what this
/// thread stored before is seen by what they load after it. It takes 10 ms if the system refuses to pass it for others (rule 4).
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
    // Without a call that a sandbox could refuse; one that refuses to yield makes it spin.
    let until = crate::clock::deadline(DRAIN);
    while crate::clock::now() < until {
        std::thread::yield_now();
    }
    STATE.fetch_max(FENCES, Ordering::SeqCst);
}

#[cfg(not(any(loom, miri, not(target_os = "linux"))))]
fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes two numbers more, and no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// The two barriers as loom can see them. `membarrier` lets every thread pass a full barrier at some moment of its own, so of a
/// light and a heavy one either the first comes before or the second, and what was done before the one is seen after the other. That is
/// what an exchange of one word does that both make. A light barrier orders nothing against another light one, or against a
/// fence: so each thread has a word of its own.
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

    /// In a model, before anything else: this one has both barriers.
    pub fn use_both(model: impl FnOnce()) {
        HAS_BOTH.set(true);
        // Whoever touches it first is seen by all others.
        let _ = &*WORDS;
        model();
        HAS_BOTH.set(false);
    }

    /// The same, where the system refuses the heavy barrier from the beginning (rule 4).
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

    /// From 1. Only in a model of both barriers do they differ.
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
        // The wait of rule 5 promises what the call does.
        for word in &WORDS.words {
            word.fetch_add(1, Ordering::AcqRel);
        }
        if REFUSES.get() {
            WORDS.state.fetch_max(super::FENCES, Ordering::SeqCst);
        }
    }
}
