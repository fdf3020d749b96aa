//! Tiny models of each protocol, explored by loom:
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p thalweg-queue --lib --test loom`.
//!
//! What waits for ever is a deadlock, which loom finds; so "it is woken" is what every model says in which somebody waits. In a
//! model a sender has its lane from its second value on, a lane's blocks have one line, and nobody spins.
#![cfg(loom)]

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Wake, Waker};

mod atomic_waker;
mod closing;
mod futures;
mod mpmc;
mod mpsc;
mod oneshot;
mod ring;
mod select;
mod spsc;

/// How often a waker woke.
pub struct Count(std::sync::atomic::AtomicUsize);

impl Count {
    /// So far.
    pub fn woken(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A waker that counts.
pub fn counter() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(0.into()));
    (count.clone(), Waker::from(count))
}
