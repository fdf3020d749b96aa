//! Services, calls and streams: the boundary between who serves and who calls.
//!
//! ```text
//!   host                                core                              service ("guest")
//!   submit ------------------> mailbox of the instance ------------> dispatch(Incoming)
//!      a slot of the port's ring is reserved                             |  an actor, one call at a time
//!   reap  <------- the port's ring, one outcome a call <---------- reply, Task, panic, deadline, cancel
//!   acquire/release <------- segments of a stream <--------------- StreamWriter::send
//! ```
//!
//! The rules, to which the modules refer:
//!
//! 1. A submission reserves its completion's slot, so a completion always finds room.
//! 2. A call ends exactly once: whoever sets its `ended` first delivers the ending; later ones are dropped, and the
//!    handles in them closed.
//! 3. An instance serves one call at a time. A panic in the service's code ends that call as `guest_panicked`; the service is dropped at
//!    once, and what it kept of other calls (calls, ends of streams) ends as `guest_panicked`, too. The next call finds a fresh
//!    instance, and the resources of the one before are stale.
//! 4. A stream's memory is bounded by its credit; a writer without credit waits, and stops as soon as the stream
//!    has ended or its reader is gone.
//! 5. A handle is a number with a generation and the process's epoch; nothing is reached through one that is
//!    not current.

mod call;
mod call_batch;
mod client;
mod code;
mod completion;
mod handles;
mod held;
mod host;
mod incoming;
mod inline;
mod instance;
mod mailbox_waiters;
#[cfg(all(test, loom))]
mod models;
mod nested;
mod notice;
mod open_state;
mod pending;
mod port;
mod queued_bytes;
mod resource;
mod service;
mod slab;
pub mod stream;
mod sync;
mod task;
mod time_slice;
mod versions;
mod weak_list;

pub use call::{Call, CallRef};
pub use client::{Client, Own};
pub use code::{Code, Failure};
pub use completion::{Completion, Kind, Outcome};
pub use handles::{Object, close_handle, epoch, find, insert, remove};
pub use held::{Held, HeldView, ResourceClient};
pub use host::{answer_host_call, host_call_deadline};
pub use incoming::{Incoming, Refusal};
pub use inline::{Inline, InlineCall};
pub use instance::Instance;
pub use instance::submit::{SubmitOptions, Submitter};
pub use pending::{CallError, NoError, Pending, Reply};
pub use port::{Port, Reap};
pub use resource::Resource;
pub use service::{Bounds, Key, Method, MethodOptions, Package, Policy, Service, StreamOptions};
pub use stream::{
    Batch, Counts, Event, FutureReader, FutureWriter, Reason, Records, Sent, Stats, StreamError,
    StreamReader, StreamWriter, Subscription, Untyped, Upstream, UpstreamFuture,
    UpstreamFutureWriter, UpstreamWriter, Views, WriteBatch,
};
pub use task::Task;
pub use versions::{FunctionSchema, check_compatible};
// For code of other languages, which an actor's stack is too small for.
pub use thalweg_runtime::native;
