//! `flatbuffers`: the compiler's output for the four types, reduced to the parts that are used
//! here.

use flatbuffers::{
    FlatBufferBuilder, Follow, ForwardsUOffset, InvalidFlatbuffer, Table, Vector, Verifiable,
    Verifier, WIPOffset,
};

use super::values::{BytesPayload, ComplexRequest, EchoRequest, EchoResponse, ends};
use super::{Codec, InPlace};

/// `flatbuffers`.
#[derive(Debug)]
pub struct FlatBuffers;

/// A finished buffer and the builder that wrote it.
#[derive(Default)]
pub struct Built(FlatBufferBuilder<'static>);

impl std::fmt::Debug for Built {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Built")
    }
}

type Text<'a> = ForwardsUOffset<&'a str>;
type Tables<'a> = ForwardsUOffset<Vector<'a, ForwardsUOffset<Request<'a>>>>;
type Texts<'a> = ForwardsUOffset<Vector<'a, ForwardsUOffset<&'a str>>>;
type Blob<'a> = ForwardsUOffset<Vector<'a, u8>>;

/// The position of field number `n` in a table's vtable.
const fn slot(n: u16) -> u16 {
    4 + 2 * n
}

macro_rules! table {
    ($name:ident, $($field:ident: $slot:literal $ty:ty, $required:literal;)*) => {
        #[derive(Clone, Copy)]
        struct $name<'a>(Table<'a>);

        impl<'a> Follow<'a> for $name<'a> {
            type Inner = Self;

            unsafe fn follow(buf: &'a [u8], loc: usize) -> Self {
                // SAFETY: the caller guarantees that a table of this type is at this position.
                Self(unsafe { Table::new(buf, loc) })
            }
        }

        impl<'a> Verifiable for $name<'a> {
            fn run_verifier(verifier: &mut Verifier<'_, '_>, at: usize) -> Result<(), InvalidFlatbuffer> {
                verifier
                    .visit_table(at)?
                    $(.visit_field::<$ty>(stringify!($field), slot($slot), $required)?)*
                    .finish();
                Ok(())
            }
        }

        impl<'a> $name<'a> {
            $(
                fn $field(self) -> Option<<$ty as Follow<'a>>::Inner> {
                    // SAFETY: the verifier has found this type there, or no field.
                    unsafe { self.0.get::<$ty>(slot($slot), None) }
                }
            )*
        }
    };
}

table!(Request, message: 0 Text<'a>, true; delay_ms: 1 i64, false;);
table!(Response, echoed: 0 Text<'a>, true; timer_name: 1 Text<'a>, true;);
table!(Complex, messages: 0 Tables<'a>, true; tags: 1 Texts<'a>, true; note: 2 Text<'a>, false; retries: 3 i64, false;);
table!(Payload, data: 0 Blob<'a>, true;);

type Offset = WIPOffset<flatbuffers::TableFinishedWIPOffset>;

fn request(builder: &mut FlatBufferBuilder<'static>, request: &EchoRequest) -> Offset {
    let message = builder.create_string(&request.message);
    let table = builder.start_table();
    builder.push_slot_always(slot(1), request.delay_ms);
    builder.push_slot_always(slot(0), message);
    builder.end_table(table)
}

fn finish(built: &mut Built, root: Offset) -> usize {
    built.0.finish_minimal(root);
    built.0.finished_data().len()
}

fn required<T>(field: Option<T>) -> T {
    field.expect("the verifier has found it")
}

fn sum_of_request(request: Request<'_>) -> u64 {
    ends(required(request.message()).as_bytes())
        .wrapping_add_signed(request.delay_ms().unwrap_or(0))
}

fn owned_request(request: Request<'_>) -> EchoRequest {
    EchoRequest {
        message: required(request.message()).to_owned(),
        delay_ms: request.delay_ms().unwrap_or(0),
    }
}

macro_rules! codec {
    ($value:ty, $table:ident, $write:expr, $read:expr, $sum:expr) => {
        impl Codec<$value> for FlatBuffers {
            const NAME: &'static str = "flatbuffers";
            type Own = $value;
            type Buffer = Built;

            fn own(value: &$value) -> $value {
                value.clone()
            }

            fn value(own: &$value) -> $value {
                own.clone()
            }

            fn encode(own: &$value, buffer: &mut Built) -> usize {
                buffer.0.reset();
                let write: fn(&mut FlatBufferBuilder<'static>, &$value) -> Offset = $write;
                let root = write(&mut buffer.0, own);
                finish(buffer, root)
            }

            fn decode(buffer: &Built) -> $value {
                let table = flatbuffers::root::<$table<'_>>(buffer.0.finished_data())
                    .expect("it was just written");
                let read: fn($table<'_>) -> $value = $read;
                read(table)
            }
        }

        impl InPlace<$value> for FlatBuffers {
            fn view(buffer: &Built) -> u64 {
                let table = flatbuffers::root::<$table<'_>>(buffer.0.finished_data())
                    .expect("it was just written");
                let sum: fn($table<'_>) -> u64 = $sum;
                sum(table)
            }
        }
    };
}

codec!(EchoRequest, Request, request, owned_request, sum_of_request);
codec!(
    EchoResponse,
    Response,
    |builder, response| {
        let echoed = builder.create_string(&response.echoed);
        let timer_name = builder.create_string(&response.timer_name);
        let table = builder.start_table();
        builder.push_slot_always(slot(1), timer_name);
        builder.push_slot_always(slot(0), echoed);
        builder.end_table(table)
    },
    |response| EchoResponse {
        echoed: required(response.echoed()).to_owned(),
        timer_name: required(response.timer_name()).to_owned(),
    },
    |response| {
        ends(required(response.echoed()).as_bytes())
            + ends(required(response.timer_name()).as_bytes())
    }
);
codec!(
    ComplexRequest,
    Complex,
    |builder, complex| {
        let messages: Vec<Offset> = complex
            .messages
            .iter()
            .map(|message| request(builder, message))
            .collect();
        let messages = builder.create_vector(&messages);
        let tags: Vec<_> = complex
            .tags
            .iter()
            .map(|tag| builder.create_string(tag))
            .collect();
        let tags = builder.create_vector(&tags);
        let note = complex
            .note
            .as_ref()
            .map(|note| builder.create_string(note));
        let table = builder.start_table();
        if let Some(retries) = complex.retries {
            builder.push_slot_always(slot(3), retries);
        }
        if let Some(note) = note {
            builder.push_slot_always(slot(2), note);
        }
        builder.push_slot_always(slot(1), tags);
        builder.push_slot_always(slot(0), messages);
        builder.end_table(table)
    },
    |complex| ComplexRequest {
        messages: required(complex.messages())
            .iter()
            .map(owned_request)
            .collect(),
        tags: required(complex.tags()).iter().map(str::to_owned).collect(),
        note: complex.note().map(str::to_owned),
        retries: complex.retries(),
    },
    |complex| {
        let messages: u64 = required(complex.messages())
            .iter()
            .map(sum_of_request)
            .sum();
        let tags: u64 = required(complex.tags())
            .iter()
            .map(|tag| ends(tag.as_bytes()))
            .sum();
        let note = complex.note().map_or(0, |note| ends(note.as_bytes()));
        (messages + tags + note).wrapping_add_signed(complex.retries().unwrap_or(0))
    }
);
codec!(
    BytesPayload,
    Payload,
    |builder, payload| {
        let data = builder.create_vector(&payload.data);
        let table = builder.start_table();
        builder.push_slot_always(slot(0), data);
        builder.end_table(table)
    },
    |payload| BytesPayload {
        data: required(payload.data()).bytes().to_vec(),
    },
    |payload| ends(required(payload.data()).bytes())
);
