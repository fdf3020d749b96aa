//! The description of a service: its package, methods, limits and stream options.

use std::time::Duration;

use thalweg_queue::clock;
use thalweg_wire::{Bytes, Shape};

/// A package: the functions of one library. Generated code defines one constant of this type.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The WIT name: `thalweg:search`.
    pub name: &'static str,
    /// The version: `0.1.0`.
    pub version: &'static str,
    /// Hash over all methods.
    pub layout: u64,
    /// The methods, in the order of their numbers.
    pub methods: &'static [Method],
    /// The host imports, in the order of their numbers.
    pub imports: &'static [Method],
    /// Limits for the calls and bytes that wait for an instance.
    pub limits: QueueLimits,
}

/// A method: its WIT name, and the hashes of its layouts. A hash is 0 if there is no such layout.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The WIT name: `search.[method]query.progress`.
    pub name: &'static str,
    /// Layout of the parameters.
    pub params: u64,
    /// Layout of the result.
    pub ok: u64,
    /// Layout of the error's payload.
    pub error: u64,
    /// Layout of the stream's element.
    pub element: u64,
    /// `async func`: the client's next call does not wait for this one.
    pub is_async: bool,
    /// Options from the policy file.
    pub options: MethodOptions,
    /// Options of the stream that the method returns.
    pub stream: Option<StreamOptions>,
    /// The texts of the four hashes, one per line. A
    /// line is empty if there is no such layout.
    /// [`Type::parse`](thalweg_wire::describe::Type::parse) reads them.
    pub description: &'static str,
}

impl Method {
    /// A method with this name and [`description`](Self::description), from which the hashes follow.
    ///
    /// ```
    /// use thalweg_port::{Method, StreamOptions};
    ///
    /// const COUNT: Method = Method::new("feed.count", "record{to:u64}\nstream<u64>\n\nu64")
    ///     .with_stream(StreamOptions::DEFAULT);
    /// assert_eq!((COUNT.ok, COUNT.error), (0x9a7c_2815_3b5d_3c3a, 0));
    /// ```
    pub const fn new(name: &'static str, description: &'static str) -> Self {
        let [params, ok, error, element] = Shape::hash_lines(description);
        Self {
            name,
            params,
            ok,
            error,
            element,
            is_async: false,
            options: MethodOptions::NONE,
            stream: None,
            description,
        }
    }

    /// The same method as an `async func`.
    pub const fn asynchronous(self) -> Self {
        Self {
            is_async: true,
            ..self
        }
    }

    /// The same method with these options.
    pub const fn with_options(self, options: MethodOptions) -> Self {
        Self { options, ..self }
    }

    /// The same method, which returns a stream with these options.
    pub const fn with_stream(self, stream: StreamOptions) -> Self {
        Self {
            stream: Some(stream),
            ..self
        }
    }

    /// For a parameter that is a stream or a future: the hash of its element's layout, and whether
    /// it is a future. `parameter` is its number; `self` counts.
    pub fn upstream_parameter(&self, parameter: u32) -> Option<(u64, bool)> {
        let params = self.description.lines().next()?;
        let params = params.strip_prefix("record{")?.strip_suffix('}')?;
        let (mut depth, mut number) = (0, 0);
        let mut parameters = params.split(|letter| {
            match letter {
                '<' | '{' | '(' => depth += 1,
                '>' | '}' | ')' => depth -= 1,
                ',' if depth == 0 => return true,
                _ => {}
            }
            false
        });
        let parameter = parameters.find(|_| {
            number += 1;
            number > parameter
        })?;
        let (_, ty) = parameter.split_once(':')?;
        let (ty, is_future) = match ty.strip_prefix("stream<") {
            Some(element) => (element, false),
            None => (ty.strip_prefix("future<")?, true),
        };
        Some((Shape::hash_of(ty.strip_suffix('>')?), is_future))
    }
}

/// Options of a method from the policy file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodOptions {
    /// The method runs on the caller's thread: [`Inline`](crate::Inline) serves it.
    pub is_inline: bool,
    /// The method is short and never waits, so a caller's thread may run it while the instance is
    /// idle. A wait in it ends the call as `would_park` and replaces the service.
    pub is_brief: bool,
    /// It is safe to run the method twice, so a call whose outcome is unknown may be repeated.
    pub is_idempotent: bool,
    /// A caller may use CBOR for it: [`Instance::set_cbor`](crate::Instance::set_cbor). Its parameters
    /// and its results are values.
    pub is_cbor: bool,
    /// Interval of progress notices in nanoseconds, for callers that request them. 0: no notices.
    pub notice_interval_ns: u64,
    /// Maximum duration in nanoseconds of a call, including the streams and futures that it
    /// returns. Beyond it, the call ends as `timed_out`. An earlier deadline of the caller has
    /// priority. 0: only the caller's deadline applies.
    pub timeout_ns: u64,
}

impl MethodOptions {
    /// The defaults.
    pub const NONE: Self = Self {
        is_inline: false,
        is_brief: false,
        is_idempotent: false,
        is_cbor: false,
        notice_interval_ns: 0,
        timeout_ns: 0,
    };

    /// The deadline of a call that begins now with the caller's deadline `deadline`.
    pub(crate) fn limit_deadline(&self, deadline: u64) -> u64 {
        match self.timeout_ns {
            0 => deadline,
            ns => deadline.min(clock::deadline(Duration::from_nanos(ns))),
        }
    }
}

/// Limits for what may wait in an instance and in a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of calls that wait for one instance. Further calls are `overloaded`.
    pub max_queued_calls: u32,
    /// Maximum total size in bytes of the arguments that wait for one instance, and of the results
    /// in one port. Beyond it, the next call is `overloaded`. Beyond four times as much in a port,
    /// accepted calls that have not begun also end as `overloaded`. Messages of up to 512 bytes are
    /// not counted, because `max_queued_calls` bounds them.
    pub max_queued_bytes: u64,
    /// A submission to a full instance waits for capacity until its call's deadline, if the
    /// submission allows it ([`SubmitOptions::waits`](crate::SubmitOptions::waits); always for
    /// calls of a [`Client`](crate::Client)). The wait parks the submitting thread or actor, and so
    /// also blocks an executor's thread. A submission to a full port is always refused.
    pub blocks_on_overflow: bool,
}

impl QueueLimits {
    /// Size of unreaped results in a port beyond which no further call begins. It is four times the
    /// limit for submissions, so that calls that are accepted together and reaped as they end are
    /// not refused for being fast.
    pub(crate) fn max_unreaped_bytes(&self) -> u64 {
        self.max_queued_bytes.saturating_mul(4)
    }

    /// The defaults: 4,096 calls, 64 MiB.
    pub const DEFAULT: Self = Self {
        max_queued_calls: 4096,
        max_queued_bytes: 64 << 20,
        blocks_on_overflow: false,
    };
}

/// Options of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The overflow policy: what happens when the reader is slow.
    pub overflow: Overflow,
    /// Maximum number of records in the stream.
    pub capacity: u32,
    /// Maximum linger time in nanoseconds: how long a reader that has just received records waits
    /// for more before the next record wakes it. A wait shorter than 64 us saves no wake-up, so
    /// with a smaller value each record wakes a waiting reader at once. 0, the default: the same,
    /// except in a stream whose records arrive less than 2 us apart, whose reader waits up to 512
    /// us.
    pub linger_ns: u64,
    /// Maximum size of one record in bytes, including its strings and lists, from 64 KiB to 512
    /// MiB. A writer refuses a larger record as `argument`.
    pub max_record_size: u32,
}

/// Default maximum size of a record, and the maximum size of an element that a caller sends.
pub(crate) const MAX_RECORD_SIZE: u32 = 64 << 20;

impl StreamOptions {
    /// The defaults: 8,192 records, `block`, no linger time, and 64 MiB per record.
    pub const DEFAULT: Self = Self {
        overflow: Overflow::Block,
        capacity: 8192,
        linger_ns: 0,
        max_record_size: MAX_RECORD_SIZE,
    };
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens when the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The writer waits.
    Block,
    /// A newer record replaces the waiting one. The replaced record is counted.
    Latest,
    /// The new record is dropped and counted.
    DropNewest,
    /// The oldest records are dropped and counted, up to a 32nd of the capacity at a time.
    DropOldest,
    /// `send` fails with `overloaded`.
    Fail,
    /// A newer record replaces the waiting record with the same key. The replaced record is
    /// counted. Records are delivered in the order in which their keys were queued, each in a batch
    /// of its own. The capacity is the maximum number of waiting keys. A writer with a further key
    /// waits.
    Conflate(ConflationKey),
}

/// Computes the conflation key of a record. The function receives the message, the offset of the
/// record, and a buffer for the bytes of the key.
///
/// ```
/// use thalweg_port::{ConflationKey, Overflow, StreamOptions};
/// use thalweg_wire::Decode;
///
/// const BY_NAME: StreamOptions = StreamOptions {
///     overflow: Overflow::Conflate(ConflationKey(|bytes, at, key| {
///         let (name, _) = <(String, u64)>::view(bytes, at);
///         key.extend_from_slice(name.as_bytes());
///     })),
///     capacity: 1024,
///     ..StreamOptions::DEFAULT
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ConflationKey(pub fn(Bytes<'_>, u32, &mut Vec<u8>));

impl PartialEq for ConflationKey {
    /// Whether both are the same function. Two functions with different addresses may still behave
    /// alike.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for ConflationKey {}
