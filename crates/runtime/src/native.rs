//! Deep C stacks: a closure on its worker's own stack instead of an actor's.
//!
//! 1. The closure's frames lie on top of the worker's, so nothing else may run on that stack before it has returned: it must not be put aside
//!    (a [`Native`] section), by its own will, by preemption or by the end of the runtime.
//! 2. It is one turn of the actor: the worker sees nothing of it.

use crate::preempt::Native;
use crate::stall::{self, Pulse};
use crate::worker;

/// Runs `f` on the worker's own stack, of 8 MiB, and comes back with its value: for code of other languages and deep recursion, which an actor's
/// stack is too small for. Outside an actor it just calls `f`. It costs little more than a switch of stacks and back.
///
/// The stack is the thread's: where the program lent its thread to the runtime, by [`run`](crate::run) or [`Ready::run`](crate::Ready::run), it is
/// as large as that thread's, of which 8 MiB are usual for the main thread and 2 MiB for those of `std::thread::spawn`.
///
/// Meanwhile the actor keeps its worker. It is not preempted, [`yield_now`](crate::yield_now) and [`check!`](crate::check) do nothing, and where
/// the runtime stops it is not unwound before `f` is done. [`wait::can_park`](crate::wait::can_park) says `false`.
/// What may take long belongs into [`io::blocking`](crate::io::blocking).
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
/// let runtime = Runtime::start(Config::exact(1))?;
/// // Four of the 8 MiB, where the actor itself has one.
/// let actor = runtime.handle().spawn(|| native(|| depth(4_000)));
/// assert_eq!(actor.join().unwrap(), 4_000);
/// # Ok::<(), thalweg_runtime::StartError>(())
/// ```
///
/// # Panics
/// With `f`'s own panic. And in `f`, if that must wait: parks, receives from an empty channel, joins an actor that has not ended. The panic is
/// raised where it was to wait and begins with `would park`; code of another language that calls back into Rust must be kept from it as from any panic.
pub fn native<R>(f: impl FnOnce() -> R) -> R {
    let running = worker::current().and_then(|worker| {
        let fiber = worker.running()?.header().fiber.get()?;
        Some((worker, fiber))
    });
    let Some((worker, fiber)) = running else {
        return f();
    };
    let Some(section) = Native::begin() else {
        // It is there already.
        return f();
    };
    let left = Left::begin(&worker.pulse);
    // SAFETY: this is what runs on that fiber, which its worker keeps; and rule 1.
    let result = unsafe { fiber.as_ref().on_worker_stack(f) };
    drop(left);
    drop(section);
    result
}

/// The actor is on its worker's stack: who asks where it is finds here where it left its own.
struct Left<'a>(&'a Pulse);

impl<'a> Left<'a> {
    fn begin(pulse: &'a Pulse) -> Self {
        pulse.leave_at(stall::stack_pointer());
        Self(pulse)
    }
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.leave_at(0);
    }
}
