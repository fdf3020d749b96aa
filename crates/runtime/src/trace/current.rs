//! The current context: an actor's lies in its job, a thread's in the thread.
//!
//! 1. Of an actor it is the running worker's, as all that is a job's while it runs. Who makes a job fills its place before it is in any queue.
//! 2. Until one is made current for the first time nobody looks: `USED` is one load.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::context::TraceContext;
use crate::task::Task;
use crate::worker;

/// Rule 2. It is a hint: who made one current has written it on this thread, or handed on what it made.
static USED: AtomicBool = AtomicBool::new(false);

type Current = Option<Arc<TraceContext>>;

thread_local! {
    static OF_THREAD: RefCell<Current> = const { RefCell::new(None) };
}

/// Puts another one there. What was before.
fn replace(current: Current) -> Current {
    match worker::running() {
        Some(task) => task.replace_trace(current),
        None => OF_THREAD.with(|place| place.replace(current)),
    }
}

fn get() -> Current {
    let current = replace(None);
    let copy = current.clone();
    replace(current);
    copy
}

/// The context of what the caller works for. `None`: there is none.
pub fn current() -> Option<TraceContext> {
    Some((*to_send()?).clone())
}

/// While `f` runs, this is the current context of the actor, or thread, that calls it.
pub fn with_trace<R>(context: TraceContext, f: impl FnOnce() -> R) -> R {
    enter(Some(Arc::new(context)), f)
}

/// The same for a future, wherever it is polled.
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

/// While `f` runs, that is the caller's.
pub(crate) fn enter<R>(context: Current, f: impl FnOnce() -> R) -> R {
    struct Back(Current);
    impl Drop for Back {
        fn drop(&mut self) {
            replace(self.0.take());
        }
    }
    USED.store(true, Ordering::Relaxed);
    let _back = Back(replace(context));
    f()
}

/// Whether anybody may have one.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    USED.load(Ordering::Relaxed)
}

/// What goes with a message of the caller's.
pub(crate) fn to_send() -> Current {
    if is_used() { get() } else { None }
}

/// A new actor of the caller's gets a child of its context.
#[cold]
#[inline(never)]
pub(crate) fn give_child(task: Task) {
    let child = get().map(|context| Arc::new(context.child()));
    task.replace_trace(child);
}
