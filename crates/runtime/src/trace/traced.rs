//! What takes a context along where nothing else does.

use std::sync::Arc;

use super::context::TraceContext;
use super::current::{enter, to_send};

/// A value and the context of who made it, to be sent through a channel.
///
/// ```
/// use thalweg_runtime::trace::{self, TraceContext, Traced, with_trace};
/// use thalweg_runtime::{channel, run, spawn};
///
/// run(|| {
///     let (sender, receiver) = channel();
///     let worker = spawn(move || {
///         let job: Traced<u32> = receiver.recv().expect("it comes");
///         job.handle(|number| (number, trace::current().expect("it came along").trace_id()))
///     });
///     let context = TraceContext::new(true);
///     let trace = context.trace_id();
///     with_trace(context, || sender.send(Traced::new(7))).expect("it waits");
///     assert_eq!(worker.join().expect("it ends"), (7, trace));
/// });
/// ```
#[derive(Clone, Debug)]
pub struct Traced<T> {
    value: T,
    context: Option<Arc<TraceContext>>,
}

impl<T> Traced<T> {
    /// With the caller's context, if it has one.
    pub fn new(value: T) -> Self {
        Self {
            value,
            context: to_send(),
        }
    }

    /// That of who made it.
    pub fn context(&self) -> Option<&TraceContext> {
        self.context.as_deref()
    }

    /// Without it.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Gives it to `f`, during which the current context is a child of the one that came along.
    pub fn handle<R>(self, f: impl FnOnce(T) -> R) -> R {
        let Self { value, context } = self;
        match context {
            Some(context) => enter(Some(Arc::new(context.child())), || f(value)),
            None => f(value),
        }
    }
}
