//! Unwinding the running actor: a signal ends it, its scope is cancelled, or its runtime stops.

use super::{current, running};
use crate::reason::{CancelUnwind, ExitUnwind, StopUnwind};
use crate::sections;

/// Unwinds the running actor, unless it is unwinding already (a second unwind would end the
/// process) or is in a native section (an unwind must not cross frames of another language).
#[cold]
#[inline(never)]
pub(crate) fn unwind_if_possible() {
    if !std::thread::panicking() && !sections::is_native() {
        if let Some(worker) = current() {
            worker.count_stop_notice();
        }
        std::panic::resume_unwind(Box::new(StopUnwind));
    }
}

/// Whether the running actor is panicking. It must not be suspended then: `std` counts panics per
/// thread, and the next panic on this thread would end the process.
pub(super) fn is_unwinding() -> bool {
    std::thread::panicking()
}

/// Unwinds the running actor if a signal ends it or its scope is cancelled. Does nothing during an
/// unwinding, where a second one would abort the process, and in native code, whose frames cannot
/// be unwound.
#[cold]
pub(crate) fn raise_if_due() {
    let Some(task) = running() else {
        return;
    };
    let can_unwind =
        !task.header().ending.get() && !std::thread::panicking() && !sections::is_native();
    if !can_unwind || !task.is_interrupted() {
        return;
    }
    if task.must_unwind() {
        task.header().raised.set(true);
        std::panic::resume_unwind(Box::new(ExitUnwind(task.exit_reason())));
    }
    std::panic::resume_unwind(Box::new(CancelUnwind));
}

/// Runs the destructors of an actor that ends. As during an unwinding, waits fail if a signal ends
/// the actor, and no further unwinding is raised. `f` must catch its own panics.
pub(crate) fn ending<R>(f: impl FnOnce() -> R) -> R {
    let task = running();
    let set = |ending| {
        if let Some(task) = task {
            task.header().ending.set(ending);
        }
    };
    set(true);
    let result = f();
    set(false);
    result
}
