//! The current context of the caller.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use crate::trace_context::TraceContext;
use crate::worker::trace::{Current, get, is_used, replace, set_used};

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
    set_used();
    let _restore = Restore(replace(context));
    f()
}

/// The context to send with a message of the caller.
pub(crate) fn outgoing() -> Current {
    if is_used() { get() } else { None }
}
