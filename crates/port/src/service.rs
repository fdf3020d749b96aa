//! What a service says of itself, and the seam to generated code.

use std::any::Any;
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_wire::{Bytes, Shape};

use crate::incoming::Incoming;
use crate::inline::Inline;

/// A package: what one library offers. Generated code has one constant of it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// `thalweg:search`.
    pub name: &'static str,
    /// `0.1.0`.
    pub version: &'static str,
    /// Hash over all methods.
    pub layout: u64,
    /// In the order of their numbers.
    pub methods: &'static [Method],
    /// What its service asks of its host, in the order of their numbers.
    pub imports: &'static [Method],
    /// How much may wait for an instance.
    pub bounds: Bounds,
}

/// A method: its name as WIT writes it, and the hashes of its layouts; 0 where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// `search.[method]query.progress`.
    pub name: &'static str,
    /// Of the parameters.
    pub params: u64,
    /// Of the result.
    pub ok: u64,
    /// Of the error's payload.
    pub error: u64,
    /// Of the stream's element.
    pub element: u64,
    /// `async func`: the client's next call does not wait for it.
    pub is_async: bool,
    /// What the policy file says of it besides.
    pub options: MethodOptions,
    /// Of the stream that it returns.
    pub stream: Option<StreamOptions>,
    /// The texts that the four hashes are of, a line each, empty where there is none: what
    /// [`Type::parse`](thalweg_wire::describe::Type::parse) reads.
    pub description: &'static str,
}

impl Method {
    /// Of a parameter that is a stream or a future: the hash of its element's layout, and whether it is a future. By its number, `self`
    /// among them.
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

/// What a policy file says of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodOptions {
    /// It runs on the caller's thread: [`Inline`] serves it.
    pub is_inline: bool,
    /// A second run does no harm, so that a call that was lost on its way may be made again.
    pub is_idempotent: bool,
    /// Nanoseconds after which a call that runs tells it to who asked to be told, again and again; 0: never.
    pub notice_ns: u64,
    /// Nanoseconds that a call has at most, and what it gives of streams and futures with it: then it ends as `timed_out`. The deadline that its caller
    /// gave holds where that is before. 0: the caller's alone.
    pub deadline_ns: u64,
}

impl MethodOptions {
    /// Nothing is said.
    pub const NONE: Self = Self {
        is_inline: false,
        is_idempotent: false,
        notice_ns: 0,
        deadline_ns: 0,
    };

    /// When a call that is made now ends at the latest, whose caller says `deadline`.
    pub(crate) fn limit_deadline(&self, deadline: u64) -> u64 {
        match self.deadline_ns {
            0 => deadline,
            ns => deadline.min(clock::deadline(Duration::from_nanos(ns))),
        }
    }
}

/// How much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Calls that may wait for one instance; more are `overloaded`.
    pub calls: u32,
    /// Maximum total size in bytes of the arguments that wait for one instance, and of the results in one
    /// port. Beyond it, the next call is `overloaded`. Beyond four times as much in a port, accepted calls
    /// that have not begun also end as `overloaded`. Messages of up to 512 bytes are not counted, because
    /// `calls` bounds them.
    pub bytes: u64,
    /// A submission for which there is no room in the instance waits for it, until its call's deadline, where it may ([`SubmitOptions::waits`](crate::Wishes::waits); the calls of
    /// a [`Client`](crate::Client) do). It parks the thread or the actor that submits, so an executor's thread, too. What a port has no place for is refused all the same.
    pub waits: bool,
}

impl Bounds {
    /// Bytes of results on a port beyond which no further call begins: four times what may be there when a call is submitted, so that calls that are
    /// accepted together and reaped as they end are not refused for being fast.
    pub(crate) fn max_unreaped_bytes(&self) -> u64 {
        self.bytes.saturating_mul(4)
    }

    /// Where the policy file says nothing: 4,096 calls, 64 MiB.
    pub const DEFAULT: Self = Self {
        calls: 4096,
        bytes: 64 << 20,
        waits: false,
    };
}

/// How a stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// What happens when the reader is slow.
    pub policy: Policy,
    /// Records in flight.
    pub capacity: u32,
    /// How long a reader that was given something just now waits for more, before the next record wakes it: nanoseconds, at most. A wait of less than 64
    /// us saves no wake-up, so with less each record that is waited for wakes its reader at once.
    pub linger_ns: u64,
    /// Bytes that one record may have, with its texts and lists. A writer refuses a larger one as `argument`. From 64 KiB to 512 MiB.
    pub largest_record: u32,
}

/// Bytes that a record may have where the policy file does not say otherwise, and that an element may have that a caller sends.
pub(crate) const LARGEST_RECORD: u32 = 64 << 20;

impl StreamOptions {
    /// The defaults: 8,192 records, whose writers wait, 512 us, and 64 MiB for one record.
    pub const DEFAULT: Self = Self {
        policy: Policy::Block,
        capacity: 8192,
        linger_ns: 512_000,
        largest_record: LARGEST_RECORD,
    };
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens when the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The writer waits.
    Block,
    /// A newer record replaces the one that waits; counted.
    Latest,
    /// The new record is dropped; counted.
    DropNewest,
    /// The oldest records are dropped, up to a 32nd of the capacity at a time; counted.
    DropOldest,
    /// `send` is refused as `overloaded`.
    Fail,
    /// A newer record replaces the one of the same key that waits; counted. They come in the order in which their keys came to wait, each in
    /// a batch alone. The capacity is how many keys may wait: a further one's writer waits.
    Conflate(Key),
}

/// Says which key a record has: writes the key's bytes, of the record that stands there.
///
/// ```
/// use thalweg_port::{Key, Policy, StreamOptions};
/// use thalweg_wire::Decode;
///
/// const BY_NAME: StreamOptions = StreamOptions {
///     policy: Policy::Conflate(Key(|bytes, at, key| {
///         let (name, _) = <(String, u64)>::view(bytes, at);
///         key.extend_from_slice(name.as_bytes());
///     })),
///     capacity: 1024,
///     ..StreamOptions::DEFAULT
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Key(pub fn(Bytes<'_>, u32, &mut Vec<u8>));

impl PartialEq for Key {
    /// The same function. That one is another's address is no proof that it does something else.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for Key {}

/// A service, as the core sees it: generated code implements it over the trait that an author implements.
pub trait Service: Send + 'static {
    /// What it offers.
    const PACKAGE: &'static Package;

    /// Serves one call, on the instance's actor.
    fn dispatch(&mut self, incoming: Incoming);

    /// Which method ends a resource of this value's type, where it has an async destructor.
    fn destructor(value: &(dyn Any + Send + Sync)) -> Option<u32> {
        let _ = value;
        None
    }

    /// Makes what serves the inline methods: once for each instance, on the thread that calls the first of them. `None`: there are none.
    fn inline() -> Option<Box<dyn Inline>> {
        None
    }
}

/// A service whose type is forgotten.
pub(crate) trait Dispatch: Send {
    fn dispatch(&mut self, incoming: Incoming);
    fn destructor(&self, value: &(dyn Any + Send + Sync)) -> Option<u32>;
}

impl<S: Service> Dispatch for S {
    fn dispatch(&mut self, incoming: Incoming) {
        Service::dispatch(self, incoming);
    }

    fn destructor(&self, value: &(dyn Any + Send + Sync)) -> Option<u32> {
        S::destructor(value)
    }
}
