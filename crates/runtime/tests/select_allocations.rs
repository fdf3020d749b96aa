//! `select!` does not allocate after a worker's first wait.
//!
//! A process of its own: a global allocator counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thalweg_queue::mpsc;
use thalweg_runtime::{Config, init, select, sleep_async, spawn};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system allocator; counting does not affect it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_loop_of_selects_over_channels_and_a_sleep_allocates_nothing() {
    const ROUNDS: u32 = 1_000;
    let allocated = init(Config::with_workers(1)).unwrap().run(|| {
        let (ask, asked) = mpsc::channel::<u32>(4).unwrap();
        let (_open, never) = mpsc::channel::<u32>(4).unwrap();
        let (answer, answers) = mpsc::channel::<u32>(4).unwrap();
        let echo = spawn(move || {
            while let Ok(n) = select! {
                n = asked.recv_async() => n,
                n = never.recv_async() => n,
                () = sleep_async(Duration::from_secs(60)) => unreachable!(),
            } {
                answer.send(n).unwrap();
            }
        });
        let mut round = |n| {
            ask.send(n).unwrap();
            let came = select! {
                came = answers.recv_async() => came.unwrap(),
                () = sleep_async(Duration::from_secs(60)) => unreachable!(),
            };
            assert_eq!(came, n);
        };
        // These rounds create the lanes, the lists and everything that is cached.
        (0..ROUNDS).for_each(&mut round);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        (0..ROUNDS).for_each(&mut round);
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        drop(ask);
        echo.join().unwrap();
        allocated
    });
    // The test harness may allocate meanwhile; that is not per `select!`.
    assert!(
        allocated < 20,
        "{allocated} allocations in {ROUNDS} rounds of two selects"
    );
}
