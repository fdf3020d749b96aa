//! Actors against tokio's tasks: the same work on both sides, on one worker and on several.
//!
//! | parameter | value | meaning |
//! | --- | --- | --- |
//! | `lifetime` | `cold` | the time includes the runtime's start and stop: one runtime per run |
//! | | `warm` | the main actor or task takes the time, after it has done the same work once, untimed |
//! | `workers` | 1 | the peer is `tokio_current_thread`; our runtime also runs on the thread that starts it |
//! | | 2, .. | the peer is `tokio_multi_thread`; its main future is a task, so it runs on a worker |
//! | `drivers` | `time` | tokio drives only timers, like our runtime |
//! | | `all` | also sockets, as with `#[tokio::main]`: `current_thread` then writes to an eventfd and polls it whenever the main future is woken, and a start creates both |
//! | `allocator` | `system` | both sides use the system's allocator |
//! | | `preempting` | both use our allocator, which wraps the system's |
//! | `hook` | `silent` | the panic hook prints nothing, on either side |
//! | | `default` | the hook is the standard library's, and standard error is /dev/null |
//!
//! A workload is a [`Pair`](pair::Pair): the work of our actors, the work of tokio's tasks
//! (`thalweg_peers::tokio_runtime`), and the result that both must produce. [`driver`] times it: a
//! sample consists of enough runs, and the result of each run is checked.
//!
//! Our runtime's own knobs come from the environment, `THALWEG_TIMESLICE` and
//! `THALWEG_ALLOC_INTERVAL`, and are recorded among the result's knobs. Any other variable that the
//! runtime reads is refused. `allocator=preempting` measures in a separate program,
//! `thalweg-bench-preempting`, whose allocator has the preemption points that the interval counts;
//! `sweep` uses it. The process of a cell runs with `RUST_BACKTRACE=0`: on either side a panic with
//! a backtrace takes many times longer, and backtraces are not part of the comparison.

pub mod actors;
pub mod channels;
pub mod computing;
pub mod driver;
pub mod echo;
pub mod failing;
pub mod living;
pub mod memory;
pub mod pair;
pub mod panics;
pub mod point;
pub mod recursion;
pub mod skynet;
pub mod spawning;
pub mod supervision;
pub mod timers;
pub mod waking;
pub mod yielding;
