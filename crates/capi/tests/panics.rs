//! A panic without memory for its backtrace. A test program of its own, because it replaces the
//! global allocator.
#![cfg(not(miri))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thalweg_capi::{Export, Library};
use thalweg_port::{Incoming, Package, QueueLimits, Service};

/// Allocations of at least this many bytes are refused.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Limited;

// SAFETY: it calls the system allocator, or returns null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LIMIT.load(Ordering::Relaxed) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

struct Nothing;

impl Service for Nothing {
    const PACKAGE: &'static Package = &Package {
        name: "test:nothing",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[],
    };

    fn dispatch(&mut self, _: Incoming) {}
}

struct Exported;

impl Export for Exported {
    type Service = Nothing;

    fn make() -> Nothing {
        Nothing
    }
}

static LIBRARY: Library = Library::new::<Exported>();

/// Set in the child process, which panics with `RUST_BACKTRACE=1`.
const CHILD: &str = "THALWEG_TEST_CHILD";

fn panic_without_memory() {
    let _ = LIBRARY.table();
    let panics = || {
        // Symbolising needs larger blocks, and printing only smaller ones.
        LIMIT.store(2048, Ordering::Relaxed);
        panic!("on purpose")
    };
    let caught = std::panic::catch_unwind(panics);
    LIMIT.store(usize::MAX, Ordering::Relaxed);
    assert!(caught.is_err());
}

#[test]
fn panic_without_memory_for_its_backtrace_returns() {
    if std::env::var_os(CHILD).is_some() {
        return panic_without_memory();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panic_without_memory_for_its_backtrace_returns"])
        .arg("--nocapture")
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(60) => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the child process hangs");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{status}");
}
