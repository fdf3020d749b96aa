//! Measures the heap memory of channels and actors with this program's own counting allocator. It
//! is a separate program, so that no other workload pays for the counting.
//!
//! ```text
//! thalweg-bench-memory channels                  one JSON line per case
//! thalweg-bench-memory actors SUBJECT ACTORS     one JSON line
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};

mod actors;
mod channels;

/// The system's allocator with a count of the live bytes.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

fn count(bytes: usize, sign: i64) {
    LIVE.fetch_add(sign * bytes as i64, Ordering::Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The number of live bytes.
fn live() -> i64 {
    LIVE.load(Ordering::Relaxed)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = match arguments[..] {
        ["channels"] => {
            channels::all();
            Ok(())
        }
        ["actors", subject, actors] => actors::one(subject, actors),
        _ => Err("thalweg-bench-memory channels | actors SUBJECT ACTORS".to_owned()),
    };
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
