//! Actors that keep their worker: which one, for how long, and where it is.
//!
//! An actor runs until it waits or comes to a point at which others are let (see [`preempt`](crate::preempt)). One that does neither keeps its worker, and
//! all who wait there. It is not stopped, but reported: on standard error, or to the [hook](set_hook). [`Config::stall`](crate::Config::stall) says
//! from when on: 100 ms in a debug build; in a release build it is off, until the program or `THALWEG_STALL` switches it on. Linux on x86-64 and
//! aarch64 only.
//!
//! ```text
//! thalweg: actor 7 (parser) has kept worker 0 for 112 ms:
//!    0: my_service::parser::skip_whitespace
//!       at src/parser.rs:41
//!    1: my_service::parser::parse
//!       at src/parser.rs:97
//! ```
//!
//! What is done about it: [`check!`](crate::check) in a loop that computes, [`io::blocking`](crate::io::blocking) for a call that blocks, a lock or a
//! channel of ours in the place of one that puts the whole thread to sleep.
//!
//! # What it does to the process
//! One thread a runtime, `tw-watcher`, which sleeps while all workers do. When the first stall is reported it takes the handler of SIGURG, whose default is to be ignored, and sends
//! that signal to the worker's thread: a system call that the actor is in goes on, or ends with `EINTR` where `SA_RESTART` does not help, as `poll`
//! does. If the application, or another language's runtime such as Go's, has a handler for SIGURG, that handler stays, and reports have no frames
//! ([`NoFrames::SignalTaken`]). That is looked at before each report. The handler of this crate calls the one that it replaced for each signal that is not its own, and is
//! never removed: a handler that is installed later may call it.

// The rules:
//
// 1. A worker says by plain stores which turn it is in and whose (`pulse`). It does so whether anybody looks or not: nothing else is on its path.
// 2. The watcher looks four times a limit (`watcher/look`). If all workers sleep from one look to the next it sleeps too, without a deadline. It says so,
//    passes a full fence and looks once more; a worker that gets up says so, passes a full fence, and wakes the watcher if that sleeps (`watcher`).
// 3. What an actor is doing is asked by a signal to its thread. The handler copies registers, the actor's name and the live part of the stack to
//    where room is already (`watcher/sample`). It takes no lock, allocates nothing, walks nothing, and reads no memory but that between the stack pointer and the
//    end of a stack that is known to be there.
// 4. The watcher walks the copy (`watcher/frames`). Each address that it reads there is looked up in the copy: a table that is wrong, or none, ends the walk.

mod pulse;
mod report;
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
#[path = "nobody.rs"]
mod watcher;

pub(crate) use pulse::Pulse;
pub use report::{Frame, NoFrames, Stall, set_hook, take_hook};
pub(crate) use watcher::{IS_KNOWN, Watched, Watcher, stack_pointer};
