//! `bincode`: its own derives and its standard configuration, in the last release that contains
//! code rather than a notice.

use super::{Codec, Value};

/// `bincode`.
#[derive(Debug)]
pub struct Bincode;

impl<V: Value + bincode::Encode + bincode::Decode<()>> Codec<V> for Bincode {
    const NAME: &'static str = "bincode";
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
        bincode::encode_into_std_write(own, buffer, bincode::config::standard())
            .expect("memory has room")
    }

    fn decode(buffer: &Vec<u8>) -> V {
        let (value, read) = bincode::decode_from_slice(buffer, bincode::config::standard())
            .expect("it was just written");
        assert_eq!(read, buffer.len());
        value
    }
}
