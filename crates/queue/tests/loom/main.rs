//! Small loom models of each protocol: `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test
//! --profile loom -p thalweg-queue --lib --test loom`.
//!
//! A thread that waits for ever is a deadlock, which loom detects. Every model with a waiting
//! thread therefore checks that the thread is woken. In a model, a sender gets its lane with its
//! second value, the blocks of a lane have one line, and no thread spins.
#![cfg(loom)]

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Wake, Waker};

mod atomic_waker;
mod broadcast;
mod closing;
mod futures;
mod mpmc;
mod mpsc;
mod oneshot;
mod rendezvous;
mod ring;
mod select;
mod spsc;

/// Counts how often a waker was called.
pub struct Count(std::sync::atomic::AtomicUsize);

impl Count {
    /// The number of wake-ups so far.
    pub fn woken(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Creates a counting waker.
pub fn counter() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(0.into()));
    (count.clone(), Waker::from(count))
}
