//! Which request it is that an actor works for: the trace context of the W3C, which goes with what actors say to each other.
//!
//! A request that comes from outside has a header `traceparent`. [`TraceContext::from_headers`] reads it, [`with_trace`] makes it current, and from there it goes
//! along by itself:
//!
//! | what | the context there |
//! | --- | --- |
//! | `spawn`, and the actors of a scope | a child of the spawner's, for as long as the actor lives |
//! | `cast`, `call`, `call_async`, `send_after` | in the handler of that message, a child of the sender's at the moment of sending |
//! | a behaviour actor between two messages, a child of a supervisor | none |
//! | a channel | none: [`Traced`] takes it along |
//! | a thread, a task | the thread's own, by [`with_trace`]; a task's by [`in_trace`] |
//!
//! A child has the same trace, flags and state, and a span of its own, made at each hop: so each handler can report one span, and name that of who sent the message as
//! its [parent](TraceContext::parent). Nothing is reported from here: [`current`] is for whoever logs or exports.
//!
//! A program that has no context pays for one load and a branch at each of these places, and nothing for messages that carry none.
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
//!     let came = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")?;
//!     let goes = with_trace(came.clone(), || search.call("needle"))?;
//!     let goes = TraceContext::parse(&goes)?;
//!     assert_eq!(goes.trace_id(), came.trace_id());
//!     assert_ne!(goes.span_id(), came.span_id());
//!     assert!(trace::current().is_none());
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod current;
mod state;
mod traced;

pub use self::context::{SpanId, TraceContext, TraceError, TraceId};
pub use self::current::{current, in_trace, with_trace};
pub(crate) use self::current::{enter, give_child, is_used, to_send};
pub use self::state::{StateError, TraceState};
pub use self::traced::Traced;
