//! Actors against tokio's tasks: the same work on both sides, on one worker and on several.
//!
//! | parameter | value | what it means |
//! | --- | --- | --- |
//! | `lifetime` | `cold` | the runtime's start and stop are timed, too: a runtime a run |
//! | | `warm` | timed by the main actor or task, after it has done the same once, untimed |
//! | `workers` | 1 | the peer is `tokio_current_thread`, ours runs on the thread that starts it, too |
//! | | 2, .. | the peer is `tokio_multi_thread`; its main future is a task, so that it runs on a worker |
//! | `drivers` | `time` | tokio looks after timers only, as our runtime does |
//! | | `all` | after sockets, too, as `#[tokio::main]` has it: then its `current_thread` writes to an eventfd and polls it whenever the main future is woken, and a start makes both |
//! | `allocator` | `system` | both sides have the system's |
//! | | `preempting` | both have ours around it |
//! | `hook` | `silent` | the panic hook prints nothing, on either side |
//! | | `default` | it is the standard library's, and standard error is /dev/null |
//!
//! A workload is a [`Pair`](pair::Pair): what our actors do, what tokio's tasks do (`thalweg_peers::tokio_runtime`), and what both must
//! have found. [`driver`] times it: a sample is as many runs as last long enough, and what each run found is checked.
//!
//! Our runtime's own knobs come from the environment, `THALWEG_TIMESLICE` and `THALWEG_ALLOC_INTERVAL`, and stand among the result's knobs; any other
//! variable that it would hear is refused. `allocator=preempting` measures in a program of its own, `thalweg-bench-preempting`, whose
//! allocator has the points that the interval counts: it is what `sweep` sets. Of `RUST_BACKTRACE` a cell's process
//! sees 0: a panic with a backtrace costs many times one without, on either side, and that is not what is compared.

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
