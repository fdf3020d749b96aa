//! `ciborium` and `postcard`, using serde's derives.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, Value};

/// `ciborium`.
#[derive(Debug)]
pub struct Ciborium;

/// `postcard`.
#[derive(Debug)]
pub struct Postcard;

impl<V: Value + Serialize + DeserializeOwned> Codec<V> for Ciborium {
    const NAME: &'static str = "ciborium";
    type Own = V;
    type Buffer = Vec<u8>;

    fn own(value: &V) -> V {
        value.clone()
    }

    fn value(own: &V) -> V {
        own.clone()
    }

    fn encode(own: &V, buffer: &mut Vec<u8>) -> usize {
        buffer.clear();
        ciborium::into_writer(own, &mut *buffer).expect("memory has room");
        buffer.len()
    }

    fn decode(buffer: &Vec<u8>) -> V {
        ciborium::from_reader(buffer.as_slice()).expect("it was just written")
    }
}

impl<V: Value + Serialize + DeserializeOwned> Codec<V> for Postcard {
    const NAME: &'static str = "postcard";
    type Own = V;
    type Buffer = Vec<u8>;

    fn own(value: &V) -> V {
        value.clone()
    }

    fn value(own: &V) -> V {
        own.clone()
    }

    fn encode(own: &V, buffer: &mut Vec<u8>) -> usize {
        let mut emptied = std::mem::take(buffer);
        emptied.clear();
        *buffer = postcard::to_extend(own, emptied).expect("memory has room");
        buffer.len()
    }

    fn decode(buffer: &Vec<u8>) -> V {
        postcard::from_bytes(buffer).expect("it was just written")
    }
}
