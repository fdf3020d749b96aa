//! Stall reports: which actors keep their worker, for how long, and where in their code they are.
//!
//! An actor runs until it waits or reaches a preemption point (see [`preempt`](crate::preempt)). An
//! actor that does neither keeps its worker, and every task that waits for that worker. Such an
//! actor is not stopped, but reported: on standard error, or to the [hook](set_hook).
//! [`Config::stall`](crate::Config::stall) sets the limit. The default is 100 ms in a debug build;
//! in a release build reports are off, until the program or `THALWEG_STALL` enables them. Stall
//! reports require Linux on x86-64 or aarch64.
//!
//! ```text
//! thalweg: actor 7 (parser) has kept worker 0 for 112 ms:
//!    0: my_service::parser::skip_whitespace
//!       at src/parser.rs:41
//!    1: my_service::parser::parse
//!       at src/parser.rs:97
//! ```
//!
//! To fix a stall, use [`check!`](crate::check) in a loop that computes,
//! [`io::blocking`](crate::io::blocking) for a call that blocks, or a lock or channel of this crate
//! instead of one that blocks the whole thread.
//!
//! # Effects on the process
//!
//! Each runtime has one thread for this, `tw-watcher`, which sleeps while all workers sleep. When
//! the first stall is reported, it installs a handler for SIGURG (whose default is to be ignored),
//! and sends that signal to the worker's thread. If the actor is in a system call, the call
//! continues; where `SA_RESTART` does not help, as with `poll`, it ends with `EINTR`. If the
//! application, or the runtime of another language such as Go, has a handler for SIGURG, that
//! handler stays, and reports have no frames ([`NoFrames::SignalTaken`]). This is checked before
//! each report. The handler of this crate passes each signal that is not its own to the handler
//! that it replaced. It is never removed, because a handler that is installed later may call it.

// The rules:
//
// 1. A worker publishes its tick and its actor by plain stores (`status`), whether or not reports
//    are enabled. Nothing else is on the worker's path.
// 2. The watcher checks the workers four times per limit (`watcher/detector`). If all workers sleep
//    from one check to the next, the watcher sleeps too, without a deadline. It publishes that it
//    sleeps, executes a full fence, and checks once more. A worker that wakes up publishes that,
//    executes a full fence, and wakes the watcher if it sleeps (`watcher`).
// 3. To find out what an actor is doing, the watcher sends a signal to its thread. The handler
//    copies the registers, the actor's name and the live part of the stack into preallocated memory
//    (`watcher/sample`). It takes no lock, does not allocate, does not walk the stack, and reads no
//    memory except that between the stack pointer and the end of a stack that is known to exist.
// 4. The watcher walks the copy (`watcher/frames`). Each address that it reads is looked up in the
//    copy, so a missing or wrong unwind table only ends the walk.

mod report;
mod status;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, loom, thalweg_threads))
))]
mod watcher;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, loom, thalweg_threads))
)))]
#[path = "unsupported.rs"]
mod watcher;

pub use report::{Frame, NoFrames, Stall, set_hook, take_hook};
pub(crate) use status::WorkerStatus;
pub(crate) use watcher::{IS_SUPPORTED, WatchedWorker, Watcher, stack_pointer};
