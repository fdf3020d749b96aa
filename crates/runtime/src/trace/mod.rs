//! Trace contexts of the W3C: which request an actor works for. They are passed along with messages
//! between actors.
//!
//! A request from outside has a `traceparent` header. [`TraceContext::from_headers`] reads it,
//! [`with_trace`] makes it current, and from there it is propagated automatically:
//!
//! | operation | context in the receiver |
//! | --- | --- |
//! | `spawn`, and the actors of a scope | a child of the spawner's context, for the life of the actor |
//! | `cast`, `call`, `call_async`, `send_after` | in the handler of the message, a child of the sender's context at the time of sending |
//! | a behaviour actor between two messages, a child of a supervisor | none |
//! | `cast_async`, a channel | none; for a channel, use [`Traced`] |
//! | a thread, a task | set by [`with_trace`] in a thread and by [`in_trace`] in a task |
//!
//! A child has the same trace, flags and state, and a span id of its own, which is created at each
//! hop. Each handler can therefore report one span, whose [parent](TraceContext::parent) is the
//! span of the message's sender. This module reports nothing itself: read [`current`] to log or
//! export a span.
//!
//! In a program that uses no context, each of these operations costs one load and a branch. A
//! message without a context costs nothing more.
//!
//! ```
//! use thalweg_runtime::trace::{self, TraceContext, with_trace};
//! use thalweg_runtime::{Actor, Context, Handler, run, start};
//!
//! struct Search;
//! impl Actor for Search {}
//! impl Handler<&'static str> for Search {
//!     type Reply = String;
//!     fn handle(&mut self, _: &'static str, _: &Context<'_, Self>) -> String {
//!         // To whatever is asked next.
//!         trace::current().expect("the caller has one").traceparent()
//!     }
//! }
//!
//! run(|| {
//!     let search = start(Search);
//!     let incoming = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")?;
//!     let outgoing_header = with_trace(incoming.clone(), || search.call("needle"))?;
//!     let outgoing_header = TraceContext::parse(&outgoing_header)?;
//!     assert_eq!(outgoing_header.trace_id(), incoming.trace_id());
//!     assert_ne!(outgoing_header.span_id(), incoming.span_id());
//!     assert!(trace::current().is_none());
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod current;
mod traced;

pub use self::current::{current, in_trace, with_trace};
pub(crate) use self::current::{enter, outgoing};
pub use self::traced::Traced;
pub use crate::trace_context::{
    SpanId, TraceContext, TraceError, TraceId, TraceState, TraceStateError,
};
pub(crate) use crate::worker::trace::is_used;
