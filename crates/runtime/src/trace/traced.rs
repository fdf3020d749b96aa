//! Passes a context through a channel.

use std::sync::Arc;

use super::current::{enter, outgoing};
use crate::trace_context::TraceContext;

/// A value with its creator's context, to be sent through a channel.
///
/// ```
/// use thalweg_runtime::trace::{self, TraceContext, Traced, with_trace};
/// use thalweg_runtime::{channel, run, spawn};
///
/// run(|| {
///     let (sender, receiver) = channel();
///     let worker = spawn(move || {
///         let job: Traced<u32> = receiver.recv().expect("the sender sends a job");
///         job.handle(|number| (number, trace::current().expect("the job has a context").trace_id()))
///     });
///     let context = TraceContext::new(true);
///     let trace = context.trace_id();
///     with_trace(context, || sender.send(Traced::new(7))).expect("the worker receives");
///     assert_eq!(worker.join().expect("the worker returns"), (7, trace));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Traced<T> {
    value: T,
    context: Option<Arc<TraceContext>>,
}

impl<T> Traced<T> {
    /// Adds the caller's context, if it has one.
    pub fn new(value: T) -> Self {
        Self {
            value,
            context: outgoing(),
        }
    }

    /// The creator's context.
    pub fn context(&self) -> Option<&TraceContext> {
        self.context.as_deref()
    }

    /// The value without the context.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Passes the value to `f`, which runs with a child of the creator's context as the current
    /// one.
    pub fn handle<R>(self, f: impl FnOnce(T) -> R) -> R {
        let Self { value, context } = self;
        match context {
            Some(context) => enter(Some(Arc::new(context.child())), || f(value)),
            None => f(value),
        }
    }
}
