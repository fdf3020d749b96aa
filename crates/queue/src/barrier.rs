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

use crate::sync::{Ordering, fence};

/// Whether a publisher may use [`light`]; asked once for the process.
pub fn is_asymmetric() -> bool {
    #[cfg(loom)]
    return model::is_asymmetric();
    #[cfg(all(not(loom), any(miri, not(target_os = "linux"))))]
    return false;
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        static REGISTERED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *REGISTERED.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
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

/// A full fence on this thread.
#[inline(always)]
pub fn full() {
    fence(Ordering::SeqCst);
}

/// A full barrier on this thread and on every other of the process: what they published before is seen after it, and what this
/// thread stored before is seen by what they load after it. Only where [`is_asymmetric`].
pub fn heavy() {
    #[cfg(not(any(loom, miri, not(target_os = "linux"))))]
    {
        let failed = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        // A registered process cannot be refused; to sleep without the barrier could be for ever.
        assert_eq!(failed, 0, "membarrier worked when it was registered");
    }
    #[cfg(loom)]
    model::heavy();
    full();
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
        given: atomic::AtomicUsize,
        words: [AtomicUsize; THREADS],
    }

    loom::lazy_static! {
        static ref WORDS: Words = Words {
            given: atomic::AtomicUsize::new(0),
            words: std::array::from_fn(|_| AtomicUsize::new(0)),
        };
    }

    loom::thread_local! {
        static MINE: usize = WORDS.given.fetch_add(1, atomic::Ordering::Relaxed);
    }

    // loom runs all threads of a model on one thread of the system.
    std::thread_local! {
        static ASYMMETRIC: Cell<bool> = const { Cell::new(false) };
    }

    /// In a model, before anything else: this one has both barriers.
    pub fn use_both(model: impl FnOnce()) {
        ASYMMETRIC.set(true);
        // Whoever touches it first is seen by all others.
        let _ = &*WORDS;
        model();
        ASYMMETRIC.set(false);
    }

    pub(super) fn is_asymmetric() -> bool {
        ASYMMETRIC.get()
    }

    /// From 1. Only in a model of both barriers do they differ.
    pub(crate) fn this_thread() -> usize {
        if is_asymmetric() {
            1 + MINE.with(|mine| *mine)
        } else {
            1
        }
    }

    pub(super) fn light() {
        if is_asymmetric() {
            WORDS.words[this_thread() - 1].fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn heavy() {
        if is_asymmetric() {
            for word in &WORDS.words {
                word.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
