//! Where the current trace context is stored. An actor's context is in its task, a thread's in a
//! thread-local.
//!
//! 1. Like all state of a running task, the context belongs to the worker that runs it. The spawner
//!    of a task sets it before the task is in any queue.
//! 2. Nothing reads a context until the first one is set: `USED` costs one load.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::task::Task;
use crate::trace_context::TraceContext;

/// Rule 2. A relaxed flag suffices: a context was set on this thread, or arrived with a message or
/// spawn that orders the flag too.
static USED: AtomicBool = AtomicBool::new(false);

pub(crate) type Current = Option<Arc<TraceContext>>;

thread_local! {
    static THREAD_CONTEXT: RefCell<Current> = const { RefCell::new(None) };
}

/// Sets the current context and returns the previous one.
pub(crate) fn replace(current: Current) -> Current {
    match super::running() {
        Some(task) => task.replace_trace(current),
        None => THREAD_CONTEXT.with(|context| context.replace(current)),
    }
}

pub(crate) fn get() -> Current {
    let current = replace(None);
    let copy = current.clone();
    replace(current);
    copy
}

/// Whether any context was ever set.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USED.load(Ordering::Relaxed)
}

/// Called before the first context is set.
pub(crate) fn set_used() {
    USED.store(true, Ordering::Relaxed);
}

/// Gives a new actor a child of the caller's context.
#[cold]
#[inline(never)]
pub(crate) fn attach_child(task: Task) {
    let child = get().map(|context| Arc::new(context.child()));
    task.replace_trace(child);
}
