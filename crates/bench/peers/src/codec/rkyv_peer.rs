//! `rkyv`: read in place after its own check.

use rkyv::rancor::Error;
use rkyv::util::AlignedVec;

use super::values::{BytesPayload, ComplexRequest, EchoRequest, EchoResponse, ends};
use super::{Codec, InPlace};

/// `rkyv`.
#[derive(Debug)]
pub struct Rkyv;

macro_rules! codec {
    ($value:ty, $archived:ty, $sum:expr) => {
        impl Codec<$value> for Rkyv {
            const NAME: &'static str = "rkyv";
            type Own = $value;
            type Buffer = AlignedVec;

            fn own(value: &$value) -> $value {
                value.clone()
            }

            fn value(own: &$value) -> $value {
                own.clone()
            }

            fn encode(own: &$value, buffer: &mut AlignedVec) -> usize {
                let mut emptied = std::mem::take(buffer);
                emptied.clear();
                *buffer = rkyv::api::high::to_bytes_in::<_, Error>(own, emptied)
                    .expect("memory has room");
                buffer.len()
            }

            fn decode(buffer: &AlignedVec) -> $value {
                rkyv::from_bytes::<$value, Error>(buffer).expect("it was just written")
            }
        }

        impl InPlace<$value> for Rkyv {
            fn view(buffer: &AlignedVec) -> u64 {
                let archived =
                    rkyv::access::<$archived, Error>(buffer).expect("it was just written");
                let sum: fn(&$archived) -> u64 = $sum;
                sum(archived)
            }
        }
    };
}

fn request(request: &rkyv::Archived<EchoRequest>) -> u64 {
    ends(request.message.as_bytes()).wrapping_add_signed(request.delay_ms.to_native())
}

codec!(EchoRequest, rkyv::Archived<EchoRequest>, request);
codec!(EchoResponse, rkyv::Archived<EchoResponse>, |response| {
    ends(response.echoed.as_bytes()) + ends(response.timer_name.as_bytes())
});
codec!(ComplexRequest, rkyv::Archived<ComplexRequest>, |complex| {
    let messages: u64 = complex.messages.iter().map(request).sum();
    let tags: u64 = complex.tags.iter().map(|tag| ends(tag.as_bytes())).sum();
    let note = complex
        .note
        .as_ref()
        .map_or(0, |note| ends(note.as_bytes()));
    let retries = complex.retries.as_ref().map_or(0, |n| n.to_native());
    (messages + tags + note).wrapping_add_signed(retries)
});
codec!(BytesPayload, rkyv::Archived<BytesPayload>, |payload| ends(
    &payload.data
));
