//! Services, calls and streams: the boundary between a host and a service.
//!
//! ```text
//!   host                           core                      service ("guest")
//!   submit -------------> mailbox of the instance ---------> dispatch(Incoming)
//!      reserves a slot of the port's ring                          |  an actor, one call at a time
//!   reap  <-- the port's ring, one completion per call <-- reply, Task, panic, deadline, cancel
//!   acquire/release <-- segments of a stream <------------ StreamWriter::send
//! ```
//!
//! The modules refer to these rules:
//!
//! 1. A submission reserves the slot of its completion, so the ring always has capacity for a
//!    completion.
//! 2. A call ends exactly once. The first thread that closes the call's
//!    `open_state` delivers the outcome. Later outcomes are dropped, and the
//!    handles in them are closed.
//! 3. An instance serves one call at a time. A panic in the service's code ends that call as
//!    `guest_panicked`. The service is then dropped at once, and the other calls and stream ends
//!    that it kept also end as `guest_panicked`. The next call gets a fresh service, and the
//!    resources of the old one are stale.
//! 4. A stream's memory is bounded by its credit. A writer without credit waits, and stops as soon
//!    as the stream has ended or its reader is gone.
//! 5. A handle is a number with a generation, and belongs to one epoch of the process. A handle
//!    that is not current gives access to nothing.

mod call;
mod call_batch;
mod call_error;
mod caller_package;
mod client;
mod code;
mod completion;
mod define;
mod end_stream;
mod guest;
mod handles;
mod host_call;
mod incoming;
mod inline;
mod instance;
mod mailbox;
mod mailbox_waiters;
mod message_handles;
#[cfg(all(test, loom))]
mod models;
mod nested;
mod object;
mod open_state;
mod owned;
mod owned_streams;
mod package;
mod pending;
mod port;
mod queued_bytes;
mod resource;
mod service;
mod slab;
mod spare;
mod spare_list;
pub mod stream;
mod stream_ready;
mod sync;
mod task;
mod time_slice;
mod versions;
mod wake_fd;
mod wake_target;
mod weak_list;

pub use call::{Call, CallRef};
pub use call_error::{CallError, NoError};
pub use client::{Client, OwnedHandle, ServiceClient};
pub use code::{Code, Failure};
pub use completion::{Completion, Kind, Outcome};
pub use guest::{
    FunctionDescription, Guest, GuestCall, GuestEvent, GuestObject, GuestPackage, GuestPort,
    PackageDescription,
};
pub use handles::{close_handle, epoch};
pub use incoming::{Incoming, Refusal};
pub use inline::{Inline, InlineCall};
pub use instance::Instance;
pub use instance::guest::{
    GuestAnswers, find_record_writer, guest_answer, guest_answer_resource, guest_answer_stream,
    guest_call_check, guest_fail, guest_resource, guest_resource_new, guest_resource_take,
};
pub use instance::guest_input::{
    ImportCall, find_element_reader, guest_import_answer, guest_import_begin, guest_import_call,
    guest_reader_open,
};
pub use instance::host::{answer_host_call, host_call_deadline};
pub use instance::submit::{SubmitOptions, Submitter};
pub use object::{
    HandleCounts, Object, find, find_client, find_port, find_stream, find_stream_writer,
    handle_counts, insert, remove,
};
pub use owned::{Owned, OwnedView, ResourceClient};
pub use package::{
    ConflationKey, Method, MethodOptions, Overflow, Package, QueueLimits, StreamOptions,
};
pub use pending::{Pending, Reply};
pub use port::{Port, Reap};
pub use resource::Resource;
pub use service::Service;
pub use stream::{
    Batch, CommitOptions, Counts, ElementReader, Event, FutureReader, FutureWriter, Reason,
    RecordSpace, RecordWriter, Records, ReservedRecord, Sent, Stats, StreamError, StreamReader,
    StreamWriter, Subscription, Untyped, Upstream, UpstreamFuture, UpstreamFutureWriter,
    UpstreamWriter, Views, WriteBatch,
};
pub use task::Task;
pub use thalweg_runtime::log;
pub use versions::{FunctionSchema, check_compatible};
// Foreign code needs a larger stack than an actor has.
pub use thalweg_runtime::native;
pub use thalweg_runtime::watch_forks;
