//! A worker keeps the memory of a burst of actors for the next one, until it is idle.
//!
//! A process of its own: a global allocator counts the allocations of the whole process.
#![cfg(not(any(miri, thalweg_threads)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use thalweg_runtime::{Config, JoinHandle, Runtime, spawn};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system allocator; counting does not affect it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ACTORS: usize = 2_000;

/// Less than an actor takes.
const BYTES: usize = 200;

/// Exceeded only by a failure, not by a machine under load.
const LONG: Duration = Duration::from_secs(120);

/// The number of allocations.
fn burst() -> usize {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let actors: Vec<JoinHandle<()>> = (0..ACTORS).map(|_| spawn(|| ())).collect();
    actors.into_iter().for_each(|actor| actor.join().unwrap());
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn memory_of_a_burst_is_kept_until_the_worker_is_idle() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let bursts = || ([burst(), burst()], LIVE_BYTES.load(Ordering::Relaxed));
    let ([first, second], kept) = runtime.handle().spawn(bursts).join().unwrap();
    assert!(first >= ACTORS, "{first} allocations");
    assert!(second < ACTORS / 10, "{second} allocations");

    let began = Instant::now();
    while LIVE_BYTES.load(Ordering::Relaxed) + ACTORS * BYTES > kept {
        assert!(began.elapsed() < LONG, "{kept} bytes are kept");
        sleep(Duration::from_millis(10));
    }
    runtime.shutdown().unwrap();
}
