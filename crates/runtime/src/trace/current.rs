//! The current context. An actor's context is stored in its job, a thread's in a thread-local.
//!
//! 1. Like all state of a running job, the context belongs to the worker that runs it. The spawner
//!    of a job sets it before the job is in any queue.
//! 2. Nothing reads a context until the first one is set: `USED` costs one load.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::context::TraceContext;
use crate::task::Task;
use crate::worker;

/// Rule 2. A relaxed flag suffices: a context was set on this thread, or arrived with a message or
/// spawn that orders the flag too.
static USED: AtomicBool = AtomicBool::new(false);

type Current = Option<Arc<TraceContext>>;

thread_local! {
    static THREAD_CONTEXT: RefCell<Current> = const { RefCell::new(None) };
}

/// Sets the current context and returns the previous one.
fn replace(current: Current) -> Current {
    match worker::running() {
        Some(task) => task.replace_trace(current),
        None => THREAD_CONTEXT.with(|context| context.replace(current)),
    }
}

fn get() -> Current {
    let current = replace(None);
    let copy = current.clone();
    replace(current);
    copy
}

/// The context of the caller. `None`: there is none.
pub fn current() -> Option<TraceContext> {
    Some((*outgoing()?).clone())
}

/// Runs `f` with this context as the current one of the calling actor or thread.
pub fn with_trace<R>(context: TraceContext, f: impl FnOnce() -> R) -> R {
    enter(Some(Arc::new(context)), f)
}

/// As [`with_trace`], for a future on any executor.
///
/// ```
/// use thalweg_runtime::block_on;
/// use thalweg_runtime::trace::{self, TraceContext, in_trace};
///
/// let context = TraceContext::new(true);
/// let seen = block_on(in_trace(context.clone(), async { trace::current() }));
/// assert_eq!(seen, Some(context));
/// ```
pub async fn in_trace<F: Future>(context: TraceContext, future: F) -> F::Output {
    let context = Arc::new(context);
    let mut future = pin!(future);
    poll_fn(|task| enter(Some(Arc::clone(&context)), || future.as_mut().poll(task))).await
}

/// Runs `f` with this context as the caller's current one.
pub(crate) fn enter<R>(context: Current, f: impl FnOnce() -> R) -> R {
    struct Restore(Current);
    impl Drop for Restore {
        fn drop(&mut self) {
            replace(self.0.take());
        }
    }
    USED.store(true, Ordering::Relaxed);
    let _restore = Restore(replace(context));
    f()
}

/// Whether any context was ever set.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USED.load(Ordering::Relaxed)
}

/// The context to send with a message of the caller.
pub(crate) fn outgoing() -> Current {
    if is_used() { get() } else { None }
}

/// Gives a new actor a child of the caller's context.
#[cold]
#[inline(never)]
pub(crate) fn attach_child(task: Task) {
    let child = get().map(|context| Arc::new(context.child()));
    task.replace_trace(child);
}
