//! The objects that hosts use by handle.

use std::fmt;
use std::sync::Arc;

use crate::call::{CallCore, CallRef};
use crate::code::Failure;
use crate::guest::GuestPort;
use crate::handles::{self, Content, Entry, Kind, Lent};
use crate::instance::Instance;
use crate::instance::guest_input::ImportCall;
use crate::port::Port;
use crate::resource::Resource;
use crate::stream::{ElementReader, KeptBatch, RecordWriter, StreamCore, UpstreamCore};

/// What a handle can refer to.
#[derive(Clone)]
pub enum Object {
    /// A completion queue.
    Port(Arc<Port>),
    /// A client's instance of a service.
    Client(Arc<Instance>),
    /// A call that has not ended.
    Call(CallRef),
    /// The reading end of a stream.
    Stream(Arc<StreamCore>),
    /// A resource: an object of the service.
    Resource(Resource),
    /// The memory of a batch.
    KeptBatch(Arc<KeptBatch>),
    /// The reading end of a stream that the caller sends to a service.
    Upstream(Arc<UpstreamCore>),
    /// The caller's writing end of such a stream.
    UpstreamWriter(Arc<UpstreamCore>),
    /// A guest's writing end of a stream.
    RecordWriter(Arc<RecordWriter>),
    /// Where a guest takes its events.
    GuestPort(Arc<GuestPort>),
    /// A guest's reading end of a stream parameter.
    ElementReader(Arc<ElementReader>),
    /// A guest's call of its host.
    ImportCall(Arc<ImportCall>),
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl Object {
    /// The kind of object for error messages: `a port`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Port(_) => Kind::Port,
            Self::Client(_) => Kind::Client,
            Self::Call(_) => Kind::Call,
            Self::Stream(_) => Kind::Stream,
            Self::Resource(_) => Kind::Resource,
            Self::KeptBatch(_) => Kind::KeptBatch,
            Self::Upstream(_) => Kind::Upstream,
            Self::UpstreamWriter(_) => Kind::UpstreamWriter,
            Self::RecordWriter(_) => Kind::RecordWriter,
            Self::GuestPort(_) => Kind::GuestPort,
            Self::ElementReader(_) => Kind::ElementReader,
            Self::ImportCall(_) => Kind::ImportCall,
        }
        .name()
    }

    /// `None`: it is a call that has ended meanwhile.
    #[inline]
    fn of_entry(entry: &Entry, handle: u64) -> Option<Self> {
        let kind = entry.kind;
        match kind {
            Kind::Port => entry.get(kind).map(Self::Port),
            Kind::Client => entry.get(kind).map(Self::Client),
            Kind::Call => return CallRef::of_entry(entry, handle).map(Self::Call),
            Kind::Stream => entry.get(kind).map(Self::Stream),
            Kind::Resource => entry.get(kind).map(|inner| Self::Resource(Resource(inner))),
            Kind::KeptBatch => entry.get(kind).map(Self::KeptBatch),
            Kind::Upstream => entry.get(kind).map(Self::Upstream),
            Kind::UpstreamWriter => entry.get(kind).map(Self::UpstreamWriter),
            Kind::RecordWriter => entry.get(kind).map(Self::RecordWriter),
            Kind::GuestPort => entry.get(kind).map(Self::GuestPort),
            Kind::ElementReader => entry.get(kind).map(Self::ElementReader),
            Kind::ImportCall => entry.get(kind).map(Self::ImportCall),
        }
        .ok()
    }
}

/// Inserts an object and returns its handle. A call already has one.
///
/// # Errors
/// `overloaded`: 16,777,216 handles are open, or there is not enough memory for more.
pub fn insert(object: Object) -> Result<u64, Failure> {
    match object {
        Object::Port(port) => handles::insert(Kind::Port, port),
        Object::Client(instance) => handles::insert(Kind::Client, instance),
        Object::Call(call) => Ok(call.handle()),
        Object::Stream(stream) => handles::insert(Kind::Stream, stream),
        Object::Resource(Resource(inner)) => handles::insert(Kind::Resource, inner),
        Object::KeptBatch(batch) => handles::insert(Kind::KeptBatch, batch),
        Object::Upstream(stream) => handles::insert(Kind::Upstream, stream),
        Object::UpstreamWriter(stream) => handles::insert(Kind::UpstreamWriter, stream),
        Object::RecordWriter(writer) => handles::insert(Kind::RecordWriter, writer),
        Object::GuestPort(port) => handles::insert(Kind::GuestPort, port),
        Object::ElementReader(reader) => handles::insert(Kind::ElementReader, reader),
        Object::ImportCall(call) => handles::insert(Kind::ImportCall, call),
    }
}

/// The object of a handle.
///
/// # Errors
/// `argument`, `stale`, `forked`.
pub fn find(handle: u64) -> Result<Object, Failure> {
    handles::with(handle, |entry| Object::of_entry(entry, handle))
}

/// The client of a handle.
///
/// # Errors
/// The errors of [`find`]. `argument`: the handle is that of another kind of object.
#[inline]
pub fn find_client(handle: u64) -> Result<Arc<Instance>, Failure> {
    handles::find_as(handle, Kind::Client)
}

/// The port of a handle.
///
/// # Errors
/// The errors of [`find_client`].
#[inline]
pub fn find_port(handle: u64) -> Result<Arc<Port>, Failure> {
    handles::find_as(handle, Kind::Port)
}

/// The stream of a handle.
///
/// # Errors
/// The errors of [`find_client`].
#[inline]
pub fn find_stream(handle: u64) -> Result<Arc<StreamCore>, Failure> {
    handles::find_as(handle, Kind::Stream)
}

/// The writing end of a stream that is a parameter.
///
/// # Errors
/// The errors of [`find_client`].
#[inline]
pub fn find_stream_writer(handle: u64) -> Result<Arc<UpstreamCore>, Failure> {
    handles::find_as(handle, Kind::UpstreamWriter)
}

/// Removes an object. The handle is stale afterwards. A call stays in the table until it ends.
///
/// # Errors
/// The errors of [`find`].
pub fn remove(handle: u64) -> Result<Object, Failure> {
    Object::of_entry(&handles::remove(handle)?, handle).ok_or_else(handles::stale)
}

/// Numbers of open handles, by the kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleCounts {
    /// Ports, those of guests included.
    pub ports: u64,
    /// Clients.
    pub clients: u64,
    /// Calls that have not ended.
    pub calls: u64,
    /// Calls of these clients that their service has not begun.
    pub queued_calls: u64,
    /// Streams to read, both ends of streams that are parameters, and the readers and writers of guests.
    pub streams: u64,
    /// Resources.
    pub resources: u64,
    /// Retained batches.
    pub batches: u64,
    /// Completions that were reaped and not released.
    pub completions: u64,
}

/// Counts the open handles. The numbers are not those of one moment, because handles may be opened
/// and closed meanwhile. It looks at every slot of the table. Their number is the largest number of
/// handles that were open at the same time.
///
/// ```
/// use thalweg_port::{Object, Port, close_handle, handle_counts, insert};
///
/// let port = insert(Object::Port(Port::open(4)?))?;
/// assert!(handle_counts().ports >= 1);
/// close_handle(port)?;
/// # Ok::<(), thalweg_port::Failure>(())
/// ```
pub fn handle_counts() -> HandleCounts {
    let mut counts = HandleCounts::default();
    handles::for_each(|content| counts.add(&content));
    counts
}

impl HandleCounts {
    fn add(&mut self, content: &Content<'_>) {
        let entry = match content {
            Content::Object(entry) => entry,
            Content::Lent(Lent::Completion) => {
                self.completions += 1;
                return;
            }
            // Its call is counted until it ends.
            Content::Lent(Lent::Incoming) => return,
        };
        let number = match entry.kind {
            // Its call is counted.
            Kind::ImportCall => return,
            Kind::Port | Kind::GuestPort => &mut self.ports,
            Kind::Client => {
                let client = entry.get::<Instance>(Kind::Client);
                self.queued_calls += client.map_or(0, |client| client.queued_calls() as u64);
                &mut self.clients
            }
            Kind::Call => {
                let call = entry.get::<CallCore>(Kind::Call);
                if call.is_ok_and(|call| call.has_ended()) {
                    return;
                }
                &mut self.calls
            }
            Kind::Stream
            | Kind::Upstream
            | Kind::UpstreamWriter
            | Kind::RecordWriter
            | Kind::ElementReader => &mut self.streams,
            Kind::Resource => &mut self.resources,
            Kind::KeptBatch => &mut self.batches,
        };
        *number += 1;
    }
}
