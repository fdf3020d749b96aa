//! Our two codecs as the lab's generated code implements them: `flat` and `cbor`.

use thalweg::wire::{Decode, Encode, cbor, message};
use thalweg_lab::lab;
use thalweg_peers::codec::values::{
    BytesPayload, ComplexRequest, EchoRequest, EchoResponse, Value, ends,
};
use thalweg_peers::codec::{Codec, InPlace};

/// Flat messages.
#[derive(Debug)]
pub struct Flat;

/// CBOR.
#[derive(Debug)]
pub struct Cbor;

/// A value of the peers that has a generated type.
pub trait Ours: Value {
    /// The generated type.
    type Generated: Encode<As = Self::Generated> + cbor::Cbor + 'static;

    /// Converts to the generated type.
    fn generated(&self) -> Self::Generated;

    /// Converts back.
    fn plain(generated: &Self::Generated) -> Self;

    /// [`Value::sum`] of a value that is read in place.
    fn sum_of_view(view: &<Self::Generated as Decode>::View<'_>) -> u64;
}

impl<V: Ours> Codec<V> for Flat {
    const NAME: &'static str = "flat";
    type Own = V::Generated;
    type Buffer = Vec<u8>;

    fn own(value: &V) -> V::Generated {
        value.generated()
    }

    fn value(own: &V::Generated) -> V {
        V::plain(own)
    }

    fn encode(own: &V::Generated, buffer: &mut Vec<u8>) -> usize {
        message::encode_into(own, V::Generated::HASH, buffer).expect("it is small");
        buffer.len()
    }

    fn decode(buffer: &Vec<u8>) -> V::Generated {
        message::open(buffer, V::Generated::HASH)
            .and_then(|message| message.owned::<V::Generated>())
            .expect("it was just written")
    }
}

impl<V: Ours> InPlace<V> for Flat {
    fn view(buffer: &Vec<u8>) -> u64 {
        let view = message::open(buffer, V::Generated::HASH)
            .and_then(|message| message.view::<V::Generated>())
            .expect("it was just written");
        V::sum_of_view(&view)
    }
}

impl<V: Ours> Codec<V> for Cbor {
    const NAME: &'static str = "cbor";
    type Own = V::Generated;
    type Buffer = Vec<u8>;

    fn own(value: &V) -> V::Generated {
        value.generated()
    }

    fn value(own: &V::Generated) -> V {
        V::plain(own)
    }

    fn encode(own: &V::Generated, buffer: &mut Vec<u8>) -> usize {
        *buffer = cbor::encode(own, std::mem::take(buffer));
        buffer.len()
    }

    fn decode(buffer: &Vec<u8>) -> V::Generated {
        cbor::decode(buffer).expect("it was just written")
    }
}

fn sum_of_request(request: &lab::EchoRequestView<'_>) -> u64 {
    ends(request.message.as_bytes()).wrapping_add_signed(request.delay_ms)
}

impl Ours for EchoRequest {
    type Generated = lab::EchoRequest;

    fn generated(&self) -> lab::EchoRequest {
        lab::EchoRequest {
            message: self.message.clone(),
            delay_ms: self.delay_ms,
        }
    }

    fn plain(generated: &lab::EchoRequest) -> Self {
        Self {
            message: generated.message.clone(),
            delay_ms: generated.delay_ms,
        }
    }

    fn sum_of_view(view: &lab::EchoRequestView<'_>) -> u64 {
        sum_of_request(view)
    }
}

impl Ours for EchoResponse {
    type Generated = lab::EchoResponse;

    fn generated(&self) -> lab::EchoResponse {
        lab::EchoResponse {
            echoed: self.echoed.clone(),
            timer_name: self.timer_name.clone(),
        }
    }

    fn plain(generated: &lab::EchoResponse) -> Self {
        Self {
            echoed: generated.echoed.clone(),
            timer_name: generated.timer_name.clone(),
        }
    }

    fn sum_of_view(view: &lab::EchoResponseView<'_>) -> u64 {
        ends(view.echoed.as_bytes()) + ends(view.timer_name.as_bytes())
    }
}

impl Ours for ComplexRequest {
    type Generated = lab::ComplexRequest;

    fn generated(&self) -> lab::ComplexRequest {
        lab::ComplexRequest {
            messages: self.messages.iter().map(EchoRequest::generated).collect(),
            tags: self.tags.clone(),
            note: self.note.clone(),
            retries: self.retries,
        }
    }

    fn plain(generated: &lab::ComplexRequest) -> Self {
        Self {
            messages: generated.messages.iter().map(EchoRequest::plain).collect(),
            tags: generated.tags.clone(),
            note: generated.note.clone(),
            retries: generated.retries,
        }
    }

    fn sum_of_view(view: &lab::ComplexRequestView<'_>) -> u64 {
        let messages: u64 = view.messages.iter().map(|it| sum_of_request(&it)).sum();
        let tags: u64 = view.tags.iter().map(|tag| ends(tag.as_bytes())).sum();
        let note = view.note.map_or(0, |note| ends(note.as_bytes()));
        (messages + tags + note).wrapping_add_signed(view.retries.unwrap_or(0))
    }
}

impl Ours for BytesPayload {
    type Generated = lab::BytesPayload;

    fn generated(&self) -> lab::BytesPayload {
        lab::BytesPayload {
            data: self.data.clone(),
        }
    }

    fn plain(generated: &lab::BytesPayload) -> Self {
        Self {
            data: generated.data.clone(),
        }
    }

    fn sum_of_view(view: &lab::BytesPayloadView<'_>) -> u64 {
        ends(view.data.as_bytes())
    }
}
