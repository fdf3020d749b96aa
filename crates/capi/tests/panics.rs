//! A panic where there is no memory for its backtrace. In a process of its own: its allocator has no large blocks.
#![cfg(not(miri))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thalweg_capi::{Export, Library};
use thalweg_port::{Bounds, Incoming, Package, Service};

/// Blocks of so many bytes and more are refused.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Limited;

// SAFETY: it does what the system's does, or nothing.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LIMIT.load(Ordering::Relaxed) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
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
        bounds: Bounds::DEFAULT,
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

/// In the child, which a backtrace is asked of.
const CHILD: &str = "THALWEG_TEST_CHILD";

fn panic_without_memory() {
    let _ = LIBRARY.table();
    let panics = || {
        // What symbolising takes is more, and what printing takes is less.
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
                panic!("the child hangs");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    assert!(status.success(), "{status}");
}
