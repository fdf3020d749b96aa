//! Native sections: a closure that needs a deep stack runs on its worker's stack instead of the
//! actor's.
//!
//! 1. The closure's frames are on top of the worker's frames, so no other task may run on that
//!    stack before the closure returns. The actor must not be suspended (a [`Native`] section),
//!    neither by its own wait, nor by preemption, nor by the end of the runtime.
//! 2. The section is part of one run of the actor. The worker does not notice it.

use crate::sections::Native;
use crate::stall::{self, WorkerStatus};
use crate::worker;

/// Runs `f` on the worker's own stack of 8 MiB and returns its value. Use it for code of other
/// languages and for deep recursion, for which an actor's stack is too small. Outside an actor it
/// only calls `f`. It costs little more than two stack switches.
///
/// The stack is that of the worker's thread. If the program lends its thread to the runtime, by
/// [`run`](crate::run) or [`CheckedConfig::run`](crate::CheckedConfig::run), the size is that of the lent thread:
/// usually 8 MiB for the main thread and 2 MiB for threads of `std::thread::spawn`.
///
/// While `f` runs, the actor keeps its worker. It is not preempted; [`yield_now`](crate::yield_now)
/// and [`check!`](crate::check) do nothing; and if the runtime stops, the actor is not unwound
/// before `f` returns. [`wait::can_park`](crate::wait::can_park) returns `false`. If the work can
/// block, use [`io::blocking`](crate::io::blocking) instead.
///
/// ```
/// use thalweg_runtime::{Config, Runtime, native};
///
/// fn depth(n: u32) -> u32 {
///     let mut frame = [n; 256];
///     std::hint::black_box(&mut frame);
///     if n == 0 { 0 } else { 1 + depth(frame[0] - 1) }
/// }
///
/// let runtime = Runtime::start(Config::with_workers(1))?;
/// // Four of the 8 MiB, where the actor itself has one.
/// let actor = runtime.handle().spawn(|| native(|| depth(4_000)));
/// assert_eq!(actor.join().unwrap(), 4_000);
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
///
/// # Panics
/// If `f` panics. `f` itself panics if it has to wait: if it parks, receives from an empty channel,
/// or joins an actor that has not ended. The panic message begins with `would park`. As with any
/// panic, do not let it unwind through frames of another language.
pub fn native<R>(f: impl FnOnce() -> R) -> R {
    let running = worker::current().and_then(|worker| {
        let fiber = worker.running()?.header().fiber.get()?;
        Some((worker, fiber))
    });
    let Some((worker, fiber)) = running else {
        return f();
    };
    let Some(section) = Native::begin() else {
        // The actor is in a native section already.
        return f();
    };
    let on_worker_stack = OnWorkerStack::begin(&worker.status);
    // SAFETY: the caller is the task that runs on that fiber, which its worker keeps alive; and
    // rule 1.
    let result = unsafe { fiber.as_ref().on_worker_stack(f) };
    drop(on_worker_stack);
    drop(section);
    result
}

/// While this exists, the actor is on its worker's stack. It records where the actor left its own
/// stack, for the stall watcher.
struct OnWorkerStack<'a>(&'a WorkerStatus);

impl<'a> OnWorkerStack<'a> {
    fn begin(status: &'a WorkerStatus) -> Self {
        status.set_actor_stack_pointer(stall::stack_pointer());
        Self(status)
    }
}

impl Drop for OnWorkerStack<'_> {
    fn drop(&mut self) {
        self.0.set_actor_stack_pointer(0);
    }
}
